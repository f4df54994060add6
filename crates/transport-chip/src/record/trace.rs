//! A trace: the time of cores, merged into intervals, named, connected by flows, and encoded.
//!
//! Messages of one pair of places and class are taken in the order of sending, which every transport guarantees; that
//! is enough to match them, so nothing here knows a protocol. Rates, voltages, powers and the voltage controller have
//! tracks of their own, because they belong to domains and not to cores. This file knows no threads.
//!
//! Invariants: an interval is written once it can no longer be extended, so spans of a core are in the order of time; a
//! counter is described before its first value.

use super::{EventChunk, InitialState, PLACES_MAX, TraceEvent, TraceSink, Transfer};
use crate::energy::Energy;
use crate::protocol::inbox::LaneIndex;
use crate::report::{TIME_CATEGORIES, TimeCategory};
use isles_chip::gear::Gears;
use isles_chip::quantity::{Attojoules, Picoseconds};
use isles_chip::supply::{SupplyChange, SupplyResponse, Transition};
use isles_chip::topology::{CoreId, Topology};
use isles_trace::names;
use isles_trace::perfetto::{Details, EncodedTime, Encoder, EventPrefix, Name, Track};
use isles_trace::spans::{SpanName, Spans};
use isles_transport::PlaceId;
use isles_transport::ordered::OrderedMap;
use std::collections::VecDeque;
use std::io;
use std::io::Write;
use std::ops::Range;

/// Names of events, after those of [`TIME_CATEGORIES`].
const ACTIONS: [&str; 6] =
    [names::SEND, names::SEND_BLOCK, names::RECEIVE, "receive piece", names::PICOSECONDS, "voltage change"];
const SEND: Name = Name(TIME_CATEGORIES.len());
const SEND_BLOCK: Name = Name(TIME_CATEGORIES.len() + 1);
const RECEIVE: Name = Name(TIME_CATEGORIES.len() + 2);
const RECEIVE_PIECE: Name = Name(TIME_CATEGORIES.len() + 3);
const SCALE: Name = Name(TIME_CATEGORIES.len() + 4);
pub(super) const VOLTAGE_CHANGE: Name = Name(TIME_CATEGORIES.len() + 5);

/// Names of notes.
const NOTES: [&str; 7] =
    [names::SOURCE, names::TARGET, names::BYTES, names::RUN, "domain", "from_mv", "to_mv"];
const SOURCE: Name = Name(0);
const TARGET: Name = Name(1);
const BYTES: Name = Name(2);
const RUN: Name = Name(3);
pub(super) const DOMAIN: Name = Name(4);
pub(super) const FROM_MILLIVOLTS: Name = Name(5);
pub(super) const TO_MILLIVOLTS: Name = Name(6);

/// The track of the whole run. Tiles and cores follow.
const WHOLE_RUN: Track = Track(1);

/// An interval of a core's time, from the end of the previous one.
#[derive(Clone, Copy)]
struct TraceInterval {
    end: Picoseconds,
    category: TimeCategory,
}

/// The track of one core.
struct CoreTrack {
    stamp: EventPrefix,
    /// End of the last interval.
    now: Picoseconds,
    /// End of the last written interval.
    written: EncodedTime,
    /// Intervals not written yet: the last one may be extended, and within an action all wait for its name.
    waiting: Vec<TraceInterval>,
    /// `true` if an action has started.
    is_acting: bool,
    /// Number of waiting intervals before the action; 0 if none has started.
    before: usize,
}

impl CoreTrack {
    fn new(track: Track, now: Picoseconds) -> CoreTrack {
        let (stamp, written) = (EventPrefix::new(track), EncodedTime::new(now.0));
        CoreTrack { stamp, now, written, waiting: Vec::new(), is_acting: false, before: 0 }
    }

    /// Writes the waiting intervals of `range`, which are next.
    #[inline]
    fn write(&mut self, encoder: &mut Encoder, range: Range<usize>) {
        let mut start = self.written;
        for TraceInterval { end, category } in &self.waiting[range] {
            let end = EncodedTime::new(end.0);
            encoder.span(&self.stamp, start, end, Name(*category as usize));
            start = end;
        }
        self.written = start;
    }
}

/// A trace being written.
pub(crate) struct Trace {
    outlet: TraceSink,
    cores: Vec<CoreTrack>,
    pairs: LaneIndex,
    /// Flows of messages not taken yet, by source, target and class.
    in_flight: Vec<VecDeque<u64>>,
    flows: u64,
    counters: Counters,
    spans: Spans,
}

impl Trace {
    /// Makes a trace of places on cores of `topology` with the initial states `cores`; `run` is a description of the
    /// run.
    ///
    /// # Panics
    /// If there are more than 65,536 places.
    pub(crate) fn new(
        topology: &Topology,
        cores: &[InitialState],
        gears: &Gears,
        run: &str,
        sink: Box<dyn Write + Send>,
    ) -> Trace {
        let places = cores.len() as u32;
        assert!(places <= PLACES_MAX, "a trace of {places} places; allowed: at most {PLACES_MAX}");
        let names: Vec<&str> = TIME_CATEGORIES.iter().map(|(_, name)| *name).chain(ACTIONS).collect();
        let mut encoder = Encoder::new(&names, &NOTES);
        encoder.describe(WHOLE_RUN, run);
        encoder.instant(WHOLE_RUN, 0, SCALE, &[(RUN, run)]);
        let mut last = None;
        let mut placed: Vec<(CoreId, PlaceId)> =
            cores.iter().map(|initial_state| initial_state.core).zip((0..).map(PlaceId)).collect();
        placed.sort_unstable();
        for (core, place) in placed {
            describe(&mut encoder, topology, core, place, &mut last);
        }
        let track = |initial_state: &InitialState| {
            CoreTrack::new(core_track(topology, initial_state.core), initial_state.now)
        };
        let free = core_track(topology, CoreId(topology.cores()));
        let counters = Counters::new(&mut encoder, free, gears, cores);
        let pairs = LaneIndex::of(cores.len());
        let tiles = cores.iter().map(|initial_state| tile_track(topology, initial_state.core)).collect();
        Trace {
            outlet: TraceSink::new(encoder, sink),
            cores: cores.iter().map(track).collect(),
            in_flight: vec![VecDeque::new(); pairs.lanes()],
            pairs,
            flows: 0,
            counters,
            spans: Spans::new(tiles, Name(names.len()), ", 1 ns is 1 ps"),
        }
    }

    /// Records all events of a chunk.
    pub(super) fn take_all(&mut self, chunk: &EventChunk) {
        chunk.entries().for_each(|entry| self.take(entry));
    }

    /// Records the next event.
    #[inline]
    pub(super) fn take(&mut self, entry: TraceEvent) {
        match entry {
            TraceEvent::Spent { place, category, time } => self.spend(place, category, time),
            TraceEvent::Begun(place) => self.begin(place),
            TraceEvent::Abandoned(place) => self.abandon(place),
            TraceEvent::ReceivedPiece(place) => self.write_action(place, RECEIVE_PIECE, Details::default()),
            TraceEvent::Sent(transfer) => self.sent(transfer, SEND),
            TraceEvent::SentBlock(transfer) => self.sent(transfer, SEND_BLOCK),
            TraceEvent::Received(transfer) => self.received(transfer),
            TraceEvent::SpanBegun { place, lane, topic, other } => {
                let (encoder, now) = (&mut self.outlet.encoder, self.cores[place.index()].now);
                self.spans.begin(encoder, place, lane, now.0, topic, other);
                self.outlet.flush_if_full();
            }
            TraceEvent::SpanEnded { place, lane } => {
                let now = self.cores[place.index()].now;
                self.spans.end(&mut self.outlet.encoder, place, lane, now.0);
            }
        }
    }

    /// Adds the next topic of spans.
    pub(super) fn add(&mut self, topic: SpanName) {
        let source = topic.source.map(|source| (source.file, source.line));
        self.spans.add(&mut self.outlet.encoder, topic.name, source);
    }

    /// Writes changes of rates and voltages.
    pub(super) fn shift(&mut self, answer: &SupplyResponse) {
        self.counters.shift(&mut self.outlet.encoder, answer);
    }

    #[inline]
    fn spend(&mut self, place: PlaceId, category: TimeCategory, time: Picoseconds) {
        let core = &mut self.cores[place.index()];
        core.now += time;
        match core.waiting[core.before..].last_mut() {
            Some(last) if last.category == category => {
                last.end = core.now;
                return;
            }
            Some(_) if !core.is_acting => self.write(place),
            _ => {}
        }
        if time > Picoseconds::ZERO {
            let core = &mut self.cores[place.index()];
            core.waiting.push(TraceInterval { end: core.now, category });
        }
    }

    /// Starts an action and holds back the previous interval, which may be extended if the action is discarded.
    fn begin(&mut self, place: PlaceId) {
        let core = &mut self.cores[place.index()];
        (core.is_acting, core.before) = (true, core.waiting.len());
    }

    fn abandon(&mut self, place: PlaceId) {
        let core = &mut self.cores[place.index()];
        (core.is_acting, core.before) = (false, 0);
    }

    fn sent(&mut self, transfer: Transfer, name: Name) {
        self.flows += 1;
        let Transfer { source, target, bytes, .. } = transfer;
        let lane = self.lane(transfer);
        self.in_flight[lane].push_back(self.flows);
        let notes = [(TARGET, u64::from(target.0)), (BYTES, bytes)];
        self.write_action(source, name, Details { flow: Some(self.flows), last_flow: None, notes: &notes });
    }

    fn received(&mut self, transfer: Transfer) {
        let Transfer { source, target, bytes, .. } = transfer;
        let lane = self.lane(transfer);
        let last_flow = self.in_flight[lane].pop_front();
        let notes = [(SOURCE, u64::from(source.0)), (BYTES, bytes)];
        self.write_action(target, RECEIVE, Details { flow: None, last_flow, notes: &notes });
    }

    fn lane(&self, transfer: Transfer) -> usize {
        self.pairs.lane(transfer.source, transfer.target, transfer.class)
    }

    /// Writes the earlier intervals of `place`, then its time since the start of the action as that action.
    #[inline]
    fn write_action(&mut self, place: PlaceId, name: Name, details: Details<'_>) {
        let (encoder, core) = (&mut self.outlet.encoder, &mut self.cores[place.index()]);
        let (before, all) = (core.before, core.waiting.len());
        if before > 0 {
            core.write(encoder, 0..before);
        }
        if before < all {
            encoder.begin(&core.stamp, core.written, name, details);
            core.write(encoder, before..all);
            encoder.end(&core.stamp, core.written);
        }
        core.waiting.clear();
        (core.is_acting, core.before) = (false, 0);
        self.outlet.flush_if_full();
    }

    /// Writes the waiting intervals of `place`.
    fn write(&mut self, place: PlaceId) {
        let core = &mut self.cores[place.index()];
        core.write(&mut self.outlet.encoder, 0..core.waiting.len());
        core.waiting.clear();
        self.outlet.flush_if_full();
    }

    /// Writes everything that is left, and the power of the run.
    ///
    /// # Errors
    /// The first thing that the sink has refused, at any time.
    pub(super) fn finish(mut self, energy: Option<&Energy>) -> io::Result<()> {
        if let Some(energy) = energy {
            self.counters.count_powers(&mut self.outlet, energy);
        }
        for place in (0..self.cores.len() as u32).map(PlaceId) {
            self.write(place);
            let now = self.cores[place.index()].now;
            self.spans.end_all(&mut self.outlet.encoder, place, now.0);
        }
        self.outlet.finish()
    }
}

fn tile_track(topology: &Topology, core: CoreId) -> Track {
    Track(WHOLE_RUN.0 + 1 + u64::from(topology.tile_of(core).0))
}

/// Returns the track of a core, after those of all tiles.
fn core_track(topology: &Topology, core: CoreId) -> Track {
    Track(WHOLE_RUN.0 + 1 + u64::from(topology.tiles()) + u64::from(core.0))
}

/// Describes a core with its place, and its tile unless that is `last`.
fn describe(
    encoder: &mut Encoder,
    topology: &Topology,
    core: CoreId,
    place: PlaceId,
    last: &mut Option<Track>,
) {
    let tile = topology.tile_of(core);
    let process = tile_track(topology, core);
    // Ids of processes and threads must not be 0, and must be distinct, except that the first thread of a process
    // shares its id.
    let (pid, tid) = (tile.0 + 1, topology.tiles() + core.0 + 1);
    if last.replace(process) != Some(process) {
        let [x, y, z] = topology.coordinates(tile);
        encoder.describe_process(process, pid, &format!("tile {tile} at ({x}, {y}, {z}), 1 ns is 1 ps"));
    }
    encoder.describe_thread(core_track(topology, core), pid, tid, &format!("core {core}, place {}", place.0));
}

/// The counters of a trace.
pub(super) struct Counters {
    gears: Gears,
    /// Tracks of rates, by frequency domain.
    clocks: OrderedMap<u32, Track>,
    /// Tracks of voltages, by voltage domain.
    supplies: OrderedMap<u32, Track>,
    /// The voltage controller.
    controller: EventPrefix,
    /// The first unused track.
    free: Track,
}

impl Counters {
    /// Describes the counters of rates and voltages, from the track `free` on, and writes their initial values.
    pub(super) fn new(
        encoder: &mut Encoder,
        mut free: Track,
        gears: &Gears,
        cores: &[InitialState],
    ) -> Counters {
        let mut next = || {
            let track = free;
            free = Track(track.0 + 1);
            track
        };
        let (mut clocks, mut supplies) = (OrderedMap::new(), OrderedMap::new());
        for InitialState { clock, supply, gear, step, .. } in cores {
            if !clocks.contains_key(*clock) {
                let track = next();
                clocks.insert(*clock, track);
                encoder.describe_counter(track, &format!("rate of frequency domain {clock}"), "MHz");
                encoder.count(track, 0, gears.gear(*gear).rate.megahertz());
            }
            let Some(voltage) = gears.voltage(*step) else { continue };
            if !supplies.contains_key(*supply) {
                let track = next();
                supplies.insert(*supply, track);
                encoder.describe_counter(track, &format!("voltage of voltage domain {supply}"), "V");
                encoder.count(track, 0, voltage.volts());
            }
        }
        let controller = next();
        encoder.describe(controller, "voltage controller, 1 ns is 1 ps");
        let (gears, controller) = (gears.clone(), EventPrefix::new(controller));
        Counters { gears, clocks, supplies, controller, free }
    }

    /// Writes the changes of rates and voltages.
    pub(super) fn shift(&self, encoder: &mut Encoder, answer: &SupplyResponse) {
        let gears = &self.gears;
        for change in &answer.changes {
            match *change {
                SupplyChange::Rate { time, clock, gear } => {
                    if let Some(track) = self.clocks.get(clock.0) {
                        encoder.count(*track, time.0, gears.gear(gear).rate.megahertz());
                    }
                }
                SupplyChange::Voltage { time, supply, step } => {
                    if let Some((track, voltage)) = self.supplies.get(supply.0).zip(gears.voltage(step)) {
                        encoder.count(*track, time.0, voltage.volts());
                    }
                }
            }
        }
        if let Some(Transition { supply, start, end, from, to }) = answer.transition {
            let millivolts = |step| gears.voltage(step).map_or(0, |voltage| u64::from(voltage.0) / 1_000);
            let notes = [
                (DOMAIN, u64::from(supply.0)),
                (FROM_MILLIVOLTS, millivolts(from)),
                (TO_MILLIVOLTS, millivolts(to)),
            ];
            let details = Details { flow: None, last_flow: None, notes: &notes };
            encoder.begin(&self.controller, EncodedTime::new(start.0), VOLTAGE_CHANGE, details);
            encoder.end(&self.controller, EncodedTime::new(end.0));
        }
    }

    /// Writes the power of the chip and of each voltage domain over time; `energy` is that of the whole run.
    pub(super) fn count_powers(&self, outlet: &mut TraceSink, energy: &Energy) {
        let window = energy.profile.window;
        let first = self.free;
        let own = energy.models.first().map_or("", |model| model.name.as_str());
        let columns = energy.profile.windows().next().map_or(0, |(_, _, sums)| sums.len());
        let about = format!("by {own}, means of {window}; 1 ns is 1 ps");
        outlet.encoder.describe_counter(first, &format!("power of the chip {about}"), "W");
        for column in 0..columns {
            let what =
                if column + 1 == columns { "uncore".to_owned() } else { format!("voltage domain {column}") };
            let track = Track(first.0 + 1 + column as u64);
            outlet.encoder.describe_counter(track, &format!("power of {what} {about}"), "W");
        }
        for (start, length, sums) in energy.profile.windows().filter(|(_, length, _)| length.0 > 0) {
            let chip: Attojoules = sums.iter().copied().sum();
            for (number, drawn) in (0..).zip([chip].iter().chain(sums)) {
                outlet.encoder.count(Track(first.0 + number), start.0, drawn.mean_over(length).watts());
            }
            outlet.flush_if_full();
        }
    }
}
