//! What the world asks of this protocol: who may send, who looks, what is taken, what ends with a place.
//!
//! How packets go is in the module, blocks are in `stream`, receipts in `receipt`. Invariant: what is taken is owed a
//! receipt at once.

use super::costs::HEADER_BYTES;
use super::desk::{Desk, settle};
use super::stream::Stream;
use super::{MESSAGE_PACKETS_MAX, Packets, is_data};
use crate::cores::Cores;
use crate::mail::{Letter, Piece};
use crate::parcel::{Load, Parcel};
use crate::report::Spending;
use crate::wire::{News, Outgoing, POLL_CYCLES, Wire};
use isles_chip::quantity::Picoseconds;
use isles_transport::{Class, PlaceId};

impl Wire for Packets {
    fn message_bytes_max(&self, class: Class) -> usize {
        MESSAGE_PACKETS_MAX[usize::from(is_data(class))] as usize * self.costs.payload - HEADER_BYTES
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

    fn may_stream(&mut self, _cores: &mut Cores, out: &Outgoing) -> bool {
        !self.is_streaming(out)
    }

    fn send(&mut self, cores: &mut Cores, out: &Outgoing, load: Load) -> Option<Picoseconds> {
        let (bytes, packets) = (HEADER_BYTES + load.len(), self.costs.packets(load.len()));
        let piece = Piece::Whole { handler: out.handler, load };
        Some(self.inject(cores, (out.from, out.to, out.class), (packets, bytes), piece))
    }

    fn stream(&mut self, cores: &mut Cores, out: &Outgoing, load: Load, news: &mut News) {
        let left = self.costs.packets(load.len());
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
        let ways = &self.desks[source.index()].ways;
        [false, true]
            .into_iter()
            .any(|is_data| ways.get(&(place, is_data)).is_some_and(|way| way.waiting > 0))
    }

    fn take(
        &mut self,
        cores: &mut Cores,
        place: PlaceId,
        until: Picoseconds,
        control_only: bool,
    ) -> Option<Option<Parcel>> {
        let letter = self.desks[place.index()].mail.take(until, control_only)?;
        let (source, is_data) = (letter.source, letter.lane == 1);
        cores.spend(place, self.costs.receive * u64::from(letter.lines), Spending::Handling);
        settle(&mut self.desks[source.index()].ways, (place, is_data), |way| way.waiting -= 1);
        self.desks[place.index()].owed.push((source, is_data, letter.lines));
        Some(letter.open())
    }

    fn give_credits(&mut self, cores: &mut Cores, place: PlaceId, news: &mut News) {
        self.write_receipts(cores, place, news);
    }

    fn forget_receiver(&mut self, place: PlaceId, gone: PlaceId) {
        let Desk { ways, streams, receipts, free, .. } = &mut self.desks[place.index()];
        streams.retain(|stream| stream.target != gone);
        receipts.retain(|receipt| receipt.target != gone);
        for is_data in [false, true] {
            if let Some(way) = ways.remove(&(gone, is_data)) {
                free[usize::from(is_data)] += way.packets;
            }
        }
        // It may have taken some already and say so later: that is settled now.
        self.desks[gone.index()].owed.retain(|(source, _, _)| *source != place);
    }

    fn cut(&mut self, gone: PlaceId) {
        self.desks[gone.index()].streams.clear();
        let letters: Vec<Letter> = self.desks[gone.index()].mail.clear().collect();
        for letter in letters {
            let pair = (gone, letter.lane == 1);
            settle(&mut self.desks[letter.source.index()].ways, pair, |way| way.waiting -= 1);
        }
    }
}
