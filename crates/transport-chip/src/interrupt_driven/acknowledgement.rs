//! Receipts: how a sender hears what was read of its messages, so that as much may lie unread again.
//!
//! It does not know what was in them. Invariant: what may lie unread of one sender and class is never more than
//! [`Driver::UNREAD_MAX`] bytes, as the sender knows.

use super::place_state::Lane;
use super::{Driver, HEADER_BYTES, InterruptDriven};
use crate::cores::Cores;
use crate::protocol::Wakeups;
use crate::report::TimeCategory;
use isles_chip::quantity::Picoseconds;
use isles_transport::PlaceId;

/// Bytes that were read.
pub(super) struct Acknowledgement {
    pub(super) arrival: Picoseconds,
    pub(super) lane: usize,
    pub(super) bytes: usize,
}

impl<D: Driver> InterruptDriven<D> {
    /// Whether a message of `len` bytes may lie unread beside what does, and no block is under way.
    pub(super) fn fits(&self, lane: usize, len: usize) -> bool {
        let Lane { unread, stream, .. } = &self.lanes[lane];
        stream.is_none() && unread + HEADER_BYTES + len <= D::UNREAD_MAX
    }

    /// Takes the receipts that had come when the turn began.
    pub(super) fn read_acknowledgements(&mut self, cores: &Cores, place: PlaceId) {
        let seen = cores.present();
        let (place_states, lanes) = (&mut self.place_states, &mut self.lanes);
        place_states[place.index()].acknowledgements.retain(|acknowledgement| {
            let has_come = acknowledgement.arrival <= seen;
            if has_come {
                lanes[acknowledgement.lane].unread -= acknowledgement.bytes;
            }
            !has_come
        });
    }

    /// Tells the senders of what `place` has read and not told, and when they hear of it.
    pub(super) fn write_acknowledgements(
        &mut self,
        cores: &mut Cores,
        place: PlaceId,
        wakeups: &mut Wakeups,
    ) {
        let mut owed = std::mem::take(&mut self.place_state(place).owed);
        owed.sort_unstable();
        for group in owed.chunk_by(|one, other| one.0 == other.0) {
            let lane = group[0].0;
            let bytes = group.iter().map(|(_, bytes)| bytes).sum();
            let (sender, ..) = self.pairs.ends(lane);
            let is_due = self.lanes[lane].unread > D::UNREAD_MAX / 2;
            let [here, there] = self.driver.acknowledgement(cores, place, sender, is_due);
            cores.spend(place, here, TimeCategory::Handling);
            let interrupt = cores.times(place).interrupt.unwrap_or_default().over(0);
            let called = cores.now(place) + interrupt;
            let arrival = match there {
                Picoseconds::ZERO => called,
                work => self.place_state(sender).system.reserve(cores.present(), called, work) + work,
            };
            self.place_state(sender).acknowledgements.push(Acknowledgement { arrival, lane, bytes });
            wakeups.push((sender, arrival));
        }
        owed.clear();
        self.place_state(place).owed = owed;
    }
}
