//! What each place did of a run, and bars that show who did how much.
//!
//! Knows places, but no graph and no scores. Invariant: the shares are no part of the answer, which does not depend on
//! them.

use serde::Serialize;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// Cells of the longest bar.
pub(super) const CELLS: usize = 20;

/// What one place did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, serde::Deserialize)]
pub(super) struct PlaceWork {
    /// Sources that it took.
    pub(super) sources: u64,
    /// Seconds of this host that they took, waiting for a processor included.
    pub(super) seconds: f64,
}

impl PlaceWork {
    /// Adds a source that took from `started` until now.
    pub(super) fn add(&mut self, started: Instant) {
        self.sources += 1;
        self.seconds += started.elapsed().as_secs_f64();
    }
}

/// A bar for `value` beside others, the greatest of which is `most`; no blanks behind it.
pub(super) fn bar(value: f64, most: f64) -> String {
    let cells = if most > 0.0 { (value / most * CELLS as f64).round() as usize } else { 0 };
    "█".repeat(cells.min(CELLS))
}

/// A line for each place: its sources, their part of all, the time they took, and a bar of it. `elapsed` is that of all
/// sources.
pub(super) fn table(shares: &[PlaceWork], elapsed: Duration) -> String {
    let all: u64 = shares.iter().map(|share| share.sources).sum();
    let most = shares.iter().map(|share| share.seconds).fold(0.0, f64::max);
    let mut text =
        format!("{:>5}  {:>10}  {:>6}  {:>7}  {:>10}\n", "place", "sources", "share", "busy", "computing");
    for (place, PlaceWork { sources, seconds }) in shares.iter().enumerate() {
        let share = 100.0 * *sources as f64 / all.max(1) as f64;
        let busy = 100.0 * seconds / elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
        let line = format!(
            "{place:>5}  {sources:>10}  {share:>4.1} %  {busy:>5.1} %  {:>10}  {}",
            crate::frame::duration(*seconds),
            bar(*seconds, most)
        );
        let _ = writeln!(text, "{}", line.trim_end()); // a string takes all
    }
    text
}
