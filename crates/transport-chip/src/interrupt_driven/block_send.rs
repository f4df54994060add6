//! Blocks under way: their packets go as far as they may lie unread, the others when receipts have come.
//!
//! It does not know when a packet is found. Invariant: of one lane there is one block at most, and what is left of it
//! is never nothing.

use super::{Driver, InterruptDriven};
use crate::cores::Cores;
use crate::inbox::Fragment;
use crate::message::MessageContent;
use crate::protocol::Wakeups;
use isles_transport::HandlerId;

/// A block of which something is still to be sent.
pub(super) struct BlockSend {
    pub(super) handler: HandlerId,
    pub(super) load: MessageContent,
    pub(super) left: usize,
}

impl<D: Driver> InterruptDriven<D> {
    /// Sends packets of a lane's block as far as they may lie unread.
    pub(super) fn push_block(&mut self, cores: &mut Cores, lane: usize, wakeups: &mut Wakeups) {
        let (place, target, class) = self.pairs.ends(lane);
        while let Some(mut stream) = self.lanes[lane].stream.take() {
            let bytes = stream.left.min(self.driver.payload(class));
            if self.lanes[lane].unread + bytes > D::UNREAD_MAX {
                self.lanes[lane].stream = Some(stream);
                return;
            }
            stream.left -= bytes;
            let of = stream.load.len();
            let piece = if stream.left == 0 {
                self.place_state(place).streams.retain(|other| *other != lane);
                Fragment::Whole { handler: stream.handler, load: stream.load }
            } else {
                self.lanes[lane].stream = Some(stream);
                Fragment::Part { of }
            };
            wakeups.push((target, self.inject(cores, lane, bytes, piece)));
        }
    }
}
