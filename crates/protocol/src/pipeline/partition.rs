//! Groups of consecutive stages: the best ones for a number of cores, changes of one group, and the places of all.

use super::costs::StageCosts;
use std::cmp::Reverse;
use std::ops::Range;

/// The stages of a pipeline, cut into groups of neighbours.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Partition {
    /// One past the last stage of each group: increasing, and the last one is the number of stages.
    ends: Vec<usize>,
}

impl Partition {
    /// All `stages` in one group.
    ///
    /// # Panics
    /// If there are no stages.
    pub fn one_group(stages: usize) -> Partition {
        Partition::of_ends(vec![stages])
    }

    /// Groups that end before the stages `ends`, the last of which is the number of stages.
    ///
    /// # Panics
    /// If the ends do not increase, or there are none.
    pub fn of_ends(ends: Vec<usize>) -> Partition {
        assert!(ends.first().is_some_and(|first| *first > 0), "a group has at least one stage");
        assert!(ends.is_sorted_by(|one, next| one < next), "groups are in order: {ends:?}");
        Partition { ends }
    }

    /// The partition into at most `cores` groups whose slowest group is fastest; of several, one of most groups.
    ///
    /// Dynamic programming over (groups, stages), O(cores · stages²).
    ///
    /// # Panics
    /// If `cores` is 0.
    pub fn optimal(costs: &StageCosts, cores: usize) -> Partition {
        assert!(cores > 0, "a pipeline runs on at least one core");
        let stages = costs.stages();
        // best[end]: the slowest of the groups of the stages before `end`, and where the last of them starts.
        let mut best: Vec<Option<(u64, usize)>> =
            (0..=stages).map(|end| (end > 0).then(|| (costs.of_group(0..end), 0))).collect();
        let mut tables = vec![best.clone()];
        for groups in 2..=cores.min(stages) {
            best = (0..=stages).map(|end| best_last_group(costs, &best, groups, end)).collect();
            tables.push(best.clone());
        }
        let slowest = |table: &Vec<Option<(u64, usize)>>| table[stages].expect("there are enough stages").0;
        let groups =
            (1..=tables.len()).rev().min_by_key(|groups| slowest(&tables[groups - 1])).expect("one group");
        let mut ends = vec![stages];
        for table in tables[1..groups].iter().rev() {
            let (_, start) = table[ends[ends.len() - 1]].expect("the table above has used it");
            ends.push(start);
        }
        ends.reverse();
        Partition { ends }
    }

    /// The number of groups.
    pub fn groups(&self) -> usize {
        self.ends.len()
    }

    /// The number of stages.
    pub fn stages(&self) -> usize {
        self.ends[self.ends.len() - 1]
    }

    /// One past the last stage of each group.
    pub fn ends(&self) -> &[usize] {
        &self.ends
    }

    /// The stages of a group.
    pub fn group(&self, group: usize) -> Range<usize> {
        let start = if group == 0 { 0 } else { self.ends[group - 1] };
        start..self.ends[group]
    }

    /// All groups, in order.
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        (0..self.groups()).map(|group| self.group(group))
    }

    /// The group of a stage.
    pub fn group_of(&self, stage: usize) -> usize {
        self.ends.partition_point(|end| *end <= stage)
    }

    /// Cost of the slowest group: the time between two items once the pipeline is full.
    pub fn bottleneck(&self, costs: &StageCosts) -> u64 {
        self.ranges().map(|group| costs.of_group(group)).max().expect("there is at least one group")
    }

    /// Returns the throughput relative to one core, in the stable state.
    pub fn speed_up(&self, costs: &StageCosts) -> f64 {
        costs.total() as f64 / self.bottleneck(costs).max(1) as f64
    }

    /// This partition with two neighbouring groups fused: those after which the slowest group is fastest. `None` if
    /// there is one group only.
    ///
    /// Of several fusions that leave the same slowest group, the one of least cost; then the first.
    pub fn fused(&self, costs: &StageCosts) -> Option<Partition> {
        let fusions = (0..self.groups() - 1).map(|left| {
            let mut ends = self.ends().to_vec();
            ends.remove(left);
            let fused = Partition::of_ends(ends);
            let cost = costs.of_group(fused.group(left));
            (fused.bottleneck(costs), cost, left, fused)
        });
        fusions.min_by_key(|(slowest, cost, left, _)| (*slowest, *cost, *left)).map(|(.., fused)| fused)
    }

    /// This partition with one group split in two: the fission after which the slowest group is fastest. `None` if no
    /// group has two stages.
    ///
    /// Of several that leave the same slowest group, as when another group is slowest, the one that splits the
    /// costliest group; then the most even one.
    pub fn split(&self, costs: &StageCosts) -> Option<Partition> {
        let cuts = (1..self.stages()).filter(|cut| !self.ends().contains(cut));
        let fissions = cuts.map(|cut| {
            let group = self.group_of(cut);
            let before = costs.of_group(self.group(group));
            let mut ends = self.ends().to_vec();
            ends.insert(group, cut);
            let split = Partition::of_ends(ends);
            let larger = costs.of_group(split.group(group)).max(costs.of_group(split.group(group + 1)));
            ((split.bottleneck(costs), Reverse(before), larger, cut), split)
        });
        fissions.min_by_key(|(order, _)| *order).map(|(_, split)| split)
    }

    /// The partition for another number of cores: one fusion or one fission where the number changes by one, else, or
    /// where those reach fewer or more groups than asked for, all stages recombined by [`Partition::optimal`].
    pub fn resized(&self, costs: &StageCosts, cores: usize) -> Partition {
        let cores = cores.min(self.stages());
        let neighbour = if cores + 1 == self.groups() {
            self.fused(costs)
        } else if cores == self.groups() + 1 {
            self.split(costs)
        } else {
            None
        };
        neighbour.unwrap_or_else(|| Partition::optimal(costs, cores))
    }
}

/// The last of `groups` groups of the stages before `end`, given the best of one group fewer.
fn best_last_group(
    costs: &StageCosts,
    fewer: &[Option<(u64, usize)>],
    groups: usize,
    end: usize,
) -> Option<(u64, usize)> {
    (groups - 1..end)
        .filter_map(|start| Some((fewer[start]?.0.max(costs.of_group(start..end)), start)))
        .min_by_key(|(slowest, _)| *slowest)
}

/// The theoretical speed-up for 1 to `cores` cores: that of the optimal partition of each. Its differences are the
/// gradient that a pipeline tells those who divide the cores.
pub fn speed_ups(costs: &StageCosts, cores: usize) -> Vec<f64> {
    (1..=cores).map(|cores| Partition::optimal(costs, cores).speed_up(costs)).collect()
}

/// A group and the place that runs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedGroup {
    /// Its stages.
    pub stages: Range<usize>,
    /// The number of its place.
    pub place: usize,
}

/// Assigns the groups of `partition` to `places`, each to another one; returns the place of each group.
///
/// Groups stay where most of their state is: pairs of a new group and an old one of `before` are taken in the order of
/// the bytes that both have (`state_bytes`, for each stage), and of the stages if those are equal. Groups without such
/// a place get the remaining ones in order.
///
/// # Panics
/// If there are fewer places than groups.
pub fn assign(
    before: &[PlacedGroup],
    partition: &Partition,
    places: &[usize],
    state_bytes: &[u64],
) -> Vec<usize> {
    assert!(partition.groups() <= places.len(), "each group has a place of its own");
    let mut overlaps = Vec::new();
    for (group, stages) in partition.ranges().enumerate() {
        for old in before.iter().filter(|old| places.contains(&old.place)) {
            let shared = stages.start.max(old.stages.start)..stages.end.min(old.stages.end);
            if !shared.is_empty() {
                let bytes: u64 = state_bytes[shared.clone()].iter().sum();
                overlaps.push((Reverse((bytes, shared.len())), group, old.place));
            }
        }
    }
    overlaps.sort_unstable();
    let mut assigned: Vec<Option<usize>> = vec![None; partition.groups()];
    for (_, group, place) in overlaps {
        if assigned[group].is_none() && !assigned.contains(&Some(place)) {
            assigned[group] = Some(place);
        }
    }
    let taken = assigned.clone();
    let mut free = places.iter().copied().filter(|place| !taken.contains(&Some(*place)));
    assigned
        .into_iter()
        .map(|place| place.or_else(|| free.next()).expect("there are enough places"))
        .collect()
}
