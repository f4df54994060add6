//! The history of a run: a value a second for ten minutes, then one each ten seconds for two hours.
//!
//! Two rings of bounded length and memory; single tasks are not recorded. Invariant: times in a ring increase.

use super::{PlaceColumns, PowerView, RunState, Snapshot};
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

/// Most memory of each ring in bytes; in runs of more than some 300 places it bounds the entries.
const RING_BYTES_MAX: usize = 32 << 20;

/// A quantity of a place recorded over time: a column of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Series(usize);

/// Description of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SeriesInfo {
    /// Its name, the same as that of its column in a snapshot.
    pub name: &'static str,
    /// The unit of a value.
    pub unit: &'static str,
    /// Description of the quantity, in one sentence.
    pub description: &'static str,
    /// Kind of its values: a count that only grows, or a level.
    #[serde(serialize_with = "kind_as_word")]
    pub kind: CounterKind,
}

fn kind_as_word<S: Serializer>(kind: &CounterKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.name())
}

/// Source of the values of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SeriesSource {
    /// The share of time.
    Busy,
    /// A counter.
    Counter(CounterId),
    /// The energies; the power of an entry is the mean since the entry before.
    Power,
}

/// The share of time in which a place did not wait.
const BUSY: SeriesInfo = SeriesInfo {
    name: "busy",
    unit: "share",
    description: "Share of time in which the place did not wait.",
    kind: CounterKind::Gauge,
};

/// The power of a core; on a modelled chip only.
const WATT: SeriesInfo = SeriesInfo {
    name: "watt",
    unit: "W",
    description: "Power of the core, modelled; a mean of the modelled time since the value before.",
    kind: CounterKind::Gauge,
};

/// Number of series: one for each counter, and two that are computed.
const SERIES: usize = COUNTERS.len() + 2;

impl Series {
    fn source(self) -> SeriesSource {
        match self.0.checked_sub(1) {
            None => SeriesSource::Busy,
            Some(index) => {
                COUNTERS.get(index).map_or(SeriesSource::Power, |counter| SeriesSource::Counter(counter.id))
            }
        }
    }

    /// Returns the description of the series.
    fn info(self) -> SeriesInfo {
        match self.source() {
            SeriesSource::Busy => BUSY,
            SeriesSource::Power => WATT,
            SeriesSource::Counter(id) => {
                let CounterInfo { name, unit, description, kind, .. } = COUNTERS[id.index()];
                SeriesInfo { name, unit, description, kind }
            }
        }
    }

    fn is_modelled(self) -> bool {
        match self.source() {
            SeriesSource::Busy => false,
            SeriesSource::Power => true,
            SeriesSource::Counter(id) => COUNTERS[id.index()].is_modelled(),
        }
    }

    fn all() -> impl Iterator<Item = Series> {
        (0..SERIES).map(Series)
    }

    /// Looks up the series with the name of a column of a snapshot.
    pub fn of_name(name: &str) -> Option<Series> {
        Series::all().find(|series| series.info().name == name)
    }

    /// Returns the description of each series of a run; clock and power only for a modelled chip.
    pub fn of_run(run: &RunDescription) -> Vec<SeriesInfo> {
        let is_of_run = |series: &Series| run.is_modelled() || !series.is_modelled();
        Series::all().filter(is_of_run).map(Series::info).collect()
    }

    /// Returns all names, for an error text.
    pub fn names() -> Vec<&'static str> {
        Series::all().map(|series| series.info().name).collect()
    }

    /// Returns its value at a place; `None` if the snapshot has none.
    pub(super) fn value(self, snapshot: &Snapshot, place: usize) -> Option<f64> {
        let places = &snapshot.places;
        match self.source() {
            SeriesSource::Busy => places.busy.get(place).copied(),
            SeriesSource::Counter(id) => places.counters.shown(id, place),
            SeriesSource::Power => places.watt.as_ref()?.get(place).copied(),
        }
    }
}

/// Values of a past interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct History {
    /// Milliseconds between two values; 0 if uneven.
    pub step_ms: u64,
    /// Times in milliseconds of the run.
    pub t: Vec<u64>,
    /// The same times in milliseconds of modelled time, up to which the energies are known; on a modelled chip.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub model_ms: Vec<f64>,
    /// Power of the whole chip at each time in watts, as a mean of the modelled time since the value before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub chip_watt: Vec<f64>,
    /// For each place, a value for each time.
    pub series: BTreeMap<u32, Vec<Option<f64>>>,
}

/// An entry of a ring.
#[derive(Clone, Debug)]
struct HistoryEntry {
    time_ms: u64,
    busy: Box<[f32]>,
    /// The words of all places, by counter; empty for a counter that is 0 everywhere, such as those of unused services.
    counts: Vec<Option<Box<[u64]>>>,
    /// Time until which the energy of a modelled chip is known, in milliseconds, then the energy of each place, and
    /// of the chip.
    energy: Option<(f64, Box<[f64]>)>,
}

impl HistoryEntry {
    fn of(snapshot: &Snapshot) -> HistoryEntry {
        let PlaceColumns { busy, counters, .. } = &snapshot.places;
        let kept = |counter: &CounterInfo| {
            let words = counters.words(counter.id)?;
            words.iter().any(|word| *word != 0).then(|| words.into())
        };
        let energy = snapshot.power.zip(counters.words(CounterId::Energy));
        let joules = |power: PowerView, words: &[u64]| {
            let of_places = words.iter().map(|word| COUNTERS[CounterId::Energy.index()].shown(*word));
            (power.until_ms, of_places.chain([power.joule]).collect())
        };
        HistoryEntry {
            time_ms: snapshot.time_ms,
            busy: busy.iter().map(|share| *share as f32).collect(),
            counts: COUNTERS.iter().map(kept).collect(),
            energy: energy.map(|(power, words)| joules(power, words)),
        }
    }

    /// Returns the approximate number of bytes it takes on the heap.
    fn bytes(&self) -> usize {
        let counts = self.counts.iter().flatten().map(|words| 8 * words.len()).sum::<usize>();
        let energy = self.energy.as_ref().map_or(0, |(_, joules)| 8 * joules.len());
        4 * self.busy.len() + 16 * self.counts.len() + counts + energy
    }

    /// The value of a series at a place.
    fn value(&self, source: SeriesSource, place: usize) -> Option<f64> {
        match source {
            SeriesSource::Counter(id) => {
                let words = self.counts[id.index()].as_ref();
                let word = words.and_then(|words| words.get(place)).copied().unwrap_or_default();
                Some(COUNTERS[id.index()].shown(word))
            }
            SeriesSource::Busy | SeriesSource::Power => self.busy.get(place).copied().map(f64::from),
        }
    }
}

/// Entries in order of time, bounded in number and memory.
#[derive(Debug)]
struct EntryRing {
    entries: VecDeque<HistoryEntry>,
    entries_max: usize,
    bytes: usize,
}

impl EntryRing {
    fn new(entries_max: usize) -> EntryRing {
        EntryRing { entries: VecDeque::new(), entries_max, bytes: 0 }
    }

    /// Adds an entry and drops the oldest ones that exceed the bounds; at least two remain.
    fn push(&mut self, entry: HistoryEntry) {
        self.bytes += entry.bytes();
        self.entries.push_back(entry);
        while self.entries.len() > 2 && (self.entries.len() > self.entries_max || self.bytes > RING_BYTES_MAX)
        {
            self.bytes -= self.entries.pop_front().map_or(0, |oldest| oldest.bytes());
        }
    }
}

/// The two rings of a live run.
#[derive(Debug)]
pub struct HistoryRing {
    places: usize,
    fine: EntryRing,
    coarse: EntryRing,
    /// `true` once the fine ring has dropped an entry.
    is_cut: bool,
}

impl HistoryRing {
    /// Returns the empty rings of a run of `places` places.
    pub fn new(places: u32) -> HistoryRing {
        let (fine, coarse) = (EntryRing::new(FINE_ENTRIES), EntryRing::new(COARSE_ENTRIES));
        HistoryRing { places: places as usize, fine, coarse, is_cut: false }
    }

    /// Records a snapshot if one is due, or if it is the last of the run.
    pub fn push(&mut self, snapshot: &Snapshot) {
        let time = snapshot.time_ms;
        // Polls are uneven: one that is slightly early counts.
        let early = time + FINE_MS / 4;
        let is_last = snapshot.state != RunState::Running;
        let is_due = |ring: &EntryRing, step: u64| {
            let last = ring.entries.back();
            last.is_none_or(|last| early >= last.time_ms + step || (is_last && time > last.time_ms))
        };
        let due = [is_due(&self.fine, FINE_MS), is_due(&self.coarse, COARSE_MS)];
        if !due[0] {
            return;
        }
        let entry = HistoryEntry::of(snapshot);
        if due[1] {
            self.coarse.push(entry.clone());
        }
        let before = self.fine.entries.len();
        self.fine.push(entry);
        self.is_cut |= self.fine.entries.len() <= before;
    }

    /// Returns the values of one series between two times, from the fine ring if it reaches back far enough, else from
    /// the coarse ring.
    pub fn query(&self, places: &[u32], series: Series, from_ms: u64, to_ms: u64) -> History {
        let first = self.fine.entries.front();
        let is_fine = !self.is_cut || first.is_none_or(|first| first.time_ms <= from_ms.max(FINE_MS));
        let (ring, step_ms) = if is_fine { (&self.fine, FINE_MS) } else { (&self.coarse, COARSE_MS) };
        let ring = &ring.entries;
        let is_asked = |entry: &&HistoryEntry| (from_ms..=to_ms).contains(&entry.time_ms);
        let entries: Vec<&HistoryEntry> = ring.iter().filter(is_asked).collect();
        let known = places.iter().filter(|place| (**place as usize) < self.places);
        let source = series.source();
        let one = |place: &u32| {
            let place_index = *place as usize;
            let values = match source {
                SeriesSource::Power => means(ring, place_index, is_asked),
                _ => entries.iter().map(|entry| entry.value(source, place_index)).collect(),
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

/// Returns the mean power of column `column` of the energies since the previous entry, for each requested entry; the
/// previous value if no modelled time has passed. The first entry's mean is that since the start.
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
