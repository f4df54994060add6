//! What a run has done over time: a value a second for ten minutes, then one each ten seconds for two hours.
//!
//! Two rings of bounded length and bounded memory; nothing is kept of single tasks. Invariant: times in a ring rise.

use super::{RunState, Snapshot};
use isles_telemetry::RunDescription;
use isles_telemetry::{COUNTERS, CounterId, CounterInfo, CounterKind};
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, VecDeque};

/// Entries of the fine ring, a second apart, and of the coarse one, ten seconds apart.
const FINE_ENTRIES: usize = 600;
const COARSE_ENTRIES: usize = 720;

/// Milliseconds between two entries of each.
const FINE_MS: u64 = 1_000;
const COARSE_MS: u64 = 10_000;

/// Most memory of each ring in bytes; in runs of more than some 400 places it bounds the entries.
const RING_BYTES_MAX: usize = 32 << 20;

/// A quantity of a place that is kept over time: a column of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Series(usize);

/// What there is to know of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SeriesInfo {
    /// Its name, which is that of a column of a snapshot.
    pub name: &'static str,
    /// The unit of a value.
    pub unit: &'static str,
    /// What it is, in one sentence.
    pub description: &'static str,
    /// Whether it only grows, or goes up and down.
    #[serde(serialize_with = "kind_as_word")]
    pub kind: CounterKind,
}

fn kind_as_word<S: Serializer>(kind: &CounterKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.name())
}

/// The series that is the counter `id` as it stands in the pages.
const fn same(id: CounterId) -> SeriesInfo {
    let CounterInfo { name, unit, description, kind, .. } = COUNTERS[id as usize];
    SeriesInfo { name, unit, description, kind }
}

/// A series that is computed from counters.
const fn level(name: &'static str, unit: &'static str, description: &'static str) -> SeriesInfo {
    SeriesInfo { name, unit, description, kind: CounterKind::Gauge }
}

/// All series; those from [`MODELLED`] on are of a modelled chip only.
const SERIES: [SeriesInfo; 13] = [
    level("busy", "share", "Share of time in which the place did not wait."),
    same(CounterId::Tasks),
    same(CounterId::Queue),
    same(CounterId::Blocked),
    same(CounterId::MessagesSent),
    same(CounterId::MessagesReceived),
    same(CounterId::BytesSent),
    same(CounterId::BytesReceived),
    same(CounterId::FinishesOpen),
    same(CounterId::MemoryBytes),
    level("clock_mhz", "MHz", "Clock of the core."),
    level("volt", "V", "Supply of the core."),
    level("watt", "W", "Power of the core, modelled; a mean of the modelled time since the value before."),
];

/// The index of the first series that only a modelled chip has.
const MODELLED: usize = 10;

impl Series {
    /// The series of a name, which is that of a column of a snapshot.
    pub fn of_name(name: &str) -> Option<Series> {
        SERIES.iter().position(|known| known.name == name).map(Series)
    }

    /// What there is to know of each series of a run; those of clock and power only for a modelled chip.
    pub fn of_run(run: &RunDescription) -> &'static [SeriesInfo] {
        if run.is_modelled() { &SERIES } else { &SERIES[..MODELLED] }
    }

    /// All names, for a refusal.
    pub fn names() -> Vec<&'static str> {
        SERIES.iter().map(|series| series.name).collect()
    }

    /// Its value at a place; none if the snapshot has none.
    pub(super) fn value(self, snapshot: &Snapshot, place: usize) -> Option<f64> {
        let places = &snapshot.places;
        let count = |column: &[u64]| column.get(place).map(|value| *value as f64);
        let level = |column: &Option<Vec<f64>>| column.as_ref()?.get(place).copied();
        match SERIES[self.0].name {
            "busy" => places.busy.get(place).copied(),
            "tasks" => count(&places.tasks),
            "queue" => count(&places.queue),
            "blocked" => count(&places.blocked),
            "messages_sent" => count(&places.messages_sent),
            "messages_received" => count(&places.messages_received),
            "bytes_sent" => count(&places.bytes_sent),
            "bytes_received" => count(&places.bytes_received),
            "finishes_open" => count(&places.finishes_open),
            "memory_bytes" => count(&places.memory_bytes),
            "clock_mhz" => level(&places.clock_mhz),
            "volt" => level(&places.volt),
            _ => level(&places.watt),
        }
    }
}

/// An answer about the past.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct History {
    /// Milliseconds between two values; 0 if they are not even.
    pub step_ms: u64,
    /// Times in milliseconds of the run.
    pub t: Vec<u64>,
    /// The same in milliseconds of modelled time, until which the energies are known; of a modelled chip.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub model_ms: Vec<f64>,
    /// Power of the whole chip at each time in watts, as a mean of the modelled time since the value before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub chip_watt: Vec<f64>,
    /// For each place, a value for each time.
    pub series: BTreeMap<u32, Vec<Option<f64>>>,
}

/// One moment.
#[derive(Clone, Debug)]
struct HistoryEntry {
    time_ms: u64,
    /// The values of all places, series by series.
    levels: Box<[f32]>,
    counts: Box<[u64]>,
    /// Of a modelled chip: until when its energy is known, in milliseconds, then that of each place, and of the chip.
    energy: Option<(f64, Box<[f64]>)>,
}

/// The two rings of a live run.
#[derive(Debug)]
pub struct HistoryRing {
    places: usize,
    fine: VecDeque<HistoryEntry>,
    coarse: VecDeque<HistoryEntry>,
    entries: [usize; 2],
}

/// Series that are levels of small numbers, kept as `f32`, those that count, kept whole, and those that are made of the
/// energies, so that what is between two entries is in the mean of the second.
const LEVELS: [usize; 3] = [0, 10, 11];
const COUNTS: [usize; 9] = [1, 2, 3, 4, 5, 6, 7, 8, 9];
const WATT: usize = 12;

impl HistoryRing {
    /// Empty rings of a run of so many places.
    pub fn new(places: u32) -> HistoryRing {
        let places = places as usize;
        let fits = (RING_BYTES_MAX / (places.max(1) * (4 * LEVELS.len() + 8 * COUNTS.len() + 8))).max(2);
        let entries = [FINE_ENTRIES.min(fits), COARSE_ENTRIES.min(fits)];
        HistoryRing { places, fine: VecDeque::new(), coarse: VecDeque::new(), entries }
    }

    /// Keeps a snapshot if it is time for one, or if it is the last of the run.
    pub fn push(&mut self, snapshot: &Snapshot) {
        let time = snapshot.time_ms;
        // Looks are not even: one that comes a little early counts.
        let early = time + FINE_MS / 4;
        let is_last = snapshot.state != RunState::Running;
        let is_due = |ring: &VecDeque<HistoryEntry>, step: u64| {
            ring.back().is_none_or(|last| early >= last.time_ms + step || (is_last && time > last.time_ms))
        };
        let due = [is_due(&self.fine, FINE_MS), is_due(&self.coarse, COARSE_MS)];
        if !due[0] {
            return;
        }
        let value = |number: usize, place: usize| Series(number).value(snapshot, place).unwrap_or(f64::NAN);
        let places = 0..self.places;
        let all = |number: &usize| {
            let number = *number;
            places.clone().map(move |place| value(number, place))
        };
        let joules = |columns: &[f64], chip: f64| columns.iter().copied().chain([chip]).collect();
        let energy = snapshot.power.zip(snapshot.places.joule.as_ref());
        let entry = HistoryEntry {
            time_ms: time,
            levels: LEVELS.iter().flat_map(all).map(|value| value as f32).collect(),
            counts: COUNTS.iter().flat_map(all).map(|value| value as u64).collect(),
            energy: energy.map(|(power, columns)| (power.until_ms, joules(columns, power.joule))),
        };
        if due[1] {
            keep(&mut self.coarse, entry.clone(), self.entries[1]);
        }
        keep(&mut self.fine, entry, self.entries[0]);
    }

    /// Values of one series between two times; fine ones if they go back so far, else coarse ones.
    pub fn query(&self, places: &[u32], series: Series, from_ms: u64, to_ms: u64) -> History {
        let is_fine = self.fine.front().is_none_or(|first| first.time_ms <= from_ms.max(FINE_MS))
            || self.fine.len() < self.entries[0];
        let (ring, step_ms) = if is_fine { (&self.fine, FINE_MS) } else { (&self.coarse, COARSE_MS) };
        let is_asked = |entry: &&HistoryEntry| (from_ms..=to_ms).contains(&entry.time_ms);
        let entries: Vec<&HistoryEntry> = ring.iter().filter(is_asked).collect();
        let value = |entry: &HistoryEntry, place: u32| {
            let place = place as usize;
            if let Some(row) = LEVELS.iter().position(|number| *number == series.0) {
                return Some(f64::from(entry.levels[row * self.places + place]))
                    .filter(|value| !value.is_nan());
            }
            let row = COUNTS.iter().position(|number| *number == series.0)?;
            Some(entry.counts[row * self.places + place] as f64)
        };
        let known = places.iter().filter(|place| (**place as usize) < self.places);
        let one = |place: &u32| {
            let values = match series.0 {
                WATT => means(ring, *place as usize, is_asked),
                _ => entries.iter().map(|entry| value(entry, *place)).collect(),
            };
            (*place, values)
        };
        History {
            step_ms,
            t: entries.iter().map(|entry| entry.time_ms).collect(),
            model_ms: entries
                .iter()
                .filter_map(|entry| entry.energy.as_ref().map(|(until, _)| *until))
                .collect(),
            chip_watt: means(ring, self.places, is_asked).into_iter().flatten().collect(),
            series: known.map(one).collect(),
        }
    }
}

/// The mean power of the thing `column` of the energies since the entry before, at each entry that is asked for; where
/// no modelled time has passed, the one before. The first entry's is that since the start.
fn means(
    ring: &VecDeque<HistoryEntry>,
    column: usize,
    is_asked: impl Fn(&&HistoryEntry) -> bool,
) -> Vec<Option<f64>> {
    let (mut before, mut mean) = ((0.0, 0.0), None);
    let mut values = Vec::new();
    for entry in ring {
        if let Some((until, joules)) = &entry.energy {
            let joule = joules[column];
            if *until > before.0 {
                mean = Some((joule - before.1) / (until - before.0) * 1e3);
            }
            before = (*until, joule);
        }
        if is_asked(&entry) {
            values.push(mean.or(entry.energy.as_ref().map(|_| 0.0)));
        }
    }
    values
}

fn keep(ring: &mut VecDeque<HistoryEntry>, entry: HistoryEntry, entries: usize) {
    while ring.len() >= entries {
        ring.pop_front();
    }
    ring.push_back(entry);
}
