//! Costs of stages: given, or measured and smoothed.

use std::ops::Range;

/// Costs of the stages of a pipeline for one item, in any one unit of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageCosts {
    /// Cost of each stage.
    stages: Vec<u64>,
    /// `links[k]` is what each side pays to move an item from stage `k` to stage `k + 1` of another group.
    links: Vec<u64>,
}

impl StageCosts {
    /// Costs of `stages`, with links between groups that cost nothing.
    ///
    /// # Panics
    /// If there are no stages.
    pub fn new(stages: Vec<u64>) -> StageCosts {
        assert!(!stages.is_empty(), "a pipeline has at least one stage");
        let links = vec![0; stages.len() - 1];
        StageCosts { stages, links }
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

    /// The number of stages.
    pub fn stages(&self) -> usize {
        self.stages.len()
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
    pub fn of_group(&self, group: Range<usize>) -> u64 {
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
}

impl CostMonitor {
    /// A monitor of `stages` stages, none measured.
    pub fn new(stages: usize) -> CostMonitor {
        CostMonitor { means: vec![None; stages] }
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
        StageCosts::new(self.means.iter().map(|mean| mean.unwrap_or(typical).round() as u64).collect())
    }
}
