//! Blocks under way: their pieces go through slots one by one, as far as these and lines of the ring are free.
//!
//! It does not know when a slot is free again. Invariant: a lane says that a block is under way exactly if the desk of
//! its sender keeps one of it.

use super::lane::Share;
use super::{Isles, Way};
use crate::cores::Cores;
use crate::mail::Piece;
use crate::parcel::Load;
use crate::wire::News;
use isles_transport::HandlerId;

/// A block under way.
pub(super) struct Stream {
    pub(super) lane: usize,
    pub(super) handler: HandlerId,
    pub(super) load: Load,
    /// Lines still to be written.
    pub(super) left: u32,
}

impl Isles {
    /// Writes pieces of a lane's block as far as there is room.
    pub(super) fn push_stream(&mut self, cores: &mut Cores, lane: usize, news: &mut News) {
        let (place, target, class) = (self.source_of(lane), self.target_of(lane), lane % 2);
        while self.desks[place.index()].slots[class] > 0 && self.free_lines(lane) > 0 {
            let streams = &mut self.desks[place.index()].streams;
            let Some(index) = streams.iter().position(|stream| stream.lane == lane) else { return };
            let lines = self.budget.piece_lines(class, streams[index].left);
            streams[index].left -= lines;
            let bytes = streams[index].load.len();
            let piece = if streams[index].left == 0 {
                let Stream { handler, load, .. } = streams.remove(index);
                self.lanes[lane].streams = false;
                Piece::Whole { handler, load }
            } else {
                Piece::Part { of: bytes }
            };
            cores.load_private(place, lines, bytes);
            cores.write_lines(place, place, lines);
            let way = Way { source: place, target, lane };
            news.push((target, self.ring(cores, way, Share::OWN_SLOT, lines, piece)));
        }
    }
}
