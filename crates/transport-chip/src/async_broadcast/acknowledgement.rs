//! Receipts: how a sender hears what was read of its messages, so that as many may lie unread again.
//!
//! A reader tells of half of what may lie unread at once. It does not know what was in them. Invariant: at each place
//! there are at most [`UNREAD_MAX`] unread messages of one sender and class, as that one knows; so control is never
//! behind data that nobody reads.

use super::{AsyncBroadcast, UNREAD_MAX};
use crate::cores::Cores;
use crate::protocol::{Multicast, Outgoing, Wakeups};
use crate::report::TimeCategory;
use isles_chip::quantity::Picoseconds;
use isles_transport::{Class, PlaceId};

/// Messages that were read.
pub(super) struct Acknowledgement {
    arrival: Picoseconds,
    reader: PlaceId,
    class: Class,
    messages: u32,
}

impl AsyncBroadcast {
    /// Whether this message may lie unread at each of its receivers. Who finds no room looks for receipts, at once and
    /// in its next turn, whatever else it sends meanwhile.
    pub(crate) fn has_room(&mut self, cores: &mut Cores, out: &Multicast<'_>) -> bool {
        if self.is_full(out) {
            self.look(cores, out.from);
        }
        let is_full = self.is_full(out);
        self.place_states[out.from.index()].waits |= is_full;
        !is_full
    }

    /// Whether as many messages as may be lie unread at one of its receivers.
    fn is_full(&self, out: &Multicast<'_>) -> bool {
        let unread = &self.place_states[out.from.index()].unread;
        out.to.iter().any(|to| unread.get(&(*to, out.class)).is_some_and(|unread| *unread >= UNREAD_MAX))
    }

    /// Charges `place` for what the system of its core has done while it was busy.
    pub(crate) fn settle(&mut self, cores: &mut Cores, place: PlaceId) {
        self.place_states[place.index()].system.settle(cores, place);
    }

    /// Lets `place` look for receipts if it found no room since it looked last.
    pub(crate) fn make_progress(&mut self, cores: &mut Cores, place: PlaceId) {
        if std::mem::take(&mut self.place_states[place.index()].waits) {
            self.look(cores, place);
        }
    }

    /// How long that takes.
    pub(crate) fn attention(&self, cores: &Cores, place: PlaceId) -> Picoseconds {
        let waits = self.place_states[place.index()].waits;
        if waits { cores.own_read(place, self.acknowledgement_lines()) } else { Picoseconds::ZERO }
    }

    /// Takes the receipts that had come when the turn began; once a turn.
    fn look(&mut self, cores: &mut Cores, place: PlaceId) {
        let (seen, acknowledgement_lines) = (cores.present(), self.acknowledgement_lines());
        let place_state = &mut self.place_states[place.index()];
        if place_state.looked == seen {
            return;
        }
        place_state.looked = seen;
        cores.read_own_lines(place, acknowledgement_lines, TimeCategory::Polling);
        for acknowledgement in
            place_state.acknowledgements.extract_if(.., |acknowledgement| acknowledgement.arrival <= seen)
        {
            if let Some(unread) = place_state.unread.get_mut(&(acknowledgement.reader, acknowledgement.class))
            {
                *unread -= acknowledgement.messages;
            }
        }
    }

    /// When the first receipt that `place` waits for has come, or will.
    pub(crate) fn first_acknowledgement(&self, place: PlaceId) -> Option<Picoseconds> {
        let place_state = &self.place_states[place.index()];
        let arrivals = place_state.acknowledgements.iter().map(|acknowledgement| acknowledgement.arrival);
        if place_state.waits { arrivals.min() } else { None }
    }

    /// Notes that a message waits at its receiver.
    pub(crate) fn note_sent(&mut self, out: &Outgoing) {
        *self.place_states[out.from.index()].unread.entry((out.to, out.class)).or_default() += 1;
    }

    /// Notes that `place` has read a message of `source`.
    pub(crate) fn note_read(&mut self, source: PlaceId, class: Class, place: PlaceId) {
        *self.place_states[place.index()].owed.entry((source, class)).or_default() += 1;
    }

    /// Tells those who may wait for it what `place` has read of them, and when they hear of it.
    pub(crate) fn write_acknowledgements(
        &mut self,
        cores: &mut Cores,
        place: PlaceId,
        wakeups: &mut Wakeups,
    ) {
        let is_much = |messages: &u32| *messages >= UNREAD_MAX / 2;
        let owed = &self.place_states[place.index()].owed;
        let due: Vec<_> = owed.iter().filter(|(_, messages)| is_much(messages)).map(|(to, _)| *to).collect();
        for (source, class) in due {
            let messages = self.place_states[place.index()].owed.remove(&(source, class)).unwrap_or_default();
            cores.write_lines(place, source, 1);
            let arrival = cores.now(place);
            self.place_states[source.index()].acknowledgements.push(Acknowledgement {
                arrival,
                reader: place,
                class,
                messages,
            });
            wakeups.push((source, arrival));
        }
    }

    /// `gone` reads nothing more: what `place` keeps for it is forgotten. Nothing will be sent to it, so what it has
    /// not read goes for the memory only.
    pub(crate) fn forget(&mut self, place: PlaceId, gone: PlaceId) {
        let place_state = &mut self.place_states[place.index()];
        place_state.unread.retain(|(reader, _), _| *reader != gone);
        place_state.acknowledgements.retain(|acknowledgement| acknowledgement.reader != gone);
        self.place_states[gone.index()].owed.retain(|(source, _), _| *source != place);
    }
}
