//! Who stands in a send and has not got the registers yet, in the order in which they came.
//!
//! Plain state. Invariant: each place is in it once at most.

use isles_transport::PlaceId;

/// See the file header.
#[derive(Default)]
pub(super) struct WaitQueue {
    /// Who waits, and whom each wants to meet.
    waiters: Vec<(PlaceId, PlaceId)>,
}

impl WaitQueue {
    /// `from` waits for `to` from now on, if it does not already.
    pub(super) fn join(&mut self, from: PlaceId, to: PlaceId) {
        if !self.holds(from) {
            self.waiters.push((from, to));
        }
    }

    /// `from` waits no longer; whether it did.
    pub(super) fn leave(&mut self, from: PlaceId) -> bool {
        let index = self.waiters.iter().position(|(place, _)| *place == from);
        index.map(|index| self.waiters.remove(index)).is_some()
    }

    pub(super) fn holds(&self, from: PlaceId) -> bool {
        self.waiters.iter().any(|(place, _)| *place == from)
    }

    /// Whether somebody who came before `from` wants to meet it, or `to`.
    pub(super) fn is_behind(&self, from: PlaceId, to: PlaceId) -> bool {
        let before = self.waiters.iter().take_while(|(place, _)| *place != from);
        before.into_iter().any(|(_, wanted)| *wanted == from || *wanted == to)
    }

    /// The first one who wants to meet `to`.
    pub(super) fn first_for(&self, to: PlaceId) -> Option<PlaceId> {
        self.waiters.iter().find(|(_, wanted)| *wanted == to).map(|(place, _)| *place)
    }

    /// All who wait.
    pub(super) fn places(&self) -> impl Iterator<Item = PlaceId> {
        self.waiters.iter().map(|(place, _)| *place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: PlaceId = PlaceId(0);
    const B: PlaceId = PlaceId(1);
    const C: PlaceId = PlaceId(2);
    const D: PlaceId = PlaceId(3);

    #[test]
    fn who_came_before_goes_before_if_both_want_to_meet_the_same_or_one_wants_to_meet_the_other() {
        let mut line = WaitQueue::default();
        line.join(A, C);
        line.join(B, C);
        line.join(A, D); // it waits already
        assert_eq!([line.first_for(C), line.first_for(D)], [Some(A), None]);
        assert!(line.is_behind(B, C) && !line.is_behind(A, C), "the same");
        assert!(line.is_behind(C, D) && line.is_behind(D, C), "the other");
        assert!(!line.is_behind(D, A), "who waits may be met meanwhile");
        assert!(line.leave(A) && !line.leave(A) && !line.holds(A));
        assert_eq!(line.first_for(C), Some(B));
    }

    #[test]
    fn of_two_who_want_to_meet_each_other_the_first_one_goes() {
        let mut line = WaitQueue::default();
        line.join(A, B);
        line.join(B, A);
        assert!(!line.is_behind(A, B) && line.is_behind(B, A));
    }
}
