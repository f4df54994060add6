//! News: whom to wake on account of what the protocol has just done for another place.
//!
//! An operation of the protocol writes down for whom something arrives and when; here it is read, at once. It does not
//! know what has arrived. Invariant: the list is empty between two calls of the world.

use super::WorldState;
use isles_chip::quantity::Picoseconds;
use isles_transport::PlaceId;

impl WorldState {
    /// Wakes those for whom an attempt of `place` to send has made something arrive.
    #[inline]
    pub(crate) fn drain_wakeups(&mut self, place: PlaceId) {
        if self.has_blocking_sends {
            self.protocol.drain_wakeups(place, &mut self.wakeups);
            self.wake_targets();
        }
    }

    pub(super) fn make_progress(&mut self, place: PlaceId) {
        self.protocol.make_progress(&mut self.cores, place, &mut self.wakeups);
        self.wake_targets();
    }

    /// Ends a batch of arrivals.
    pub(crate) fn return_credits(&mut self, place: PlaceId) {
        self.protocol.return_credits(&mut self.cores, place, &mut self.wakeups);
        self.wake_credited();
    }

    /// Ends a turn of a place for the protocol; also what comes before it computes.
    pub(crate) fn settle(&mut self, place: PlaceId) {
        if !self.is_alive(place) {
            return;
        }
        self.protocol.end_turn(&mut self.cores, place, &mut self.wakeups);
        self.wake_credited();
    }

    pub(super) fn wake_target(&mut self, target: PlaceId, arrival: Picoseconds) {
        if self.is_alive(target) {
            self.wake(target, arrival);
        } else {
            self.protocol.abort_place(target);
        }
    }

    pub(super) fn wake_targets(&mut self) {
        for index in 0..self.wakeups.len() {
            let (target, arrival) = self.wakeups[index];
            self.wake_target(target, arrival);
        }
        self.wakeups.clear();
    }

    /// Wakes those who wait for the credit that they get.
    #[inline]
    fn wake_credited(&mut self) {
        for index in 0..self.wakeups.len() {
            let (source, arrival) = self.wakeups[index];
            if self.statuses[source.index()].parked && self.waits_for_credit(source) {
                self.wake(source, arrival);
            }
        }
        self.wakeups.clear();
    }
}
