//! A fence that one thread makes all others run: `membarrier`.
//!
//! The only file that calls it, so that loom can put a model in its place. It does not know who sleeps, or why. When
//! [`barrier`] returns, every running thread of a registered process has run a full fence at some point of its program
//! order after the call; so those threads need none of their own.

#[cfg(not(loom))]
pub(crate) use system::{barrier, point, register};

#[cfg(loom)]
pub(crate) use model::{barrier, point};

#[cfg(all(loom, test))]
pub(crate) use model::end;

#[cfg(not(loom))]
mod system {
    use rustix::thread::{MembarrierCommand, membarrier};
    use std::sync::atomic::{Ordering, compiler_fence};

    /// Makes this process a target of barriers. Returns `false` if the kernel has none.
    pub(crate) fn register() -> bool {
        membarrier(MembarrierCommand::RegisterGlobalExpedited).is_ok()
    }

    /// Makes every thread of registered processes run a full fence. Returns `false` if the kernel refused.
    pub(crate) fn barrier() -> bool {
        membarrier(MembarrierCommand::GlobalExpedited).is_ok()
    }

    /// Marks a point of program order at which a barrier may take effect: only the compiler must not reorder across it.
    #[inline]
    pub(crate) fn point() {
        compiler_fence(Ordering::SeqCst);
    }
}

#[cfg(loom)]
mod model {
    use crate::sync::{AtomicU32, Ordering, fence};

    loom::lazy_static! {
        /// Number of barriers requested; one thread requests them.
        static ref ASKED: AtomicU32 = AtomicU32::new(0);
        /// Number of barriers that the other thread has run; all of them once it has ended.
        static ref RUN: AtomicU32 = AtomicU32::new(0);
    }

    /// Waits until the other thread has passed a [`point`], or has ended.
    pub(crate) fn barrier() -> bool {
        let number = ASKED.fetch_add(1, Ordering::SeqCst) + 1;
        // PAIR membarrier.run: observe
        while RUN.load(Ordering::Acquire) < number {
            loom::thread::yield_now();
        }
        fence(Ordering::SeqCst);
        true
    }

    /// Runs a full fence if one was requested, and nothing else.
    pub(crate) fn point() {
        // Relaxed, both: a thread that is not interrupted observes nothing. Only this one stores the second.
        let asked = ASKED.load(Ordering::Relaxed);
        if asked > RUN.load(Ordering::Relaxed) {
            fence(Ordering::SeqCst);
            // PAIR membarrier.run: publish
            RUN.store(asked, Ordering::Release);
        }
    }

    /// Notes the end of the other thread, which counts as a fence.
    #[cfg(test)]
    pub(crate) fn end() {
        fence(Ordering::SeqCst);
        // PAIR membarrier.run: publish
        RUN.store(u32::MAX, Ordering::Release);
    }
}
