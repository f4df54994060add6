//! The report of a pipeline.

use serde::Serialize;
use std::time::Duration;

/// Report of a whole run of a pipeline.
#[derive(Clone, Debug, Serialize)]
pub struct PipelineReport {
    /// Results that left the last stage.
    pub items: u64,
    /// From the start of the first groups to the last result.
    pub elapsed: Duration,
    /// The mean time between two results at the end, with weight 1/8 for each new one.
    pub period: Duration,
    /// The changes of groups, in order, without those that a death forced.
    pub resizes: Vec<Resize>,
    /// The stages, in order, as they ran at the end.
    pub stages: Vec<StageReport>,
    /// Bytes of states that moved between places.
    pub moved_bytes: u64,
    /// Places that died and that the pipeline went on without.
    pub lost_places: usize,
}

/// A change of the groups of a pipeline.
#[derive(Clone, Debug, Serialize)]
pub struct Resize {
    /// The first item that went by the new groups.
    pub item: u64,
    /// The number of groups before, in which each replica counts.
    pub from: usize,
    /// The number of groups after, in which each replica counts.
    pub to: usize,
    /// Between the last result before the change and the first after it; `None` if there was no item on one side.
    pub pause: Option<Duration>,
    /// The mean time between two results when the change began.
    pub period: Duration,
}

/// A stage at the end of a run.
#[derive(Clone, Debug, Serialize)]
pub struct StageReport {
    /// Its name.
    pub name: &'static str,
    /// The numbers of its places: one for each replica.
    pub places: Vec<usize>,
    /// Its mean time for an item; `None` if it has handled none.
    pub cost: Option<Duration>,
    /// Bytes of its state when it was last saved; `None` if it has none.
    pub state_bytes: Option<usize>,
}
