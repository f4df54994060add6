//! Taking in: what a place finds when it looks, one arrival at a time.
//!
//! It does not know who is called with what arrives. Invariant: of messages a place takes only those that were there
//! when it looked, and a death only after the last message of the dead place.

use super::{Event, WorldState};
use crate::message::ReceivedMessage;
use crate::record::Transfer;
use isles_chip::kernel::EventClass;
use isles_chip::quantity::Picoseconds;
use isles_transport::{Inbound, PlaceId};

/// What a place takes in.
pub(crate) enum Delivery {
    ReceivedMessage(ReceivedMessage),
    Died(PlaceId),
    /// A part of something larger: look again.
    Fragment,
}

impl WorldState {
    /// Looks for messages; gives the time until which it saw.
    pub(crate) fn poll(&mut self, place: PlaceId) -> Picoseconds {
        let seen = self.cores.now(place);
        if self.is_blocked_in_send(place) {
            return seen;
        }
        self.protocol.poll(&mut self.cores, place);
        if self.protocol.has_pending_blocks(place) {
            self.make_progress(place);
        }
        seen
    }

    /// Takes one arrival that was there at `seen`.
    pub(crate) fn take(&mut self, place: PlaceId, seen: Picoseconds, inbound: Inbound) -> Option<Delivery> {
        let status = &self.statuses[place.index()];
        if !status.alive {
            return None;
        }
        if !status.notices.is_empty()
            && let Some(dead) = self.take_death(place)
        {
            return Some(Delivery::Died(dead));
        }
        let before = self.cores.now(place);
        self.begin_action(place);
        let taken = self.protocol.take(&mut self.cores, place, seen, inbound == Inbound::Control);
        self.end_taking(place, taken.as_ref());
        let Some(message) = taken? else {
            let key = self.key(before, EventClass::Arrival, place);
            self.digest.record(key, Event::Fragment as u32, 0);
            return Some(Delivery::Fragment);
        };
        let key = self.key(message.arrival, EventClass::Arrival, place);
        let size = message.load.len() as u64;
        self.digest.record(
            key,
            Event::Message as u32,
            size << 33 | u64::from(message.source.0) << 1 | message.class as u64,
        );
        self.messages += 1;
        self.bytes += size;
        Some(Delivery::ReceivedMessage(message))
    }

    fn end_taking(&mut self, place: PlaceId, taken: Option<&Option<ReceivedMessage>>) {
        let Some(recorder) = &mut self.cores.recorder else { return };
        match taken {
            None => recorder.abandon(place),
            Some(None) => recorder.received_piece(place),
            Some(Some(message)) => {
                let (source, class, bytes) = (message.source, message.class, message.load.len() as u64);
                recorder.received(Transfer { source, target: place, class, bytes });
            }
        }
    }
}
