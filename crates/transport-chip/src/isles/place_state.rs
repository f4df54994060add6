//! What one place keeps beside its lanes.
//!
//! Plain state. Invariant: the slots that are free, its own lanes' and the shared ones are all that its buffer has.

use super::block_send::BlockSend;
use super::credit::Credit;
use super::layout::{DoorbellLayout, SLOTS_MAX};
use super::occupancy::Occupancy;
use crate::inbox::Inbox;
use isles_chip::quantity::Picoseconds;
use isles_transport::PlaceId;

/// See the file header.
pub(super) struct PlaceState {
    /// Free slots of its buffer, by class.
    pub(super) slots: [u32; 2],
    /// Of slots from which several fetch, by class: how many have not credited it; of all others none.
    pub(super) fetchers: [[u32; SLOTS_MAX]; 2],
    /// Blocks under way from here, one for a lane.
    pub(super) streams: Vec<BlockSend>,
    /// Credits on their way here.
    pub(super) credits: Vec<Credit>,
    /// When the turn began in which it has looked at its flags last.
    pub(super) looked: Picoseconds,
    /// Entries in the rings here, by class.
    pub(super) inbox: Inbox,
    /// Lanes with entries taken in this turn and not credited, with their senders; each once.
    pub(super) owed: Vec<(PlaceId, usize)>,
    /// The bits of those senders: who has none is owed nothing.
    pub(super) owes: u64,
    /// Whether one of them may wait for it.
    pub(super) owes_much: bool,
}

impl PlaceState {
    /// With all slots of its buffer free.
    pub(super) fn new(budget: &DoorbellLayout) -> PlaceState {
        PlaceState {
            slots: budget.slots,
            fetchers: [[0; SLOTS_MAX]; 2],
            streams: Vec::new(),
            credits: Vec::new(),
            looked: Picoseconds::ZERO,
            inbox: Inbox::default(),
            owed: Vec::new(),
            owes: 0,
            owes_much: false,
        }
    }

    /// Takes back the slots of a share of one of its lanes, of a class.
    pub(super) fn free(&mut self, class: usize, share: Occupancy) {
        self.slots[class] += share.own_slots();
        for slot in share.shared_slots() {
            let fetchers = &mut self.fetchers[class][slot];
            *fetchers -= 1;
            self.slots[class] += u32::from(*fetchers == 0);
        }
    }
}
