//! The rings of the protocol, one for each ordered pair of places and class, and the slots behind them.
//!
//! [`Occupancy`] is the space that entries of a ring hold until they are credited. Then follow the check for free lines
//! and slots, the writing of messages as entries, the credits that tell a sender what was taken, and the pieces of a
//! block, which are sent as far as slots and lines are free.
//!
//! A place that knows of no entry in flight of a class to another place, and of no header in its cell there, writes the
//! header of its next entry into the cell, which the receiver's poll reads anyway. That entry is the first that the
//! receiver has not taken, so the cell needs no number, only a bit that alternates. The cell is free again when that
//! entry is credited.
//!
//! A receiver records the credit owed to each lane. A sender that may be waiting gets it after the batch of arrivals,
//! the others with the next message to them or at the end of the turn.
//!
//! Invariants: a ring with a block in flight has no room for other messages, so nothing comes between its pieces; at
//! most one entry of each ordered pair of places uses the cell; at most what was taken is owed.

use super::layout::SLOTS_MAX;
use super::{Doorbell, DoorbellLayout, LaneEnds, PlaceState};
use crate::cores::Cores;
use crate::protocol::inbox::{Fragment, MessageContent};
use crate::protocol::{Outgoing, Wakeups};
use crate::report::TimeCategory;
use isles_chip::quantity::Picoseconds;
use isles_transport::{HandlerId, PlaceId};

/// Space that entries occupy until they are credited.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Occupancy {
    /// Lines of the ring.
    pub(super) lines: u8,
    /// Slots of the sender's buffer: the low bits count this lane's own slots, the high half has a bit for each shared
    /// slot, and [`CELL`] is in between. No lane has one of these bits twice, so occupancies can be added.
    pub(super) slots: u8,
}

/// The bit for the cell of the pair of places.
const CELL: u8 = 8;

impl Occupancy {
    /// Returns the occupancy of a message of `lines` lines, with its header.
    #[inline]
    pub(super) fn of_lines(lines: u32) -> Occupancy {
        Occupancy { lines: lines as u8, slots: 0 }
    }

    /// Returns the occupancy of a message of `lines` lines with its header in the cell.
    #[inline]
    pub(super) fn beside_cell(lines: u32) -> Occupancy {
        Occupancy { lines: lines as u8, slots: CELL }
    }

    /// The occupancy of a line of the ring that names an own slot.
    pub(super) const OWN_SLOT: Occupancy = Occupancy { lines: 1, slots: 1 };

    /// Returns the occupancy of a line of the ring that names a shared slot.
    pub(super) fn of_shared(slot: u8) -> Occupancy {
        Occupancy { lines: 1, slots: 0x10 << slot }
    }

    /// Returns the number of this lane's own slots.
    #[inline]
    pub(super) fn own_slots(self) -> u32 {
        u32::from(self.slots & (CELL - 1))
    }

    /// Returns `true` if there are slots, own or shared.
    #[inline]
    pub(super) fn has_slots(self) -> bool {
        self.slots & !CELL != 0
    }

    #[inline]
    pub(super) fn has_cell(self) -> bool {
        self.slots & CELL != 0
    }

    /// Returns the numbers of the shared slots.
    #[inline]
    pub(super) fn shared_slots(self) -> impl Iterator<Item = usize> {
        let bits = self.slots >> 4;
        (0..SLOTS_MAX).take_while(move |slot| bits >> slot != 0).filter(move |slot| bits >> slot & 1 != 0)
    }
}

const _: () = assert!(SLOTS_MAX <= 4, "half a byte has 4 bits, and 3 bits count to 7");

/// State of a lane; small, because there are many and each message needs one or two.
#[derive(Default)]
pub(super) struct Lane {
    /// Space that is written and not credited yet, as known to the sender.
    pub(super) taken: Occupancy,
    /// Space that the receiver has taken and not credited yet.
    pub(super) owed: Occupancy,
    /// `true` if a block is in flight on this lane.
    pub(super) streams: bool,
}

impl std::ops::AddAssign for Occupancy {
    fn add_assign(&mut self, other: Occupancy) {
        self.lines += other.lines;
        self.slots += other.slots;
    }
}

impl std::ops::SubAssign for Occupancy {
    fn sub_assign(&mut self, other: Occupancy) {
        self.lines -= other.lines;
        self.slots -= other.slots;
    }
}

impl Doorbell {
    /// Returns the number of free lines of the ring of `lane`, as known to its sender.
    pub(super) fn free_lines(&self, lane: usize) -> u32 {
        self.layout.ring_lines[lane % 2] - u32::from(self.lanes[lane].taken.lines)
    }

    /// Returns `true` if the ring has free lines for a message; for one in a slot, if a slot and `beside` lines are
    /// free.
    pub(super) fn fits(&self, out: &Outgoing, len: usize, beside: u32) -> bool {
        self.has_lines(out, self.layout.ring_lines_of(out.class, len), beside)
    }

    /// As [`Doorbell::fits`], for a message that takes `lines` lines of the ring, or a slot if `None`.
    #[inline]
    pub(super) fn has_lines(&self, out: &Outgoing, lines: Option<u32>, beside: u32) -> bool {
        let has_slot = lines.is_some() || self.place_states[out.from.index()].slots[out.class as usize] > 0;
        let wanted = lines.unwrap_or(beside);
        let Some(lane) = self.pairs.known(out.to, out.from, out.class) else {
            return has_slot && self.layout.ring_lines[out.class as usize] >= wanted;
        };
        !self.lanes[lane].streams && has_slot && self.free_lines(lane) >= wanted
    }

    /// Returns `true` if `fits` finds room for `place`, after polling for credit if needed.
    #[inline]
    pub(super) fn finds(
        &mut self,
        cores: &mut Cores,
        place: PlaceId,
        fits: impl Fn(&Doorbell) -> bool,
    ) -> bool {
        if fits(self) {
            return true;
        }
        self.look(cores, place);
        self.take_credits(place);
        fits(self)
    }
}

impl Doorbell {
    /// Writes a message for which there is room, in a layout with cells; returns the arrival time of its first part.
    #[inline(never)] // Where places are many, none comes here.
    pub(super) fn write(
        &mut self,
        cores: &mut Cores,
        out: &Outgoing,
        way: LaneEnds,
        content: MessageContent,
    ) -> Picoseconds {
        let len = content.len();
        let share = if self.finds_cell(way) {
            self.layout.lines_beside_cell(out.class, len).map(Occupancy::beside_cell)
        } else {
            self.layout.ring_lines_of(out.class, len).map(Occupancy::of_lines)
        };
        let piece = Fragment::Whole { handler: out.handler, content };
        match share {
            Some(share) => self.write_remote(cores, way, share, piece),
            None => self.write_local(cores, way, self.layout.lines(len), piece),
        }
    }

    /// Returns `true` if the next entry can have its header in the cell. It does not poll for that, which would cost
    /// more than it saves.
    fn finds_cell(&mut self, LaneEnds { source, lane, .. }: LaneEnds) -> bool {
        if !self.layout.has_cells() {
            return false;
        }
        self.take_credits(source);
        let other_class = lane ^ 1;
        self.lanes[lane].taken == Occupancy::default() && !self.lanes[other_class].taken.has_cell()
    }

    /// Writes a message into the receiver's ring, a long one in halves.
    fn write_remote(
        &mut self,
        cores: &mut Cores,
        way: LaneEnds,
        share: Occupancy,
        piece: Fragment,
    ) -> Picoseconds {
        let Some(first) = DoorbellLayout::first_half(share.lines.into()) else {
            return self.ring(cores, way, share, 0, piece);
        };
        let rest = Occupancy::of_lines(u32::from(share.lines) - first);
        let part = Fragment::Part { of: piece.message_bytes() };
        let arrival = self.ring(cores, way, Occupancy { lines: first as u8, ..share }, 0, part);
        self.ring(cores, way, rest, 0, piece);
        arrival
    }

    /// Writes a message of `lines` lines into a slot, or a long one into two of them if both are free.
    #[inline]
    pub(super) fn write_local(
        &mut self,
        cores: &mut Cores,
        way: LaneEnds,
        lines: u32,
        piece: Fragment,
    ) -> Picoseconds {
        let has_two = |rings: &Doorbell| {
            rings.place_states[way.source.index()].slots[way.lane % 2] > 1 && rings.free_lines(way.lane) > 1
        };
        let Some(first) = DoorbellLayout::first_half(lines).filter(|_| has_two(self)) else {
            return self.write_slot(cores, way, lines, piece);
        };
        let part = Fragment::Part { of: piece.message_bytes() };
        let arrival = self.write_slot(cores, way, first, part);
        self.write_slot(cores, way, lines - first, piece);
        arrival
    }

    fn write_slot(&mut self, cores: &mut Cores, way: LaneEnds, lines: u32, piece: Fragment) -> Picoseconds {
        cores.write_lines(way.source, way.source, lines);
        self.ring(cores, way, Occupancy::OWN_SLOT, lines, piece)
    }
}

/// A credit that the sender has not read yet.
pub(super) struct Credit {
    pub(super) arrival: Picoseconds,
    pub(super) lane: usize,
    pub(super) share: Occupancy,
}

/// Returns `true` if a sender may be waiting for this credit of a ring of `lines` lines: more than half of the lines,
/// or a slot.
pub(super) fn is_credit_due(owed: Occupancy, lines: u32) -> bool {
    owed.has_slots() || 2 * u32::from(owed.lines) > lines
}

/// Returns the bit of a place, which others may share.
pub(super) fn bit_of(place: PlaceId) -> u64 {
    1 << (place.0 % u64::BITS)
}

impl Doorbell {
    /// Credits everything owed to `target` with a message of `place` that arrives there at `arrival`.
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

    /// Credits everything owed to `source` on a lane, at `arrival`.
    #[inline]
    fn credit(&mut self, source: PlaceId, lane: usize, arrival: Picoseconds) {
        let share = std::mem::take(&mut self.lanes[lane].owed);
        self.place_states[source.index()].credits.push(Credit { arrival, lane, share });
    }

    /// Writes the owed credits of `place` for which `is_wanted` returns `true`, given the occupancy and the lines of
    /// the ring.
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
            // By sender, because one flag line carries its credits of both classes.
            if last != Some(source) {
                if !is_wanted(self.lanes[lane].owed, self.layout.ring_lines[lane % 2]) {
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

    /// Reads the flags of `place`, once per turn.
    pub(super) fn look(&mut self, cores: &mut Cores, place: PlaceId) {
        let looked = &mut self.place_states[place.index()].looked;
        if *looked < cores.present() {
            *looked = cores.present();
            cores.read_own_lines(place, self.layout.flag_lines, TimeCategory::Polling);
        }
    }

    /// Takes the credits that `place` has seen: those that had arrived at the start of the turn in which it last read
    /// its flags.
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

/// A block being sent.
pub(super) struct BlockSend {
    pub(super) lane: usize,
    pub(super) handler: HandlerId,
    pub(super) content: MessageContent,
    /// Lines still to be written.
    pub(super) left: u32,
}

impl Doorbell {
    /// Writes pieces of a lane's block as long as there is room.
    pub(super) fn push_block(&mut self, cores: &mut Cores, lane: usize, wakeups: &mut Wakeups) {
        let (place, target, class) = (self.source_of(lane), self.target_of(lane), lane % 2);
        while self.place_states[place.index()].slots[class] > 0 && self.free_lines(lane) > 0 {
            let streams = &mut self.place_states[place.index()].streams;
            let Some(index) = streams.iter().position(|stream| stream.lane == lane) else { return };
            let lines = self.layout.piece_lines(class, streams[index].left);
            streams[index].left -= lines;
            let bytes = streams[index].content.len();
            let piece = if streams[index].left == 0 {
                let BlockSend { handler, content, .. } = streams.remove(index);
                self.lanes[lane].streams = false;
                Fragment::Whole { handler, content }
            } else {
                Fragment::Part { of: bytes }
            };
            cores.load_private(place, lines, bytes);
            cores.write_lines(place, place, lines);
            let way = LaneEnds { source: place, target, lane };
            wakeups.push((target, self.ring(cores, way, Occupancy::OWN_SLOT, lines, piece)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_keeps_which_slots_are_fetched_by_others_too_and_how_many_are_its_own() {
        let mut share = Occupancy::default();
        for more in
            [Occupancy::of_shared(3), Occupancy::OWN_SLOT, Occupancy::of_shared(0), Occupancy::OWN_SLOT]
        {
            share += more;
        }
        assert_eq!((share.lines, share.own_slots()), (4, 2));
        assert_eq!(share.shared_slots().collect::<Vec<_>>(), [0, 3]);
        share -= Occupancy::of_shared(0);
        assert_eq!((share.lines, share.own_slots()), (3, 2));
        assert_eq!(share.shared_slots().collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn more_than_half_of_a_ring_is_much_and_so_is_any_slot() {
        let is_credit_due = |lines, slots| is_credit_due(Occupancy { lines, slots }, 10);
        assert_eq!([0, 5, 6, 10].map(|lines| is_credit_due(lines, 0)), [false, false, true, true]);
        assert!(is_credit_due(1, 1) && is_credit_due(1, 0x10));
    }
}
