//! Blocks under way: their pieces go through slots one by one, as far as these and lines of the ring are free.
//!
//! It does not know when a slot is free again. Invariant: a lane says that a block is under way exactly if the desk of
//! its sender keeps one of it.

use super::occupancy::Occupancy;
use super::{Doorbell, LaneEnds};
use crate::cores::Cores;
use crate::inbox::Fragment;
use crate::message::MessageContent;
use crate::protocol::Wakeups;
use isles_transport::HandlerId;

/// A block under way.
pub(super) struct BlockSend {
    pub(super) lane: usize,
    pub(super) handler: HandlerId,
    pub(super) load: MessageContent,
    /// Lines still to be written.
    pub(super) left: u32,
}

impl Doorbell {
    /// Writes pieces of a lane's block as far as there is room.
    pub(super) fn push_block(&mut self, cores: &mut Cores, lane: usize, wakeups: &mut Wakeups) {
        let (place, target, class) = (self.source_of(lane), self.target_of(lane), lane % 2);
        while self.place_states[place.index()].slots[class] > 0 && self.free_lines(lane) > 0 {
            let streams = &mut self.place_states[place.index()].streams;
            let Some(index) = streams.iter().position(|stream| stream.lane == lane) else { return };
            let lines = self.budget.piece_lines(class, streams[index].left);
            streams[index].left -= lines;
            let bytes = streams[index].load.len();
            let piece = if streams[index].left == 0 {
                let BlockSend { handler, load, .. } = streams.remove(index);
                self.lanes[lane].streams = false;
                Fragment::Whole { handler, load }
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
