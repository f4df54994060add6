//! Sleeping and waking on one word of shared memory.
//!
//! The only file that calls the kernel's futex, so that loom can put a lock and a condition in its place. The futex is
//! the shared kind: the word may be mapped by several processes. It does not know who sleeps, or why.

#[cfg(not(loom))]
pub(crate) use system::{sleep, wake};

#[cfg(loom)]
pub(crate) use model::{sleep, wake};

#[cfg(not(loom))]
mod system {
    use crate::sync::AtomicU32;
    use rustix::thread::futex::{self, Flags, Timespec};
    use std::time::Duration;

    /// Sleeps while the word holds `expected`, for up to `timeout`; may return early.
    pub(crate) fn sleep(word: &AtomicU32, expected: u32, timeout: Option<Duration>) {
        let limit = timeout.map(|timeout| Timespec {
            tv_sec: timeout.as_secs().min(i64::MAX as u64) as i64,
            tv_nsec: timeout.subsec_nanos().into(),
        });
        // Every outcome (woken, changed word, signal, timeout) means the same to the caller: check again.
        let _ = futex::wait(word, Flags::empty(), expected, limit.as_ref());
    }

    /// Wakes all threads that sleep on the word.
    pub(crate) fn wake(word: &AtomicU32) {
        // It fails only for an address that is not mapped, and a reference is mapped.
        let _ = futex::wake(word, Flags::empty(), i32::MAX as u32);
    }
}

#[cfg(loom)]
mod model {
    use crate::sync::{AtomicU32, Ordering};
    use loom::sync::Mutex;
    use std::time::Duration;

    loom::lazy_static! {
        /// Number of wakes: the kernel's bucket, here one for all words, which only adds early returns.
        static ref WAKES: Mutex<u32> = Mutex::new(0);
    }

    /// Yields until there is a wake; one that never comes is a livelock, which loom reports.
    ///
    /// The word is compared under the bucket's lock, as the kernel does.
    pub(crate) fn sleep(word: &AtomicU32, expected: u32, _timeout: Option<Duration>) {
        let before = {
            let wakes = WAKES.lock().unwrap();
            if word.load(Ordering::SeqCst) != expected {
                return;
            }
            *wakes
        };
        while *WAKES.lock().unwrap() == before {
            loom::thread::yield_now();
        }
    }

    pub(crate) fn wake(_word: &AtomicU32) {
        *WAKES.lock().unwrap() += 1;
    }
}
