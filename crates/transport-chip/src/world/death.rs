//! Places that leave or die, and the notices that others get.
//!
//! Everything written before a death still arrives; all other places learn of the death later, at the same time.
//! Invariant: each death is delivered at most once to each place, after the last message of the dead one.

use super::state::{Event, WorldState};
use isles_chip::kernel::EventClass;
use isles_chip::quantity::Picoseconds;
use isles_transport::PlaceId;

/// Time from the death of a place until the others know of it. It stands for a watchdog; no chip specifies it.
const NOTICE: Picoseconds = Picoseconds(100_000_000);

/// The notice of a death for one living place.
pub(super) struct DeathNotice {
    pub(super) known: Picoseconds,
    pub(super) delivered: bool,
}

impl WorldState {
    pub(super) fn is_closed(&self, here: PlaceId, place: PlaceId) -> bool {
        self.statuses[place.index()].left || self.is_dead(here, place)
    }

    /// Returns `true` if `here` knows that `place` is dead; a dead place considers all others dead.
    #[inline]
    pub(crate) fn is_dead(&self, here: PlaceId, place: PlaceId) -> bool {
        let status = &self.statuses[here.index()];
        (!status.alive || !status.notices.is_empty()) && self.is_known_dead(here, place)
    }

    #[cold]
    fn is_known_dead(&self, here: PlaceId, place: PlaceId) -> bool {
        let status = &self.statuses[here.index()];
        let known = status.notices.get(place).is_some_and(|notice| notice.known <= self.cores.now(here));
        known || (!status.alive && here != place)
    }

    pub(crate) fn is_alive(&self, place: PlaceId) -> bool {
        self.statuses[place.index()].alive
    }

    /// Records that `place` sends nothing more; its blocks in flight still arrive.
    pub(crate) fn leave(&mut self, place: PlaceId) {
        if std::mem::replace(&mut self.statuses[place.index()].left, true) {
            return;
        }
        let others = (0..self.statuses.len() as u32).map(PlaceId).filter(|other| *other != place);
        for other in others {
            let was_engaged = self.is_blocked_in_send(other);
            self.protocol.forget_receiver(other, place);
            let now = self.cores.now(place);
            if was_engaged || self.waits_for_credit(other) {
                self.wake(other, now);
            }
        }
    }

    /// Kills `place`. Everything it has written still arrives; then the others are notified, unless it had left.
    pub(crate) fn kill(&mut self, place: PlaceId) {
        let status = &mut self.statuses[place.index()];
        if !std::mem::replace(&mut status.alive, false) {
            return;
        }
        // Credit may still arrive, but nobody waits for it any more.
        status.parked = false;
        let left = status.left;
        self.turns.remove(place.0);
        let everyone = (0..self.statuses.len() as u32).map(PlaceId);
        let engaged: Vec<_> = everyone.filter(|other| self.is_blocked_in_send(*other)).collect();
        self.protocol.abort_place(place);
        if left {
            // No notice is sent, but places blocked in a call with it poll again.
            let now = self.cores.now(place);
            engaged.into_iter().for_each(|other| self.wake(other, now));
        } else {
            self.announce_death(place);
        }
    }

    /// Schedules the notice of the death of `place` for all others.
    fn announce_death(&mut self, place: PlaceId) {
        let known = self.cores.now(place) + NOTICE;
        for other in (0..self.statuses.len() as u32).map(PlaceId) {
            if self.is_alive(other) {
                self.statuses[other.index()].notices.insert(place, DeathNotice { known, delivered: false });
                self.wake(other, known);
            }
        }
    }

    /// Returns a known, undelivered death of a place of which no message is left to take.
    #[cold]
    pub(super) fn take_death(&mut self, place: PlaceId) -> Option<PlaceId> {
        let now = self.cores.now(place);
        let (protocol, status) = (&self.protocol, &mut self.statuses[place.index()]);
        let due = |(dead, notice): &(PlaceId, &DeathNotice)| {
            !notice.delivered
                && notice.known <= now
                && (status.left || !protocol.has_pending_from(*dead, place))
        };
        let dead = status.notices.iter().find(due).map(|(dead, _)| dead)?;
        status.notices.get_mut(dead)?.delivered = true;
        self.protocol.forget_receiver(place, dead);
        let key = self.key(now, EventClass::Arrival, place);
        self.digest.record(key, Event::Death as u32, u64::from(dead.0));
        Some(dead)
    }
}
