//! What one place keeps, and what is under way from there to each place that has not taken all.
//!
//! Plain state; it has no costs. Invariant: a way is kept exactly as long as something of it is under way.

use super::WINDOW;
use super::receipt::Receipt;
use super::stream::Stream;
use crate::mail::Mail;
use isles_chip::quantity::Picoseconds;
use isles_transport::PlaceId;
use std::collections::BTreeMap;

/// What is under way to one place in one class.
#[derive(Default)]
pub(super) struct Way {
    /// When the last message arrives.
    pub(super) last: Picoseconds,
    /// Messages and pieces that are not taken.
    pub(super) waiting: u32,
    /// Packets that are not acknowledged.
    pub(super) packets: u32,
}

/// What one place keeps.
pub(super) struct Desk {
    /// Packets that may still be sent, by class.
    pub(super) free: [u32; 2],
    /// By the other place, and whether they are data.
    pub(super) ways: BTreeMap<(PlaceId, bool), Way>,
    pub(super) streams: Vec<Stream>,
    /// Receipts on their way here.
    pub(super) receipts: Vec<Receipt>,
    /// What has arrived here or will, by class.
    pub(super) mail: Mail,
    /// Packets taken here and not acknowledged: of whom, whether they are data, how many.
    pub(super) owed: Vec<(PlaceId, bool, u32)>,
    /// Messages and pieces sent from here so far.
    pub(super) sequence: u32,
}

impl Desk {
    /// With nothing under way.
    pub(super) fn new() -> Desk {
        Desk {
            free: [WINDOW; 2],
            ways: BTreeMap::new(),
            streams: Vec::new(),
            receipts: Vec::new(),
            mail: Mail::default(),
            owed: Vec::new(),
            sequence: 0,
        }
    }
}

/// Changes what is under way to a place, and forgets it if nothing is left.
pub(super) fn settle(
    ways: &mut BTreeMap<(PlaceId, bool), Way>,
    pair: (PlaceId, bool),
    change: impl FnOnce(&mut Way),
) {
    if let Some(way) = ways.get_mut(&pair) {
        change(way);
        if way.waiting == 0 && way.packets == 0 {
            ways.remove(&pair);
        }
    }
}
