//! Receipts: how a sender hears what was taken of its packets, so that as many may go.
//!
//! The receiver owes one for each message or piece that asks for it; when its batch is taken in, one packet of one flit
//! tells a sender of all of one class. It does not know what was in them, or how many went unasked before. Invariant:
//! what a sender may send is all of its window but for what it has not read a receipt of.

use super::Packets;
use super::costs::HEADER_BYTES;
use super::desk::{Desk, Owed};
use crate::cores::Cores;
use crate::report::Spending;
use crate::wire::{News, Outgoing, POLL_CYCLES};
use isles_chip::quantity::Picoseconds;
use isles_transport::PlaceId;

/// Packets that a receiver has taken.
pub(super) struct Receipt {
    pub(super) arrival: Picoseconds,
    pub(super) target: PlaceId,
    pub(super) lane: u32,
    pub(super) packets: u32,
}

impl Packets {
    /// Whether the packets of a message of `len` bytes may go, and no block is under way.
    pub(super) fn fits(&self, out: &Outgoing, len: usize) -> bool {
        let free = self.desks[out.from.index()].free[out.class as usize];
        self.costs.carried(free) >= HEADER_BYTES + len && !self.is_streaming(out)
    }

    /// Takes the receipts that had arrived when the turn began.
    pub(super) fn read_receipts(&mut self, cores: &mut Cores, place: PlaceId) {
        cores.spend(place, cores.cycles(place, POLL_CYCLES), Spending::Polling);
        let seen = cores.present();
        let Desk { receipts, free, .. } = &mut self.desks[place.index()];
        receipts.retain(|receipt| {
            let arrived = receipt.arrival <= seen;
            if arrived {
                free[receipt.lane as usize] += receipt.packets;
            }
            !arrived
        });
    }

    /// Tells the senders of what `place` has taken and not told, and when they hear of it.
    pub(super) fn write_receipts(&mut self, cores: &mut Cores, place: PlaceId, news: &mut News) {
        let mut owed = std::mem::take(&mut self.desks[place.index()].owed);
        owed.sort_unstable();
        for group in owed.chunk_by(|one, other| (one.source, one.lane) == (other.source, other.lane)) {
            let Owed { source, lane, .. } = group[0];
            let packets = group.iter().map(|owed| owed.packets).sum();
            let arrival = cores.carry(place, source, self.costs.transit, 1);
            let receipt = Receipt { arrival, target: place, lane, packets };
            self.desks[source.index()].receipts.push(receipt);
            news.push((source, arrival));
        }
        owed.clear();
        self.desks[place.index()].owed = owed;
    }
}
