//! One ring: from one place to another, in one class.

use crate::parcel::Load;
use isles_chip::quantity::Picoseconds;
use isles_transport::HandlerId;
use std::collections::VecDeque;

/// What an entry occupies until it is credited.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    /// Lines of the ring.
    pub(super) lines: u32,
    /// Whether it has a slot of the sender's buffer too.
    pub(super) slot: bool,
}

/// What an entry brings.
pub(super) enum Piece {
    /// A part of a block, not the last one.
    Part,
    /// A message, or the last part of a block with all of it.
    Whole { handler: HandlerId, load: Load },
}

/// An entry as the receiver finds it.
pub(super) struct Arriving {
    pub(super) arrival: Picoseconds,
    /// Lines to read in the ring.
    pub(super) lines: u32,
    /// Lines to read in the sender's buffer.
    pub(super) fetch: u32,
    pub(super) piece: Piece,
}

/// A block under way.
pub(super) struct Stream {
    pub(super) handler: HandlerId,
    pub(super) load: Load,
    /// Lines still to be written.
    pub(super) left: u32,
}

pub(super) struct Lane {
    /// As the sender knows it.
    pub(super) free_lines: u32,
    /// Entries not credited yet, as the sender knows it.
    pub(super) unacknowledged: VecDeque<Entry>,
    pub(super) stream: Option<Stream>,
    /// Entries that the receiver has not taken.
    pub(super) arriving: VecDeque<Arriving>,
    /// Entries that the receiver has taken and not credited.
    pub(super) owed: u32,
}

impl Lane {
    pub(super) fn new(free_lines: u32) -> Lane {
        Lane { free_lines, unacknowledged: VecDeque::new(), stream: None, arriving: VecDeque::new(), owed: 0 }
    }

    /// Takes `entries` entries off the sender's books; their slots become free among `slots`.
    pub(super) fn acknowledge(&mut self, entries: u32, slots: &mut u32) {
        for entry in self.unacknowledged.drain(..entries as usize) {
            self.free_lines += entry.lines;
            *slots += u32::from(entry.slot);
        }
    }
}
