//! What one place, one route and one part of a buffer keep.
//!
//! Plain state; it has no costs and does not know when a chunk may go. Invariant: the bytes of a message are in one
//! place only: with the sender until the last chunk is written, in that chunk from then on.

use crate::message::MessageContent;
use isles_chip::kernel::Key;
use isles_chip::quantity::Picoseconds;
use isles_transport::HandlerId;
use std::collections::BTreeSet;

/// What a part of a buffer holds.
#[derive(Clone, Copy)]
pub(super) struct PartInUse {
    pub(super) lane: usize,
    /// Whether the last chunk is not answered, as the sender knows.
    pub(super) awaited: bool,
}

/// What is not written yet of a message.
pub(super) struct Remainder {
    pub(super) handler: HandlerId,
    pub(super) load: MessageContent,
    pub(super) lines: u32,
}

/// A chunk as the receiver finds it; the last one of a message brings all of it.
pub(super) struct ArrivingChunk {
    pub(super) arrival: Picoseconds,
    pub(super) lines: u32,
    /// Bytes of all of its message.
    pub(super) of: usize,
    pub(super) message: Option<(HandlerId, MessageContent)>,
}

/// What one route keeps.
#[derive(Default)]
pub(super) struct Lane {
    pub(super) rest: Option<Remainder>,
    pub(super) arriving: Option<ArrivingChunk>,
}

/// What one place keeps beside its lanes.
#[derive(Default)]
pub(super) struct PlaceState {
    /// Lanes with a message from here that is only partly written.
    pub(super) streams: Vec<usize>,
    /// Answers on their way here, or not looked at.
    pub(super) answers: Vec<(Picoseconds, usize)>,
    /// Chunks that wait for this place, by arrival.
    pub(super) heads: BTreeSet<(Key, usize)>,
}
