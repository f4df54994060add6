//! Taking in: what a place finds when it looks, one arrival at a time.
//!
//! It does not know who is called with what arrives. Invariant: of messages a place takes only those that were there
//! when it looked, and a death only after the last message of the dead place.

use super::{Event, State};
use crate::parcel::Parcel;
use crate::record::Passage;
use isles_chip::kernel::EventClass;
use isles_chip::quantity::Picoseconds;
use isles_transport::{Inbound, PlaceId};

/// What a place takes in.
pub(crate) enum Taken {
    Parcel(Parcel),
    Died(PlaceId),
    /// A part of something larger: look again.
    Piece,
}

impl State {
    /// Looks for messages; gives the time until which it saw.
    pub(crate) fn poll(&mut self, place: PlaceId) -> Picoseconds {
        let seen = self.cores.now(place);
        if self.is_engaged(place) {
            return seen;
        }
        self.wire.poll(&mut self.cores, place);
        if self.wire.has_streams(place) {
            self.attend(place);
        }
        seen
    }

    /// Takes one arrival that was there at `seen`.
    pub(crate) fn take(&mut self, place: PlaceId, seen: Picoseconds, inbound: Inbound) -> Option<Taken> {
        let site = &self.sites[place.index()];
        if !site.alive {
            return None;
        }
        if !site.notices.is_empty()
            && let Some(dead) = self.take_death(place)
        {
            return Some(Taken::Died(dead));
        }
        let before = self.cores.now(place);
        self.begin_action(place);
        let taken = self.wire.take(&mut self.cores, place, seen, inbound == Inbound::Control);
        self.end_taking(place, taken.as_ref());
        let Some(parcel) = taken? else {
            let key = self.key(before, EventClass::Arrival, place);
            self.digest.record(key, Event::Piece as u32, 0);
            return Some(Taken::Piece);
        };
        let key = self.key(parcel.arrival, EventClass::Arrival, place);
        let size = parcel.load.len() as u64;
        self.digest.record(
            key,
            Event::Message as u32,
            size << 33 | u64::from(parcel.source.0) << 1 | parcel.class as u64,
        );
        self.messages += 1;
        self.bytes += size;
        Some(Taken::Parcel(parcel))
    }

    fn end_taking(&mut self, place: PlaceId, taken: Option<&Option<Parcel>>) {
        let Some(recorder) = &mut self.cores.recorder else { return };
        match taken {
            None => recorder.abandon(place),
            Some(None) => recorder.received_piece(place),
            Some(Some(parcel)) => {
                let (source, class, bytes) = (parcel.source, parcel.class, parcel.load.len() as u64);
                recorder.received(Passage { source, target: place, class, bytes });
            }
        }
    }
}
