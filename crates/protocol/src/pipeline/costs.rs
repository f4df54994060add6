//! Costs of stages: given, or measured and smoothed.

use std::ops::Range;

/// Costs of the stages of a pipeline for one item, in any one unit of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageCosts {
    /// Cost of each stage.
    stages: Vec<u64>,
    /// `links[k]` is what each side pays to move an item from stage `k` to stage `k + 1` of another group.
    links: Vec<u64>,
    /// The most replicas of each stage; 1 for a stage that is not replicated.
    replicas_max: Vec<usize>,
}

impl StageCosts {
    /// Costs of `stages`, with links between groups that cost nothing.
    ///
    /// # Panics
    /// If there are no stages.
    pub fn new(stages: Vec<u64>) -> StageCosts {
        assert!(!stages.is_empty(), "a pipeline has at least one stage");
        let (links, replicas_max) = (vec![0; stages.len() - 1], vec![1; stages.len()]);
        StageCosts { stages, links, replicas_max }
    }

    /// The same stages, where both sides of link `k` pay `links[k]` for each item if stages `k` and `k + 1` are in
    /// different groups.
    ///
    /// # Panics
    /// If there is not one link for each two neighbours.
    pub fn with_links(self, links: Vec<u64>) -> StageCosts {
        assert_eq!(links.len() + 1, self.stages.len(), "there is a link between each two neighbours");
        StageCosts { links, ..self }
    }

    /// The same stages, of which stage `k` may run in up to `replicas_max[k]` replicas at once.
    ///
    /// # Panics
    /// If there is not one number for each stage, or one is 0.
    pub fn with_replicas(self, replicas_max: Vec<usize>) -> StageCosts {
        assert_eq!(replicas_max.len(), self.stages.len(), "there is a number of replicas for each stage");
        assert!(!replicas_max.contains(&0), "a stage has at least one replica");
        StageCosts { replicas_max, ..self }
    }

    /// The number of stages.
    pub fn stages(&self) -> usize {
        self.stages.len()
    }

    /// The most replicas of each stage.
    pub fn replicas_max(&self) -> &[usize] {
        &self.replicas_max
    }

    /// The most places that the stages can use: one for each replica.
    pub fn places_max(&self) -> usize {
        self.replicas_max.iter().fold(0, |sum, replicas| sum.saturating_add(*replicas))
    }

    /// The most replicas of a group: those that each of its stages allows.
    pub(crate) fn replicas_of_group(&self, group: Range<usize>) -> usize {
        self.replicas_max[group].iter().copied().min().unwrap_or(1)
    }

    /// Time between two items that leave a group of `replicas` replicas, rounded up.
    pub(crate) fn period_of_group(&self, group: Range<usize>, replicas: usize) -> u64 {
        self.of_group(group).div_ceil(replicas as u64)
    }

    /// Cost of one stage.
    pub fn of_stage(&self, stage: usize) -> u64 {
        self.stages[stage]
    }

    /// Cost of all stages on one core.
    pub fn total(&self) -> u64 {
        self.of_group(0..self.stages())
    }

    /// Cost of a group: its stages, and the links at both its ends.
    pub(crate) fn of_group(&self, group: Range<usize>) -> u64 {
        let enters = if group.start > 0 { self.links[group.start - 1] } else { 0 };
        let leaves = self.links.get(group.end - 1).copied().unwrap_or(0);
        let stages = self.stages[group].iter().fold(0_u64, |sum, cost| sum.saturating_add(*cost));
        stages.saturating_add(enters).saturating_add(leaves)
    }
}

/// The weight of a new measurement is one in this many.
const SMOOTHING: f64 = 8.0;

/// Mean cost of each stage of a pipeline, in which old measurements fade: exponential smoothing with weight 1/8.
#[derive(Clone, Debug)]
pub struct CostMonitor {
    means: Vec<Option<f64>>,
    replicas_max: Vec<usize>,
}

impl CostMonitor {
    /// A monitor of `stages` stages, none measured.
    pub fn new(stages: usize) -> CostMonitor {
        CostMonitor { means: vec![None; stages], replicas_max: vec![1; stages] }
    }

    /// The same monitor, whose costs say how often each stage may be replicated.
    pub fn with_replicas(self, replicas_max: Vec<usize>) -> CostMonitor {
        CostMonitor { replicas_max, ..self }
    }

    /// Takes in that `stage` took `cost` for one item. A measurement more than 8 times the mean counts as 8 times: a
    /// stage that was preempted says little about the stage.
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

    /// Takes over what another place has measured of `stage`.
    pub fn adopt(&mut self, stage: usize, mean: f64) {
        self.means[stage] = Some(mean);
    }

    /// The mean of each stage; `None` if it was never measured.
    pub fn means(&self) -> &[Option<f64>] {
        &self.means
    }

    /// The costs of all stages. One that was never measured has the mean of the others; if none was, all cost the same.
    pub fn costs(&self) -> StageCosts {
        let known: Vec<f64> = self.means.iter().flatten().copied().collect();
        let typical = if known.is_empty() { 1.0 } else { known.iter().sum::<f64>() / known.len() as f64 };
        let costs = self.means.iter().map(|mean| mean.unwrap_or(typical).round() as u64).collect();
        StageCosts::new(costs).with_replicas(self.replicas_max.clone())
    }
}
