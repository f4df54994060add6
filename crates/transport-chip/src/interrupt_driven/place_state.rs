//! What one place keeps, and what is under way from one place to another in one class.
//!
//! Plain state; it has no costs. Invariant: a lane has a stream exactly if the desk of its sender names it.

use super::acknowledgement::Acknowledgement;
use super::block_send::BlockSend;
use crate::inbox::Inbox;
use crate::interrupt_service::InterruptService;
use isles_chip::quantity::Picoseconds;

/// What is under way from one place to another in one class.
#[derive(Default)]
pub(super) struct Lane {
    /// Bytes that are not read, as the sender knows.
    pub(super) unread: usize,
    /// When the last message is found.
    pub(super) last: Picoseconds,
    /// Messages and pieces that are not taken.
    pub(super) waiting: u32,
    pub(super) stream: Option<BlockSend>,
}

/// What one place keeps beside its lanes.
#[derive(Default)]
pub(super) struct PlaceState {
    pub(super) inbox: Inbox,
    /// Lanes with a block under way from here.
    pub(super) streams: Vec<usize>,
    /// On their way here.
    pub(super) acknowledgements: Vec<Acknowledgement>,
    /// Read here and not told: the lane, its bytes.
    pub(super) owed: Vec<(usize, usize)>,
    pub(super) system: InterruptService,
}
