//! The options of a pipeline.

use super::misused;
use crate::Result;
use crate::prelude::*;
use isles_protocol::pipeline::{Partition, StageCosts};

/// Default of [`Options::state_bytes_max`]: 38 KiB, after the worst case of J. Jahn et al., "Malleable Software
/// Pipelines", section III.
pub const STATE_BYTES_MAX: usize = 38 * 1024;

/// Options of a pipeline. The default uses all places that the stages can use, queues of 4 items, and no checkpoints.
#[derive(Clone, Debug)]
pub struct Options {
    /// Number of places at the start; `None` for as many as the stages can use.
    pub cores: Option<usize>,
    /// Places that the pipeline may use, in order of preference; `None` for all.
    pub places: Option<Vec<Place>>,
    /// Capacity of the queue of each group in items, and maximum number of changes in progress when an item enters; 1
    /// to 2^20.
    pub queue: usize,
    /// Costs of the stages, if known beforehand; otherwise the first groups have equal numbers of stages.
    pub costs: Option<StageCosts>,
    /// Maximum size of the state of a stage in bytes.
    pub state_bytes_max: usize,
    /// Number of items between two checkpoints, 1 or more, so that the pipeline survives the death of a place. Any
    /// number will do if no stage has a state. With `None`, a death ends the pipeline.
    pub checkpoint: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            cores: None,
            places: None,
            queue: 4,
            costs: None,
            state_bytes_max: STATE_BYTES_MAX,
            checkpoint: None,
        }
    }
}

impl Options {
    /// Returns the default options for `cores` places.
    pub fn on(cores: usize) -> Options {
        Options { cores: Some(cores), ..Options::default() }
    }

    /// Returns the places that the pipeline may use.
    pub(super) fn usable_places(&self) -> Vec<Place> {
        self.places.clone().unwrap_or_else(|| places().collect())
    }

    /// Returns the number of places at the start.
    pub(super) fn cores(&self, costs: &StageCosts) -> usize {
        self.cores.unwrap_or(self.usable_places().len().min(costs.places_max()))
    }

    /// Checks the options and returns the first partition, which assumes `costs` until the stages are measured.
    pub(super) fn check(&self, costs: StageCosts) -> Result<Partition> {
        let stages = costs.stages();
        if !(1..=1 << 20).contains(&self.queue) {
            return Err(misused(format!("the queue of a group is {}; allowed: 1 to 1048576", self.queue)));
        }
        if self.checkpoint == Some(0) {
            return Err(misused("a checkpoint after every 0 items; allowed: 1 or more".to_owned()));
        }
        let usable = self.usable_places();
        check_places(&usable)?;
        if let Some(costs) = self.costs.as_ref().filter(|costs| costs.stages() != stages) {
            return Err(misused(format!(
                "the costs cover {} stages, but the pipeline has {stages}",
                costs.stages()
            )));
        }
        let cores = self.cores(&costs);
        check_cores(cores, usable.len(), &costs)?;
        let known = self.costs.clone().map(|known| known.with_replicas(costs.replicas_max().to_vec()));
        Ok(Partition::optimal(&known.unwrap_or(costs), cores))
    }
}

/// Checks that the places are not empty and have no duplicates.
pub(super) fn check_places(places: &[Place]) -> Result<()> {
    let is_twice = |(index, place): (usize, &Place)| places[..index].contains(place);
    if places.is_empty() || places.iter().enumerate().any(is_twice) {
        let text = "the places of the pipeline are none or repeated; allowed: at least one, each once";
        return Err(misused(text.to_owned()));
    }
    Ok(())
}

/// Checks that a pipeline can run on `cores` of `places` places.
pub(super) fn check_cores(cores: usize, places: usize, costs: &StageCosts) -> Result<()> {
    let (stages, replicas) = (costs.stages(), costs.places_max());
    let most = places.min(replicas);
    if (1..=most).contains(&cores) {
        return Ok(());
    }
    let in_replicas = if replicas > stages { format!(" in {replicas} replicas") } else { String::new() };
    let text = format!(
        "a pipeline on {cores} cores; allowed: 1 to {most}, for {stages} stages{in_replicas} and {places} places"
    );
    Err(misused(text))
}
