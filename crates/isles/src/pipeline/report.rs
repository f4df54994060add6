//! The report of a pipeline.

use serde::Serialize;
use std::time::Duration;

/// Report of a run of a pipeline.
#[derive(Clone, Debug, Serialize)]
pub struct PipelineReport {
    /// Results that left the last stage.
    pub items: u64,
    /// Time from the start of the first groups to the last result.
    pub elapsed: Duration,
    /// Moving average of the time between two results at the end, with weight 1/8 for each new one.
    pub period: Duration,
    /// The changes of groups, in order, except those after a death.
    pub resizes: Vec<Resize>,
    /// The stages at the end of the run, in order.
    pub stages: Vec<StageReport>,
    /// Bytes of states that moved between places.
    pub moved_bytes: u64,
    /// Number of dead places that the pipeline has recovered from.
    pub lost_places: usize,
}

/// A change of the groups of a pipeline.
#[derive(Clone, Debug, Serialize)]
pub struct Resize {
    /// The first item that the new groups processed.
    pub item: u64,
    /// Number of groups before, counting each replica.
    pub from: usize,
    /// Number of groups after, counting each replica.
    pub to: usize,
    /// Time between the last result before the change and the first after it; `None` if there is no result on one side.
    pub pause: Option<Duration>,
    /// Average time between two results when the change took effect.
    pub period: Duration,
}

/// A stage at the end of a run.
#[derive(Clone, Debug, Serialize)]
pub struct StageReport {
    /// Name of the stage.
    pub name: &'static str,
    /// Places that ran it, one for each replica.
    pub places: Vec<usize>,
    /// Average time for an item; `None` if it was not measured.
    pub cost: Option<Duration>,
    /// Size of its state when it was last saved, in bytes; `None` if it has no saved state.
    pub state_bytes: Option<usize>,
}
