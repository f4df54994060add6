//! The protocols that move one chunk at a time: the sender writes it and sets a flag, the receiver takes and answers.
//!
//! They differ in where a chunk waits, who shares that part of a buffer, and what is read and written for it: that is a
//! [`Handshake`], of which `handshakes` has two. What they have in common is here: a part holds one message, chunk by
//! chunk, until the receiver has answered for the last; until then a further one is refused, or the sender is blocked
//! in its send and serves what arrives. Flags and answers are bytes of lines that only one place writes, one for each
//! class.
//!
//! Here are the state of places, routes and parts, and what the world asks of the protocol; how chunks pass is in
//! `transfer`. The bytes themselves travel as values beside the model. It does not know turns or deaths. Invariants: of
//! one part there is never more than one chunk that is not answered; a place that is blocked in a send takes nothing
//! for itself.

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

/// One ordered pair of places and a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) source: PlaceId,
    pub(crate) target: PlaceId,
    pub(crate) class: Class,
}

/// Handshake of a protocol that moves messages in chunks.
pub(crate) trait Handshake {
    /// Lines of the longest chunk of `class`, of a message of `bytes` bytes.
    fn chunk_lines(&self, class: Class, bytes: usize) -> u32;

    /// Bytes of the longest message of `class` that is no block.
    fn message_bytes_max(&self, class: Class) -> usize;

    /// `true` if all receivers share the part of the buffer for the chunks of one sender and class.
    const SHARED: bool;

    /// `true` if the lines of a poll hold answers too; otherwise each awaited answer is a line to read and to clear.
    const POLL_SEES_ANSWERS: bool;

    /// `true` if a sender only serves arrivals until its last chunk is answered.
    const WAITS: bool;

    /// Writes a chunk of `lines` lines of a message of `bytes` bytes, and its flag.
    fn put(&self, cores: &mut Cores, route: Route, lines: u32, bytes: usize);

    /// Takes a chunk of `lines` lines of a message of `bytes` bytes, whose flag was seen, and answers.
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
    /// By part.
    held: Vec<Option<PartInUse>>,
    /// Messages that places send next, and those they took while they were blocked in a send.
    blocking_sends: BlockingSends,
    /// Instructions of a poll.
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

/// Contents of a part of a buffer.
#[derive(Clone, Copy)]
struct PartInUse {
    lane: usize,
    /// `true` if the last chunk is not answered, as the sender knows.
    awaited: bool,
}

/// Unwritten rest of a message.
struct Remainder {
    handler: HandlerId,
    content: MessageContent,
    lines: u32,
}

/// A chunk as the receiver finds it; the last one of a message brings all of it.
struct ArrivingChunk {
    arrival: Picoseconds,
    lines: u32,
    /// Bytes of all of its message.
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
    /// Lanes with a message from here that is only partly written.
    streams: Vec<usize>,
    /// Answers on their way here, or not looked at.
    answers: Vec<(Picoseconds, usize)>,
    /// Chunks that wait for this place, by arrival.
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

    /// All is answered already, chunk by chunk.
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
            // A place that is blocked in its last send would answer for it.
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
            // Who is blocked in a send to it is let go.
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

    /// Tells nobody: an attempt to send takes nothing in, so it answers nobody.
    fn drain_wakeups(&mut self, _place: PlaceId, _wakeups: &mut Wakeups) {}
}
