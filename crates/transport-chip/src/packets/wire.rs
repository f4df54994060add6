//! What the world asks of this protocol: who may send, who looks, what is taken, what ends with a place.
//!
//! How packets go is in the module, blocks are in `stream`, receipts in `receipt`. Invariant: what is taken and
//! asks for a receipt is owed it at once.

use super::costs::HEADER_BYTES;
use super::desk::Desk;
use super::stream::Stream;
use super::{MESSAGE_PACKETS_MAX, Packets};
use crate::cores::Cores;
use crate::mail::{Letter, Piece};
use crate::parcel::{Load, Parcel};
use crate::report::Spending;
use crate::wire::{News, Outgoing, POLL_CYCLES, Wire};
use isles_chip::quantity::Picoseconds;
use isles_transport::{Class, PlaceId};

impl Wire for Packets {
    fn message_bytes_max(&self, class: Class) -> usize {
        self.costs.carried(MESSAGE_PACKETS_MAX[class as usize]) - HEADER_BYTES
    }

    fn has_room(&mut self, cores: &mut Cores, out: &Outgoing, len: usize) -> bool {
        if self.fits(out, len) {
            return true;
        }
        !self.desks[out.from.index()].receipts.is_empty() && {
            self.read_receipts(cores, out.from);
            self.fits(out, len)
        }
    }

    fn has_room_up_to(&self, out: &Outgoing, len: usize) -> bool {
        self.fits(out, len)
    }

    fn may_stream(&mut self, _cores: &mut Cores, out: &Outgoing) -> bool {
        !self.is_streaming(out)
    }

    fn send(&mut self, cores: &mut Cores, out: &Outgoing, load: Load) -> Option<Picoseconds> {
        let bytes = HEADER_BYTES + load.len();
        let piece = Piece::Whole { handler: out.handler, load };
        Some(self.inject(cores, (out.from, out.to, out.class), bytes, piece))
    }

    fn stream(&mut self, cores: &mut Cores, out: &Outgoing, load: Load, news: &mut News) {
        let left = HEADER_BYTES + load.len();
        let (target, class, handler) = (out.to, out.class, out.handler);
        let stream = Stream { target, class, handler, load: Some(load), left };
        self.desks[out.from.index()].streams.push(stream);
        self.push_streams(cores, out.from, news);
    }

    fn has_streams(&self, place: PlaceId) -> bool {
        !self.desks[place.index()].streams.is_empty()
    }

    fn attend(&mut self, cores: &mut Cores, place: PlaceId, news: &mut News) {
        self.read_receipts(cores, place);
        self.push_streams(cores, place, news);
    }

    fn poll(&mut self, cores: &mut Cores, place: PlaceId) {
        cores.spend(place, cores.cycles(place, POLL_CYCLES), Spending::Polling);
    }

    fn poll_period(&self, cores: &Cores, place: PlaceId, with_credits: bool) -> Picoseconds {
        cores.cycles(place, POLL_CYCLES) * (1 + u64::from(with_credits))
    }

    fn first_arrival(&self, place: PlaceId) -> Option<Picoseconds> {
        self.desks[place.index()].mail.first_arrival()
    }

    fn first_credit(&self, place: PlaceId) -> Option<Picoseconds> {
        self.desks[place.index()].receipts.iter().map(|receipt| receipt.arrival).min()
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
        desk.owe(&letter);
        cores.spend(place, self.costs.receive * u64::from(letter.lines), Spending::Handling);
        Some(letter.open())
    }

    fn give_credits(&mut self, cores: &mut Cores, place: PlaceId, news: &mut News) {
        if !self.desks[place.index()].owed.is_empty() {
            self.write_receipts(cores, place, news);
        }
    }

    fn forget_receiver(&mut self, place: PlaceId, gone: PlaceId) {
        let mut packets = self.desks[gone.index()].forget(place);
        let Desk { streams, receipts, free, unasked, .. } = &mut self.desks[place.index()];
        packets.iter_mut().zip(unasked).for_each(|(packets, unasked)| *packets += unasked.take(gone));
        streams.retain(|stream| stream.target != gone);
        for receipt in receipts.extract_if(.., |receipt| receipt.target == gone) {
            packets[receipt.lane as usize] += receipt.packets;
        }
        free.iter_mut().zip(packets).for_each(|(free, packets)| *free += packets);
    }

    fn cut(&mut self, gone: PlaceId) {
        let desk = &mut self.desks[gone.index()];
        desk.streams.clear();
        let letters: Vec<Letter> = desk.mail.clear().collect();
        letters.iter().for_each(|letter| desk.owe(letter));
    }
}
