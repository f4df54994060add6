//! Messages as packets of the hardware, for chips that carry them (a torus between nodes).
//!
//! The core of the sender starts each packet; it goes along its route by itself, and all of it lies in the memory of
//! the receiver when its last flit is there. A place may have so many packets of each class under way, to all others
//! together, until the receivers have taken them and a packet of one flit has said so. A block goes in pieces as far as
//! that allows. Nothing here is kept for each pair of places, only for pairs with something under way, so thousands of
//! places cost what they do.
//!
//! It does not know turns or deaths: `state` tells it what to forget.
//! Invariant: what is under way of one place in one class is never more than [`WINDOW`] packets.

#[cfg(test)]
mod tests;

use crate::cores::Cores;
use crate::mail::{Letter, Mail, Piece};
use crate::parcel::{Load, Parcel};
use crate::report::Spending;
use crate::wire::{News, Outgoing, POLL_CYCLES, Wire};
use isles_chip::cost::Span;
use isles_chip::kernel::{EventClass, Ties};
use isles_chip::quantity::Picoseconds;
use isles_chip::{Chip, LinkTraits};
use isles_transport::{Class, PlaceId};
use std::collections::BTreeMap;

/// Packets of one class that a place may have under way: 15 KB of Blue Gene/P's, an eighth of a node's first memory
/// for received packets. Assumed; the hardware has no such bound, its library keeps one.
const WINDOW: u32 = 64;

/// Packets of the longest message that is no block, by class, control first; also of a piece of a block.
const MESSAGE_PACKETS_MAX: [u32; 2] = [8, 16];

/// Bytes of a message that are not its content: length, handler, kind.
const HEADER_BYTES: usize = 8;

/// What a packet costs, and what it carries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketCosts {
    send: Picoseconds,
    receive: Picoseconds,
    transit: Span,
    payload: usize,
    links: LinkTraits,
}

impl PacketCosts {
    /// Those of `chip` at its default setting; none if its hardware carries no packets.
    pub(crate) fn of(chip: &Chip) -> Option<PacketCosts> {
        let (times, links) = (chip.default_preset().times(), chip.links());
        Some(PacketCosts {
            send: times.send?.over(0),
            receive: times.receive?.over(0),
            transit: times.transit?,
            payload: links.payload_max.0 as usize,
            links: *links,
        })
    }

    /// Packets of a message of `len` bytes; at least one.
    fn packets(&self, len: usize) -> u32 {
        (HEADER_BYTES + len).div_ceil(self.payload) as u32
    }

    /// Flits of a packet that carries `len` bytes.
    fn flits(&self, len: usize) -> u64 {
        self.links.flits(len as u64)
    }
}

/// A block under way.
struct Stream {
    target: PlaceId,
    class: Class,
    handler: isles_transport::HandlerId,
    load: Option<Load>,
    /// Packets still to be sent.
    left: u32,
}

/// What is under way to one place in one class.
#[derive(Default)]
struct Way {
    /// When the last message arrives.
    last: Picoseconds,
    /// Messages and pieces that are not taken.
    waiting: u32,
    /// Packets that are not acknowledged.
    packets: u32,
}

/// Packets that a receiver has taken.
struct Receipt {
    arrival: Picoseconds,
    target: PlaceId,
    class: Class,
    packets: u32,
}

/// What one place keeps.
struct Desk {
    /// Packets that may still be sent, by class.
    free: [u32; 2],
    ways: BTreeMap<(PlaceId, bool), Way>,
    streams: Vec<Stream>,
    /// Receipts on their way here.
    receipts: Vec<Receipt>,
    /// What has arrived here or will, by class.
    mail: Mail,
    /// Packets taken here and not acknowledged.
    owed: Vec<(PlaceId, bool, u32)>,
    /// Messages and pieces sent from here so far.
    sequence: u32,
}

/// All nodes of a run.
pub(crate) struct Packets {
    costs: PacketCosts,
    ties: Ties,
    desks: Vec<Desk>,
}

/// The class of a number, and whether it is data: what keys of maps are made of.
fn class_of(is_data: bool) -> Class {
    if is_data { Class::Data } else { Class::Control }
}

fn is_data(class: Class) -> bool {
    class == Class::Data
}

impl Packets {
    pub(crate) fn new(costs: PacketCosts, places: u32, ties: Ties) -> Packets {
        let desk = |_| Desk {
            free: [WINDOW; 2],
            ways: BTreeMap::new(),
            streams: Vec::new(),
            receipts: Vec::new(),
            mail: Mail::default(),
            owed: Vec::new(),
            sequence: 0,
        };
        let desks = (0..places).map(desk).collect();
        Packets { costs, ties, desks }
    }

    fn is_streaming(&self, out: &Outgoing) -> bool {
        let mut streams = self.desks[out.from.index()].streams.iter();
        streams.any(|stream| stream.target == out.to && stream.class == out.class)
    }

    fn fits(&self, out: &Outgoing, len: usize) -> bool {
        let free = self.desks[out.from.index()].free[usize::from(is_data(out.class))];
        free >= self.costs.packets(len) && !self.is_streaming(out)
    }

    /// Sends `packets` packets of together `bytes` bytes; gives when all of them are there.
    fn inject(
        &mut self,
        cores: &mut Cores,
        (from, to, class): (PlaceId, PlaceId, Class),
        (packets, bytes): (u32, usize),
        piece: Piece,
    ) -> Picoseconds {
        let (mut arrival, mut left) = (Picoseconds::ZERO, bytes);
        for _ in 0..packets {
            let payload = left.min(self.costs.payload);
            left -= payload;
            cores.spend(from, self.costs.send, Spending::Handling);
            arrival = arrival.max(cores.carry(from, to, self.costs.transit, self.costs.flits(payload)));
        }
        let desk = &mut self.desks[from.index()];
        desk.free[usize::from(is_data(class))] -= packets;
        desk.sequence = desk.sequence.wrapping_add(1);
        let way = desk.ways.entry((to, is_data(class))).or_default();
        // A packet may find a gap that an earlier one was too long for; messages of one pair keep their order.
        way.last = way.last.max(arrival);
        way.waiting += 1;
        way.packets += packets;
        let (arrival, sequence) = (way.last, desk.sequence);
        let key = self.ties.key(arrival, EventClass::Arrival, from.0, sequence);
        let lane = u32::from(is_data(class));
        let letter = Letter { key, lane, source: from, lines: packets, fetch: 0, slots: 0, piece };
        self.desks[to.index()].mail.put(letter);
        arrival
    }

    /// Sends pieces of the blocks of `place` as far as there is room.
    fn push_streams(&mut self, cores: &mut Cores, place: PlaceId, news: &mut News) {
        let mut streams = std::mem::take(&mut self.desks[place.index()].streams);
        streams.retain_mut(|stream| {
            let lane = usize::from(is_data(stream.class));
            loop {
                let packets = stream.left.min(MESSAGE_PACKETS_MAX[lane]);
                if self.desks[place.index()].free[lane] < packets {
                    return true;
                }
                stream.left -= packets;
                let of = stream.load.as_ref().map_or(0, Load::len);
                let load = if stream.left == 0 { stream.load.take() } else { None };
                let whole = load.map(|load| Piece::Whole { handler: stream.handler, load });
                let piece = whole.unwrap_or(Piece::Part { of });
                let bytes = packets as usize * self.costs.payload;
                let ends = (place, stream.target, stream.class);
                news.push((stream.target, self.inject(cores, ends, (packets, bytes), piece)));
                if stream.left == 0 {
                    return false;
                }
            }
        });
        self.desks[place.index()].streams = streams;
    }

    /// Takes the receipts that had arrived when the turn began.
    fn read_receipts(&mut self, cores: &mut Cores, place: PlaceId) {
        cores.spend(place, cores.cycles(place, POLL_CYCLES), Spending::Polling);
        let seen = cores.present();
        let Desk { receipts, ways, free, .. } = &mut self.desks[place.index()];
        receipts.retain(|receipt| {
            let Receipt { arrival, target, class, packets } = *receipt;
            let arrived = arrival <= seen;
            if arrived {
                free[usize::from(is_data(class))] += packets;
                settle(ways, (target, is_data(class)), |way| way.packets -= packets);
            }
            !arrived
        });
    }
}

/// Changes what is under way to a place, and forgets it if nothing is left.
fn settle(ways: &mut BTreeMap<(PlaceId, bool), Way>, pair: (PlaceId, bool), change: impl FnOnce(&mut Way)) {
    if let Some(way) = ways.get_mut(&pair) {
        change(way);
        if way.waiting == 0 && way.packets == 0 {
            ways.remove(&pair);
        }
    }
}

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
        let mut owed = std::mem::take(&mut self.desks[place.index()].owed);
        owed.sort_unstable();
        for group in owed.chunk_by(|one, other| (one.0, one.1) == (other.0, other.1)) {
            let (source, is_data, _) = group[0];
            let packets = group.iter().map(|(_, _, packets)| packets).sum();
            let arrival = cores.carry(place, source, self.costs.transit, 1);
            let receipt = Receipt { arrival, target: place, class: class_of(is_data), packets };
            self.desks[source.index()].receipts.push(receipt);
            news.push((source, arrival));
        }
        owed.clear();
        self.desks[place.index()].owed = owed;
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
