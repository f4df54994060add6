//! Assignment of arrived values to the receives of a place.
//!
//! Each receive asks the home for a value with its own number. But an arrived value belongs to no receive before
//! a task takes it, and tasks take the first value that came. A value for a receive that was given up therefore goes to
//! the next one that waits here, whose own request is then withdrawn. Values are put back only when no receive waits
//! and each request has been answered, the last one first: no later value can then be in transit to this place, so
//! values stay in their order. Values are stored elsewhere, in the order of arrival.

use std::collections::VecDeque;

/// The next action.
#[must_use = "values would stay here for nobody"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalStep {
    /// Nothing.
    Nothing,
    /// A value is there for this receive.
    Ready(u64),
    /// The same, and its own request is to be withdrawn.
    Replace(u64),
    /// The request of this receive is to be withdrawn: the home answers it, by a value that was on its way or without.
    Withdraw(u64),
    /// The last values to arrive, in this number, go back, the last one first.
    PutBack(usize),
}

/// The receives of a place that have begun, and how many values have come for them.
#[derive(Clone, Debug, Default)]
pub struct Arrivals {
    /// Receives that wait, in order of arrival.
    waiting: VecDeque<u64>,
    /// Requests that nobody waits for any more, and that are not answered yet.
    withdrawn: VecDeque<u64>,
    /// Receives that were told that a value is there, and have not taken it.
    ready: usize,
    /// Values that have come, and that nobody has taken.
    held: usize,
}

impl Arrivals {
    /// Notes a receive that waits, for which the home was asked for a value.
    pub fn begin(&mut self, number: u64) {
        self.waiting.push_back(number);
    }

    /// Returns `true` if the home will say, or has said, something about this number as a receive.
    pub fn expects(&self, number: u64) -> bool {
        self.waiting.contains(&number) || self.withdrawn.contains(&number)
    }

    /// Handles a value that answers the request of this number, and was added to those held.
    pub fn arrived(&mut self, number: u64) -> ArrivalStep {
        self.held += 1;
        if remove(&mut self.waiting, number) {
            self.ready += 1;
            return ArrivalStep::Ready(number);
        }
        remove(&mut self.withdrawn, number);
        self.assign()
    }

    /// Handles an answer without a value to the request of this number; returns the action to take if nobody waits for
    /// that.
    pub fn ended(&mut self, number: u64) -> Option<ArrivalStep> {
        if remove(&mut self.waiting, number) {
            return None;
        }
        remove(&mut self.withdrawn, number);
        Some(self.assign())
    }

    /// A receive that was told that a value is there takes the first one.
    pub fn take(&mut self) {
        self.ready -= 1;
        self.held -= 1;
    }

    /// Gives up a receive; `is_ready` if it was told that a value is there.
    pub fn give_up(&mut self, number: u64, is_ready: bool) -> ArrivalStep {
        if is_ready {
            self.ready -= 1;
            return self.assign();
        }
        if !remove(&mut self.waiting, number) {
            return ArrivalStep::Nothing;
        }
        self.withdrawn.push_back(number);
        ArrivalStep::Withdraw(number)
    }

    /// Handles the death of the home, which no longer answers; returns how many of the values that came last are
    /// nobody's.
    pub fn home_died(&mut self) -> usize {
        self.withdrawn.clear();
        self.waiting.clear();
        let spare = self.held - self.ready;
        self.held = self.ready;
        spare
    }

    /// Returns `true` if no value is here that could go back.
    pub fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// Returns `true` if no request is open either.
    pub fn is_idle(&self) -> bool {
        self.held == 0 && self.waiting.is_empty() && self.withdrawn.is_empty()
    }

    /// Gives a value that is nobody's to the next who waits, or lets it go back.
    fn assign(&mut self) -> ArrivalStep {
        let spare = self.held - self.ready;
        if spare == 0 {
            return ArrivalStep::Nothing;
        }
        if let Some(number) = self.waiting.pop_front() {
            self.ready += 1;
            self.withdrawn.push_back(number);
            return ArrivalStep::Replace(number);
        }
        if !self.withdrawn.is_empty() {
            return ArrivalStep::Nothing;
        }
        self.held -= spare;
        ArrivalStep::PutBack(spare)
    }
}

fn remove(numbers: &mut VecDeque<u64>, number: u64) -> bool {
    let found = numbers.iter().position(|other| *other == number);
    found.and_then(|found| numbers.remove(found)).is_some()
}
