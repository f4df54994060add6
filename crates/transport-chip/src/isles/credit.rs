//! Credits: how a sender hears what was taken of its rings and slots.
//!
//! A receiver notes what it owes each lane; whoever may wait for it gets it when the batch is taken in, the others with
//! the next message to them or at the end of the turn. A sender takes credits when it has no room. Invariant: what is
//! owed is at most what was taken.

use super::Doorbell;
use super::occupancy::Occupancy;
use super::place_state::PlaceState;
use crate::cores::Cores;
use crate::protocol::Wakeups;
use crate::report::TimeCategory;
use isles_chip::quantity::Picoseconds;
use isles_transport::PlaceId;

/// A credit that the sender has not looked at yet.
pub(super) struct Credit {
    pub(super) arrival: Picoseconds,
    pub(super) lane: usize,
    pub(super) share: Occupancy,
}

/// Whether somebody may wait for the credit of so much of a ring of `lines` lines: it is more than half, or a slot.
pub(super) fn is_much(owed: Occupancy, lines: u32) -> bool {
    owed.has_slots() || 2 * u32::from(owed.lines) > lines
}

/// The bit of a place, which it may share with others.
pub(super) fn bit_of(place: PlaceId) -> u64 {
    1 << (place.0 % u64::BITS)
}

impl Doorbell {
    /// Lets a message of `place` that arrives at `target` then tell what was taken of it and not credited.
    pub(super) fn credit_along(&mut self, place: PlaceId, target: PlaceId, arrival: Picoseconds) {
        let mut owed = std::mem::take(&mut self.place_states[place.index()].owed);
        owed.retain(|(source, lane)| {
            if *source == target {
                self.credit(target, *lane, arrival);
            }
            *source != target
        });
        self.place_states[place.index()].owed = owed;
    }

    /// Tells `source` at `arrival` what was taken of it on a lane and not credited.
    #[inline]
    fn credit(&mut self, source: PlaceId, lane: usize, arrival: Picoseconds) {
        let share = std::mem::take(&mut self.lanes[lane].owed);
        self.place_states[source.index()].credits.push(Credit { arrival, lane, share });
    }

    /// Writes the credits of `place` that are wanted, by what is owed and how many lines the ring has.
    #[inline]
    pub(super) fn write_credits(
        &mut self,
        cores: &mut Cores,
        place: PlaceId,
        wakeups: &mut Wakeups,
        is_wanted: impl Fn(Occupancy, u32) -> bool,
    ) {
        let owed = &mut self.place_states[place.index()].owed;
        if owed.len() > 1 {
            owed.sort_unstable();
        }
        let (mut last, mut kept) = (None, 0);
        for index in 0..owed.len() {
            let (source, lane) = self.place_states[place.index()].owed[index];
            // By sender: one flag line carries what is owed to it in both classes.
            if last != Some(source) {
                if !is_wanted(self.lanes[lane].owed, self.budget.ring_lines[lane % 2]) {
                    self.place_states[place.index()].owed[kept] = (source, lane);
                    kept += 1;
                    continue;
                }
                cores.write_lines(place, source, 1);
                wakeups.push((source, cores.now(place)));
                last = Some(source);
            }
            self.credit(source, lane, cores.now(place));
        }
        let PlaceState { owed, owes, .. } = &mut self.place_states[place.index()];
        owed.truncate(kept);
        if kept == 0 {
            *owes = 0;
        }
    }

    /// Reads the flags of `place`, once a turn.
    pub(super) fn look(&mut self, cores: &mut Cores, place: PlaceId) {
        let looked = &mut self.place_states[place.index()].looked;
        if *looked < cores.present() {
            *looked = cores.present();
            cores.read_own_lines(place, self.budget.flag_lines, TimeCategory::Polling);
        }
    }

    /// Takes the credits that `place` has seen: those that had arrived when the turn began in which it looked last.
    pub(super) fn take_credits(&mut self, place: PlaceId) {
        let (place_states, lanes) = (&mut self.place_states, &mut self.lanes);
        let place_state = &mut place_states[place.index()];
        let mut credits = std::mem::take(&mut place_state.credits);
        credits.retain(|credit| {
            let is_seen = credit.arrival <= place_state.looked;
            if is_seen {
                lanes[credit.lane].taken -= credit.share;
                place_state.free(credit.lane % 2, credit.share);
            }
            !is_seen
        });
        place_state.credits = credits;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_half_of_a_ring_is_much_and_so_is_any_slot() {
        let is_much = |lines, slots| is_much(Occupancy { lines, slots }, 10);
        assert_eq!([0, 5, 6, 10].map(|lines| is_much(lines, 0)), [false, false, true, true]);
        assert!(is_much(1, 1) && is_much(1, 0x10));
    }
}
