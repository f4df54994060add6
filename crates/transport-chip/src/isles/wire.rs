//! What the world asks of this protocol: who may send, who looks, what is taken, what ends with a place.
//!
//! How a message becomes entries is in `entry`, blocks are in `stream`, credits in `credit`. Invariant: what a place
//! takes it owes at once; so whatever its sender counts as taken is waiting, owed or on its way back.

use super::credit::{bit_of, is_much};
use super::desk::Desk;
use super::lane::Share;
use super::stream::Stream;
use super::{Isles, Way};
use crate::cores::Cores;
use crate::mail::Piece;
use crate::parcel::{Load, Parcel};
use crate::report::Spending;
use crate::wire::{Multicast, News, Outgoing, POLL_CYCLES, RECEIVE_CYCLES, SEND_CYCLES, Wire};
use isles_chip::cache::Copy;
use isles_chip::quantity::Picoseconds;
use isles_transport::{Class, PlaceId};
use std::ops::Range;

impl Wire for Isles {
    fn message_bytes_max(&self, class: Class) -> usize {
        self.budget.message_bytes_max[class as usize]
    }

    fn has_room(&mut self, cores: &mut Cores, out: &Outgoing, len: usize) -> bool {
        self.finds(cores, out.from, |rings| rings.fits(out, len, 1))
    }

    fn has_room_up_to(&self, out: &Outgoing, len: usize) -> bool {
        // What lies in a slot takes one line of the ring, but a shorter one may want all of them.
        self.fits(out, len, self.budget.ring_lines[out.class as usize])
    }

    fn may_stream(&mut self, _cores: &mut Cores, out: &Outgoing) -> bool {
        !self.lanes[self.lane_of(out.from, out.to, out.class)].streams
    }

    fn send(&mut self, cores: &mut Cores, out: &Outgoing, load: Load) -> Option<Picoseconds> {
        let way = Way { source: out.from, target: out.to, lane: self.lane_of(out.from, out.to, out.class) };
        let len = load.len();
        cores.compute(out.from, SEND_CYCLES, Spending::Handling);
        if self.budget.has_cells() {
            return Some(self.write(cores, out, way, load));
        }
        let piece = Piece::Whole { handler: out.handler, load };
        Some(match self.budget.ring_lines_of(out.class, len) {
            Some(lines) => self.ring(cores, way, Share::of_lines(lines), 0, piece),
            None => self.write_at_home(cores, way, self.budget.lines(len), piece),
        })
    }

    /// What fits a short ring goes there; it would gain nothing.
    fn multicast_bytes(&self, class: Class) -> Range<usize> {
        self.relays.as_ref().map_or_else(|| self.budget.shared_bytes(class), |relays| relays.message_bytes())
    }

    fn has_room_for_all(&mut self, cores: &mut Cores, out: &Multicast<'_>) -> bool {
        if self.relays.is_some() {
            return self.may_relay(cores, out);
        }
        self.finds(cores, out.from, |rings| out.each().all(|out| rings.has_lines(&out, None, 1)))
    }

    fn lay_out(&mut self, cores: &mut Cores, out: &Multicast<'_>, len: usize) -> u8 {
        if let Some(relays) = &mut self.relays {
            relays.send(cores, out.from, out.to, len);
            return 0;
        }
        cores.write_lines(out.from, out.from, self.budget.lines(len));
        let (desk, class) = (&mut self.desks[out.from.index()], out.class as usize);
        let is_free = |fetchers: &u32| *fetchers == 0;
        let slot = desk.fetchers[class].iter().position(is_free).expect("one of the free slots is this");
        desk.slots[class] -= 1;
        desk.fetchers[class][slot] = out.to.len() as u32;
        slot as u8
    }

    fn point(&mut self, cores: &mut Cores, out: &Outgoing, slot: u8, load: Load) -> Picoseconds {
        if let Some(relays) = &mut self.relays {
            relays.note_sent(out);
            let found = relays.found(out.to);
            return self.find_relayed(out, found, load);
        }
        let way = Way { source: out.from, target: out.to, lane: self.lane_of(out.from, out.to, out.class) };
        let lines = self.budget.lines(load.len());
        cores.compute(out.from, SEND_CYCLES, Spending::Handling);
        let piece = Piece::Whole { handler: out.handler, load };
        self.ring(cores, way, Share::of_shared(slot), lines, piece)
    }

    fn stream(&mut self, cores: &mut Cores, out: &Outgoing, load: Load, news: &mut News) {
        let lane = self.lane_of(out.from, out.to, out.class);
        cores.compute(out.from, SEND_CYCLES, Spending::Handling);
        let left = self.budget.lines(load.len());
        self.lanes[lane].streams = true;
        self.desks[out.from.index()].streams.push(Stream { lane, handler: out.handler, load, left });
        self.push_stream(cores, lane, news);
    }

    fn has_streams(&self, place: PlaceId) -> bool {
        !self.desks[place.index()].streams.is_empty()
    }

    fn attend(&mut self, cores: &mut Cores, place: PlaceId, news: &mut News) {
        self.look(cores, place);
        self.take_credits(place);
        if let Some(relays) = &mut self.relays {
            relays.attend(cores, place);
        }
        let streams = &self.desks[place.index()].streams;
        for lane in streams.iter().map(|stream| stream.lane).collect::<Vec<_>>() {
            self.push_stream(cores, lane, news);
        }
    }

    fn poll(&mut self, cores: &mut Cores, place: PlaceId) {
        if let Some(relays) = &mut self.relays {
            relays.settle(cores, place);
            relays.attend(cores, place);
        }
        cores.read_own_lines(place, self.budget.flag_lines, Spending::Polling);
        cores.compute(place, POLL_CYCLES, Spending::Polling);
        self.desks[place.index()].looked = cores.present();
    }

    /// The flags tell of credits, too.
    fn poll_period(&self, cores: &Cores, place: PlaceId, _with_credits: bool) -> Picoseconds {
        let receipts = self.relays.as_ref().map(|relays| relays.attention(cores, place));
        let flags = cores.own_read(place, self.budget.flag_lines);
        flags + cores.cycles(place, POLL_CYCLES) + receipts.unwrap_or_default()
    }

    fn first_arrival(&self, place: PlaceId) -> Option<Picoseconds> {
        self.desks[place.index()].mail.first_arrival()
    }

    fn first_credit(&self, place: PlaceId) -> Option<Picoseconds> {
        let credit = self.desks[place.index()].credits.iter().map(|credit| credit.arrival).min();
        let receipt = self.relays.as_ref().and_then(|relays| relays.first_receipt(place));
        [credit, receipt].into_iter().flatten().min()
    }

    fn has_mail(&self, source: PlaceId, place: PlaceId) -> bool {
        self.desks[place.index()].mail.has_any_of(source)
    }

    fn take(
        &mut self,
        cores: &mut Cores,
        place: PlaceId,
        until: Picoseconds,
        control_only: bool,
    ) -> Option<Option<Parcel>> {
        let desk = &mut self.desks[place.index()];
        let letter = desk.mail.take(until, control_only)?;
        let lane = letter.lane as usize;
        let ring = &mut self.lanes[lane];
        if letter.is_relayed() {
            return Some(self.take_relayed(cores, place, letter));
        }
        if ring.owed == Share::default() {
            desk.owed.push((letter.source, lane));
            desk.owes |= bit_of(letter.source);
        }
        ring.owed += Share { lines: letter.lines as u8, slots: letter.slots };
        desk.owes_much |= is_much(ring.owed, self.budget.ring_lines[lane % 2]);
        let source = letter.source;
        cores.compute(place, RECEIVE_CYCLES, Spending::Handling);
        cores.read_own_lines(place, letter.lines, Spending::Copying);
        if letter.fetch > 0 {
            cores.read_lines(place, source, letter.fetch, Spending::Copying);
            cores.store_private(place, letter.fetch, letter.piece.message_bytes(), Copy::Prefetching);
        }
        Some(letter.open())
    }

    /// Only what the sender may wait for: the rest may still go with a message of this turn.
    fn give_credits(&mut self, cores: &mut Cores, place: PlaceId, news: &mut News) {
        if std::mem::take(&mut self.desks[place.index()].owes_much) {
            self.write_credits(cores, place, news, is_much);
        }
        if let Some(relays) = &mut self.relays {
            relays.write_receipts(cores, place, news);
        }
    }

    fn end_turn(&mut self, cores: &mut Cores, place: PlaceId, news: &mut News) {
        self.write_credits(cores, place, news, |_, _| true);
    }

    fn forget_receiver(&mut self, place: PlaceId, gone: PlaceId) {
        if let Some(relays) = &mut self.relays {
            relays.forget(place, gone);
        }
        for lane in self.pairs.both(gone, place) {
            let ring = &mut self.lanes[lane];
            ring.streams = false;
            // What it owes is forgotten with what was taken: it may still write a credit at the end of its turn.
            ring.owed = Share::default();
            let taken = std::mem::take(&mut ring.taken);
            let desk = &mut self.desks[place.index()];
            desk.free(lane % 2, taken);
            desk.streams.retain(|stream| stream.lane != lane);
            desk.credits.retain(|credit| credit.lane != lane);
        }
    }

    fn cut(&mut self, gone: PlaceId) {
        let (desks, lanes) = (&mut self.desks, &mut self.lanes);
        let Desk { streams, mail, .. } = &mut desks[gone.index()];
        for stream in streams.drain(..) {
            lanes[stream.lane].streams = false;
        }
        drop(mail.clear());
    }
}
