//! The protocol `isles`: written at the receiver, noticed by a doorbell, credited in batches.
//!
//! Every ordered pair of places has a small ring in the receiver's buffer for each class. A short message is written
//! into it; of a longer one the ring carries a line that says in which slot of the *sender's* buffer it lies, from
//! where the receiver fetches it; a block goes through such slots piece by piece. After the lines of a message the
//! sender writes its doorbell, one byte in lines that the receiver reads at every poll. When it has emptied entries
//! of a ring the receiver writes one credit byte for each sender and poll. The layout is in `budget`, the reasons in
//! `docs/twin.md`.
//!
//! The bytes themselves travel as values beside the model; their lines are counted, and a ring without free lines
//! refuses. It does not know turns or deaths: `state` tells it what to forget.
//! Invariant: entries of a ring are written, taken and credited in one order.

mod budget;
mod lane;

pub(crate) use budget::Budget;

use crate::cores::Cores;
use crate::parcel::{ChipBlock, Load, Parcel};
use crate::report::Spending;
use crate::wire::{Outgoing, POLL_CYCLES, RECEIVE_CYCLES, SEND_CYCLES, Wire};
use isles_chip::kernel::{EventClass, Key, Ties};
use isles_chip::quantity::Picoseconds;
use isles_transport::{AlignedBytes, Class, PlaceId};
use lane::{Arriving, Entry, Lane, Piece, Stream};
use std::collections::BTreeSet;

/// A credit that the sender has not looked at yet.
struct Credit {
    arrival: Picoseconds,
    lane: usize,
    entries: u32,
}

/// What one place keeps beside its lanes.
struct Desk {
    /// Free slots of its buffer, by class.
    slots: [u32; 2],
    /// Lanes with a block under way from here.
    streams: Vec<usize>,
    /// Credits on their way here.
    credits: Vec<Credit>,
    /// The first entry of each ring here that is not empty, by arrival.
    heads: BTreeSet<(Key, usize)>,
    /// Lanes with entries taken and not credited.
    owed: BTreeSet<(PlaceId, usize)>,
}

/// All rings of a run.
pub(crate) struct Isles {
    budget: Budget,
    places: usize,
    ties: Ties,
    lanes: Vec<Lane>,
    desks: Vec<Desk>,
    send_time: Picoseconds,
    receive_time: Picoseconds,
    poll_time: Picoseconds,
}

impl Isles {
    pub(crate) fn new(budget: Budget, cores: &Cores, places: u32, ties: Ties) -> Isles {
        let places = places as usize;
        let lane = |number: usize| Lane::new(budget.ring_lines[number % 2]);
        let desk = |_| Desk {
            slots: budget.slots,
            streams: Vec::new(),
            credits: Vec::new(),
            heads: BTreeSet::new(),
            owed: BTreeSet::new(),
        };
        Isles {
            lanes: (0..2 * places * places).map(lane).collect(),
            desks: (0..places).map(desk).collect(),
            send_time: cores.cycles(SEND_CYCLES),
            receive_time: cores.cycles(RECEIVE_CYCLES),
            poll_time: cores.cycles(POLL_CYCLES),
            budget,
            places,
            ties,
        }
    }

    fn lane_of(&self, from: PlaceId, to: PlaceId, class: Class) -> usize {
        (to.index() * self.places + from.index()) * 2 + class as usize
    }

    fn source_of(&self, lane: usize) -> PlaceId {
        PlaceId((lane / 2 % self.places) as u32)
    }

    fn target_of(&self, lane: usize) -> PlaceId {
        PlaceId((lane / 2 / self.places) as u32)
    }

    fn fits(&self, out: &Outgoing, len: usize) -> bool {
        let lane = &self.lanes[self.lane_of(out.from, out.to, out.class)];
        let lines = self.budget.ring_lines_of(out.class, len);
        let has_slot = lines.is_some() || self.desks[out.from.index()].slots[out.class as usize] > 0;
        lane.stream.is_none() && has_slot && lane.free_lines >= lines.unwrap_or(1)
    }

    /// Writes pieces of a lane's block as far as there is room.
    fn push_stream(&mut self, cores: &mut Cores, lane: usize) -> Vec<Picoseconds> {
        let (place, class) = (self.source_of(lane), lane % 2);
        let mut arrivals = Vec::new();
        while self.desks[place.index()].slots[class] > 0 && self.lanes[lane].free_lines > 0 {
            let Some(mut stream) = self.lanes[lane].stream.take() else { break };
            let lines = stream.left.min(self.budget.slot_lines[class]);
            stream.left -= lines;
            cores.write_lines(place, place, lines);
            let piece = if stream.left == 0 {
                self.desks[place.index()].streams.retain(|other| *other != lane);
                Piece::Whole { handler: stream.handler, load: stream.load }
            } else {
                self.lanes[lane].stream = Some(stream);
                Piece::Part
            };
            arrivals.push(self.ring(cores, lane, Entry { lines: 1, slot: true }, lines, piece));
        }
        arrivals
    }

    /// Writes an entry and rings the doorbell; gives when that arrives.
    fn ring(
        &mut self,
        cores: &mut Cores,
        lane: usize,
        entry: Entry,
        fetch: u32,
        piece: Piece,
    ) -> Picoseconds {
        let (place, target) = (self.source_of(lane), self.target_of(lane));
        cores.write_lines(place, target, entry.lines + 1);
        let arrival = cores.now(place);
        if entry.slot {
            self.desks[place.index()].slots[lane % 2] -= 1;
        }
        let ring = &mut self.lanes[lane];
        ring.free_lines -= entry.lines;
        ring.unacknowledged.push_back(entry);
        ring.arriving.push_back(Arriving { arrival, lines: entry.lines, fetch, piece });
        if ring.arriving.len() == 1 {
            self.list_head(lane);
        }
        arrival
    }

    fn list_head(&mut self, lane: usize) {
        let Some(first) = self.lanes[lane].arriving.front() else { return };
        let key = self.ties.key(first.arrival, EventClass::Arrival, lane as u32, 0);
        let target = self.target_of(lane);
        self.desks[target.index()].heads.insert((key, lane));
    }

    /// Reads the credit lines of `place`, and takes what had arrived when the turn began.
    fn read_credits(&mut self, cores: &mut Cores, place: PlaceId) {
        cores.read_lines(place, place, self.budget.bell_lines, Spending::Polling);
        let seen = cores.present();
        let (desks, lanes) = (&mut self.desks, &mut self.lanes);
        let Desk { credits, slots, .. } = &mut desks[place.index()];
        credits.retain(|credit| {
            let arrived = credit.arrival <= seen;
            if arrived {
                lanes[credit.lane].acknowledge(credit.entries, &mut slots[credit.lane % 2]);
            }
            !arrived
        });
    }
}

impl Wire for Isles {
    fn message_bytes_max(&self, class: Class) -> usize {
        self.budget.message_bytes_max(class)
    }

    fn has_room(&mut self, cores: &mut Cores, out: &Outgoing, len: usize) -> bool {
        if self.fits(out, len) {
            return true;
        }
        !self.desks[out.from.index()].credits.is_empty() && {
            self.read_credits(cores, out.from);
            self.fits(out, len)
        }
    }

    fn may_stream(&mut self, _cores: &mut Cores, out: &Outgoing) -> bool {
        self.lanes[self.lane_of(out.from, out.to, out.class)].stream.is_none()
    }

    fn send(&mut self, cores: &mut Cores, out: &Outgoing, content: AlignedBytes) -> Picoseconds {
        let lane = self.lane_of(out.from, out.to, out.class);
        let len = content.bytes().len();
        cores.spend(out.from, self.send_time, Spending::Handling);
        let load = Load::Inline(content);
        match self.budget.ring_lines_of(out.class, len) {
            Some(lines) => {
                let piece = Piece::Whole { handler: out.handler, load };
                self.ring(cores, lane, Entry { lines, slot: false }, 0, piece)
            }
            None => {
                let lines = self.budget.lines(len);
                cores.write_lines(out.from, out.from, lines);
                let piece = Piece::Whole { handler: out.handler, load };
                self.ring(cores, lane, Entry { lines: 1, slot: true }, lines, piece)
            }
        }
    }

    fn stream(&mut self, cores: &mut Cores, out: &Outgoing, block: ChipBlock) -> Vec<Picoseconds> {
        let lane = self.lane_of(out.from, out.to, out.class);
        cores.spend(out.from, self.send_time, Spending::Handling);
        let load = Load::Block(block);
        let left = self.budget.lines(load.len());
        self.lanes[lane].stream = Some(Stream { handler: out.handler, load, left });
        self.desks[out.from.index()].streams.push(lane);
        self.push_stream(cores, lane)
    }

    fn has_streams(&self, place: PlaceId) -> bool {
        !self.desks[place.index()].streams.is_empty()
    }

    fn attend(&mut self, cores: &mut Cores, place: PlaceId) -> Vec<(PlaceId, Picoseconds)> {
        self.read_credits(cores, place);
        let mut arrivals = Vec::new();
        for lane in self.desks[place.index()].streams.clone() {
            let target = self.target_of(lane);
            arrivals.extend(self.push_stream(cores, lane).into_iter().map(|arrival| (target, arrival)));
        }
        arrivals
    }

    fn poll(&mut self, cores: &mut Cores, place: PlaceId) {
        cores.read_lines(place, place, self.budget.bell_lines, Spending::Polling);
        cores.spend(place, self.poll_time, Spending::Polling);
    }

    fn poll_period(&self, cores: &Cores, _place: PlaceId, with_credits: bool) -> Picoseconds {
        let lines = self.budget.bell_lines * (1 + u32::from(with_credits));
        cores.own_read(lines) + self.poll_time
    }

    fn first_arrival(&self, place: PlaceId) -> Option<Picoseconds> {
        self.desks[place.index()].heads.first().map(|(key, _)| key.time())
    }

    fn first_credit(&self, place: PlaceId) -> Option<Picoseconds> {
        self.desks[place.index()].credits.iter().map(|credit| credit.arrival).min()
    }

    fn has_mail(&self, source: PlaceId, place: PlaceId) -> bool {
        [Class::Control, Class::Data]
            .into_iter()
            .any(|class| !self.lanes[self.lane_of(source, place, class)].arriving.is_empty())
    }

    fn take(
        &mut self,
        cores: &mut Cores,
        place: PlaceId,
        until: Picoseconds,
        control_only: bool,
    ) -> Option<Option<Parcel>> {
        let wanted = |lane: usize| !control_only || lane % 2 == Class::Control as usize;
        let desk = &mut self.desks[place.index()];
        let visible = desk.heads.iter().take_while(|(key, _)| key.time() <= until);
        let head = *visible.into_iter().find(|(_, lane)| wanted(*lane))?;
        desk.heads.remove(&head);
        let lane = head.1;
        let source = self.source_of(lane);
        let entry = self.lanes[lane].arriving.pop_front()?;
        self.list_head(lane);
        cores.spend(place, self.receive_time, Spending::Handling);
        cores.read_lines(place, place, entry.lines, Spending::Copying);
        if entry.fetch > 0 {
            cores.read_lines(place, source, entry.fetch, Spending::Copying);
        }
        self.lanes[lane].owed += 1;
        self.desks[place.index()].owed.insert((source, lane));
        let class = if lane % 2 == Class::Control as usize { Class::Control } else { Class::Data };
        Some(match entry.piece {
            Piece::Part => None,
            Piece::Whole { handler, load } => {
                Some(Parcel { source, class, handler, load, arrival: entry.arrival })
            }
        })
    }

    fn give_credits(&mut self, cores: &mut Cores, place: PlaceId) -> Vec<(PlaceId, Picoseconds)> {
        let owed = std::mem::take(&mut self.desks[place.index()].owed);
        let mut given: Vec<(PlaceId, Picoseconds)> = Vec::new();
        for (source, lane) in owed {
            if given.last().is_none_or(|(last, _)| *last != source) {
                cores.write_lines(place, source, 1);
                given.push((source, cores.now(place)));
            }
            let (arrival, entries) = (cores.now(place), std::mem::take(&mut self.lanes[lane].owed));
            self.desks[source.index()].credits.push(Credit { arrival, lane, entries });
        }
        given
    }

    fn forget_receiver(&mut self, place: PlaceId, gone: PlaceId) {
        for class in [Class::Control, Class::Data] {
            let lane = self.lane_of(place, gone, class);
            let ring = &mut self.lanes[lane];
            ring.stream = None;
            let entries = ring.unacknowledged.len() as u32;
            let desk = &mut self.desks[place.index()];
            ring.acknowledge(entries, &mut desk.slots[class as usize]);
            desk.streams.retain(|other| *other != lane);
            desk.credits.retain(|credit| credit.lane != lane);
        }
    }

    fn cut(&mut self, gone: PlaceId) {
        for lane in std::mem::take(&mut self.desks[gone.index()].streams) {
            self.lanes[lane].stream = None;
        }
        let heads = std::mem::take(&mut self.desks[gone.index()].heads);
        for (_, lane) in heads {
            self.lanes[lane].arriving.clear();
        }
    }
}
