//! What one place keeps: what it may still send, and what of others waits there or is owed to them.
//!
//! Plain state; it has no costs. Invariant: of all packets of a window that are not free, each is in one letter of a
//! receiver, is owed by it, or stands in a receipt.

use super::WINDOW;
use super::receipt::Receipt;
use super::stream::Stream;
use crate::mail::{Letter, Mail};
use isles_transport::PlaceId;

/// What one place keeps.
pub(super) struct Desk {
    /// Packets that may still be sent, by class.
    pub(super) free: [u32; 2],
    pub(super) streams: Vec<Stream>,
    /// Receipts on their way here.
    pub(super) receipts: Vec<Receipt>,
    /// What has arrived here or will, by class.
    pub(super) mail: Mail,
    /// Packets taken here, or lost with this place, and not acknowledged.
    pub(super) owed: Vec<Owed>,
    /// Messages and pieces sent from here so far.
    pub(super) sequence: u32,
}

/// Packets of one sender and class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Owed {
    pub(super) source: PlaceId,
    pub(super) lane: u32,
    pub(super) packets: u32,
}

/// What a letter notes in its slots when its sender has forgotten the receiver: nobody wants a receipt for it.
const FORGOTTEN: u8 = 1;

impl Desk {
    /// With nothing under way.
    pub(super) fn new() -> Desk {
        Desk {
            free: [WINDOW; 2],
            streams: Vec::new(),
            receipts: Vec::new(),
            mail: Mail::default(),
            owed: Vec::new(),
            sequence: 0,
        }
    }

    /// Notes that the sender of a letter gets a receipt for it.
    pub(super) fn owe(&mut self, letter: &Letter) {
        if letter.slots != FORGOTTEN {
            self.owed.push(Owed { source: letter.source, lane: letter.lane, packets: letter.lines });
        }
    }

    /// Settles what `source` has under way to here, without a receipt; gives how many packets they are, by class.
    pub(super) fn forget(&mut self, source: PlaceId) -> [u32; 2] {
        let mut packets = [0; 2];
        let waiting = self.mail.letters_mut().filter(|letter| letter.source == source);
        for letter in waiting.filter(|letter| letter.slots != FORGOTTEN) {
            letter.slots = FORGOTTEN;
            packets[letter.lane as usize] += letter.lines;
        }
        for owed in self.owed.extract_if(.., |owed| owed.source == source) {
            packets[owed.lane as usize] += owed.packets;
        }
        packets
    }
}
