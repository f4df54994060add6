//! Memory of short messages, from those that were taken in to those that are sent.
//!
//! It saves the host an allocation for each message, and no clock knows of it. Invariant: what is kept is bounded.

use super::WorldState;
use crate::message::Content;
use isles_transport::AlignedBytes;

/// Bytes of a message whose memory is kept for others, and how many such are kept at most.
const SPARE_BYTES: usize = 256;
const SPARES_MAX: usize = 1_024;

impl WorldState {
    /// Memory for a message of up to `room` bytes.
    #[inline]
    pub(crate) fn lend(&mut self, room: usize) -> Content {
        let spare = self.spare.pop().and_then(|mut spare| spare.renew(room).then_some(spare));
        spare.unwrap_or_else(|| Box::new(AlignedBytes::new(room.max(SPARE_BYTES))))
    }

    /// Takes back what `lend` gave.
    #[inline]
    pub(crate) fn keep(&mut self, content: Content) {
        if self.spare.len() < SPARES_MAX {
            self.spare.push(content);
        }
    }
}
