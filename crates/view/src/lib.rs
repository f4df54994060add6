//! The views of a run: its current state, its history, and its warnings.
//!
//! A [`RunView`] is an observed run, live ([`LiveRun`]) or from its log ([`ReplayedRun`]); pages, terminals and metrics
//! treat both alike. The types serialise to the interface of the page. Invariants: a column of [`PlaceColumns`] has a
//! value for each place; every list is bounded, and omitted entries are counted.

#![forbid(unsafe_code)]

mod builder;
mod columns;
mod history;
mod live;
mod replay;
mod stages;
mod summary;
mod warnings;

#[cfg(all(test, not(loom)))]
mod tests;

pub use builder::SnapshotBuilder;
pub use columns::CounterColumns;
pub use history::{History, HistoryRing, Series, SeriesInfo};
pub use live::{LiveRun, WatchError};
pub use replay::ReplayedRun;
pub use stages::{StageView, StagesView, stages_of};
pub use summary::{PastWarning, Summary};
pub use warnings::{Warning, WarningKind};

use isles_telemetry::OutputLine;
use isles_telemetry::RunDescription;
use serde::Serialize;
use std::fmt;

/// Most pairs of places of a snapshot, those with the most messages.
pub const PAIRS_MAX: usize = 4096;

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// It runs.
    Running,
    /// It has succeeded.
    Ended,
    /// It has failed.
    Failed,
    /// Unknown: its first process has disappeared, or its log ends early.
    Unknown,
}

/// The state of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PlaceCondition {
    /// It is idle.
    Idle,
    /// It runs tasks.
    Busy,
    /// Its tasks wait.
    Waiting,
    /// It has left the run.
    Ended,
    /// It is dead.
    Dead,
    /// Its state is unknown.
    Silent,
}

impl fmt::Display for PlaceCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            PlaceCondition::Idle => "idle",
            PlaceCondition::Busy => "busy",
            PlaceCondition::Waiting => "waiting",
            PlaceCondition::Ended => "ended",
            PlaceCondition::Dead => "dead",
            PlaceCondition::Silent => "silent",
        })
    }
}

/// One column for each quantity, one value for each place.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PlaceColumns {
    /// Condition of each place.
    pub state: Vec<PlaceCondition>,
    /// Cause of its death, if it is dead.
    pub cause: Vec<Option<String>>,
    /// The share of the time since the snapshot before in which it did not wait, from 0 to 1.
    pub busy: Vec<f64>,
    /// Counters of each place; see [`CounterColumns`].
    #[serde(flatten)]
    pub counters: CounterColumns,
    /// Power of its core in watts, as a mean of the modelled time since the snapshot before; on a modelled chip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watt: Option<Vec<f64>>,
}

/// Power of a whole modelled chip: the cores of places, other cores, and everything besides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PowerView {
    /// Power in watts, as a mean of the modelled time since the snapshot before.
    pub watt: f64,
    /// Energy in joules, since the start.
    pub joule: f64,
    /// The modelled time in milliseconds until which the energies hold, also those of the places.
    pub until_ms: f64,
}

/// The load of a link of a chip, from one tile to another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LinkLoad {
    /// The tile where it begins.
    pub from: u32,
    /// The tile where it ends.
    pub to: u32,
    /// The share of modelled time in which it was busy, from 0 to 1.
    pub load: f64,
}

/// Messages and bytes between places that are not listed one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PairsRest {
    /// Messages.
    pub messages: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
}

/// An open finish as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FinishView {
    /// Its name: home and number.
    pub id: String,
    /// Number of the place that opened it.
    pub home: u32,
    /// The name of the finish around it.
    pub parent: Option<String>,
    /// Time for which it has been seen open, in milliseconds.
    pub open_ms: u64,
    /// Places that it waits for, with the tasks there; the first four.
    pub waits_for: Vec<(u32, u32)>,
    /// The line of the source that opened it.
    pub label: String,
}

/// Progress reported by the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProgressView {
    /// The current phase of the program; empty if it names none. Steps are those of the phase.
    pub phase: String,
    /// Name of the counted steps.
    pub label: String,
    /// Number of steps done.
    pub done: u64,
    /// Total number of steps as far as known; 0 if unknown.
    pub total: u64,
    /// `true` if the total is not final: it will grow, or has grown, so no share can be computed from it.
    pub grows: bool,
}

/// Number of missed observations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Dropped {
    /// Gaps of the event log.
    pub events: u64,
    /// Pages of places that could not be read as of one moment.
    pub samples: u64,
}

/// A run at one moment, as shown. The server adds the number of snapshots that each reader has missed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Snapshot {
    /// Number of the snapshot.
    pub seq: u64,
    /// Milliseconds since the run began.
    pub time_ms: u64,
    /// The same in modelled time, on a chip.
    pub model_ms: Option<f64>,
    /// State of the run.
    pub state: RunState,
    /// Reason why it does not run.
    pub reason: Option<String>,
    /// Each place.
    pub places: PlaceColumns,
    /// Power of the chip; `None` on other machines, or if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power: Option<PowerView>,
    /// Links of the chip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<Vec<LinkLoad>>,
    /// Sender, receiver, messages, bytes; the largest.
    pub pairs: Vec<(u32, u32, u64, u64)>,
    /// Sum of all other pairs.
    pub pairs_rest: PairsRest,
    /// Open finishes.
    pub finishes: Vec<FinishView>,
    /// Warnings at this moment.
    pub warnings: Vec<Warning>,
    /// Progress of the program.
    pub progress: Option<ProgressView>,
    /// Number of missed observations.
    pub dropped: Dropped,
}

/// Output of a place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OutputView {
    /// The lines, by their numbers; the newest [`LINES_MAX`].
    pub lines: Vec<OutputLine>,
    /// Number of requested lines that are no longer available.
    pub dropped: u64,
    /// `true` if the output of places is recorded.
    pub recorded: bool,
}

/// Most lines of an [`OutputView`].
pub const LINES_MAX: usize = 5000;

impl OutputView {
    /// Returns the newest of `lines`, which are sorted by number, after number `after`.
    fn of(lines: &[OutputLine], after: u64, recorded: bool) -> OutputView {
        let from = lines.partition_point(|line| line.seq <= after).max(lines.len().saturating_sub(LINES_MAX));
        let kept = &lines[from..];
        let printed = kept.last().map_or(0, |line| line.seq.saturating_sub(after));
        OutputView { lines: kept.to_vec(), dropped: printed.saturating_sub(kept.len() as u64), recorded }
    }
}

/// An observed run.
pub trait RunView: Send {
    /// Returns the description of the run, known from its start.
    fn description(&self) -> &RunDescription;

    /// The newest snapshot.
    fn latest(&self) -> &Snapshot;

    /// Values of one series at some places between two times of the run, in milliseconds.
    fn history(&self, places: &[u32], series: Series, from_ms: u64, to_ms: u64) -> History;

    /// Returns the output of `place` after its line of number `after`: in a live run the lines still available, in a
    /// replay all recorded ones.
    fn output(&self, place: u32, after: u64) -> OutputView;

    /// Returns the length of a replay in milliseconds, and `true` if its log lacks the end of the run; `None` for a
    /// live run.
    fn length(&self) -> Option<(u64, bool)>;

    /// Returns the summary of a run that is over.
    fn summary(&self) -> Option<Summary>;

    /// Returns the run at a time in milliseconds, of a replay. `None` for a live run, which has only its newest
    /// snapshot.
    fn at(&mut self, time_ms: u64) -> Option<Snapshot>;
}
