//! What one place keeps: what it may still send, and what of others waits there or is owed to them.
//!
//! Plain state; it has no costs. Invariant: of all packets of a window that are not free, each is unasked, is asked
//! for by one letter, is owed by the receiver, or stands in a receipt.

use super::acknowledgement::Acknowledgement;
use super::block_send::BlockSend;
use super::unacknowledged::Unacknowledged;
use super::{RESERVE, WINDOW};
use crate::inbox::{Inbox, InboxEntry};
use isles_transport::{Class, PlaceId};

/// What one place keeps.
pub(super) struct PlaceState {
    /// Packets that may still be sent, by class.
    pub(super) free: [u32; 2],
    pub(super) streams: Vec<BlockSend>,
    /// Receipts on their way here.
    pub(super) acknowledgements: Vec<Acknowledgement>,
    /// What has arrived here or will, by class.
    pub(super) inbox: Inbox,
    /// Packets taken here, or lost with this place, and not acknowledged.
    pub(super) owed: Vec<OwedAcknowledgement>,
    /// Messages and pieces sent from here so far.
    pub(super) sequence: u32,
    /// Packets sent from here for which no receipt is asked, by class.
    pub(super) unacknowledged: [Unacknowledged; 2],
}

/// Packets of one sender and class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OwedAcknowledgement {
    pub(super) source: PlaceId,
    pub(super) lane: u32,
    pub(super) packets: u32,
}

impl PlaceState {
    /// With nothing under way.
    pub(super) fn new() -> PlaceState {
        PlaceState {
            free: [WINDOW; 2],
            streams: Vec::new(),
            acknowledgements: Vec::new(),
            inbox: Inbox::default(),
            owed: Vec::new(),
            sequence: 0,
            unacknowledged: Default::default(),
        }
    }

    /// Notes that so many packets go to a place; gives for how many they ask a receipt.
    ///
    /// Little is asked as long as much is free: a receipt then tells of many packets.
    pub(super) fn dispatch(&mut self, target: PlaceId, class: Class, packets: u32) -> u32 {
        self.sequence = self.sequence.wrapping_add(1);
        let free = &mut self.free[class as usize];
        *free -= packets;
        self.unacknowledged[class as usize].note(target, packets, *free < RESERVE)
    }

    /// Notes that the sender of a letter gets a receipt for it, if it asks for one.
    pub(super) fn owe(&mut self, queued: &InboxEntry) {
        if queued.fetch > 0 {
            self.owed.push(OwedAcknowledgement {
                source: queued.source,
                lane: queued.lane,
                packets: queued.fetch,
            });
        }
    }

    /// Settles what `source` asks of here, without a receipt; gives for how many packets, by class.
    pub(super) fn forget(&mut self, source: PlaceId) -> [u32; 2] {
        let mut packets = [0; 2];
        for queued in self.inbox.queue_mut().filter(|queued| queued.source == source) {
            packets[queued.lane as usize] += std::mem::take(&mut queued.fetch);
        }
        for owed in self.owed.extract_if(.., |owed| owed.source == source) {
            packets[owed.lane as usize] += owed.packets;
        }
        packets
    }
}
