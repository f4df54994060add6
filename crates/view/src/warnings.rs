//! Warnings about a run: places that do not yield, growing queues, finishes without progress, chatter.
//!
//! The rules follow task monitors such as tokio-console, applied to Isles. They use samples and a few numbers per
//! place. Invariant: a warning disappears with its reason and states since when it holds.

use crate::FinishView;
use isles_telemetry::CounterId;
use isles_telemetry::WAITS;
use isles_telemetry::{Liveness, PlaceSample, Sample};
use serde::Serialize;
use std::collections::BTreeMap;

/// Time for which a place may run one task before a warning, in milliseconds.
const YIELD_MS: u64 = 2_000;

/// Time without any event while a finish is open, in milliseconds of the host. The duration of the finish itself is no
/// sign, because it is that of the work.
const STILL_MS: u64 = 10_000;

/// Counters that grow with the events of a place: work, and messages between places.
const EVENTS: [CounterId; 4] =
    [CounterId::Tasks, CounterId::MessagesReceived, CounterId::FinishesReleased, CounterId::EnergyTime];

/// Time for which a queue must have grown, in milliseconds, and its least length.
const GROWS_MS: u64 = 5_000;
const QUEUE_MIN: u64 = 1_000;

/// Rate above which messages between two places are chatter, in messages a second, and the mean size below which they
/// are.
const CHATTER_PER_SECOND: u64 = 20_000;
const CHATTER_BYTES: u64 = 128;

/// Time that chatter must last, in milliseconds.
const CHATTER_MS: u64 = 2_000;

/// Most warnings of one kind at a time.
const EACH_MAX: usize = 32;

/// Kind of a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WarningKind {
    /// A finish is open, and nothing has happened for long.
    FinishOpen,
    /// A place has run one task for long.
    NoYield,
    /// The queue of a place grows.
    QueueGrows,
    /// Two places exchange many short messages.
    Chatter,
}

impl WarningKind {
    /// Its word in the interface.
    pub fn name(self) -> &'static str {
        match self {
            WarningKind::FinishOpen => "finish-open",
            WarningKind::NoYield => "no-yield",
            WarningKind::QueueGrows => "queue-grows",
            WarningKind::Chatter => "chatter",
        }
    }
}

/// A warning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// Kind of the warning.
    pub kind: WarningKind,
    /// The place.
    pub place: u32,
    /// One sentence.
    pub text: String,
    /// Time since which it holds, in milliseconds of the run.
    pub since_ms: u64,
}

/// State kept of a place.
#[derive(Clone, Copy, Debug, Default)]
struct PlaceMemory {
    copies: u64,
    /// Time since which its copy count has not changed.
    still_since: u64,
    queue: u64,
    /// Time since which its queue has not shrunk, and the length of the queue then.
    grows_since: u64,
    queue_then: u64,
}

/// State kept of a pair that sends much.
#[derive(Clone, Copy, Debug)]
struct PairMemory {
    messages: u64,
    bytes: u64,
    chatter_since: Option<u64>,
}

/// Computes warnings from successive samples.
#[derive(Debug, Default)]
pub(super) struct Watcher {
    places: Vec<PlaceMemory>,
    pairs: BTreeMap<(u32, u32), PairMemory>,
    /// The sum of all events and steps, and the time since which it has not changed and no place computes.
    events: u64,
    still_since: u64,
    time_ms: u64,
}

impl Watcher {
    /// Returns the warnings at the time of `sample`.
    pub(super) fn update(&mut self, sample: &Sample, finishes: &[FinishView]) -> Vec<Warning> {
        self.note_events(sample);
        let mut warnings = open_finishes(sample, finishes, self.still_since);
        warnings.extend(self.places(sample));
        warnings.extend(self.chatter(sample));
        self.time_ms = sample.time_ms;
        warnings
    }

    /// Records whether anything has happened since the previous sample.
    fn note_events(&mut self, sample: &Sample) {
        let of_place = |place: &PlaceSample| EVENTS.map(|counter| place.value(counter)).iter().sum::<u64>();
        let events = sample.places.iter().map(of_place).fold(sample.progress.done, u64::wrapping_add);
        let computes = |place: &PlaceSample| place.liveness == Liveness::Busy && place.death.is_none();
        if events != self.events || self.time_ms == 0 || sample.places.iter().any(computes) {
            (self.events, self.still_since) = (events, sample.time_ms);
        }
    }

    fn places(&mut self, sample: &Sample) -> Vec<Warning> {
        let now = sample.time_ms;
        self.places.resize(sample.places.len(), PlaceMemory::default());
        let (mut busy, mut grown) = (Vec::new(), Vec::new());
        for ((memory, place), number) in self.places.iter_mut().zip(&sample.places).zip(0..) {
            if memory.copies != place.copies || place.liveness != Liveness::Busy || place.death.is_some() {
                (memory.copies, memory.still_since) = (place.copies, now);
            }
            let still = now.saturating_sub(memory.still_since);
            if still >= YIELD_MS {
                let seconds = still as f64 / 1e3;
                let text = format!("has run one task for {seconds:.1} s without yielding");
                let since_ms = memory.still_since;
                busy.push(Warning { kind: WarningKind::NoYield, place: number, text, since_ms });
            }
            let queue = place.value(CounterId::Queue);
            if queue < memory.queue || memory.queue_then == 0 {
                (memory.grows_since, memory.queue_then) = (now, queue);
            }
            memory.queue = queue;
            let has_grown = queue >= QUEUE_MIN && queue > memory.queue_then + memory.queue_then / 2;
            if has_grown && now.saturating_sub(memory.grows_since) >= GROWS_MS {
                let text = format!("its queue has grown from {} to {queue} tasks", memory.queue_then);
                let since_ms = memory.grows_since;
                grown.push(Warning { kind: WarningKind::QueueGrows, place: number, text, since_ms });
            }
        }
        busy.truncate(EACH_MAX);
        grown.truncate(EACH_MAX);
        [busy, grown].concat()
    }

    fn chatter(&mut self, sample: &Sample) -> Vec<Warning> {
        let now = sample.time_ms;
        let passed = now.saturating_sub(self.time_ms).max(1);
        let mut warnings = Vec::new();
        let mut pairs = BTreeMap::new();
        for pair in &sample.pairs {
            let before = self.pairs.get(&(pair.from, pair.to));
            let (old_messages, old_bytes) =
                before.map_or((pair.messages, pair.bytes), |old| (old.messages, old.bytes));
            let messages = pair.messages.saturating_sub(old_messages);
            let per_second = messages.saturating_mul(1000) / passed;
            let mean = pair.bytes.saturating_sub(old_bytes) / messages.max(1);
            let is_chatter = per_second >= CHATTER_PER_SECOND && mean < CHATTER_BYTES;
            let since = before.and_then(|old| old.chatter_since).unwrap_or(now);
            let chatter_since = is_chatter.then_some(since);
            if is_chatter && now.saturating_sub(since) >= CHATTER_MS {
                let text = format!(
                    "sends {per_second} messages of {mean} bytes a second to place {}: fewer and longer \
                     ones cost less",
                    pair.to
                );
                warnings.push(Warning {
                    kind: WarningKind::Chatter,
                    place: pair.from,
                    text,
                    since_ms: since,
                });
            }
            let memory = PairMemory { messages: pair.messages, bytes: pair.bytes, chatter_since };
            pairs.insert((pair.from, pair.to), memory);
        }
        self.pairs = pairs;
        warnings.truncate(EACH_MAX);
        warnings
    }
}

/// Finishes that have been open while nothing has happened since `still_since`; not that of the whole run.
fn open_finishes(sample: &Sample, finishes: &[FinishView], still_since: u64) -> Vec<Warning> {
    let still = sample.time_ms.saturating_sub(still_since);
    if still < STILL_MS {
        return Vec::new();
    }
    let open = finishes.iter().filter(|finish| finish.open_ms > 0 && finish.parent.is_some());
    let time = if sample.model_ns == 0 { "" } else { " of modelled time" };
    let warning = |finish: &FinishView| {
        let waits = finish.waits_for.iter().map(|(place, tasks)| format!("{tasks} at place {place}"));
        let mut waits: Vec<String> = waits.collect();
        if waits.len() == WAITS {
            waits.push("and perhaps more".to_owned());
        }
        let waits = if waits.is_empty() { "tasks of its own place".to_owned() } else { waits.join(", ") };
        let (seconds, still, label) = (finish.open_ms as f64 / 1e3, still as f64 / 1e3, &finish.label);
        Warning {
            kind: WarningKind::FinishOpen,
            place: finish.home,
            text: format!(
                "the finish at {label} has been open for {seconds:.1} s{time} and waits for {waits}; nothing has \
                 happened for {still:.1} s"
            ),
            since_ms: still_since,
        }
    };
    open.map(warning).take(EACH_MAX).collect()
}
