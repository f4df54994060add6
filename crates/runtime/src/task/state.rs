//! The state word of a task: every bit, its meaning, and the transitions.
//!
//! | bits | name | meaning |
//! |---|---|---|
//! | 0 | `SCHEDULED` | the task stands in a queue (ready or injected), or will be put there after the poll under way |
//! | 1 | `RUNNING` | the owner's worker polls it now; only the owner sets and clears it |
//! | 2 | `OVER` | the future is dropped; never cleared; no later wake does anything |
//! | 3.. | references | one of the place until the task is over and out of every queue, one for each waker |
//!
//! Illegal: `RUNNING` with `OVER`. If the place's reference is the only one, nothing else can touch the task, so the
//! owner may then change the word with plain stores.

use super::sync::{AtomicUsize, Ordering};

const SCHEDULED: usize = 1;
const RUNNING: usize = 2;
const OVER: usize = 4;
const REFERENCE: usize = 8;

/// The state word; see the file header.
pub(super) struct TaskState(AtomicUsize);

/// Action of the owner after a poll that returned `Pending`.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum AfterPoll {
    /// Nothing: a waker will schedule the task.
    Suspended,
    /// The task was woken while it ran: queue it again.
    Again,
}

impl TaskState {
    /// Returns the state of a task that is about to be queued, with only its place's reference.
    #[inline]
    pub(super) fn scheduled() -> Self {
        TaskState(AtomicUsize::new(SCHEDULED | REFERENCE))
    }

    /// Marks the task as woken; returns `true` if the caller must queue it.
    pub(super) fn wake(&self) -> bool {
        // PAIR task.wake: publish
        let before = self.0.fetch_or(SCHEDULED, Ordering::AcqRel);
        before & (SCHEDULED | RUNNING | OVER) == 0
    }

    /// Takes a queued task to be polled; `false` if it has ended and only its place's reference is left to drop.
    #[inline]
    pub(super) fn start(&self) -> bool {
        // Only the owner changes a word with one reference. The thread that dropped the last other reference published
        // that, and it must be observed before the plain store, which would hide it from later loads.
        // PAIR task.reference: observe
        let word = self.0.load(Ordering::Acquire);
        if word == SCHEDULED | REFERENCE {
            self.0.store(RUNNING | REFERENCE, Ordering::Relaxed);
            return true;
        }
        if word & OVER != 0 {
            return false;
        }
        // PAIR task.wake: observe
        self.0.fetch_add(RUNNING - SCHEDULED, Ordering::AcqRel);
        true
    }

    /// Ends a poll that returned `Pending`.
    #[inline]
    pub(super) fn suspend(&self) -> AfterPoll {
        // PAIR task.wake: observe
        let before = self.0.fetch_sub(RUNNING, Ordering::AcqRel);
        if before & SCHEDULED != 0 { AfterPoll::Again } else { AfterPoll::Suspended }
    }

    /// Marks the task as over, running or not; returns `true` if it is in a queue, whose owner drops the place's
    /// reference when it finds it there.
    #[inline]
    pub(super) fn conclude(&self) -> bool {
        // As in `start`.
        // PAIR task.reference: observe
        let word = self.0.load(Ordering::Acquire);
        if word & !(SCHEDULED | RUNNING) == REFERENCE {
            // Relaxed is enough: there is no waker that could look.
            self.0.store(OVER | REFERENCE | (word & SCHEDULED), Ordering::Relaxed);
            return word & (SCHEDULED | RUNNING) == SCHEDULED;
        }
        // PAIR task.over: publish
        let before = self.0.fetch_or(OVER, Ordering::AcqRel);
        if before & RUNNING != 0 {
            // Relaxed is enough: only the owner looks at this bit.
            self.0.fetch_sub(RUNNING, Ordering::Relaxed);
            return false;
        }
        before & SCHEDULED != 0
    }

    /// Marks the running task as over and drops its place's reference; returns `true` if that was the last.
    #[inline]
    pub(super) fn conclude_last(&self) -> bool {
        // PAIR task.reference: observe
        if self.0.load(Ordering::Acquire) / REFERENCE == 1 {
            // Nothing else holds it, so nothing reads the word again.
            return true;
        }
        self.conclude();
        self.release()
    }

    /// Returns `true` if the future is dropped.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        // PAIR task.over: observe
        self.0.load(Ordering::Acquire) & OVER != 0
    }

    /// Adds a reference.
    pub(super) fn retain(&self) {
        // Relaxed is enough: the caller that clones a reference holds one.
        self.0.fetch_add(REFERENCE, Ordering::Relaxed);
    }

    /// Drops a reference; returns `true` if it was the last.
    #[inline]
    pub(super) fn release(&self) -> bool {
        // With only the caller's reference left, nothing else touches the word.
        // PAIR task.reference: observe
        if self.0.load(Ordering::Acquire) / REFERENCE == 1 {
            return true;
        }
        // PAIR task.reference: publish, observe
        self.0.fetch_sub(REFERENCE, Ordering::AcqRel) / REFERENCE == 1
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_second_wake_queues_nothing() {
        let state = TaskState::scheduled();
        assert!(state.start());
        state.retain();
        assert_eq!(state.suspend(), AfterPoll::Suspended);
        assert!(state.wake());
        assert!(!state.wake());
    }

    #[test]
    fn a_wake_during_the_poll_runs_the_task_again() {
        let state = TaskState::scheduled();
        assert!(state.start());
        state.retain();
        assert!(!state.wake());
        assert_eq!(state.suspend(), AfterPoll::Again);
        assert!(state.start());
    }

    #[test]
    fn a_task_that_ends_while_queued_is_left_to_the_queue() {
        let state = TaskState::scheduled();
        assert!(state.conclude());
        assert!(!state.start());
        assert!(state.release());
    }

    #[test]
    fn a_task_that_ends_alone_needs_no_second_look() {
        let alone = TaskState::scheduled();
        assert!(alone.start());
        assert!(alone.conclude_last());
        let held = TaskState::scheduled();
        assert!(held.start());
        held.retain();
        assert!(!held.conclude_last());
        assert!(!held.wake());
        assert!(held.release());
    }

    #[test]
    fn the_last_reference_is_reported() {
        let state = TaskState::scheduled();
        assert!(state.start());
        state.retain();
        assert!(!state.conclude());
        assert!(!state.release());
        assert!(state.is_over());
        assert!(state.release());
    }
}
