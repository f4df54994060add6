//! Messages a place has taken in and not begun: its credit to its peers.
//!
//! A place that takes in messages faster than it runs their tasks would fill its memory with them. So it counts the
//! messages whose tasks are in the ready queue, and their bytes; at a bound it leaves data in its queues, and the
//! senders wait. Tasks that have begun, or were started here, do not count: those belong to the program, and waiting
//! for them might never end.
//!
//! A task does not know its message. But tasks of messages begin in the order of their arrival, so it is enough to mark
//! positions in the queue. Invariant: a batch is counted until the last task that was queued before its mark has begun.

use crate::limits::{READY_BYTES_MAX, READY_TASKS_MAX};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// Largest number of messages of one mark; more begin a new one. Bounds the list of marks.
const BATCH_MAX: usize = READY_TASKS_MAX / 256;

/// Consecutive messages.
#[derive(Clone, Copy, Debug, Default)]
struct Batch {
    /// Number of tasks queued so far when the last of them had arrived.
    end: u64,
    messages: usize,
    bytes: usize,
}

/// Count of the messages a place has taken in whose tasks have not begun: its credit to its peers.
#[derive(Default)]
pub(crate) struct Backlog {
    /// Length and number of messages since the last mark.
    fresh: Cell<(usize, usize)>,
    batches: RefCell<VecDeque<Batch>>,
    /// The sums over the batches.
    messages: Cell<usize>,
    bytes: Cell<usize>,
}

impl Backlog {
    /// Counts one message of `bytes` bytes that has arrived, of any class, because control starts few tasks and holds
    /// none back.
    #[inline]
    pub(crate) fn note(&self, bytes: usize) {
        let (before, messages) = self.fresh.get();
        self.fresh.set((before + bytes, messages + 1));
    }

    /// Returns `true` if no more data should be taken in. Of the `queued` tasks queued so far, `begun` have begun.
    #[inline]
    pub(crate) fn is_full(&self, queued: u64, begun: u64) -> bool {
        if queued == begun && self.messages.get() == 0 {
            self.fresh.set((0, 0));
            return false;
        }
        self.settle(queued, begun);
        self.messages.get() >= READY_TASKS_MAX || self.bytes.get() >= READY_BYTES_MAX
    }

    /// Marks the messages since the last mark, and removes the batches that have begun.
    fn settle(&self, queued: u64, begun: u64) {
        let mut batches = self.batches.borrow_mut();
        let (bytes, messages) = self.fresh.take();
        if messages > 0 {
            match batches.back_mut().filter(|last| last.messages < BATCH_MAX) {
                Some(last) => {
                    (last.end, last.messages, last.bytes) =
                        (queued, last.messages + messages, last.bytes + bytes);
                }
                None => batches.push_back(Batch { end: queued, messages, bytes }),
            }
            self.messages.set(self.messages.get() + messages);
            self.bytes.set(self.bytes.get() + bytes);
        }
        while let Some(first) = batches.front().filter(|first| first.end <= begun) {
            self.messages.set(self.messages.get() - first.messages);
            self.bytes.set(self.bytes.get() - first.bytes);
            batches.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_full_by_number_until_tasks_begin() {
        let backlog = Backlog::default();
        let mut queued = 0;
        while !backlog.is_full(queued, 0) {
            backlog.note(8);
            queued += 1;
        }
        assert_eq!(queued, READY_TASKS_MAX as u64);
        assert!(!backlog.is_full(queued, BATCH_MAX as u64), "a batch has begun");
        assert!(!backlog.is_full(queued, queued));
        assert_eq!(backlog.batches.borrow().len(), 0);
    }

    #[test]
    fn a_place_is_full_by_bytes() {
        let backlog = Backlog::default();
        backlog.note(READY_BYTES_MAX);
        assert!(backlog.is_full(7, 6));
        assert!(!backlog.is_full(7, 7));
    }

    #[test]
    fn tasks_that_were_started_here_do_not_count() {
        let backlog = Backlog::default();
        let local = 10 * READY_TASKS_MAX as u64;
        assert!(!backlog.is_full(local, 0));
        backlog.note(1);
        assert!(!backlog.is_full(local + 1, 0));
    }

    #[test]
    fn the_list_of_marks_is_short_however_the_messages_come() {
        let backlog = Backlog::default();
        for queued in 1..=READY_TASKS_MAX as u64 {
            backlog.note(0);
            backlog.is_full(queued, 0);
        }
        assert!(backlog.batches.borrow().len() <= 257);
    }
}
