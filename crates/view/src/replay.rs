//! A run observed through its log.
//!
//! It shows what a live view would have shown at that time. Invariant: after the last frame of a log without an end,
//! the run is not shown as running.

use super::{Dropped, History, OutputView, RunState, RunView, Series, Snapshot, SnapshotBuilder, Summary};
use isles_telemetry::PageLayout;
use isles_telemetry::RecordedRun;
use isles_telemetry::RunDescription;
use isles_telemetry::{RunEnd, Sample};
use std::path::Path;

/// Number of samples before the shown one that warnings and shares are computed from.
const WINDOW: usize = 15;

/// Most values of a history.
const HISTORY_MAX: usize = 1200;

/// A run from its log.
#[derive(Debug)]
pub struct ReplayedRun {
    run: RecordedRun,
    latest: Snapshot,
}

impl ReplayedRun {
    /// The log in the run directory `directory`.
    ///
    /// # Errors
    /// It cannot be replayed.
    pub fn open(directory: &Path) -> Result<ReplayedRun, isles_telemetry::LogError> {
        let run = isles_telemetry::LogReader::open(&isles_telemetry::RunDirectory::log_path(directory))?;
        Ok(ReplayedRun::of(run))
    }

    /// A log that was read.
    pub fn of(run: RecordedRun) -> ReplayedRun {
        let latest = snapshot(&run, u64::MAX);
        ReplayedRun { run, latest }
    }

    /// The log.
    pub fn recorded(&self) -> &RecordedRun {
        &self.run
    }
}

/// Returns the run at a time.
fn snapshot(run: &RecordedRun, time_ms: u64) -> Snapshot {
    let mut builder = SnapshotBuilder::new(run.description());
    let index = run.index_at(time_ms);
    let is_last = index.is_none_or(|index| index + 1 == run.len());
    let cut = format!("the log ends at {:.1} s, without the end of the run", run.length_ms() as f64 / 1e3);
    let lost = (is_last && run.end().is_none()).then_some(cut.as_str());
    let mut samples = match index {
        Some(index) => run.samples((index + 1).saturating_sub(WINDOW), index + 1),
        None => Vec::new(),
    };
    let places = run.description().places as usize;
    let last = samples
        .pop()
        .unwrap_or_else(|| Sample { places: vec![Default::default(); places], ..Sample::default() });
    for sample in samples {
        builder.build(sample, None);
    }
    let mut built = builder.build(last, lost);
    built.seq = index.map_or(0, |index| index as u64 + 1);
    built.dropped = Dropped { events: run.gaps(), ..built.dropped };
    if let (RunState::Failed, Some((RunEnd::Failed, reason))) = (built.state, run.end()) {
        built.reason = reason.map(str::to_owned);
    }
    built
}

impl RunView for ReplayedRun {
    fn description(&self) -> &RunDescription {
        self.run.description()
    }

    fn latest(&self) -> &Snapshot {
        &self.latest
    }

    fn history(&self, places: &[u32], series: Series, from_ms: u64, to_ms: u64) -> History {
        let every = self.run.len().div_ceil(HISTORY_MAX).max(1);
        let known = places.iter().filter(|place| **place < self.run.description().places);
        let mut history =
            History { series: known.map(|place| (*place, Vec::new())).collect(), ..History::default() };
        let mut builder = SnapshotBuilder::new(self.run.description());
        let (mut number, len) = (0, self.run.len());
        self.run.visit(0, len, |sample| {
            number += 1;
            if (number - 1) % every != 0 && number != len {
                return;
            }
            let snapshot = builder.build(sample.clone(), None);
            if (from_ms..=to_ms).contains(&snapshot.time_ms) {
                history.t.push(snapshot.time_ms);
                history.model_ms.extend(snapshot.power.map(|power| power.until_ms));
                history.chip_watt.extend(snapshot.power.map(|power| power.watt));
                for (place, values) in &mut history.series {
                    values.push(series.value(&snapshot, *place as usize));
                }
            }
        });
        history
    }

    fn output(&self, place: u32, after: u64) -> OutputView {
        let description = self.run.description();
        let keeps = PageLayout::new(description.places.max(1), 0).keeps_output();
        OutputView::of(self.run.output(place), after, keeps)
    }

    fn length(&self) -> Option<(u64, bool)> {
        Some((self.run.length_ms(), self.run.end().is_none()))
    }

    fn summary(&self) -> Option<Summary> {
        Some(ReplayedRun::summary(self))
    }

    fn at(&mut self, time_ms: u64) -> Option<Snapshot> {
        Some(snapshot(&self.run, time_ms))
    }
}
