//! How a message becomes entries: where its header and its lines lie, and in how many parts it goes.
//!
//! A place that has nothing of a class under way to another one, as it knows, and no header in its cell there, writes
//! the header of its next entry into the cell, which the receiver's poll reads anyway. That entry is the first that the
//! receiver has not taken, whatever follows it in the ring; so the cell needs no number, only a bit that turns. It is
//! free again when that entry is credited.
//!
//! Invariant: of each ordered pair of places at most one entry has the cell.

use super::occupancy::Occupancy;
use super::{Doorbell, DoorbellLayout, LaneEnds};
use crate::cores::Cores;
use crate::inbox::Fragment;
use crate::message::MessageContent;
use crate::protocol::Outgoing;
use isles_chip::quantity::Picoseconds;

impl Doorbell {
    /// Writes a message for which there is room, among places that have cells; gives when its first part arrives.
    #[inline(never)] // Where places are many, none comes here.
    pub(super) fn write(
        &mut self,
        cores: &mut Cores,
        out: &Outgoing,
        way: LaneEnds,
        load: MessageContent,
    ) -> Picoseconds {
        let len = load.len();
        let share = if self.finds_cell(way) {
            self.budget.lines_beside_cell(out.class, len).map(Occupancy::beside_cell)
        } else {
            self.budget.ring_lines_of(out.class, len).map(Occupancy::of_lines)
        };
        let piece = Fragment::Whole { handler: out.handler, load };
        match share {
            Some(share) => self.write_there(cores, way, share, piece),
            None => self.write_at_home(cores, way, self.budget.lines(len), piece),
        }
    }

    /// Whether the next entry may have its header in the cell. A look of its own would cost more than that spares.
    fn finds_cell(&mut self, LaneEnds { source, lane, .. }: LaneEnds) -> bool {
        if !self.budget.has_cells() {
            return false;
        }
        self.take_credits(source);
        let other_class = lane ^ 1;
        self.lanes[lane].taken == Occupancy::default() && !self.lanes[other_class].taken.has_cell()
    }

    /// Writes a message into the ring of its receiver, a long one in halves.
    fn write_there(
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

    /// Writes a message of so many lines into a slot, or a long one into two of them if both are free.
    #[inline]
    pub(super) fn write_at_home(
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
