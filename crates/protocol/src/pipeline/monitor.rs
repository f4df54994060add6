//! What stages cost, smoothed.

use super::partition::StageCosts;

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
