//! Scheduling of turns: the next place, the end of a turn, and the wakeup of waiting places.
//!
//! It asks the protocol for arrival times and knows nothing of messages. A place that is blocked in a call of the
//! protocol, or has left with blocks in flight, has turns that the driver never sees. Invariant: a waiting place has at
//! most one scheduled turn, no later than its first poll that finds something.

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

    /// Starts the next turn and returns its place; `None` if nothing will ever happen again.
    ///
    /// Turns of places that have left with blocks in flight are handled here, unseen by the driver.
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

    /// Returns `true` if the last step of `place` now ends after `time`, because others have used its memory
    /// controller; its turn is then moved to that end.
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

    /// Returns `true` if `place` is still blocked in its current call. When it leaves the call, it performs the
    /// postponed work.
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

    /// Performs `work` at `place`; postponed while it is blocked in a call.
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

    /// Makes `place` wait for a file access of its program.
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

    /// Removes the current turn from the queue, unless its place has been rescheduled.
    fn end_turn(&mut self) {
        if let Some(place) = self.under_way.take() {
            self.turns.remove(place.0);
        }
    }

    /// Ends a turn of a place that waits, until `due` at the latest.
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

    /// Returns the time of the first known event that ends a wait of `place`, at the latest `due`.
    fn first_news(&self, place: PlaceId, due: Option<Picoseconds>) -> Option<Picoseconds> {
        let status = &self.statuses[place.index()];
        let deaths = status.notices.values().filter(|notice| !notice.delivered).map(|notice| notice.known);
        let interrupt = self.first_interrupt(place).filter(|_| !status.left);
        let first = deaths.chain(due).chain(interrupt).min().filter(|_| !self.is_blocked_in_send(place));
        let inbox = if status.left { None } else { self.protocol.first_arrival(place) };
        let credit = if self.waits_for_credit(place) { self.protocol.first_credit(place) } else { None };
        [first, inbox, credit].into_iter().flatten().min()
    }

    /// Returns `true` if something has arrived for `place`.
    pub(crate) fn has_news(&self, place: PlaceId) -> bool {
        self.first_news(place, None).is_some_and(|time| time <= self.cores.now(place))
    }

    /// Returns `true` if `place` has unfinished sends.
    pub(crate) fn is_sending(&self, place: PlaceId) -> bool {
        self.protocol.has_pending_blocks(place) || self.is_blocked_in_send(place)
    }

    /// Returns `true` if `place` is blocked in a send of the protocol.
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

    /// Schedules a waiting place at its first poll from `time` on, when something arrives for it.
    pub(super) fn wake(&mut self, place: PlaceId, time: Picoseconds) {
        if !self.statuses[place.index()].parked {
            return;
        }
        self.cores.settle(place);
        let mut now = self.cores.now(place);
        let mut look = self.look(place);
        if let Some(shift) = self.cores.shift_until(place, time) {
            // The change is in the future, so the clock of the place stays before it; polls restart at the change.
            let before = self.cores.assume_gear(place, shift.gear);
            (now, look) = (shift.time.max(now), self.look(place));
            self.cores.assume_gear(place, before);
        }
        // An interrupt that has already arrived does not wake a place again.
        let is_interrupt_driven = self.cores.is_interrupt_driven && time > now;
        let turn = if is_interrupt_driven { time } else { self.cores.rest.first_look(now, time, look) };
        if self.turns.key_of(place.0).is_none_or(|before| turn < before.time()) {
            self.schedule(place, turn);
        }
    }

    /// Returns the duration of a waiting place's poll.
    fn look(&self, place: PlaceId) -> Picoseconds {
        self.protocol.poll_period(&self.cores, place, self.waits_for_credit(place))
    }
}
