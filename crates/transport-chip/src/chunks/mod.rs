//! The protocols that move one chunk at a time: the sender writes it and sets a flag, the receiver takes and answers.
//!
//! They differ in where a chunk waits, who shares that part of a buffer, and what is read and written for it: that is a
//! [`Handshake`], one module each. What they have in common is here: a part holds one message, chunk by chunk, until
//! the receiver has answered for the last; until then a further one is refused, or the sender stands in its send and
//! serves what arrives. Flags and answers are bytes of lines that only one place writes, one for each class.
//!
//! The bytes themselves travel as values beside the model. It does not know turns or deaths.
//! Invariant: of one part there is never more than one chunk that is not answered.

mod rcce_x10;
mod sections;
mod standing;
#[cfg(test)]
mod tests;

pub(crate) use rcce_x10::RcceX10;
pub(crate) use sections::Sections;

use crate::cores::Cores;
use crate::kept::Kept;
use crate::pairs::Pairs;
use crate::parcel::{Load, Parcel};
use crate::report::Spending;
use crate::stand::Stand;
use crate::wire::{FLAG_CYCLES, News, Outgoing, POLL_CYCLES, RECEIVE_CYCLES, SEND_CYCLES, Wire};
use isles_chip::cache::Copy;
use isles_chip::kernel::{EventClass, Key, Ties};
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

/// How one protocol moves a chunk.
pub(crate) trait Handshake {
    /// Lines of the longest chunk of `class`.
    fn chunk_lines(&self, class: Class) -> u32;

    /// Bytes of the longest message of `class` that is no block.
    fn message_bytes_max(&self, class: Class) -> usize;

    /// Whether all receivers share the part of the buffer where the chunks of one sender and class wait.
    const SHARED: bool;

    /// Whether the lines of a poll hold answers, too; else each awaited one is a line to read and to clear.
    const POLL_SEES_ANSWERS: bool;

    /// Whether a sender does nothing but serve arrivals until its last chunk is answered.
    const WAITS: bool;

    /// Writes a chunk of `lines` lines and its flag.
    fn put(cores: &mut Cores, route: Route, lines: u32);

    /// Takes a chunk of `lines` lines whose flag was seen, and answers.
    fn get(cores: &mut Cores, route: Route, lines: u32);
}

/// What a part of a buffer holds.
#[derive(Clone, Copy)]
struct Held {
    lane: usize,
    /// Whether the last chunk is not answered, as the sender knows.
    awaited: bool,
}

/// What is not written yet of a message.
struct Rest {
    handler: HandlerId,
    load: Load,
    lines: u32,
}

/// A chunk as the receiver finds it; the last one of a message brings all of it.
struct Arriving {
    arrival: Picoseconds,
    lines: u32,
    /// Bytes of all of its message.
    of: usize,
    message: Option<(HandlerId, Load)>,
}

/// What one route keeps.
#[derive(Default)]
struct Lane {
    rest: Option<Rest>,
    arriving: Option<Arriving>,
}

/// What one place keeps beside its lanes.
#[derive(Default)]
struct Desk {
    /// Lanes with a message from here that is only partly written.
    streams: Vec<usize>,
    /// Answers on their way here, or not looked at.
    answers: Vec<(Picoseconds, usize)>,
    /// Chunks that wait for this place, by arrival.
    heads: BTreeSet<(Key, usize)>,
    /// Whom this place has answered since its last batch ended.
    answered: Vec<(PlaceId, Picoseconds)>,
    /// What it sends next while it stands in a send.
    stand: Stand,
}

/// All buffers of a run.
pub(crate) struct Chunks<H> {
    handshake: H,
    pairs: Pairs,
    line_bytes: usize,
    ties: Ties,
    lanes: Vec<Lane>,
    desks: Vec<Desk>,
    /// By part.
    held: Vec<Option<Held>>,
    /// What places have taken while they stood in a send.
    kept: Kept,
    /// Instructions of a poll.
    poll_cycles: u64,
}

impl<H: Handshake> Chunks<H> {
    pub(crate) fn new(handshake: H, cores: &Cores, places: u32, ties: Ties) -> Chunks<H> {
        let (places, pairs) = (places as usize, Pairs::of(places as usize));
        let lanes = pairs.lanes();
        let flags = places as u64 - 1;
        Chunks {
            handshake,
            pairs,
            line_bytes: cores.line_bytes() as usize,
            ties,
            lanes: std::iter::repeat_with(Lane::default).take(lanes).collect(),
            desks: std::iter::repeat_with(Desk::default).take(places).collect(),
            held: vec![None; if H::SHARED { 2 * places } else { lanes }],
            kept: Kept::new(places),
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

    /// What the parts of `place` hold.
    fn own_parts(&self, place: PlaceId) -> impl Iterator<Item = &Held> {
        let parts = self.held.len() / self.desks.len();
        self.held[place.index() * parts..][..parts].iter().flatten()
    }

    /// Parts of `place` whose last chunk is not answered, if that is to be looked at apart from polls.
    fn awaited(&self, place: PlaceId) -> u32 {
        if H::POLL_SEES_ANSWERS {
            return 0;
        }
        self.own_parts(place).filter(|held| held.awaited).count() as u32
    }

    /// Lines of flags that a poll reads.
    fn flag_lines(&self) -> u32 {
        self.desks.len() as u32 - 1
    }

    fn is_free(&self, lane: usize) -> bool {
        self.held[self.part_of(lane)].is_none()
    }

    /// Whether the part of `lane` is free; looks at the flags of answers if some are on their way.
    fn becomes_free(&mut self, cores: &mut Cores, lane: usize) -> bool {
        let place = self.route_of(lane).source;
        if !self.is_free(lane) && !self.desks[place.index()].answers.is_empty() {
            let lines = if H::POLL_SEES_ANSWERS { 1 } else { self.awaited(place) };
            self.read_answers(cores, place, lines);
        }
        self.is_free(lane)
    }

    /// Reads `lines` lines of flags, and takes the answers that had arrived when the turn began.
    fn read_answers(&mut self, cores: &mut Cores, place: PlaceId, lines: u32) {
        cores.read_own_lines(place, lines, Spending::Polling);
        let seen = cores.present();
        let answers = std::mem::take(&mut self.desks[place.index()].answers);
        let (arrived, under_way): (Vec<_>, Vec<_>) = answers.into_iter().partition(|(time, _)| *time <= seen);
        self.desks[place.index()].answers = under_way;
        for (_, lane) in arrived {
            if !H::POLL_SEES_ANSWERS {
                cores.write_lines(place, place, 1);
            }
            let part = self.part_of(lane);
            let more = self.lanes[lane].rest.is_some();
            self.held[part] = more.then_some(Held { lane, awaited: false });
        }
    }

    /// Begins a message whose part is free; gives when its first chunk arrives.
    fn begin(&mut self, cores: &mut Cores, out: &Outgoing, load: Load) -> Picoseconds {
        let lane = self.lane_out(out);
        cores.compute(out.from, SEND_CYCLES, Spending::Handling);
        let lines = load.len().div_ceil(self.line_bytes) as u32;
        self.lanes[lane].rest = Some(Rest { handler: out.handler, load, lines });
        self.desks[out.from.index()].streams.push(lane);
        self.push(cores, lane).expect("a free part takes a chunk")
    }

    /// Writes the next chunk of a lane if its last one is answered; gives when it arrives.
    fn push(&mut self, cores: &mut Cores, lane: usize) -> Option<Picoseconds> {
        let (route, part) = (self.route_of(lane), self.part_of(lane));
        if self.held[part].is_some_and(|held| held.awaited) {
            return None;
        }
        let mut rest = self.lanes[lane].rest.take()?;
        let lines = rest.lines.min(self.handshake.chunk_lines(route.class));
        rest.lines -= lines;
        cores.load_private(route.source, lines, rest.load.len());
        H::put(cores, route, lines);
        let (arrival, of) = (cores.now(route.source), rest.load.len());
        self.held[part] = Some(Held { lane, awaited: true });
        let message = if rest.lines == 0 {
            self.desks[route.source.index()].streams.retain(|other| *other != lane);
            Some((rest.handler, rest.load))
        } else {
            self.lanes[lane].rest = Some(rest);
            None
        };
        self.lanes[lane].arriving = Some(Arriving { arrival, lines, of, message });
        let key = self.ties.key(arrival, EventClass::Arrival, lane as u32, 0);
        self.desks[route.target.index()].heads.insert((key, lane));
        Some(arrival)
    }
}

impl<H: Handshake> Chunks<H> {
    /// Takes the first chunk, of both classes or of control only, that had arrived at `until`; `Some(None)` if it was
    /// not the last of its message.
    fn fetch(
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
        let (lane, route) = (head.1, self.route_of(head.1));
        let chunk = self.lanes[lane].arriving.take()?;
        cores.compute(place, RECEIVE_CYCLES, Spending::Handling);
        H::get(cores, route, chunk.lines);
        cores.store_private(place, chunk.lines, chunk.of, Copy::Prefetching);
        let answered = cores.now(place);
        self.desks[route.source.index()].answers.push((answered, lane));
        self.desks[place.index()].answered.push((route.source, answered));
        let Route { source, class, .. } = route;
        let arrival = chunk.arrival;
        Some(chunk.message.map(|(handler, load)| Parcel { source, class, handler, load, arrival }))
    }
}

impl<H: Handshake> Wire for Chunks<H> {
    fn message_bytes_max(&self, class: Class) -> usize {
        self.handshake.message_bytes_max(class)
    }

    fn has_room(&mut self, cores: &mut Cores, out: &Outgoing, _len: usize) -> bool {
        let lane = self.lane_out(out);
        if !H::WAITS {
            return self.becomes_free(cores, lane);
        }
        let is_under_way = self.own_parts(out.from).any(|held| held.lane == lane);
        let stand = &mut self.desks[out.from.index()].stand;
        stand.admits(&self.kept, out, cores.present()) && !is_under_way
    }

    fn may_stream(&mut self, cores: &mut Cores, out: &Outgoing) -> bool {
        self.has_room(cores, out, 0)
    }

    fn send(&mut self, cores: &mut Cores, out: &Outgoing, load: Load) -> Option<Picoseconds> {
        if self.is_engaged(out.from) {
            self.desks[out.from.index()].stand.push(out, load);
            return None;
        }
        Some(self.begin(cores, out, load))
    }

    fn stream(&mut self, cores: &mut Cores, out: &Outgoing, block: Load, news: &mut News) {
        news.extend(self.send(cores, out, block).map(|arrival| (out.to, arrival)));
    }

    fn engages(&self) -> bool {
        H::WAITS
    }

    fn is_engaged(&self, place: PlaceId) -> bool {
        H::WAITS && (self.own_parts(place).next().is_some() || !self.desks[place.index()].stand.is_empty())
    }

    fn has_streams(&self, place: PlaceId) -> bool {
        let Desk { streams, stand, .. } = &self.desks[place.index()];
        !streams.is_empty() || !stand.is_empty()
    }

    fn attend(&mut self, cores: &mut Cores, place: PlaceId, news: &mut News) {
        if self.is_engaged(place) {
            self.serve(cores, place, news);
        }
        self.read_answers(cores, place, self.awaited(place));
        for lane in self.desks[place.index()].streams.clone() {
            let target = self.route_of(lane).target;
            news.extend(self.push(cores, lane).map(|arrival| (target, arrival)));
        }
        self.send_next(cores, place, news);
    }

    fn poll(&mut self, cores: &mut Cores, place: PlaceId) {
        if H::POLL_SEES_ANSWERS {
            self.read_answers(cores, place, self.flag_lines());
        } else {
            cores.read_own_lines(place, self.flag_lines(), Spending::Polling);
        }
        cores.compute(place, self.poll_cycles, Spending::Polling);
    }

    fn poll_period(&self, cores: &Cores, place: PlaceId, with_credits: bool) -> Picoseconds {
        let answers = if with_credits { self.awaited(place) } else { 0 };
        cores.own_read(place, self.flag_lines() + answers) + cores.cycles(place, self.poll_cycles)
    }

    fn first_arrival(&self, place: PlaceId) -> Option<Picoseconds> {
        let kept = self.kept.first_arrival(place).filter(|_| !self.is_engaged(place));
        let heads = &self.desks[place.index()].heads;
        heads.first().map(|(key, _)| key.time()).into_iter().chain(kept).min()
    }

    fn first_credit(&self, place: PlaceId) -> Option<Picoseconds> {
        let Desk { answers, stand, .. } = &self.desks[place.index()];
        let due = if self.is_engaged(place) { self.resumes(place) } else { stand.due() };
        answers.iter().map(|(arrival, _)| *arrival).chain(due).min()
    }

    fn has_mail(&self, source: PlaceId, place: PlaceId) -> bool {
        self.kept.has_from(source, place)
            || self.pairs.both(source, place).into_iter().any(|lane| self.lanes[lane].arriving.is_some())
    }

    fn take(
        &mut self,
        cores: &mut Cores,
        place: PlaceId,
        until: Picoseconds,
        control_only: bool,
    ) -> Option<Option<Parcel>> {
        if self.is_engaged(place) {
            return None;
        }
        if let Some(parcel) = self.unpack(cores, place, control_only) {
            return Some(Some(parcel));
        }
        match self.fetch(cores, place, until, control_only && !H::WAITS)? {
            Some(parcel) if control_only && parcel.class == Class::Data => {
                self.kept.put(place, parcel);
                Some(None)
            }
            fetched => Some(fetched),
        }
    }

    /// All is answered already, chunk by chunk.
    fn give_credits(&mut self, _cores: &mut Cores, place: PlaceId, news: &mut News) {
        news.append(&mut self.desks[place.index()].answered);
    }

    fn forget_receiver(&mut self, place: PlaceId, gone: PlaceId) {
        self.desks[place.index()].stand.forget(gone);
        self.kept.forget_receiver(place, gone);
        for lane in self.pairs.both(place, gone) {
            self.lanes[lane].rest = None;
            let part = self.part_of(lane);
            if self.held[part].is_some_and(|held| held.lane == lane) {
                self.held[part] = None;
            }
            let desk = &mut self.desks[place.index()];
            desk.streams.retain(|other| *other != lane);
            desk.answers.retain(|(_, other)| *other != lane);
            // A place that stands in its last send would answer for it.
            self.lanes[lane].arriving = None;
            self.desks[gone.index()].heads.retain(|(_, other)| *other != lane);
        }
    }

    fn cut(&mut self, gone: PlaceId) {
        for lane in std::mem::take(&mut self.desks[gone.index()].streams) {
            self.lanes[lane].rest = None;
        }
        self.kept.clear(gone);
        self.desks[gone.index()].stand.clear();
        for (_, lane) in std::mem::take(&mut self.desks[gone.index()].heads) {
            self.lanes[lane].arriving = None;
        }
        if H::WAITS {
            // Who stands in a send to it is let go.
            let senders = (0..self.desks.len() as u32).map(PlaceId);
            senders.filter(|place| *place != gone).for_each(|place| self.forget_receiver(place, gone));
        }
    }
}
