//! Room: whether a message finds lines of its ring, and a slot if it needs one.
//!
//! It asks for what `ring_entry` will take, and takes nothing. Invariant: a ring through which a block goes has no room
//! for anything else, so nothing comes between the pieces.

use super::Doorbell;
use crate::cores::Cores;
use crate::protocol::Outgoing;
use isles_transport::PlaceId;

impl Doorbell {
    /// Lines of the ring of `occupancy` that are free, as its sender knows.
    pub(super) fn free_lines(&self, lane: usize) -> u32 {
        self.budget.ring_lines[lane % 2] - u32::from(self.lanes[lane].taken.lines)
    }

    /// Whether the lines of a message are free in the ring; or, of one that goes into a slot, that and `beside` lines.
    pub(super) fn fits(&self, out: &Outgoing, len: usize, beside: u32) -> bool {
        self.has_lines(out, self.budget.ring_lines_of(out.class, len), beside)
    }

    /// The same of a message that takes so many lines of the ring, or of one that goes into a slot.
    #[inline]
    pub(super) fn has_lines(&self, out: &Outgoing, lines: Option<u32>, beside: u32) -> bool {
        let lane = self.lane_of(out.from, out.to, out.class);
        let has_slot = lines.is_some() || self.place_states[out.from.index()].slots[out.class as usize] > 0;
        !self.lanes[lane].streams && has_slot && self.free_lines(lane) >= lines.unwrap_or(beside)
    }

    /// Whether `place` finds the room that `fits` wants; looks for credit if that is needed.
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
