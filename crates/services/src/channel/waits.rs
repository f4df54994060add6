//! The operations of a channel that wait at one place, and their outcomes.
//!
//! Numbers are given in order, and the first operation that waits is mostly the first that ends. So the operations are
//! in a queue by number: to begin, answer and end one mostly touches one end of the queue, and the others are found by
//! a search. Invariant: the numbers in the queue rise.

use isles_runtime::Error;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::Location;
use std::task::{Poll, Waker};

/// Outcome of an operation. Its value, if any, is in the channel's end.
#[derive(Debug)]
pub(super) enum ChannelAnswer {
    Accepted,
    /// The channel is closed.
    Refused,
    Full,
    /// The value may be sent.
    Granted,
    /// The sent value was not taken; the operation waits as before.
    Declined,
    /// A value has arrived.
    Ready,
    Ended,
    Empty,
    /// It was given up while it waited.
    Cancelled,
    Faulty(Error),
    /// The home is dead.
    Dead,
    /// The channel belongs to another run.
    Foreign,
    /// Another branch of the surrounding `select!` is chosen; the operation begins again when it is polled.
    Suspended,
}

/// Result of beginning an operation: the answer if that is all, else the number under which it waits.
pub(super) type Begun = Result<ChannelAnswer, u64>;

/// Call site of an operation in the program.
pub(super) type Caller = &'static Location<'static>;

/// Error of an answer to an operation that was given up, or to none.
pub(super) struct NoWaiter;

/// An operation that waits here.
struct Wait {
    number: u64,
    state: WaitState,
    waker: Option<Waker>,
    what: &'static str,
    caller: Caller,
}

enum WaitState {
    Pending,
    Answered(ChannelAnswer),
    /// A send that was given up; its last answer is still to come.
    GivenUp,
}

/// The operations that wait, by number.
#[derive(Default)]
pub(super) struct Waits(RefCell<VecDeque<Wait>>);

/// Returns the index of `number` in `waits`.
///
/// # Errors
/// The index at which to insert it.
#[inline]
fn find(waits: &VecDeque<Wait>, number: u64) -> Result<usize, usize> {
    match waits.front() {
        Some(first) if first.number == number => Ok(0),
        _ => waits.binary_search_by_key(&number, |wait| wait.number),
    }
}

#[inline]
fn find_mut(waits: &mut VecDeque<Wait>, number: u64) -> Option<&mut Wait> {
    let index = find(waits, number).ok()?;
    waits.get_mut(index)
}

impl Waits {
    pub(super) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Registers an operation that waits for `what`, or waits again.
    pub(super) fn begin(&self, number: u64, what: &'static str, caller: Caller) {
        let mut waits = self.0.borrow_mut();
        let wait = Wait { number, state: WaitState::Pending, waker: None, what, caller };
        if waits.back().is_none_or(|last| last.number < number) {
            return waits.push_back(wait);
        }
        let before = match find(&waits, number) {
            Ok(index) => Some(std::mem::replace(&mut waits[index], wait)),
            Err(index) => {
                waits.insert(index, wait);
                None
            }
        };
        drop(waits);
        drop(before);
    }

    /// Returns the outcome of an operation if it is known; otherwise stores `waker`.
    pub(super) fn poll(&self, number: u64, waker: &Waker) -> Poll<ChannelAnswer> {
        let mut waits = self.0.borrow_mut();
        if let Some(Wait { state: WaitState::Pending, waker: known, .. }) = find_mut(&mut waits, number) {
            let old = known.replace(waker.clone());
            drop(waits);
            drop(old);
            return Poll::Pending;
        }
        drop(waits);
        Poll::Ready(match self.end(number) {
            Some(WaitState::Answered(answer)) => answer,
            _ => ChannelAnswer::Ended,
        })
    }

    /// Notes the answer to an operation of this place. Returns the waker of its task.
    ///
    /// # Errors
    /// No operation waits for the answer.
    pub(super) fn note_answer(&self, number: u64, answer: ChannelAnswer) -> Result<Option<Waker>, NoWaiter> {
        let mut waits = self.0.borrow_mut();
        let wait = find_mut(&mut waits, number).ok_or(NoWaiter)?;
        match wait.state {
            // A declined operation waits as before, and has been woken.
            WaitState::Pending | WaitState::Answered(ChannelAnswer::Declined) => {
                wait.state = WaitState::Answered(answer);
                Ok(wait.waker.take())
            }
            WaitState::GivenUp => {
                drop(waits);
                if !matches!(answer, ChannelAnswer::Declined) {
                    self.forget(number);
                }
                Err(NoWaiter)
            }
            // The first answer stands; a correct home does not send a second one.
            WaitState::Answered(_) => Err(NoWaiter),
        }
    }

    /// Ends a receive early. Returns `true` if it was told that a value has arrived, and `None` if it was over.
    pub(super) fn give_up_receive(&self, number: u64) -> Option<bool> {
        match self.end(number)? {
            WaitState::Pending => Some(false),
            WaitState::Answered(ChannelAnswer::Ready) => Some(true),
            WaitState::Answered(_) | WaitState::GivenUp => None,
        }
    }

    /// Makes a receive begin again at its next poll. Returns if it was told that a value has arrived, and its waker;
    /// `None` if it does not wait.
    pub(super) fn suspend_receive(&self, number: u64) -> Option<(bool, Option<Waker>)> {
        let mut waits = self.0.borrow_mut();
        let wait = find_mut(&mut waits, number)?;
        let is_ready = match wait.state {
            WaitState::Pending => false,
            WaitState::Answered(ChannelAnswer::Ready) => true,
            WaitState::Answered(_) | WaitState::GivenUp => return None,
        };
        wait.state = WaitState::Answered(ChannelAnswer::Suspended);
        Some((is_ready, wait.waker.take()))
    }

    /// Ends a send early. Returns `true` if the home must be informed.
    pub(super) fn give_up_send(&self, number: u64) -> bool {
        let mut waits = self.0.borrow_mut();
        let Some(wait) = find_mut(&mut waits, number) else { return false };
        if matches!(wait.state, WaitState::Pending | WaitState::Answered(ChannelAnswer::Declined)) {
            wait.state = WaitState::GivenUp;
            let waker = wait.waker.take();
            drop(waits);
            drop(waker);
            return true;
        }
        drop(waits);
        matches!(self.end(number), Some(WaitState::Answered(ChannelAnswer::Granted)))
    }

    /// Forgets an operation that will get no answer.
    pub(super) fn forget(&self, number: u64) {
        drop(self.end(number));
    }

    /// Removes an operation, and drops its contents while nothing is borrowed.
    #[inline]
    fn end(&self, number: u64) -> Option<WaitState> {
        let mut waits = self.0.borrow_mut();
        let ended = match find(&waits, number).ok()? {
            0 => waits.pop_front(),
            index => waits.remove(index),
        };
        drop(waits);
        ended.map(|wait| wait.state)
    }

    /// Returns the numbers of the waiting operations, in order.
    pub(super) fn numbers(&self) -> Vec<u64> {
        self.0.borrow().iter().map(|wait| wait.number).collect()
    }

    /// Returns, for each waiting operation in the order of their numbers, what it waits for and where the program began
    /// it.
    pub(super) fn wanted(&self) -> Vec<(&'static str, Caller)> {
        let waits = self.0.borrow();
        let pending = waits.iter().filter(|wait| matches!(wait.state, WaitState::Pending));
        pending.map(|wait| (wait.what, wait.caller)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_found_whatever_order_they_begin_and_end_in() {
        let (waits, here) = (Waits::default(), Location::caller());
        for number in [3, 5, 9, 4] {
            waits.begin(number, "room in", here);
        }
        assert_eq!(waits.numbers(), [3, 4, 5, 9]);
        assert!(
            waits.note_answer(5, ChannelAnswer::Ready).is_ok()
                && waits.note_answer(6, ChannelAnswer::Ready).is_err()
        );
        assert_eq!((waits.give_up_receive(5), waits.give_up_receive(5)), (Some(true), None));
        assert!(waits.give_up_send(4), "its home is told");
        assert!(waits.note_answer(4, ChannelAnswer::Declined).is_err() && waits.numbers().contains(&4));
        assert!(waits.note_answer(4, ChannelAnswer::Accepted).is_err() && !waits.numbers().contains(&4));
        let waker = Waker::noop();
        assert!(waits.poll(9, waker).is_pending());
        assert!(waits.note_answer(9, ChannelAnswer::Granted).is_ok_and(|waker| waker.is_some()));
        assert!(matches!(waits.poll(9, waker), Poll::Ready(ChannelAnswer::Granted)));
        waits.begin(9, "a receiver of", here);
        assert_eq!(
            waits.wanted().iter().map(|(what, _)| *what).collect::<Vec<_>>(),
            ["room in", "a receiver of"]
        );
        (0..10).for_each(|number| waits.forget(number));
        assert!(waits.is_empty());
    }
}
