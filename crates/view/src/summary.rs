//! The summary of a finished run, from its log.
//!
//! One pass over all samples. Invariant: a share is of the whole run, by each place's own clock on a modelled chip.

use super::{PowerView, ReplayedRun, RunState, RunView, SnapshotBuilder, WarningKind};
use isles_telemetry::{CounterId, OutputStream, PlaceSample, Sample};
use serde::Serialize;
use std::collections::BTreeMap;

/// Most lines of a result that are shown: the last ones.
const RESULT_LINES_MAX: usize = 200;

/// A kind of warning that occurred, with its number of places and last text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PastWarning {
    /// Kind of the warning.
    pub kind: WarningKind,
    /// The place where it was last.
    pub place: u32,
    /// Number of places at which it was.
    pub places: u32,
    /// Text of the last such warning.
    pub text: String,
}

/// Summary of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// State in which it ended.
    pub state: RunState,
    /// The reason, if it failed.
    pub reason: Option<String>,
    /// Its time in milliseconds.
    pub time_ms: u64,
    /// The same in modelled time, on a chip.
    pub model_ms: Option<f64>,
    /// Energy, and mean power, of a chip.
    pub power: Option<PowerView>,
    /// Tasks that have ended.
    pub tasks: u64,
    /// Messages sent.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Share of the run in which each place did not wait, from 0 to 1.
    pub busy: Vec<f64>,
    /// Number of tasks that have ended at each place.
    pub place_tasks: Vec<u64>,
    /// Warnings that occurred, by kind.
    pub warnings: Vec<PastWarning>,
    /// The lines of the result, if the program has printed any.
    pub result: Vec<String>,
    /// The time of the last snapshot in which the run was working.
    pub working_ms: u64,
}

impl ReplayedRun {
    /// Returns the summary of the run, as far as its log goes.
    pub fn summary(&self) -> Summary {
        let run = self.recorded();
        let mut builder = SnapshotBuilder::new(run.description());
        let (mut last, mut working_ms) = (Sample::default(), 0);
        let mut warnings: BTreeMap<WarningKind, (Vec<u32>, String)> = BTreeMap::new();
        run.visit(0, run.len(), |sample| {
            let snapshot = builder.build(sample.clone(), None);
            if snapshot.state == RunState::Running && snapshot.places.busy.iter().sum::<f64>() > 0.0 {
                working_ms = snapshot.time_ms;
            }
            for warning in snapshot.warnings {
                let (places, text) = warnings.entry(warning.kind).or_default();
                places.retain(|place| *place != warning.place);
                places.push(warning.place);
                *text = warning.text;
            }
            last.clone_from(sample);
        });
        let warning = |(kind, (places, text)): (WarningKind, (Vec<u32>, String))| PastWarning {
            kind,
            place: places.last().copied().unwrap_or_default(),
            places: places.len() as u32,
            text,
        };
        let is_modelled = run.description().is_modelled();
        let total = |counter: CounterId| last.places.iter().map(|place| place.value(counter)).sum();
        let result = run.output(0).iter().filter(|line| line.stream == OutputStream::Result);
        let result: Vec<String> = result.map(|line| line.text.clone()).collect();
        Summary {
            state: self.latest().state,
            reason: self.latest().reason.clone(),
            time_ms: last.time_ms,
            model_ms: is_modelled.then_some(last.model_ns as f64 / 1e6),
            power: self
                .latest()
                .power
                .filter(|power| power.until_ms > 0.0)
                .map(|power| PowerView { watt: power.joule / power.until_ms * 1e3, ..power }),
            tasks: total(CounterId::Tasks),
            messages: total(CounterId::MessagesSent),
            bytes: total(CounterId::BytesSent),
            busy: last.places.iter().map(|place| share(place, is_modelled, last.time_ms)).collect(),
            place_tasks: last.places.iter().map(|place| place.value(CounterId::Tasks)).collect(),
            warnings: warnings.into_iter().map(warning).collect(),
            result: result[result.len().saturating_sub(RESULT_LINES_MAX)..].to_vec(),
            working_ms,
        }
    }
}

/// The share of the whole run in which a place did not wait.
fn share(place: &PlaceSample, is_modelled: bool, time_ms: u64) -> f64 {
    let passed = if is_modelled { place.at_ns } else { place.at_ns.max(time_ms * 1_000_000) };
    (place.value(CounterId::BusyTime) as f64 / passed.max(1) as f64).clamp(0.0, 1.0)
}
