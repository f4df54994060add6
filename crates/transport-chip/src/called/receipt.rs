//! Receipts: how a sender hears what was read of its messages, so that as much may lie unread again.
//!
//! It does not know what was in them. Invariant: what may lie unread of one sender and class is never more than
//! [`Driver::UNREAD_MAX`] bytes, as the sender knows.

use super::desk::Lane;
use super::{Called, Driver, HEADER_BYTES};
use crate::cores::Cores;
use crate::report::Spending;
use crate::wire::News;
use isles_chip::quantity::Picoseconds;
use isles_transport::PlaceId;

/// Bytes that were read.
pub(super) struct Receipt {
    pub(super) arrival: Picoseconds,
    pub(super) lane: usize,
    pub(super) bytes: usize,
}

impl<D: Driver> Called<D> {
    /// Whether a message of `len` bytes may lie unread beside what does, and no block is under way.
    pub(super) fn fits(&self, lane: usize, len: usize) -> bool {
        let Lane { unread, stream, .. } = &self.lanes[lane];
        stream.is_none() && unread + HEADER_BYTES + len <= D::UNREAD_MAX
    }

    /// Takes the receipts that had come when the turn began.
    pub(super) fn read_receipts(&mut self, cores: &Cores, place: PlaceId) {
        let seen = cores.present();
        let (desks, lanes) = (&mut self.desks, &mut self.lanes);
        desks[place.index()].receipts.retain(|receipt| {
            let has_come = receipt.arrival <= seen;
            if has_come {
                lanes[receipt.lane].unread -= receipt.bytes;
            }
            !has_come
        });
    }

    /// Tells the senders of what `place` has read and not told, and when they hear of it.
    pub(super) fn write_receipts(&mut self, cores: &mut Cores, place: PlaceId, news: &mut News) {
        let mut owed = std::mem::take(&mut self.desk(place).owed);
        owed.sort_unstable();
        for group in owed.chunk_by(|one, other| one.0 == other.0) {
            let lane = group[0].0;
            let bytes = group.iter().map(|(_, bytes)| bytes).sum();
            let (sender, ..) = self.pairs.ends(lane);
            let is_due = self.lanes[lane].unread > D::UNREAD_MAX / 2;
            let [here, there] = self.driver.receipt(cores, place, sender, is_due);
            cores.spend(place, here, Spending::Handling);
            let interrupt = cores.times(place).interrupt.unwrap_or_default().over(0);
            let called = cores.now(place) + interrupt;
            let arrival = match there {
                Picoseconds::ZERO => called,
                work => self.desk(sender).system.employ(cores.present(), called, work) + work,
            };
            self.desk(sender).receipts.push(Receipt { arrival, lane, bytes });
            news.push((sender, arrival));
        }
        owed.clear();
        self.desk(place).owed = owed;
    }
}
