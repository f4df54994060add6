//! Turns: who is next, what a place comes to at the end of its turn, and when a waiting one has its next.
//!
//! It asks the protocol when something comes and knows nothing of messages. A place that is in a call of the
//! protocol, or that has left and still has blocks under way, has turns that the driver never sees.
//! Invariant: a waiting place has at most one turn, and none after the first look that finds something.

use super::state::{Event, WorldState};
use crate::demand::Demand;
use crate::idle_policy::IdlePolicy;
use isles_chip::kernel::EventClass;
use isles_chip::quantity::Picoseconds;
use isles_transport::{FileAccess, PlaceId, Work};
use std::panic::Location;

impl WorldState {
    pub(super) fn schedule(&mut self, place: PlaceId, time: Picoseconds) {
        let key = self.key(time, EventClass::Ready, place);
        self.turns.set(place.0, key);
    }

    /// Begins the next turn: the place that has it, or none if nothing will ever happen again.
    ///
    /// A place that has left and still has blocks under way gets its turns here, and nobody sees them.
    pub(crate) fn next_turn(&mut self) -> Option<PlaceId> {
        loop {
            self.end_turn();
            let (key, place) = self.turns.first()?;
            let place = PlaceId(place);
            self.under_way = Some(place);
            self.cores.set_present(key.time());
            self.govern(key.time());
            if self.is_held_up(place, key.time()) {
                continue;
            }
            if self.cores.rest != IdlePolicy::Poll
                && !self.cores.is_interrupt_driven
                && self.statuses[place.index()].parked
            {
                let look = self.look(place);
                self.cores.halt(place, key.time(), look);
            }
            self.cores.wait_until(place, key.time());
            self.cores.sample_until(key.time());
            self.digest.record(key, Event::Turn as u32, 0);
            let status = &mut self.statuses[place.index()];
            (status.parked, status.refused, status.held) = (false, false, false);
            if status.left {
                while self.take_death(place).is_some() {}
                self.make_progress(place);
                if self.protocol.has_pending_blocks(place) {
                    self.park(place, None);
                }
            } else if !self.stays(place) {
                return Some(place);
            }
        }
    }

    /// Returns `true` if the last step of `place` ends after `time`, because others have come to its memory controller:
    /// then its turn is moved to that end.
    fn is_held_up(&mut self, place: PlaceId, time: Picoseconds) -> bool {
        let before = self.cores.now(place);
        self.cores.catch_up(place);
        let now = self.cores.now(place);
        let held_up = now > before && now > time;
        if held_up {
            self.schedule(place, now);
            self.under_way = None;
        }
        held_up
    }

    /// Returns `true` if `place` stays in its current call; then it keeps waiting. If it leaves the call, it computes
    /// what was postponed.
    fn stays(&mut self, place: PlaceId) -> bool {
        if self.is_blocked_in_send(place) {
            self.make_progress(place);
            if self.is_blocked_in_send(place) {
                self.park(place, None);
                return true;
            }
        }
        let postponed = std::mem::take(&mut self.statuses[place.index()].postponed);
        if postponed != Demand::default() {
            self.cores.work(place, &postponed);
        }
        false
    }

    /// Lets `place` work for its program; once it is in a call, when that is over.
    pub(crate) fn work(&mut self, place: PlaceId, work: &Work, line: &'static Location<'static>) {
        self.undeclared.note(place, work, line);
        let demand = self.cores.demand(work);
        self.settle(place);
        if self.is_blocked_in_send(place) {
            self.statuses[place.index()].postponed.add(&demand);
        } else {
            self.cores.work(place, &demand);
        }
    }

    /// Lets `place` wait for a file that its program has read or written.
    pub(crate) fn access_file(&mut self, place: PlaceId, access: &FileAccess) {
        self.settle(place);
        self.cores.access_file(place, access);
    }

    /// Ends a turn of a place that wants another one.
    pub(crate) fn go_on(&mut self, place: PlaceId) {
        if self.is_blocked_in_send(place) {
            self.park(place, None);
        } else if self.statuses[place.index()].alive {
            let now = self.cores.now(place);
            self.schedule(place, now);
            self.under_way = None;
        }
    }

    /// Takes the turn under way out of the queue, unless its place has another one by now.
    fn end_turn(&mut self) {
        if let Some(place) = self.under_way.take() {
            self.turns.remove(place.0);
        }
    }

    /// Ends a turn of a place that waits, at the latest until `due`.
    pub(crate) fn park(&mut self, place: PlaceId, due: Option<Picoseconds>) {
        if self.statuses[place.index()].held && !self.is_blocked_in_send(place) {
            return self.go_on(place);
        }
        self.end_turn();
        let status = &mut self.statuses[place.index()];
        if !status.alive {
            return;
        }
        status.parked = true;
        if let Some(time) = self.first_news(place, due) {
            self.wake(place, time);
        }
    }

    /// Returns the time of the first event that ends a wait of `place`, as far as known, at the latest `due`.
    fn first_news(&self, place: PlaceId, due: Option<Picoseconds>) -> Option<Picoseconds> {
        let status = &self.statuses[place.index()];
        let deaths = status.notices.values().filter(|notice| !notice.delivered).map(|notice| notice.known);
        let interrupt = self.first_interrupt(place).filter(|_| !status.left);
        let first = deaths.chain(due).chain(interrupt).min().filter(|_| !self.is_blocked_in_send(place));
        let inbox = if status.left { None } else { self.protocol.first_arrival(place) };
        let credit = if self.waits_for_credit(place) { self.protocol.first_credit(place) } else { None };
        [first, inbox, credit].into_iter().flatten().min()
    }

    /// Returns `true` if there is something for `place` now.
    pub(crate) fn has_news(&self, place: PlaceId) -> bool {
        self.first_news(place, None).is_some_and(|time| time <= self.cores.now(place))
    }

    /// Returns `true` if something of `place` is only partly written.
    pub(crate) fn is_sending(&self, place: PlaceId) -> bool {
        self.protocol.has_pending_blocks(place) || self.is_blocked_in_send(place)
    }

    /// Returns `true` if `place` is in a call of the protocol.
    #[inline]
    pub(super) fn is_blocked_in_send(&self, place: PlaceId) -> bool {
        self.has_blocking_sends
            && self.protocol.blocking_sends().is_some_and(|sends| sends.is_blocked_in_send(place))
    }

    pub(super) fn waits_for_credit(&self, place: PlaceId) -> bool {
        self.statuses[place.index()].refused
            || self.protocol.has_pending_blocks(place)
            || self.is_blocked_in_send(place)
    }

    /// Something that a waiting place waits for comes at `time`: its turn is its first poll from then on.
    pub(super) fn wake(&mut self, place: PlaceId, time: Picoseconds) {
        if !self.statuses[place.index()].parked {
            return;
        }
        self.cores.settle(place);
        let mut now = self.cores.now(place);
        let mut look = self.look(place);
        if let Some(shift) = self.cores.shift_until(place, time) {
            // It is to come, so the clock of the place stays behind it; its polls begin anew there.
            let before = self.cores.assume_gear(place, shift.gear);
            (now, look) = (shift.time.max(now), self.look(place));
            self.cores.assume_gear(place, before);
        }
        // An interrupt that has come already calls nobody again.
        let is_interrupt_driven = self.cores.is_interrupt_driven && time > now;
        let turn = if is_interrupt_driven { time } else { self.cores.rest.first_look(now, time, look) };
        if self.turns.key_of(place.0).is_none_or(|before| turn < before.time()) {
            self.schedule(place, turn);
        }
    }

    /// Returns the time of a waiting place's look.
    fn look(&self, place: PlaceId) -> Picoseconds {
        self.protocol.poll_period(&self.cores, place, self.waits_for_credit(place))
    }
}
