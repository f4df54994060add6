//! Division of cores among pipelines: by the speed-up functions of all, or only by those of neighbours.

use std::fmt;

/// Demand of a pipeline for cores.
#[derive(Clone, Debug, PartialEq)]
pub struct Demand {
    /// The speed-up with 1, 2, .. cores, up to the number of cores that the pipeline can use. A pipeline without any
    /// gets one core, like the others, and counts as no faster for it.
    pub speed_ups: Vec<f64>,
    /// The speed-up needed to meet its deadline; 0 if it has none.
    pub needed: f64,
}

impl Demand {
    /// Makes the demand of a pipeline without a deadline.
    pub fn new(speed_ups: Vec<f64>) -> Demand {
        Demand { speed_ups, needed: 0.0 }
    }

    fn speed_up(&self, cores: usize) -> f64 {
        let used = cores.min(self.speed_ups.len());
        used.checked_sub(1).map_or(0.0, |last| self.speed_ups[last])
    }

    /// Returns its speed-up as a fraction of its best one.
    fn satisfaction(&self, cores: usize) -> f64 {
        if self.speed_ups.is_empty() {
            return 1.0;
        }
        self.speed_up(cores) / self.speed_ups.iter().copied().fold(f64::MIN_POSITIVE, f64::max)
    }

    /// Returns its speed-up as a fraction of the needed one, at most 1.
    fn deadline_share(&self, cores: usize) -> f64 {
        if self.needed > 0.0 { (self.speed_up(cores) / self.needed).min(1.0) } else { 1.0 }
    }
}

/// Goal of a division of cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Objective {
    /// The greatest sum of speed-ups.
    #[default]
    Throughput,
    /// The largest fraction of its own best speed-up for the worst-off pipeline; then the greatest sum.
    Fairness,
    /// The least distance from its deadline for the pipeline furthest from it; then the greatest sum.
    Deadline,
}

impl Objective {
    /// Returns the rank of a pipeline with this many cores among the worst-off; the same for all if only the sum
    /// counts.
    fn worst(self, demand: &Demand, cores: usize) -> f64 {
        match self {
            Objective::Throughput => 1.0,
            Objective::Fairness => demand.satisfaction(cores),
            Objective::Deadline => demand.deadline_share(cores),
        }
    }

    /// Returns the value of a division: the result for the worst-off pipeline, and the sum of the speed-ups. The
    /// greater pair, in this order, is better.
    pub fn value(self, demands: &[Demand], cores: &[usize]) -> (f64, f64) {
        let pairs = || demands.iter().zip(cores.iter().copied());
        let worst = pairs().map(|(demand, cores)| self.worst(demand, cores)).fold(1.0, f64::min);
        (worst, pairs().map(|(demand, cores)| demand.speed_up(cores)).sum())
    }
}

/// Reason why cores cannot be divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DivisionFault {
    /// Number of pipelines.
    pub pipelines: usize,
    /// Number of cores, of which each pipeline needs one.
    pub cores: usize,
}

impl fmt::Display for DivisionFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} pipelines cannot share {} cores: each needs at least one", self.pipelines, self.cores)
    }
}

impl std::error::Error for DivisionFault {}

/// Divides `cores` among pipelines whose speed-up functions are all known; returns the cores of each, at least one.
/// Cores that no pipeline can use are left over.
///
/// Exact: dynamic programming over (pipelines, cores) finds the best result for the worst-off pipeline, and then, among
/// the divisions that reach it, the greatest sum. O(pipelines · cores²), twice.
///
/// # Errors
/// There are fewer cores than pipelines.
pub fn divide(demands: &[Demand], cores: usize, objective: Objective) -> Result<Vec<usize>, DivisionFault> {
    if demands.len() > cores {
        return Err(DivisionFault { pipelines: demands.len(), cores });
    }
    let worst = |demand: &Demand, cores| Some(objective.worst(demand, cores));
    let best = best_division(demands, cores, 1.0, f64::min, worst);
    let (floor, _) = objective.value(demands, &best);
    let sum =
        |demand: &Demand, cores| (objective.worst(demand, cores) >= floor).then(|| demand.speed_up(cores));
    Ok(best_division(demands, cores, 0.0, |one, other| one + other, sum))
}

/// Returns the division of greatest value, combined over all pipelines; a pipeline of value `None` does not take that
/// number of cores. Among equal ones, one that gives the first pipelines least.
fn best_division(
    demands: &[Demand],
    cores: usize,
    nothing: f64,
    combine: impl Fn(f64, f64) -> f64,
    value: impl Fn(&Demand, usize) -> Option<f64>,
) -> Vec<usize> {
    // rest[cores]: the best value of the pipelines from here on with at most that number of cores, and the cores of the
    // first.
    let mut rest: Vec<Option<(f64, usize)>> = vec![Some((nothing, 0)); cores + 1];
    let mut tables = Vec::new();
    for demand in demands.iter().rev() {
        let choose = |all: usize| {
            let mut best: Option<(f64, usize)> = None;
            for own in 1..=all.min(demand.speed_ups.len().max(1)) {
                let (Some((rest, _)), Some(value)) = (rest[all - own], value(demand, own)) else { continue };
                let combined = combine(value, rest);
                if best.is_none_or(|(best, _)| combined > best) {
                    best = Some((combined, own));
                }
            }
            best
        };
        rest = (0..=cores).map(choose).collect();
        tables.push(rest.clone());
    }
    let mut left = cores;
    let owns = tables.iter().rev().map(|table| {
        let (_, own) = table[left].expect("each pipeline has a core");
        left -= own;
        own
    });
    owns.collect()
}

/// Runs one round in which pipelines know only their neighbours: each two, in order, divide the cores of both again if
/// that is better for them. Returns whether anything changed; repeating it until nothing changes terminates.
///
/// With two pipelines this is [`divide`]. With more it may reach less, because pipelines that are not neighbours cannot
/// give to each other directly.
pub fn exchange(demands: &[Demand], cores: &mut [usize], objective: Objective) -> bool {
    let mut has_changed = false;
    for left in 0..demands.len().saturating_sub(1) {
        let pair = &demands[left..left + 2];
        let own = [cores[left], cores[left + 1]];
        let Ok(divided) = divide(pair, own[0] + own[1], objective) else { continue };
        let (before, after) = (objective.value(pair, &own), objective.value(pair, &divided));
        if after.partial_cmp(&before).is_some_and(|order| order.is_gt()) {
            cores[left..left + 2].copy_from_slice(&divided);
            has_changed = true;
        }
    }
    has_changed
}
