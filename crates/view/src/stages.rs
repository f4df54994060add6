//! The stages of the pipelines of a run, with place, rate and queue of each.
//!
//! Places report their groups of stages as lines; the newest report of each group that has not ended counts. A dead
//! place reports no end, so of two groups with the same stage only the one of the later epoch counts.

use super::RunView;
use isles_telemetry::{OutputStream, StageSample};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A stage of a pipeline at one of its places.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageView {
    /// Number of the pipeline among the known ones, in order of their starts.
    pub pipeline: u64,
    /// Number of the stage, from 0.
    pub stage: u32,
    /// Its name.
    pub name: String,
    /// Number of the place.
    pub place: u32,
    /// Items that its group has passed on in a second.
    pub items_per_s: f64,
    /// Items that wait before its group.
    pub waiting: u64,
    /// Items that the queue before its group can hold.
    pub queue: u64,
    /// Time of the report, in milliseconds since the run began.
    pub time_ms: u64,
}

/// The stages of all pipelines of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StagesView {
    /// Stages that run, by pipeline, stage and place.
    pub stages: Vec<StageView>,
    /// `true` if a pipeline has ever reported stages, as far as lines are kept.
    pub reported: bool,
}

/// Returns the stages that ran at `until_ms`, in milliseconds since the run began.
pub fn stages_of(view: &dyn RunView, until_ms: u64) -> StagesView {
    let (mut groups, mut starts, mut reported) = (Vec::new(), BTreeSet::new(), false);
    let mut epochs: BTreeMap<(u64, u32), u64> = BTreeMap::new();
    for place in 0..view.description().places {
        // A place runs one group of a pipeline; while groups change, that of the later epoch counts.
        let mut newest: BTreeMap<u64, (StageSample, u64)> = BTreeMap::new();
        for line in view.output(place, 0).lines {
            if line.stream != OutputStream::Stages {
                continue;
            }
            reported = true;
            if line.time_ms > until_ms {
                continue;
            }
            let Some(sample) = StageSample::of_line(&line.text) else { continue };
            let known = newest.get(&sample.pipeline).map_or(0, |(known, _)| known.epoch);
            if sample.epoch >= known {
                newest.insert(sample.pipeline, (sample, line.time_ms));
            }
        }
        for (pipeline, (sample, time_ms)) in newest {
            starts.insert(pipeline);
            let StageSample { epoch, first, items_per_s, waiting, queue, names, .. } = sample;
            for (stage, name) in (first..).zip(names) {
                let latest = epochs.entry((pipeline, stage)).or_default();
                *latest = epoch.max(*latest);
                let view = StageView { pipeline, stage, name, place, items_per_s, waiting, queue, time_ms };
                groups.push((epoch, view));
            }
        }
    }
    let is_latest = |(epoch, view): &(u64, StageView)| epochs[&(view.pipeline, view.stage)] == *epoch;
    let mut stages: Vec<StageView> = groups.into_iter().filter(is_latest).map(|(_, view)| view).collect();
    for stage in &mut stages {
        stage.pipeline = starts.range(..stage.pipeline).count() as u64;
    }
    stages.sort_by_key(|stage: &StageView| (stage.pipeline, stage.stage, stage.place));
    StagesView { stages, reported }
}
