//! The protocol `isles`: written at the receiver, noticed by a doorbell, credited with what goes the other way.
//!
//! Every ordered pair of places has a small ring in the receiver's buffer for each class. A short message is written
//! into it; of a longer one the ring carries a line that says in which slot of the *sender's* buffer it lies, from
//! where the receiver fetches it; a block goes through such slots piece by piece. After the lines of a message the
//! sender writes its flag, a byte or more in lines that the receiver reads at every poll; of few places it has room for
//! a header. It also counts what the sender has taken of the other direction, so an answer credits what it answers;
//! what is owed to others is written when the turn ends or before the place computes. What several places get at once
//! lies in one slot, which is free when the last of them has credited it. The layout is in `budget`, what lies where in
//! `entry`, who hears when in `credit`, the reasons in `docs/twin.md`.
//!
//! The bytes themselves travel as values beside the model; their lines are counted, and a ring without free lines
//! refuses. It does not know turns or deaths: `state` tells it what to forget.
//! Invariant: entries of a ring are written, taken and credited in one order.

mod budget;
mod credit;
mod desk;
mod entry;
mod lane;

pub(crate) use budget::Budget;

use crate::cores::Cores;
use crate::mail::{Letter, Piece};
use crate::pairs::Pairs;
use crate::parcel::{Load, Parcel};
use crate::report::Spending;
use crate::wire::{Multicast, News, Outgoing, POLL_CYCLES, RECEIVE_CYCLES, SEND_CYCLES, Wire};
use credit::{bit_of, is_much};
use desk::Desk;
use isles_chip::cache::Copy;
use isles_chip::kernel::{EventClass, Ties};
use isles_chip::quantity::Picoseconds;
use isles_transport::{Class, PlaceId};
use lane::{Lane, Share, Stream};
use std::ops::Range;

/// A lane and its ends.
#[derive(Clone, Copy)]
struct Way {
    source: PlaceId,
    target: PlaceId,
    lane: usize,
}

/// All rings of a run.
pub(crate) struct Isles {
    budget: Budget,
    pairs: Pairs,
    ties: Ties,
    lanes: Vec<Lane>,
    desks: Vec<Desk>,
}

impl Isles {
    pub(crate) fn new(budget: Budget, places: u32, ties: Ties) -> Isles {
        let places = places as usize;
        Isles {
            lanes: (0..2 * places * places).map(|_| Lane::default()).collect(),
            desks: (0..places).map(|_| Desk::new(&budget)).collect(),
            budget,
            pairs: Pairs::of(places),
            ties,
        }
    }

    /// Lanes of one receiver lie together: it looks at all of them.
    fn lane_of(&self, from: PlaceId, to: PlaceId, class: Class) -> usize {
        self.pairs.lane(to, from, class)
    }

    fn source_of(&self, lane: usize) -> PlaceId {
        self.pairs.ends(lane).1
    }

    fn target_of(&self, lane: usize) -> PlaceId {
        self.pairs.ends(lane).0
    }

    /// Lines of the ring of `lane` that are free, as its sender knows.
    fn free_lines(&self, lane: usize) -> u32 {
        self.budget.ring_lines[lane % 2] - u32::from(self.lanes[lane].taken.lines)
    }

    /// Whether the lines of a message are free in the ring; or, of one that goes into a slot, that and `beside` lines.
    fn fits(&self, out: &Outgoing, len: usize, beside: u32) -> bool {
        self.has_lines(out, self.budget.ring_lines_of(out.class, len), beside)
    }

    /// The same of a message that takes so many lines of the ring, or of one that goes into a slot.
    fn has_lines(&self, out: &Outgoing, lines: Option<u32>, beside: u32) -> bool {
        let lane = self.lane_of(out.from, out.to, out.class);
        let has_slot = lines.is_some() || self.desks[out.from.index()].slots[out.class as usize] > 0;
        !self.lanes[lane].streams && has_slot && self.free_lines(lane) >= lines.unwrap_or(beside)
    }

    /// Whether `place` finds the room that `fits` wants; looks for credit if that is needed.
    #[inline]
    fn finds(&mut self, cores: &mut Cores, place: PlaceId, fits: impl Fn(&Isles) -> bool) -> bool {
        if fits(self) {
            return true;
        }
        self.look(cores, place);
        self.take_credits(place);
        fits(self)
    }

    /// Writes pieces of a lane's block as far as there is room.
    fn push_stream(&mut self, cores: &mut Cores, lane: usize, news: &mut News) {
        let (place, target, class) = (self.source_of(lane), self.target_of(lane), lane % 2);
        while self.desks[place.index()].slots[class] > 0 && self.free_lines(lane) > 0 {
            let streams = &mut self.desks[place.index()].streams;
            let Some(index) = streams.iter().position(|stream| stream.lane == lane) else { return };
            let lines = self.budget.piece_lines(class, streams[index].left);
            streams[index].left -= lines;
            let bytes = streams[index].load.len();
            let piece = if streams[index].left == 0 {
                let Stream { handler, load, .. } = streams.remove(index);
                self.lanes[lane].streams = false;
                Piece::Whole { handler, load }
            } else {
                Piece::Part { of: bytes }
            };
            cores.load_private(place, lines, bytes);
            cores.write_lines(place, place, lines);
            let way = Way { source: place, target, lane };
            news.push((target, self.ring(cores, way, Share::OWN_SLOT, lines, piece)));
        }
    }

    /// Writes an entry and rings the doorbell; gives when that arrives.
    fn ring(
        &mut self,
        cores: &mut Cores,
        Way { source, target, lane }: Way,
        share: Share,
        fetch: u32,
        piece: Piece,
    ) -> Picoseconds {
        let lines = u32::from(share.lines);
        cores.write_lines(source, target, lines + 1);
        let arrival = cores.now(source);
        self.desks[source.index()].slots[lane % 2] -= share.own_slots();
        self.lanes[lane].taken += share;
        self.lanes[lane].waiting += 1;
        if self.desks[source.index()].owes & bit_of(target) != 0 {
            self.credit_along(source, target, arrival);
        }
        let key = self.ties.key(arrival, EventClass::Arrival, lane as u32, 0);
        let letter = Letter { key, lane: lane as u32, source, lines, fetch, slots: share.slots, piece };
        self.desks[target.index()].mail.put(letter);
        arrival
    }
}

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
        self.budget.shared_bytes(class)
    }

    fn has_room_for_all(&mut self, cores: &mut Cores, out: &Multicast<'_>) -> bool {
        self.finds(cores, out.from, |rings| out.each().all(|out| rings.has_lines(&out, None, 1)))
    }

    fn lay_out(&mut self, cores: &mut Cores, out: &Multicast<'_>, len: usize) -> u8 {
        cores.write_lines(out.from, out.from, self.budget.lines(len));
        let (desk, class) = (&mut self.desks[out.from.index()], out.class as usize);
        let is_free = |fetchers: &u32| *fetchers == 0;
        let slot = desk.fetchers[class].iter().position(is_free).expect("one of the free slots is this");
        desk.slots[class] -= 1;
        desk.fetchers[class][slot] = out.to.len() as u32;
        slot as u8
    }

    fn point(&mut self, cores: &mut Cores, out: &Outgoing, slot: u8, load: Load) -> Picoseconds {
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
        let streams = &self.desks[place.index()].streams;
        for lane in streams.iter().map(|stream| stream.lane).collect::<Vec<_>>() {
            self.push_stream(cores, lane, news);
        }
    }

    fn poll(&mut self, cores: &mut Cores, place: PlaceId) {
        cores.read_own_lines(place, self.budget.flag_lines, Spending::Polling);
        cores.compute(place, POLL_CYCLES, Spending::Polling);
        self.desks[place.index()].looked = cores.present();
    }

    /// The flags tell of credits, too.
    fn poll_period(&self, cores: &Cores, place: PlaceId, _with_credits: bool) -> Picoseconds {
        cores.own_read(place, self.budget.flag_lines) + cores.cycles(place, POLL_CYCLES)
    }

    fn first_arrival(&self, place: PlaceId) -> Option<Picoseconds> {
        self.desks[place.index()].mail.first_arrival()
    }

    fn first_credit(&self, place: PlaceId) -> Option<Picoseconds> {
        self.desks[place.index()].credits.iter().map(|credit| credit.arrival).min()
    }

    fn has_mail(&self, source: PlaceId, place: PlaceId) -> bool {
        self.pairs.both(place, source).into_iter().any(|lane| self.lanes[lane].waiting > 0)
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
        ring.waiting -= 1;
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
    }

    fn end_turn(&mut self, cores: &mut Cores, place: PlaceId, news: &mut News) {
        self.write_credits(cores, place, news, |_, _| true);
    }

    fn forget_receiver(&mut self, place: PlaceId, gone: PlaceId) {
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
        for letter in mail.clear() {
            lanes[letter.lane as usize].waiting = 0;
        }
    }
}
