//! Blocks under way: their packets go as far as they may lie unread, the others when receipts have come.
//!
//! It does not know when a packet is found. Invariant: of one lane there is one block at most, and what is left of it
//! is never nothing.

use super::{Called, Driver};
use crate::cores::Cores;
use crate::mail::Piece;
use crate::parcel::Load;
use crate::wire::News;
use isles_transport::HandlerId;

/// A block of which something is still to be sent.
pub(super) struct Stream {
    pub(super) handler: HandlerId,
    pub(super) load: Load,
    pub(super) left: usize,
}

impl<D: Driver> Called<D> {
    /// Sends packets of a lane's block as far as they may lie unread.
    pub(super) fn push_stream(&mut self, cores: &mut Cores, lane: usize, news: &mut News) {
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
                self.desk(place).streams.retain(|other| *other != lane);
                Piece::Whole { handler: stream.handler, load: stream.load }
            } else {
                self.lanes[lane].stream = Some(stream);
                Piece::Part { of }
            };
            news.push((target, self.inject(cores, lane, bytes, piece)));
        }
    }
}
