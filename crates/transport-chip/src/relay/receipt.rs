//! Receipts: how a sender hears what was read of its messages, so that as many may lie unread again.
//!
//! A reader tells of half of what may lie unread at once. It does not know what was in them. Invariant: at each place
//! there are at most [`UNREAD_MAX`] unread messages of one sender and class, as that one knows; so control is never
//! behind data that nobody reads.

use super::{Relays, UNREAD_MAX};
use crate::cores::Cores;
use crate::report::Spending;
use crate::wire::{Multicast, News, Outgoing};
use isles_chip::quantity::Picoseconds;
use isles_transport::{Class, PlaceId};

/// Messages that were read.
pub(super) struct Receipt {
    arrival: Picoseconds,
    reader: PlaceId,
    class: Class,
    messages: u32,
}

impl Relays {
    /// Whether this message may lie unread at each of its receivers. Who finds no room looks for receipts, at once and
    /// in its next turn, whatever else it sends meanwhile.
    pub(crate) fn has_room(&mut self, cores: &mut Cores, out: &Multicast<'_>) -> bool {
        if self.is_full(out) {
            self.look(cores, out.from);
        }
        let is_full = self.is_full(out);
        self.desks[out.from.index()].waits |= is_full;
        !is_full
    }

    /// Whether as many messages as may be lie unread at one of its receivers.
    fn is_full(&self, out: &Multicast<'_>) -> bool {
        let unread = &self.desks[out.from.index()].unread;
        out.to.iter().any(|to| unread.get(&(*to, out.class)).is_some_and(|unread| *unread >= UNREAD_MAX))
    }

    /// Charges `place` for what the system of its core has done while it was busy.
    pub(crate) fn settle(&mut self, cores: &mut Cores, place: PlaceId) {
        self.desks[place.index()].system.settle(cores, place);
    }

    /// Lets `place` look for receipts if it found no room since it looked last.
    pub(crate) fn attend(&mut self, cores: &mut Cores, place: PlaceId) {
        if std::mem::take(&mut self.desks[place.index()].waits) {
            self.look(cores, place);
        }
    }

    /// How long that takes.
    pub(crate) fn attention(&self, cores: &Cores, place: PlaceId) -> Picoseconds {
        let waits = self.desks[place.index()].waits;
        if waits { cores.own_read(place, self.receipt_lines()) } else { Picoseconds::ZERO }
    }

    /// Takes the receipts that had come when the turn began; once a turn.
    fn look(&mut self, cores: &mut Cores, place: PlaceId) {
        let (seen, receipt_lines) = (cores.present(), self.receipt_lines());
        let desk = &mut self.desks[place.index()];
        if desk.looked == seen {
            return;
        }
        desk.looked = seen;
        cores.read_own_lines(place, receipt_lines, Spending::Polling);
        for receipt in desk.receipts.extract_if(.., |receipt| receipt.arrival <= seen) {
            if let Some(unread) = desk.unread.get_mut(&(receipt.reader, receipt.class)) {
                *unread -= receipt.messages;
            }
        }
    }

    /// When the first receipt that `place` waits for has come, or will.
    pub(crate) fn first_receipt(&self, place: PlaceId) -> Option<Picoseconds> {
        let desk = &self.desks[place.index()];
        let arrivals = desk.receipts.iter().map(|receipt| receipt.arrival);
        if desk.waits { arrivals.min() } else { None }
    }

    /// Notes that a message waits at its receiver.
    pub(crate) fn note_sent(&mut self, out: &Outgoing) {
        *self.desks[out.from.index()].unread.entry((out.to, out.class)).or_default() += 1;
    }

    /// Notes that `place` has read a message of `source`.
    pub(crate) fn note_read(&mut self, source: PlaceId, class: Class, place: PlaceId) {
        *self.desks[place.index()].owed.entry((source, class)).or_default() += 1;
    }

    /// Tells those who may wait for it what `place` has read of them, and when they hear of it.
    pub(crate) fn write_receipts(&mut self, cores: &mut Cores, place: PlaceId, news: &mut News) {
        let is_much = |messages: &u32| *messages >= UNREAD_MAX / 2;
        let owed = &self.desks[place.index()].owed;
        let due: Vec<_> = owed.iter().filter(|(_, messages)| is_much(messages)).map(|(to, _)| *to).collect();
        for (source, class) in due {
            let messages = self.desks[place.index()].owed.remove(&(source, class)).unwrap_or_default();
            cores.write_lines(place, source, 1);
            let arrival = cores.now(place);
            self.desks[source.index()].receipts.push(Receipt { arrival, reader: place, class, messages });
            news.push((source, arrival));
        }
    }

    /// `gone` reads nothing more: what `place` keeps for it is forgotten. Nothing will be sent to it, so what it has
    /// not read goes for the memory only.
    pub(crate) fn forget(&mut self, place: PlaceId, gone: PlaceId) {
        let desk = &mut self.desks[place.index()];
        desk.unread.retain(|(reader, _), _| *reader != gone);
        desk.receipts.retain(|receipt| receipt.reader != gone);
        self.desks[gone.index()].owed.retain(|(source, _), _| *source != place);
    }
}
