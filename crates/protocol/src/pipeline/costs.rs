//! Costs of stages: given, or measured and smoothed.

use std::ops::Range;

/// Costs of the stages of a pipeline for one item, in any one unit of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageCosts {
    /// Cost of each stage.
    stages: Vec<u64>,
    /// `links[k]` is the cost to each side of moving an item from stage `k` to stage `k + 1` in another group.
    links: Vec<u64>,
    /// Largest number of replicas of each stage; 1 for a stage that cannot be replicated.
    replicas_max: Vec<usize>,
}

impl StageCosts {
    /// Makes the costs of `stages`, with free links between groups.
    ///
    /// # Panics
    /// If there are no stages.
    pub fn new(stages: Vec<u64>) -> StageCosts {
        assert!(!stages.is_empty(), "a pipeline has at least one stage");
        let (links, replicas_max) = (vec![0; stages.len() - 1], vec![1; stages.len()]);
        StageCosts { stages, links, replicas_max }
    }

    /// Returns the same stages, with links between groups: both sides of link `k` pay `links[k]` for each item if
    /// stages `k` and `k + 1` are in different groups.
    ///
    /// # Panics
    /// If there is not one link between each two neighbours.
    pub fn with_links(self, links: Vec<u64>) -> StageCosts {
        assert_eq!(links.len() + 1, self.stages.len(), "there is a link between each two neighbours");
        StageCosts { links, ..self }
    }

    /// Returns the same stages, of which stage `k` may run in up to `replicas_max[k]` replicas at once.
    ///
    /// # Panics
    /// If there is not one number for each stage, or one is 0.
    pub fn with_replicas(self, replicas_max: Vec<usize>) -> StageCosts {
        assert_eq!(replicas_max.len(), self.stages.len(), "there is a number of replicas for each stage");
        assert!(!replicas_max.contains(&0), "a stage has at least one replica");
        StageCosts { replicas_max, ..self }
    }

    /// Returns the number of stages.
    pub fn stages(&self) -> usize {
        self.stages.len()
    }

    /// Returns the largest number of replicas of each stage.
    pub fn replicas_max(&self) -> &[usize] {
        &self.replicas_max
    }

    /// Returns the largest number of places that the stages can use: one for each replica.
    pub fn places_max(&self) -> usize {
        self.replicas_max.iter().fold(0, |sum, replicas| sum.saturating_add(*replicas))
    }

    /// Returns the largest number of replicas of a group, which each of its stages allows.
    pub(crate) fn replicas_of_group(&self, group: Range<usize>) -> usize {
        self.replicas_max[group].iter().copied().min().unwrap_or(1)
    }

    /// Returns the time between two items that leave a group of `replicas` replicas, rounded up.
    pub(crate) fn period_of_group(&self, group: Range<usize>, replicas: usize) -> u64 {
        self.of_group(group).div_ceil(replicas as u64)
    }

    /// Returns the cost of one stage.
    pub fn of_stage(&self, stage: usize) -> u64 {
        self.stages[stage]
    }

    /// Returns the cost of all stages on one core.
    pub fn total(&self) -> u64 {
        self.of_group(0..self.stages())
    }

    /// Returns the cost of a group: its stages, and the links at both its ends.
    pub(crate) fn of_group(&self, group: Range<usize>) -> u64 {
        let enters = if group.start > 0 { self.links[group.start - 1] } else { 0 };
        let leaves = self.links.get(group.end - 1).copied().unwrap_or(0);
        let stages = self.stages[group].iter().fold(0_u64, |sum, cost| sum.saturating_add(*cost));
        stages.saturating_add(enters).saturating_add(leaves)
    }
}

/// Reciprocal of the weight of a new measurement.
const SMOOTHING: f64 = 8.0;

/// Mean cost of each stage of a pipeline, by exponential smoothing with weight 1/8.
#[derive(Clone, Debug)]
pub struct CostMonitor {
    means: Vec<Option<f64>>,
    replicas_max: Vec<usize>,
}

impl CostMonitor {
    /// Makes a monitor of `stages` stages, none measured.
    pub fn new(stages: usize) -> CostMonitor {
        CostMonitor { means: vec![None; stages], replicas_max: vec![1; stages] }
    }

    /// Returns the same monitor, whose costs allow these numbers of replicas of each stage.
    pub fn with_replicas(self, replicas_max: Vec<usize>) -> CostMonitor {
        CostMonitor { replicas_max, ..self }
    }

    /// Records that `stage` took `cost` for one item. A measurement of more than 8 times the mean counts as 8 times: it
    /// says more about preemption than about the stage.
    pub fn measured(&mut self, stage: usize, cost: u64) {
        let mean = &mut self.means[stage];
        *mean = Some(match *mean {
            None => cost as f64,
            Some(mean) => {
                let bounded = (cost as f64).min(8.0 * mean.max(1.0));
                mean + (bounded - mean) / SMOOTHING
            }
        });
    }

    /// Adopts the mean that another place has measured for `stage`.
    pub fn adopt(&mut self, stage: usize, mean: f64) {
        self.means[stage] = Some(mean);
    }

    /// Returns the mean of each stage; `None` if it was never measured.
    pub fn means(&self) -> &[Option<f64>] {
        &self.means
    }

    /// Returns the costs of all stages. An unmeasured stage gets the mean of the others; if none was measured, all are
    /// equal.
    pub fn costs(&self) -> StageCosts {
        let known: Vec<f64> = self.means.iter().flatten().copied().collect();
        let typical = if known.is_empty() { 1.0 } else { known.iter().sum::<f64>() / known.len() as f64 };
        let costs = self.means.iter().map(|mean| mean.unwrap_or(typical).round() as u64).collect();
        StageCosts::new(costs).with_replicas(self.replicas_max.clone())
    }
}
