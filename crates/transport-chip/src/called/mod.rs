//! The protocols whose receiver is called by an interrupt: what its system does then takes the message in.
//!
//! The sender's system writes a packet and raises an interrupt. The receiver's system answers it whatever its place is
//! doing, copies the packet into private memory, and the buffer is free again; the place finds the message when it
//! looks. So a buffer is never held by a place that computes, and all times of a packet are known when it is sent. They
//! differ in where a packet lies and what the systems spend: that is a [`Driver`], one module each.
//!
//! What a system does while its place computes or copies is time that the place loses, and is charged at its next look;
//! what it does while the place waits costs nothing more. How much of one sender and class may lie unread is bounded,
//! and a receipt opens that again. It does not know turns or deaths.
//! Invariant: messages of one pair and class are found in the order in which they were sent.

mod ring;
mod sockets;

pub(crate) use ring::Ring;
pub(crate) use sockets::Sockets;

use crate::cores::Cores;
use crate::mail::{Letter, Mail, Piece};
use crate::pairs::Pairs;
use crate::parcel::{Load, Parcel};
use crate::report::Spending;
use crate::wire::{News, Outgoing, Wire};
use isles_chip::cache::Copy;
use isles_chip::kernel::{EventClass, Ties, Timeline};
use isles_chip::quantity::Picoseconds;
use isles_transport::{Class, HandlerId, PlaceId};
use std::collections::VecDeque;

/// Bytes of a message that are not its content: length, handler, kind.
const HEADER_BYTES: usize = 8;

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub(crate) source: PlaceId,
    pub(crate) target: PlaceId,
    pub(crate) class: Class,
    pub(crate) lines: u32,
}

/// What the systems of one protocol do.
pub(crate) trait Driver {
    /// Whether places that wait are halted until they are called.
    const CALLS: bool;

    /// Bytes of one sender and class that may lie unread.
    const UNREAD_MAX: usize;

    /// Bytes of content of a packet of `class`.
    fn payload(&self, class: Class) -> usize;

    /// Lines of a packet with so many bytes of content.
    fn lines(&self, bytes: usize) -> u32;

    /// The sender's own part, before the packet can be written: calls and copies; also for each packet of a block.
    fn prepare(&self, cores: &mut Cores, packet: Packet);

    /// When there is room for the packet, at `ready` or later.
    fn slot(&mut self, cores: &Cores, packet: Packet, ready: Picoseconds) -> Picoseconds;

    /// Writes it at `at` or later and raises the interrupt; when that begins, and how long it takes.
    fn write(&mut self, cores: &mut Cores, packet: Packet, at: Picoseconds) -> (Picoseconds, Picoseconds);

    /// For how long the receiver's system takes it in if nothing is in the way.
    fn taking(&self, cores: &Cores, packet: Packet) -> Picoseconds;

    /// It does so from `at` on: for how long the packet's lines are still needed, and the whole.
    fn take_in(&mut self, cores: &mut Cores, packet: Packet, at: Picoseconds) -> (Picoseconds, Picoseconds);

    /// The lines of the packet are free from `at` on.
    fn free(&mut self, packet: Packet, at: Picoseconds);

    /// What the place spends to look for messages.
    fn look(&self, cores: &Cores, place: PlaceId) -> Picoseconds;

    /// What the place spends to read a message of so many bytes.
    fn read(&self, cores: &Cores, place: PlaceId, bytes: usize) -> Picoseconds;

    /// A receipt of `reader` for `sender`; what each spends on it. `is_due` if the sender may be waiting for it.
    fn receipt(&self, cores: &Cores, reader: PlaceId, sender: PlaceId, is_due: bool) -> [Picoseconds; 2];
}

/// What is under way from one place to another in one class.
#[derive(Default)]
struct Lane {
    /// Bytes that are not read, as the sender knows.
    unread: usize,
    /// When the last message is found.
    last: Picoseconds,
    /// Messages and pieces that are not taken.
    waiting: u32,
    stream: Option<Stream>,
}

/// A block of which something is still to be sent.
struct Stream {
    handler: HandlerId,
    load: Load,
    left: usize,
}

/// Bytes that were read.
struct Receipt {
    arrival: Picoseconds,
    lane: usize,
    bytes: usize,
}

/// What one place keeps beside its lanes.
#[derive(Default)]
struct Desk {
    mail: Mail,
    /// Lanes with a block under way from here.
    streams: Vec<usize>,
    /// On their way here.
    receipts: Vec<Receipt>,
    /// Read here and not told: the lane, its bytes.
    owed: Vec<(usize, usize)>,
    /// What the system does: one thing at a time.
    system: Timeline,
    /// The same, as long as it is not charged: when it begins, and how long it takes.
    jobs: VecDeque<(Picoseconds, Picoseconds)>,
    /// How long the place had waited in all when it last looked.
    waited: Picoseconds,
}

/// All systems of a run.
pub(crate) struct Called<D> {
    driver: D,
    pairs: Pairs,
    ties: Ties,
    lanes: Vec<Lane>,
    desks: Vec<Desk>,
}

impl<D: Driver> Called<D> {
    pub(crate) fn new(driver: D, places: u32, ties: Ties) -> Called<D> {
        let (places, pairs) = (places as usize, Pairs::of(places as usize));
        Called {
            driver,
            pairs,
            ties,
            lanes: std::iter::repeat_with(Lane::default).take(pairs.lanes()).collect(),
            desks: std::iter::repeat_with(Desk::default).take(places).collect(),
        }
    }

    fn lane_out(&self, out: &Outgoing) -> usize {
        self.pairs.lane(out.from, out.to, out.class)
    }

    fn desk(&mut self, place: PlaceId) -> &mut Desk {
        &mut self.desks[place.index()]
    }

    fn fits(&self, lane: usize, len: usize) -> bool {
        let Lane { unread, stream, .. } = &self.lanes[lane];
        stream.is_none() && unread + HEADER_BYTES + len <= D::UNREAD_MAX
    }

    /// Lets the system of `place` work for so long, at `at` or later; gives when it begins.
    fn employ(
        &mut self,
        present: Picoseconds,
        place: PlaceId,
        at: Picoseconds,
        time: Picoseconds,
    ) -> Picoseconds {
        let desk = self.desk(place);
        let begin = desk.system.reserve(present, at, time);
        let after = desk.jobs.iter().rposition(|(other, _)| *other <= begin).map_or(0, |index| index + 1);
        desk.jobs.insert(after, (begin, time));
        begin
    }

    /// Charges what the system of `place` has done until now while the place was busy.
    fn settle(&mut self, cores: &mut Cores, place: PlaceId) {
        let now = cores.now(place);
        let ledger = cores.ledger(place);
        let waited = ledger.time(Spending::Waiting) + ledger.time(Spending::Sleeping);
        let desk = self.desk(place);
        let busy_until = now - (waited - desk.waited);
        desk.waited = waited;
        let begun = desk.jobs.iter().take_while(|(begin, _)| *begin < now).count();
        let begun = desk.jobs.drain(..begun);
        let lost = begun.filter(|(begin, _)| *begin < busy_until).map(|(_, time)| time);
        let lost = lost.fold(Picoseconds::ZERO, |sum, time| sum + time);
        cores.spend(place, lost, Spending::Handling);
    }

    /// Sends a packet with `bytes` bytes of a lane; gives when it can be found.
    fn inject(&mut self, cores: &mut Cores, lane: usize, bytes: usize, piece: Piece) -> Picoseconds {
        let (source, target, class) = self.pairs.ends(lane);
        let packet = Packet { source, target, class, lines: self.driver.lines(bytes) };
        self.driver.prepare(cores, packet);
        cores.load_private(source, packet.lines, piece.message_bytes());
        let ready = cores.now(source);
        let slot = self.driver.slot(cores, packet, ready);
        let (start, took) = self.driver.write(cores, packet, slot);
        if slot == ready {
            cores.spend(source, (start - ready) + took, Spending::Copying);
        } else {
            // The system goes on with it by itself when there is room.
            self.employ(cores.present(), source, start, took);
        }
        let called = start + took + cores.times(source).interrupt.unwrap_or_default().over(0);
        // First when it can, then what is in its way at that time: several that come at once each wait only once.
        let alone = self.driver.taking(cores, packet);
        let begin = self.employ(cores.present(), target, called, alone);
        let (needed, whole) = self.driver.take_in(cores, packet, begin);
        self.driver.free(packet, begin + needed);
        let state = &mut self.lanes[lane];
        state.last = state.last.max(begin + whole);
        state.unread += bytes;
        state.waiting += 1;
        let found = state.last;
        let key = self.ties.key(found, EventClass::Arrival, lane as u32, 0);
        let letter =
            Letter { key, lane: lane as u32, source, lines: bytes as u32, fetch: 0, slots: 0, piece };
        self.desk(target).mail.put(letter);
        found
    }

    /// Sends packets of a lane's block as far as they may lie unread.
    fn push_stream(&mut self, cores: &mut Cores, lane: usize, news: &mut News) {
        let (place, target, class) = self.pairs.ends(lane);
        while let Some(mut stream) = self.lanes[lane].stream.take() {
            let bytes = stream.left.min(self.driver.payload(class));
            if self.lanes[lane].unread + bytes > D::UNREAD_MAX {
                self.lanes[lane].stream = Some(stream);
                return;
            }
            stream.left -= bytes;
            let of = stream.load.len();
            let piece = if stream.left == 0 {
                self.desk(place).streams.retain(|other| *other != lane);
                Piece::Whole { handler: stream.handler, load: stream.load }
            } else {
                self.lanes[lane].stream = Some(stream);
                Piece::Part { of }
            };
            news.push((target, self.inject(cores, lane, bytes, piece)));
        }
    }

    /// Takes the receipts that had come when the turn began.
    fn read_receipts(&mut self, cores: &Cores, place: PlaceId) {
        let seen = cores.present();
        let (desks, lanes) = (&mut self.desks, &mut self.lanes);
        desks[place.index()].receipts.retain(|receipt| {
            let has_come = receipt.arrival <= seen;
            if has_come {
                lanes[receipt.lane].unread -= receipt.bytes;
            }
            !has_come
        });
    }
}

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
        self.settle(cores, place);
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
        let mut owed = std::mem::take(&mut self.desk(place).owed);
        owed.sort_unstable();
        for group in owed.chunk_by(|one, other| one.0 == other.0) {
            let lane = group[0].0;
            let bytes = group.iter().map(|(_, bytes)| bytes).sum();
            let (sender, ..) = self.pairs.ends(lane);
            let is_due = self.lanes[lane].unread > D::UNREAD_MAX / 2;
            let [here, there] = self.driver.receipt(cores, place, sender, is_due);
            cores.spend(place, here, Spending::Handling);
            let interrupt = cores.times(place).interrupt.unwrap_or_default().over(0);
            let called = cores.now(place) + interrupt;
            let arrival = match there {
                Picoseconds::ZERO => called,
                work => self.employ(cores.present(), sender, called, work) + work,
            };
            self.desk(sender).receipts.push(Receipt { arrival, lane, bytes });
            news.push((sender, arrival));
        }
        owed.clear();
        self.desk(place).owed = owed;
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
