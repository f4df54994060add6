//! Receipts: how a sender hears what was taken of its packets, so that as many may go.
//!
//! The receiver owes one for each message or piece that asks for it; when its batch is taken in, one packet of one flit
//! tells a sender of all of one class. It does not know what was in them, or how many went unasked before. Invariant:
//! what a sender may send is all of its window but for what it has not read a receipt of.

use super::Packets;
use super::costs::HEADER_BYTES;
use super::place_state::{OwedAcknowledgement, PlaceState};
use crate::cores::Cores;
use crate::protocol::{Outgoing, POLL_CYCLES, Wakeups};
use crate::report::TimeCategory;
use isles_chip::quantity::Picoseconds;
use isles_transport::PlaceId;

/// Packets that a receiver has taken.
pub(super) struct Acknowledgement {
    pub(super) arrival: Picoseconds,
    pub(super) target: PlaceId,
    pub(super) lane: u32,
    pub(super) packets: u32,
}

impl Packets {
    /// Whether the packets of a message of `len` bytes may go, and no block is under way.
    pub(super) fn fits(&self, out: &Outgoing, len: usize) -> bool {
        let free = self.place_states[out.from.index()].free[out.class as usize];
        self.costs.carried(free) >= HEADER_BYTES + len && !self.is_streaming(out)
    }

    /// Takes the receipts that had arrived when the turn began.
    pub(super) fn read_acknowledgements(&mut self, cores: &mut Cores, place: PlaceId) {
        cores.spend(place, cores.cycles(place, POLL_CYCLES), TimeCategory::Polling);
        let seen = cores.present();
        let PlaceState { acknowledgements, free, .. } = &mut self.place_states[place.index()];
        acknowledgements.retain(|acknowledgement| {
            let arrived = acknowledgement.arrival <= seen;
            if arrived {
                free[acknowledgement.lane as usize] += acknowledgement.packets;
            }
            !arrived
        });
    }

    /// Tells the senders of what `place` has taken and not told, and when they hear of it.
    pub(super) fn write_acknowledgements(
        &mut self,
        cores: &mut Cores,
        place: PlaceId,
        wakeups: &mut Wakeups,
    ) {
        let mut owed = std::mem::take(&mut self.place_states[place.index()].owed);
        owed.sort_unstable();
        for group in owed.chunk_by(|one, other| (one.source, one.lane) == (other.source, other.lane)) {
            let OwedAcknowledgement { source, lane, .. } = group[0];
            let packets = group.iter().map(|owed| owed.packets).sum();
            let arrival = cores.carry(place, source, self.costs.transit, 1);
            let acknowledgement = Acknowledgement { arrival, target: place, lane, packets };
            self.place_states[source.index()].acknowledgements.push(acknowledgement);
            wakeups.push((source, arrival));
        }
        owed.clear();
        self.place_states[place.index()].owed = owed;
    }
}
