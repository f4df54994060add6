//! What a run writes down of itself while it goes on: who sends how much to whom, and what each core does when.
//!
//! Hooks for the world: it says when a core spends time, and when a send or a receipt begins and ends. A trace is
//! encoded at once and given to a sink in portions, so its memory does not grow with the run. It knows no
//! protocol: messages of one pair of places and one class are taken in the order in which they were sent, which every
//! transport promises, and that is enough to match them.
//!
//! Invariant: nothing here is read by the model, so a recorded run is the run that it would have been.

use crate::energy::Energy;
use crate::export::perfetto::{Details, Encoder, Name, Stamp, Track};
use crate::report::{SPENDINGS, Spending};
use crate::traffic::Traffic;
use isles_chip::gear::{GearId, Gears, StepId};
use isles_chip::quantity::{Attojoules, Picoseconds};
use isles_chip::supply::{Answer, Change, Transition};
use isles_chip::topology::{CoreId, Topology};
use isles_transport::{Class, PlaceId};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};

/// So many bytes are encoded before the sink gets them.
const PORTION_BYTES: usize = 1 << 18;

/// Names of events behind those of [`SPENDINGS`].
const ACTIONS: [&str; 6] = [
    "send",
    "send block",
    "receive",
    "receive piece",
    "1 ns in this file is 1 ps of the chip",
    "voltage change",
];
const SEND: Name = Name(SPENDINGS.len());
const SEND_BLOCK: Name = Name(SPENDINGS.len() + 1);
const RECEIVE: Name = Name(SPENDINGS.len() + 2);
const RECEIVE_PIECE: Name = Name(SPENDINGS.len() + 3);
const SCALE: Name = Name(SPENDINGS.len() + 4);
const VOLTAGE_CHANGE: Name = Name(SPENDINGS.len() + 5);

/// Names of notes.
const NOTES: [&str; 7] = ["source", "target", "bytes", "run", "domain", "from_mv", "to_mv"];
const SOURCE: Name = Name(0);
const TARGET: Name = Name(1);
const BYTES: Name = Name(2);
const RUN: Name = Name(3);
const DOMAIN: Name = Name(4);
const FROM_MILLIVOLTS: Name = Name(5);
const TO_MILLIVOLTS: Name = Name(6);

/// The track of what belongs to no tile. Tiles and cores follow.
const WHOLE_RUN: Track = Track(1);

/// What is recorded of a run.
pub(crate) struct Recorder {
    pub(crate) traffic: Traffic,
    pub(crate) trace: Option<Trace>,
}

/// A message between two places.
#[derive(Clone, Copy)]
pub(crate) struct Passage {
    pub(crate) source: PlaceId,
    pub(crate) target: PlaceId,
    pub(crate) class: Class,
    pub(crate) bytes: u64,
}

/// What a core did from one time to another.
#[derive(Clone, Copy)]
struct Stretch {
    start: Picoseconds,
    end: Picoseconds,
    spending: Spending,
}

/// The track of one core.
struct CoreTrack {
    stamp: Stamp,
    /// Stretches that are not written yet: the last one may go on, and within an action all wait for its name.
    waiting: Vec<Stretch>,
    /// Behind how many of them an action has begun, if one has.
    action: Option<usize>,
}

/// A trace under way.
pub(crate) struct Trace {
    encoder: Encoder,
    sink: Box<dyn Write>,
    failure: Option<io::Error>,
    cores: Vec<CoreTrack>,
    /// Flows of messages not taken yet, by source, target and class.
    flying: Vec<VecDeque<u64>>,
    flows: u64,
    /// The first track that nothing has, behind all cores of the chip.
    counters: Track,
    /// Counters of rates, by frequency domain.
    clocks: BTreeMap<u32, Track>,
    /// Counters of voltages, by voltage domain.
    supplies: BTreeMap<u32, Track>,
    /// The one controller of voltages.
    controller: Track,
}

impl Recorder {
    pub(crate) fn new(places: u32) -> Recorder {
        Recorder { traffic: Traffic::new(places as usize), trace: None }
    }

    /// `place` spends the time from `start` to `end`.
    pub(crate) fn spend(&mut self, place: PlaceId, start: Picoseconds, end: Picoseconds, spending: Spending) {
        if let Some(trace) = &mut self.trace {
            trace.spend(place, Stretch { start, end, spending });
        }
    }

    /// What `place` spends from now on belongs to something with a name.
    pub(crate) fn begin(&mut self, place: PlaceId) {
        if let Some(trace) = &mut self.trace {
            trace.begin(place);
        }
    }

    /// The source of `passage` has sent it.
    pub(crate) fn sent(&mut self, passage: Passage, is_block: bool) {
        if let Some(trace) = &mut self.trace {
            trace.sent(passage, if is_block { SEND_BLOCK } else { SEND });
        }
    }

    /// The target of `passage` has taken it in.
    pub(crate) fn received(&mut self, passage: Passage) {
        self.traffic.count(passage.source, passage.target, passage.bytes);
        if let Some(trace) = &mut self.trace {
            trace.received(passage);
        }
    }

    /// `place` has taken in a piece of a block.
    pub(crate) fn received_piece(&mut self, place: PlaceId) {
        if let Some(trace) = &mut self.trace {
            trace.act(place, RECEIVE_PIECE, Details::default());
        }
    }

    /// Rates and voltages change.
    pub(crate) fn shifted(&mut self, answer: &Answer, gears: &Gears) {
        if let Some(trace) = &mut self.trace {
            trace.shifted(answer, gears);
        }
    }

    /// What had begun at `place` was nothing.
    pub(crate) fn abandon(&mut self, place: PlaceId) {
        if let Some(trace) = &mut self.trace {
            trace.cores[place.index()].action = None;
        }
    }
}

impl Trace {
    /// A trace of so many places on the cores of `topology`; `run` says of which run, in words.
    pub(crate) fn new(topology: &Topology, places: u32, run: &str, sink: Box<dyn Write>) -> Trace {
        let names: Vec<&str> = SPENDINGS.iter().map(|(_, name)| *name).chain(ACTIONS).collect();
        let mut encoder = Encoder::new(&names, &NOTES);
        encoder.describe(WHOLE_RUN, run);
        encoder.instant(WHOLE_RUN, Picoseconds::ZERO, SCALE, &[(RUN, run)]);
        let mut last = None;
        for core in (0..places).map(CoreId) {
            describe(&mut encoder, topology, core, &mut last);
        }
        let core = |core| CoreTrack {
            stamp: Stamp::new(core_track(topology, core)),
            waiting: Vec::new(),
            action: None,
        };
        Trace {
            encoder,
            sink,
            failure: None,
            cores: (0..places).map(|place| core(CoreId(place))).collect(),
            flying: vec![VecDeque::new(); 2 * (places as usize).pow(2)],
            flows: 0,
            counters: core_track(topology, CoreId(topology.cores())),
            clocks: BTreeMap::new(),
            supplies: BTreeMap::new(),
            controller: WHOLE_RUN,
        }
    }

    fn spend(&mut self, place: PlaceId, stretch: Stretch) {
        let core = &mut self.cores[place.index()];
        match core.waiting[core.action.unwrap_or(0)..].last_mut() {
            Some(last) if last.spending == stretch.spending && last.end == stretch.start => {
                last.end = stretch.end;
                return;
            }
            Some(_) if core.action.is_none() => self.write(place),
            _ => {}
        }
        if stretch.start < stretch.end {
            self.cores[place.index()].waiting.push(stretch);
        }
    }

    /// What came before is not written yet: if the action comes to nothing, it may go on.
    fn begin(&mut self, place: PlaceId) {
        let core = &mut self.cores[place.index()];
        core.action = Some(core.waiting.len());
    }

    fn sent(&mut self, passage: Passage, name: Name) {
        self.flows += 1;
        let Passage { source, target, bytes, .. } = passage;
        let lane = self.lane(passage);
        self.flying[lane].push_back(self.flows);
        let notes = [(TARGET, u64::from(target.0)), (BYTES, bytes)];
        self.act(source, name, Details { flow: Some(self.flows), last_flow: None, notes: &notes });
    }

    fn received(&mut self, passage: Passage) {
        let Passage { source, target, bytes, .. } = passage;
        let lane = self.lane(passage);
        let last_flow = self.flying[lane].pop_front();
        let notes = [(SOURCE, u64::from(source.0)), (BYTES, bytes)];
        self.act(target, RECEIVE, Details { flow: None, last_flow, notes: &notes });
    }

    fn lane(&self, passage: Passage) -> usize {
        let pair = passage.source.index() * self.cores.len() + passage.target.index();
        2 * pair + passage.class as usize
    }

    /// Writes what `place` has spent since the action began, as that action, and before that what it did before.
    fn act(&mut self, place: PlaceId, name: Name, details: Details<'_>) {
        let CoreTrack { stamp, waiting, action } = &mut self.cores[place.index()];
        let (before, within) = waiting.split_at(action.take().unwrap_or(0));
        write(&mut self.encoder, stamp, before);
        if let (Some(first), Some(last)) = (within.first(), within.last()) {
            self.encoder.begin(stamp, first.start, name, details);
            write(&mut self.encoder, stamp, within);
            self.encoder.end(stamp, last.end);
        }
        waiting.clear();
        self.hand_over_portions();
    }

    /// Writes the stretches of `place` that wait.
    fn write(&mut self, place: PlaceId) {
        let CoreTrack { stamp, waiting, .. } = &mut self.cores[place.index()];
        write(&mut self.encoder, stamp, waiting);
        waiting.clear();
        self.hand_over_portions();
    }

    fn hand_over_portions(&mut self) {
        if self.encoder.bytes().len() >= PORTION_BYTES {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        if self.failure.is_none() {
            self.failure = self.sink.write_all(self.encoder.bytes()).err();
        }
        self.encoder.clear();
    }

    /// Describes the counters of rates and voltages, and says what they are at the start. `cores` gives of each core
    /// of the chip its frequency domain, its voltage domain, its gear and its step.
    pub(crate) fn count_clocks(
        &mut self,
        cores: impl Iterator<Item = (u32, u32, GearId, StepId)>,
        gears: &Gears,
    ) {
        for (clock, supply, gear, step) in cores {
            if let Entry::Vacant(vacant) = self.clocks.entry(clock) {
                let track = *vacant.insert(self.counters);
                self.counters = Track(track.0 + 1);
                self.encoder.describe_counter(track, &format!("rate of frequency domain {clock}"), "MHz");
                self.encoder.count(track, Picoseconds::ZERO, gears.gear(gear).rate.megahertz());
            }
            let Some(voltage) = gears.voltage(step) else { continue };
            if let Entry::Vacant(vacant) = self.supplies.entry(supply) {
                let track = *vacant.insert(self.counters);
                self.counters = Track(track.0 + 1);
                self.encoder.describe_counter(track, &format!("voltage of voltage domain {supply}"), "V");
                self.encoder.count(track, Picoseconds::ZERO, voltage.volts());
            }
        }
        self.encoder.describe(self.counters, "voltage controller, 1 ns is 1 ps");
        self.controller = self.counters;
        self.counters = Track(self.counters.0 + 1);
    }

    fn shifted(&mut self, answer: &Answer, gears: &Gears) {
        for change in &answer.changes {
            match *change {
                Change::Rate { time, clock, gear } => {
                    if let Some(track) = self.clocks.get(&clock.0) {
                        self.encoder.count(*track, time, gears.gear(gear).rate.megahertz());
                    }
                }
                Change::Voltage { time, supply, step } => {
                    if let Some((track, voltage)) = self.supplies.get(&supply.0).zip(gears.voltage(step)) {
                        self.encoder.count(*track, time, voltage.volts());
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
            let stamp = Stamp::new(self.controller);
            self.encoder.begin(&stamp, start, VOLTAGE_CHANGE, details);
            self.encoder.end(&stamp, end);
        }
    }

    /// Writes the power of the chip and of each voltage domain over time; `energy` is that of the whole run.
    pub(crate) fn count_powers(&mut self, energy: &Energy) {
        let window = energy.profile.window;
        let first = self.counters;
        let own = energy.models.first().map_or("", |model| model.name.as_str());
        let columns = energy.profile.windows().next().map_or(0, |(_, _, sums)| sums.len());
        let about = format!("by {own}, means of {window}; 1 ns is 1 ps");
        self.encoder.describe_counter(first, &format!("power of the chip {about}"), "W");
        for column in 0..columns {
            let what =
                if column + 1 == columns { "uncore".to_owned() } else { format!("voltage domain {column}") };
            let track = Track(first.0 + 1 + column as u64);
            self.encoder.describe_counter(track, &format!("power of {what} {about}"), "W");
        }
        self.counters = Track(first.0 + 1 + columns as u64);
        for (start, length, sums) in energy.profile.windows().filter(|(_, length, _)| length.0 > 0) {
            let chip: Attojoules = sums.iter().copied().sum();
            for (number, drawn) in (0..).zip([chip].iter().chain(sums)) {
                self.encoder.count(Track(first.0 + number), start, drawn.mean_over(length).watts());
            }
            self.hand_over_portions();
        }
    }

    /// Writes all that is left.
    ///
    /// # Errors
    /// The first thing that the sink has refused, at any time.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        (0..self.cores.len() as u32).for_each(|place| self.write(PlaceId(place)));
        self.hand_over();
        match self.failure {
            Some(failure) => Err(failure),
            None => self.sink.flush(),
        }
    }
}

fn write(encoder: &mut Encoder, stamp: &Stamp, stretches: &[Stretch]) {
    for Stretch { start, end, spending } in stretches {
        encoder.span(stamp, (*start, *end), Name(*spending as usize));
    }
}

/// A core, behind all tiles.
fn core_track(topology: &Topology, core: CoreId) -> Track {
    Track(WHOLE_RUN.0 + 1 + u64::from(topology.tiles()) + u64::from(core.0))
}

/// Describes a core, and its tile if that is not `last`.
fn describe(encoder: &mut Encoder, topology: &Topology, core: CoreId, last: &mut Option<Track>) {
    let tile = topology.tile_of(core);
    let process = Track(WHOLE_RUN.0 + 1 + u64::from(tile.0));
    // Numbers of processes and threads must not be 0, nor equal unless a thread is the first of its process.
    let (pid, tid) = (tile.0 + 1, topology.tiles() + core.0 + 1);
    if last.replace(process) != Some(process) {
        let [x, y, z] = topology.coordinates(tile);
        encoder.describe_process(process, pid, &format!("tile {tile} at ({x}, {y}, {z}), 1 ns is 1 ps"));
    }
    let place = core; // place `p` is on core `p`
    encoder.describe_thread(
        core_track(topology, core),
        process,
        (pid, tid),
        &format!("core {core}, place {place}"),
    );
}
