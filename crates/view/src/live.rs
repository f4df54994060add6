//! A run observed while it runs.
//!
//! It reads the counters on request and never contacts the run. Invariant: the last values remain after any end of the
//! run.

use super::{
    History, HistoryRing, OutputView, ReplayedRun, RunState, RunView, Series, Snapshot, SnapshotBuilder,
    Summary,
};
use isles_telemetry::RunDescription;
use isles_telemetry::{DirectoryError, ObserverLink};
use isles_telemetry::{PageError, PagesReader};
use std::fmt;
use std::path::{Path, PathBuf};

/// Reason shown when the first process has disappeared.
const GONE: &str = "the first process of the run is gone without reporting how the run ended";

/// Reason why a run cannot be observed.
#[derive(Debug)]
pub enum WatchError {
    /// There is no run.
    Directory(DirectoryError),
    /// Its counters cannot be read.
    Page(PageError),
}

impl fmt::Display for WatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WatchError::Directory(error) => error.fmt(f),
            WatchError::Page(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for WatchError {}

/// A run that runs.
#[derive(Debug)]
pub struct LiveRun {
    directory: PathBuf,
    link: ObserverLink,
    reader: PagesReader,
    builder: SnapshotBuilder,
    history: HistoryRing,
    latest: Snapshot,
}

impl LiveRun {
    /// Connects to the run in `directory`, and reads it for the first time.
    ///
    /// # Errors
    /// There is none, or it is of another version.
    pub fn connect(directory: &Path) -> Result<LiveRun, WatchError> {
        let (link, file) = ObserverLink::connect(directory).map_err(WatchError::Directory)?;
        let mut reader = PagesReader::open(file).map_err(WatchError::Page)?;
        let description = link.description();
        let mut builder = SnapshotBuilder::new(description);
        let mut history = HistoryRing::new(description.places);
        let latest = builder.build(reader.read().map_err(WatchError::Page)?, None);
        history.push(&latest);
        Ok(LiveRun { directory: directory.to_owned(), link, reader, builder, history, latest })
    }

    /// Reads the run again. Once the run is over, nothing changes.
    ///
    /// # Errors
    /// A read failed.
    pub fn refresh(&mut self) -> Result<&Snapshot, WatchError> {
        if !self.is_over() {
            // The order matters: values read after the end of the connection are the last ones written.
            let is_alive = self.link.is_alive();
            let sample = self.reader.read().map_err(WatchError::Page)?;
            self.latest = self.builder.build(sample, (!is_alive).then_some(GONE));
            self.history.push(&self.latest);
        }
        Ok(&self.latest)
    }

    /// The log of the run, if it is over.
    fn replayed(&self) -> Option<ReplayedRun> {
        // The end of a run is visible shortly before its log is complete; the log of a killed run never is.
        let is_whole =
            |run: &ReplayedRun| run.recorded().end().is_some() || self.latest.state == RunState::Unknown;
        self.is_over().then(|| ReplayedRun::open(&self.directory).ok()).flatten().filter(is_whole)
    }

    /// Returns `true` if the run is over.
    pub fn is_over(&self) -> bool {
        self.latest.state != RunState::Running
    }
}

impl RunView for LiveRun {
    fn description(&self) -> &RunDescription {
        self.link.description()
    }

    fn latest(&self) -> &Snapshot {
        &self.latest
    }

    fn history(&self, places: &[u32], series: Series, from_ms: u64, to_ms: u64) -> History {
        self.history.query(places, series, from_ms, to_ms)
    }

    fn output(&self, place: u32, after: u64) -> OutputView {
        // If the log cannot be read, nothing is shown; the next poll reports why.
        let lines = self.reader.output(place, after).unwrap_or_default();
        OutputView::of(&lines, after, self.reader.keeps_output())
    }

    fn length(&self) -> Option<(u64, bool)> {
        None
    }

    /// From the log of the run, which is over.
    fn summary(&self) -> Option<Summary> {
        self.replayed().map(|run| run.summary())
    }

    fn at(&mut self, time_ms: u64) -> Option<Snapshot> {
        self.replayed()?.at(time_ms)
    }
}
