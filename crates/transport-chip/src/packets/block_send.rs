//! Blocks under way: pieces of them go as far as packets are free, the others when receipts have come.
//!
//! It does not know when a piece is found. Invariant: to one place in one class there is one block at most, and what is
//! left of it is never nothing.

use super::{MESSAGE_PACKETS_MAX, Packets};
use crate::cores::Cores;
use crate::inbox::Fragment;
use crate::message::MessageContent;
use crate::protocol::{Outgoing, Wakeups};
use isles_transport::{Class, HandlerId, PlaceId};

/// A block under way.
pub(super) struct BlockSend {
    pub(super) target: PlaceId,
    pub(super) class: Class,
    pub(super) handler: HandlerId,
    pub(super) load: Option<MessageContent>,
    /// Bytes still to be sent, with the header.
    pub(super) left: usize,
}

impl Packets {
    /// Whether a block is under way to the same place in the same class.
    pub(super) fn is_streaming(&self, out: &Outgoing) -> bool {
        let mut streams = self.place_states[out.from.index()].streams.iter();
        streams.any(|stream| stream.target == out.to && stream.class == out.class)
    }

    /// Sends pieces of the blocks of `place` as far as there is room.
    pub(super) fn push_blocks(&mut self, cores: &mut Cores, place: PlaceId, wakeups: &mut Wakeups) {
        let mut streams = std::mem::take(&mut self.place_states[place.index()].streams);
        streams.retain_mut(|stream| {
            let lane = stream.class as usize;
            loop {
                let bytes = stream.left.min(self.costs.carried(MESSAGE_PACKETS_MAX[lane]));
                if self.costs.carried(self.place_states[place.index()].free[lane]) < bytes {
                    return true;
                }
                stream.left -= bytes;
                let of = stream.load.as_ref().map_or(0, MessageContent::len);
                let load = if stream.left == 0 { stream.load.take() } else { None };
                let whole = load.map(|load| Fragment::Whole { handler: stream.handler, load });
                let piece = whole.unwrap_or(Fragment::Part { of });
                let ends = (place, stream.target, stream.class);
                wakeups.push((stream.target, self.inject(cores, ends, bytes, piece)));
                if stream.left == 0 {
                    return false;
                }
            }
        });
        self.place_states[place.index()].streams = streams;
    }
}
