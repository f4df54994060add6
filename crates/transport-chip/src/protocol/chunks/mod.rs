//! Protocols that transfer one chunk at a time: the sender writes it and sets a flag; the receiver takes it and
//! answers.
//!
//! They differ in the location of a chunk, in the sharing of that part of a buffer, and in the lines read and written:
//! that is a [`Handshake`], of which `handshakes` has two. In all of them a part of a buffer holds one message, chunk
//! by chunk, until the receiver has answered the last chunk; until then a further message is refused, or the sender
//! blocks and serves arriving messages. Flags and answers are bytes, one for each class, in lines with a single writer.
//!
//! This file has the state of places, routes and parts, and the operations for the world; `transfer` moves the chunks.
//! The bytes themselves travel as values beside the model. Invariants: a part has at most one unanswered chunk; a place
//! blocked in a send takes nothing for itself.

mod handshakes;
#[cfg(test)]
mod tests;
mod transfer;

pub(crate) use handshakes::{RcceX10, SectionChannel, Sections};

use crate::cores::Cores;
use crate::protocol::blocking_send::BlockingSends;
use crate::protocol::inbox::{LaneIndex, MessageContent, ReceivedMessage};
use crate::protocol::{
    BlockingSendModel, FLAG_CYCLES, MulticastModel, Outgoing, POLL_CYCLES, ProtocolModel, Wakeups,
};
use crate::report::TimeCategory;
use isles_chip::kernel::{Key, TieBreak};
use isles_chip::quantity::Picoseconds;
use isles_transport::{Class, HandlerId, PlaceId};
use std::collections::BTreeSet;

/// An ordered pair of places and a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) source: PlaceId,
    pub(crate) target: PlaceId,
    pub(crate) class: Class,
}

/// Handshake of a protocol that moves messages in chunks.
pub(crate) trait Handshake {
    /// Returns the lines of the longest chunk of `class` for a message of `bytes` bytes.
    fn chunk_lines(&self, class: Class, bytes: usize) -> u32;

    /// Returns the size in bytes of the longest message of `class` other than a block.
    fn message_bytes_max(&self, class: Class) -> usize;

    /// `true` if all receivers share the part for the chunks of one sender and class.
    const SHARED: bool;

    /// `true` if a poll reads answers as well; otherwise each awaited answer is a line to read and clear.
    const POLL_SEES_ANSWERS: bool;

    /// `true` if a sender is blocked, serving only arrivals, until its last chunk is answered.
    const WAITS: bool;

    /// Writes a chunk of `lines` lines, of a message of `bytes` bytes, and its flag.
    fn put(&self, cores: &mut Cores, route: Route, lines: u32, bytes: usize);

    /// Takes a chunk of `lines` lines, of a message of `bytes` bytes, whose flag was seen, and answers.
    fn get(&self, cores: &mut Cores, route: Route, lines: u32, bytes: usize);
}

/// All buffers of a run.
pub(crate) struct Chunks<H> {
    handshake: H,
    pairs: LaneIndex,
    line_bytes: usize,
    tie_break: TieBreak,
    lanes: Vec<Lane>,
    place_states: Vec<PlaceState>,
    /// Content of each part.
    held: Vec<Option<PartInUse>>,
    /// Pending messages, and those received by places blocked in sends.
    blocking_sends: BlockingSends,
    /// Cycles of a poll.
    poll_cycles: u64,
}

impl<H: Handshake> Chunks<H> {
    pub(crate) fn new(handshake: H, cores: &Cores, places: u32, tie_break: TieBreak) -> Chunks<H> {
        let (places, pairs) = (places as usize, LaneIndex::of(places as usize));
        let lanes = pairs.lanes();
        let flags = places as u64 - 1;
        Chunks {
            handshake,
            pairs,
            line_bytes: cores.line_bytes() as usize,
            tie_break,
            lanes: std::iter::repeat_with(Lane::default).take(lanes).collect(),
            place_states: std::iter::repeat_with(PlaceState::default).take(places).collect(),
            held: vec![None; if H::SHARED { 2 * places } else { lanes }],
            blocking_sends: BlockingSends::new(places),
            poll_cycles: POLL_CYCLES + FLAG_CYCLES * flags,
        }
    }

    fn lane_of(&self, route: Route) -> usize {
        self.pairs.lane(route.source, route.target, route.class)
    }

    fn route_of(&self, lane: usize) -> Route {
        let (source, target, class) = self.pairs.ends(lane);
        Route { source, target, class }
    }

    fn lane_out(&self, out: &Outgoing) -> usize {
        self.lane_of(Route { source: out.from, target: out.to, class: out.class })
    }

    fn part_of(&self, lane: usize) -> usize {
        if H::SHARED { self.route_of(lane).source.index() * 2 + lane % 2 } else { lane }
    }
}

/// Content of a part of a buffer.
#[derive(Clone, Copy)]
struct PartInUse {
    lane: usize,
    /// `true` if the last chunk is unanswered, as known to the sender.
    awaited: bool,
}

/// Unwritten rest of a message.
struct Remainder {
    handler: HandlerId,
    content: MessageContent,
    lines: u32,
}

/// A chunk at the receiver; the last one of a message carries all of it.
struct ArrivingChunk {
    arrival: Picoseconds,
    lines: u32,
    /// Size of the whole message in bytes.
    of: usize,
    message: Option<(HandlerId, MessageContent)>,
}

/// State of one route.
#[derive(Default)]
struct Lane {
    rest: Option<Remainder>,
    arriving: Option<ArrivingChunk>,
}

/// State of one place beside its lanes.
#[derive(Default)]
struct PlaceState {
    /// Lanes with a partly written message from here.
    streams: Vec<usize>,
    /// Answers in flight to this place, or not yet read.
    answers: Vec<(Picoseconds, usize)>,
    /// Chunks waiting for this place, by arrival.
    heads: BTreeSet<(Key, usize)>,
}

impl<H: Handshake> ProtocolModel for Chunks<H> {
    fn message_bytes_max(&self, class: Class) -> usize {
        self.handshake.message_bytes_max(class)
    }

    fn has_room(&mut self, cores: &mut Cores, out: &Outgoing, _len: usize) -> bool {
        let lane = self.lane_out(out);
        if !H::WAITS {
            return self.becomes_free(cores, lane);
        }
        let is_under_way = self.own_parts(out.from).any(|held| held.lane == lane);
        self.blocking_sends.admits(out, cores.present()) && !is_under_way
    }

    fn can_begin_block(&mut self, cores: &mut Cores, out: &Outgoing) -> bool {
        self.has_room(cores, out, 0)
    }

    fn send(&mut self, cores: &mut Cores, out: &Outgoing, content: MessageContent) -> Option<Picoseconds> {
        if self.is_blocked_in_send(out.from) {
            self.blocking_sends.of_mut(out.from).push(out, content);
            return None;
        }
        Some(self.begin(cores, out, content))
    }

    fn begin_block(
        &mut self,
        cores: &mut Cores,
        out: &Outgoing,
        block: MessageContent,
        wakeups: &mut Wakeups,
    ) {
        wakeups.extend(self.send(cores, out, block).map(|arrival| (out.to, arrival)));
    }

    fn has_pending_blocks(&self, place: PlaceId) -> bool {
        !self.place_states[place.index()].streams.is_empty() || !self.blocking_sends.of(place).is_empty()
    }

    fn make_progress(&mut self, cores: &mut Cores, place: PlaceId, wakeups: &mut Wakeups) {
        if self.is_blocked_in_send(place) {
            self.serve(cores, place, wakeups);
        }
        self.read_answers(cores, place, self.awaited(place));
        for lane in self.place_states[place.index()].streams.clone() {
            let target = self.route_of(lane).target;
            wakeups.extend(self.push(cores, lane).map(|arrival| (target, arrival)));
        }
        self.send_next(cores, place, wakeups);
    }

    fn poll(&mut self, cores: &mut Cores, place: PlaceId) {
        if H::POLL_SEES_ANSWERS {
            self.read_answers(cores, place, self.flag_lines());
        } else {
            cores.read_own_lines(place, self.flag_lines(), TimeCategory::Polling);
        }
        cores.compute(place, self.poll_cycles, TimeCategory::Polling);
    }

    fn poll_period(&self, cores: &Cores, place: PlaceId, with_credits: bool) -> Picoseconds {
        let answers = if with_credits { self.awaited(place) } else { 0 };
        cores.own_read(place, self.flag_lines() + answers) + cores.cycles(place, self.poll_cycles)
    }

    fn first_arrival(&self, place: PlaceId) -> Option<Picoseconds> {
        let kept = self.blocking_sends.kept.first_arrival(place).filter(|_| !self.is_blocked_in_send(place));
        let heads = &self.place_states[place.index()].heads;
        heads.first().map(|(key, _)| key.time()).into_iter().chain(kept).min()
    }

    fn first_credit(&self, place: PlaceId) -> Option<Picoseconds> {
        let answers = &self.place_states[place.index()].answers;
        let due = if self.is_blocked_in_send(place) {
            self.resumes(place)
        } else {
            self.blocking_sends.of(place).due()
        };
        answers.iter().map(|(arrival, _)| *arrival).chain(due).min()
    }

    fn has_pending_from(&self, source: PlaceId, place: PlaceId) -> bool {
        self.blocking_sends.kept.has_from(source, place)
            || self.pairs.both(source, place).into_iter().any(|lane| self.lanes[lane].arriving.is_some())
    }

    fn take(
        &mut self,
        cores: &mut Cores,
        place: PlaceId,
        until: Picoseconds,
        control_only: bool,
    ) -> Option<Option<ReceivedMessage>> {
        if self.is_blocked_in_send(place) {
            return None;
        }
        if let Some(message) = self.take_deferred(cores, place, control_only) {
            return Some(Some(message));
        }
        let fetched = self.fetch(cores, place, until, control_only && !H::WAITS)?;
        Some(fetched.and_then(|message| self.blocking_sends.accept_or_defer(place, message, control_only)))
    }

    /// Chunks have already been answered one by one, so there is nothing more to return.
    fn return_credits(&mut self, _cores: &mut Cores, place: PlaceId, wakeups: &mut Wakeups) {
        self.blocking_sends.drain_wakeups(place, wakeups);
    }

    fn forget_receiver(&mut self, place: PlaceId, gone: PlaceId) {
        self.blocking_sends.of_mut(place).forget(gone);
        self.blocking_sends.kept.forget_receiver(place, gone);
        for lane in self.pairs.both(place, gone) {
            self.lanes[lane].rest = None;
            let part = self.part_of(lane);
            if self.held[part].is_some_and(|held| held.lane == lane) {
                self.held[part] = None;
            }
            let place_state = &mut self.place_states[place.index()];
            place_state.streams.retain(|other| *other != lane);
            place_state.answers.retain(|(_, other)| *other != lane);
            // A place blocked in its last send would still answer it.
            self.lanes[lane].arriving = None;
            self.place_states[gone.index()].heads.retain(|(_, other)| *other != lane);
        }
    }

    fn abort_place(&mut self, gone: PlaceId) {
        for lane in std::mem::take(&mut self.place_states[gone.index()].streams) {
            self.lanes[lane].rest = None;
        }
        self.blocking_sends.kept.clear(gone);
        self.blocking_sends.of_mut(gone).clear();
        for (_, lane) in std::mem::take(&mut self.place_states[gone.index()].heads) {
            self.lanes[lane].arriving = None;
        }
        if H::WAITS {
            // Release the places that are blocked in a send to it.
            let senders = (0..self.place_states.len() as u32).map(PlaceId);
            senders.filter(|place| *place != gone).for_each(|place| self.forget_receiver(place, gone));
        }
    }

    fn multicast(&mut self) -> Option<&mut dyn MulticastModel> {
        None
    }

    fn blocking_sends(&self) -> Option<&dyn BlockingSendModel> {
        if H::WAITS { Some(self) } else { None }
    }

    fn blocking_sends_mut(&mut self) -> Option<&mut dyn BlockingSendModel> {
        if H::WAITS { Some(self) } else { None }
    }
}

impl<H: Handshake> BlockingSendModel for Chunks<H> {
    fn is_blocked_in_send(&self, place: PlaceId) -> bool {
        H::WAITS && (self.own_parts(place).next().is_some() || !self.blocking_sends.of(place).is_empty())
    }

    /// Does nothing: a send attempt receives nothing, so it answers nobody.
    fn drain_wakeups(&mut self, _place: PlaceId, _wakeups: &mut Wakeups) {}
}
