//! What the world asks of these protocols: who may send, who looks, what is taken, what ends with a place.
//!
//! The way of a packet is in `passage`. Invariant: before a place looks it is charged for what its system has
//! done.

use super::stream::Stream;
use super::{Called, Driver, HEADER_BYTES};
use crate::cores::Cores;
use crate::mail::Piece;
use crate::parcel::{Load, Parcel};
use crate::report::Spending;
use crate::wire::{News, Outgoing, Wire};
use isles_chip::cache::Copy;
use isles_chip::quantity::Picoseconds;
use isles_transport::{Class, PlaceId};

impl<D: Driver> Wire for Called<D> {
    fn message_bytes_max(&self, class: Class) -> usize {
        self.driver.payload(class) - HEADER_BYTES
    }

    fn calls(&self) -> bool {
        D::CALLS
    }

    fn has_room(&mut self, cores: &mut Cores, out: &Outgoing, len: usize) -> bool {
        let lane = self.lane_out(out);
        if !self.fits(lane, len) {
            self.read_receipts(cores, out.from);
        }
        self.fits(lane, len)
    }

    fn may_stream(&mut self, _cores: &mut Cores, out: &Outgoing) -> bool {
        self.lanes[self.lane_out(out)].stream.is_none()
    }

    fn send(&mut self, cores: &mut Cores, out: &Outgoing, load: Load) -> Option<Picoseconds> {
        let bytes = HEADER_BYTES + load.len();
        let piece = Piece::Whole { handler: out.handler, load };
        Some(self.inject(cores, self.lane_out(out), bytes, piece))
    }

    fn stream(&mut self, cores: &mut Cores, out: &Outgoing, load: Load, news: &mut News) {
        let lane = self.lane_out(out);
        let left = HEADER_BYTES + load.len();
        self.lanes[lane].stream = Some(Stream { handler: out.handler, load, left });
        self.desk(out.from).streams.push(lane);
        self.push_stream(cores, lane, news);
    }

    fn has_streams(&self, place: PlaceId) -> bool {
        !self.desks[place.index()].streams.is_empty()
    }

    fn attend(&mut self, cores: &mut Cores, place: PlaceId, news: &mut News) {
        self.read_receipts(cores, place);
        for lane in self.desks[place.index()].streams.clone() {
            self.push_stream(cores, lane, news);
        }
    }

    fn poll(&mut self, cores: &mut Cores, place: PlaceId) {
        self.desk(place).system.settle(cores, place);
        let look = self.driver.look(cores, place);
        cores.spend(place, look, Spending::Polling);
    }

    fn poll_period(&self, cores: &Cores, place: PlaceId, _with_credits: bool) -> Picoseconds {
        self.driver.look(cores, place)
    }

    fn first_arrival(&self, place: PlaceId) -> Option<Picoseconds> {
        self.desks[place.index()].mail.first_arrival()
    }

    fn first_credit(&self, place: PlaceId) -> Option<Picoseconds> {
        self.desks[place.index()].receipts.iter().map(|receipt| receipt.arrival).min()
    }

    fn has_mail(&self, source: PlaceId, place: PlaceId) -> bool {
        self.pairs.both(source, place).into_iter().any(|lane| self.lanes[lane].waiting > 0)
    }

    fn take(
        &mut self,
        cores: &mut Cores,
        place: PlaceId,
        until: Picoseconds,
        control_only: bool,
    ) -> Option<Option<Parcel>> {
        let letter = self.desk(place).mail.take(until, control_only)?;
        let (lane, bytes) = (letter.lane as usize, letter.lines as usize);
        let time = self.driver.read(cores, place, bytes);
        cores.spend(place, time, Spending::Handling);
        cores.store_private(place, self.driver.lines(bytes), letter.piece.message_bytes(), Copy::Prefetching);
        self.lanes[lane].waiting -= 1;
        self.desk(place).owed.push((lane, bytes));
        Some(letter.open())
    }

    fn give_credits(&mut self, cores: &mut Cores, place: PlaceId, news: &mut News) {
        self.write_receipts(cores, place, news);
    }

    fn forget_receiver(&mut self, place: PlaceId, gone: PlaceId) {
        for lane in self.pairs.both(place, gone) {
            self.lanes[lane].stream = None;
            self.lanes[lane].unread = 0;
            let desk = self.desk(place);
            desk.streams.retain(|other| *other != lane);
            desk.receipts.retain(|receipt| receipt.lane != lane);
            self.desk(gone).owed.retain(|(other, _)| *other != lane);
        }
    }

    fn cut(&mut self, gone: PlaceId) {
        for lane in std::mem::take(&mut self.desk(gone).streams) {
            self.lanes[lane].stream = None;
        }
        for letter in self.desks[gone.index()].mail.clear() {
            self.lanes[letter.lane as usize].waiting = 0;
        }
    }
}
