//! Groups of consecutive stages: the best ones for a number of cores, changes of one group, and the places of all.

use super::costs::StageCosts;
use std::cmp::Reverse;
use std::ops::Range;

/// The stages of a pipeline, cut into groups of neighbours, each of which runs in one or more replicas.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Partition {
    /// One past the last stage of each group: increasing, and the last one is the number of stages.
    ends: Vec<usize>,
    /// Number of replicas of each group, at least one; each runs at its own place.
    replicas: Vec<usize>,
}

impl Partition {
    /// Makes groups that end before the stages `ends`, the last of which is the number of stages; one replica of each.
    ///
    /// # Panics
    /// If the ends do not increase, or there are none.
    pub fn of_ends(ends: Vec<usize>) -> Partition {
        assert!(ends.first().is_some_and(|first| *first > 0), "a group has at least one stage");
        assert!(ends.is_sorted_by(|one, next| one < next), "groups are in order: {ends:?}");
        let replicas = vec![1; ends.len()];
        Partition { ends, replicas }
    }

    /// Returns the same groups with these numbers of replicas.
    ///
    /// # Panics
    /// If there is not one number for each group, or one is 0.
    pub fn with_replicas(self, replicas: Vec<usize>) -> Partition {
        assert_eq!(replicas.len(), self.ends.len(), "there is a number of replicas for each group");
        assert!(!replicas.contains(&0), "a group has at least one replica");
        Partition { replicas, ..self }
    }

    /// Returns the partition over at most `cores` places whose slowest group is fastest; among equal ones, one with the
    /// most places, but no more than stages.
    ///
    /// A group in `r` replicas takes `1/r` of its cost for an item, and needs `r` places. Dynamic programming over
    /// (places, stages), O(cores² · stages²); without replicas O(cores · stages²). With replicas it is the problem of
    /// intervals replicated on identical processors: A. Benoit and Y. Robert, "Complexity Results for Throughput and
    /// Latency Optimization of Replicated and Data-parallel Workflows" (Algorithmica, 2010).
    ///
    /// # Panics
    /// If `cores` is 0.
    pub fn optimal(costs: &StageCosts, cores: usize) -> Partition {
        assert!(cores > 0, "a pipeline runs on at least one core");
        let stages = costs.stages();
        let most = cores.min(costs.places_max());
        // tables[places][end]: the last group of the stages before `end`, if they use that number of places.
        let mut tables: Vec<Vec<Option<LastGroup>>> = vec![vec![None; stages + 1]];
        for places in 1..=most {
            let table = (0..=stages).map(|end| LastGroup::best(costs, &tables, places, end)).collect();
            tables.push(table);
        }
        let order = |places: &usize| {
            let last = tables[*places][stages].as_ref()?;
            Some((last.slowest, Reverse(stages.min(*places)), *places))
        };
        let best = (1..=most).filter_map(|places| order(&places)).min();
        let (.., mut places) = best.expect("one place runs all stages");
        let (mut end, mut ends, mut replicas) = (stages, Vec::new(), Vec::new());
        while end > 0 {
            let last = tables[places][end].as_ref().expect("the table above has used it");
            ends.push(end);
            replicas.push(last.replicas);
            (end, places) = (last.start, places - last.replicas);
        }
        ends.reverse();
        replicas.reverse();
        Partition { ends, replicas }
    }

    /// Returns the number of groups.
    pub fn groups(&self) -> usize {
        self.ends.len()
    }

    /// Returns the number of stages.
    pub fn stages(&self) -> usize {
        self.ends[self.ends.len() - 1]
    }

    /// Returns one past the last stage of each group.
    pub fn ends(&self) -> &[usize] {
        &self.ends
    }

    /// Returns the number of replicas of a group.
    pub fn replicas(&self, group: usize) -> usize {
        self.replicas[group]
    }

    /// Returns the number of places: one for each replica of each group.
    pub fn places(&self) -> usize {
        self.replicas.iter().sum()
    }

    /// Returns `true` if no group has more replicas than its stages allow.
    pub fn is_allowed_by(&self, costs: &StageCosts) -> bool {
        let allowed = |(stages, replicas): (_, &usize)| *replicas <= costs.replicas_of_group(stages);
        self.ranges().zip(&self.replicas).all(allowed)
    }

    /// Returns the stages of each replica of each group, in order.
    pub fn replica_ranges(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.ranges()
            .zip(&self.replicas)
            .flat_map(|(stages, replicas)| std::iter::repeat_n(stages, *replicas))
    }

    /// Returns the stages of a group.
    pub fn group(&self, group: usize) -> Range<usize> {
        let start = if group == 0 { 0 } else { self.ends[group - 1] };
        start..self.ends[group]
    }

    /// Returns the stages of all groups, in order.
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        (0..self.groups()).map(|group| self.group(group))
    }

    /// Returns the group of a stage.
    pub fn group_of(&self, stage: usize) -> usize {
        self.ends.partition_point(|end| *end <= stage)
    }

    /// Returns the time of the slowest group: the time between two items once the pipeline is full.
    pub fn bottleneck(&self, costs: &StageCosts) -> u64 {
        let period = |(stages, replicas): (_, &usize)| costs.period_of_group(stages, *replicas);
        self.ranges().zip(&self.replicas).map(period).max().expect("there is at least one group")
    }

    /// Returns the throughput relative to one core, in the stable state.
    pub fn speed_up(&self, costs: &StageCosts) -> f64 {
        costs.total() as f64 / self.bottleneck(costs).max(1) as f64
    }

    /// Returns this partition with one place less: two neighbouring groups of one replica fused, or one replica less of
    /// a group, such that the slowest group is fastest. `None` if there is only one place, or no such change.
    ///
    /// Among changes that leave the same slowest group, takes the one whose changed group takes least time; then the
    /// first.
    pub fn fused(&self, costs: &StageCosts) -> Option<Partition> {
        let fusions =
            (1..self.groups()).filter(|right| self.replicas[right - 1..=*right] == [1, 1]).map(|right| {
                let mut fused = self.clone();
                fused.ends.remove(right - 1);
                fused.replicas.remove(right);
                (right - 1, fused)
            });
        let fewer = (0..self.groups()).filter(|group| self.replicas[*group] > 1).map(|group| {
            let mut fewer = self.clone();
            fewer.replicas[group] -= 1;
            (group, fewer)
        });
        let ordered = fusions.chain(fewer).map(|(group, partition)| {
            let period = costs.period_of_group(partition.group(group), partition.replicas[group]);
            ((partition.bottleneck(costs), period, group), partition)
        });
        ordered.min_by_key(|(order, _)| *order).map(|(_, partition)| partition)
    }

    /// Returns this partition with one place more: a group of one replica split in two, or one replica more of a group,
    /// such that the slowest group is fastest. `None` if there is no such change.
    ///
    /// Among changes that leave the same slowest group, because another group is slowest, takes the one that changes
    /// the group that takes longest; then the most even one.
    pub fn split(&self, costs: &StageCosts) -> Option<Partition> {
        let is_cut = |cut: &usize| !self.ends.contains(cut) && self.replicas[self.group_of(*cut)] == 1;
        let fissions = (1..self.stages()).filter(is_cut).map(|cut| {
            let group = self.group_of(cut);
            let mut split = self.clone();
            split.ends.insert(group, cut);
            split.replicas.insert(group, 1);
            let larger = costs.of_group(split.group(group)).max(costs.of_group(split.group(group + 1)));
            (group, larger, cut, split)
        });
        let can_grow = |group: &usize| self.replicas[*group] < costs.replicas_of_group(self.group(*group));
        let more = (0..self.groups()).filter(can_grow).map(|group| {
            let mut more = self.clone();
            more.replicas[group] += 1;
            let period = costs.period_of_group(self.group(group), more.replicas[group]);
            (group, period, self.ends[group], more)
        });
        let ordered = fissions.chain(more).map(|(group, larger, cut, partition)| {
            let before = costs.period_of_group(self.group(group), self.replicas[group]);
            ((partition.bottleneck(costs), Reverse(before), larger, cut), partition)
        });
        ordered.min_by_key(|(order, _)| *order).map(|(_, partition)| partition)
    }

    /// Returns the partition for another number of cores: one fusion or fission if the number changes by one;
    /// otherwise, or if those miss the requested number of places, all stages recombined by [`Partition::optimal`].
    pub fn resized(&self, costs: &StageCosts, cores: usize) -> Partition {
        let cores = cores.min(costs.places_max());
        let neighbour = if cores + 1 == self.places() {
            self.fused(costs)
        } else if cores == self.places() + 1 {
            self.split(costs)
        } else {
            None
        };
        neighbour.unwrap_or_else(|| Partition::optimal(costs, cores))
    }
}

/// The last group of the first stages.
#[derive(Clone)]
struct LastGroup {
    /// Time of the slowest of the groups.
    slowest: u64,
    /// The first stage of the last group.
    start: usize,
    replicas: usize,
}

impl LastGroup {
    /// Returns the best partition of the stages before `end` that uses `places` places, given those that use fewer.
    fn best(
        costs: &StageCosts,
        fewer: &[Vec<Option<LastGroup>>],
        places: usize,
        end: usize,
    ) -> Option<LastGroup> {
        let mut best: Option<LastGroup> = None;
        for start in 0..end {
            for replicas in 1..=places.min(costs.replicas_of_group(start..end)) {
                let before = match (start, places - replicas) {
                    (0, 0) => 0,
                    (0, _) | (_, 0) => continue,
                    (start, left) => match &fewer[left][start] {
                        Some(before) => before.slowest,
                        None => continue,
                    },
                };
                let slowest = before.max(costs.period_of_group(start..end, replicas));
                let order = |group: &LastGroup| (group.slowest, group.replicas);
                if best.as_ref().is_none_or(|best| (slowest, replicas) < order(best)) {
                    best = Some(LastGroup { slowest, start, replicas });
                }
            }
        }
        best
    }
}

/// Returns the theoretical speed-up for 1 to `cores` cores: that of the optimal partition for each. Its differences are
/// the gradient that a pipeline reports for the division of cores.
pub fn speed_ups(costs: &StageCosts, cores: usize) -> Vec<f64> {
    (1..=cores).map(|cores| Partition::optimal(costs, cores).speed_up(costs)).collect()
}

/// A group, or one of its replicas, and the place that runs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedGroup {
    /// Its stages.
    pub stages: Range<usize>,
    /// The number of its place.
    pub place: usize,
}

/// Assigns the replicas of the groups of `partition` to `places`, each to a different one; returns the place of each,
/// in the order of [`Partition::replica_ranges`].
///
/// Groups stay where most of their state is: pairs of a new group and an old one of `before` are taken in the order of
/// the bytes that they share (`state_bytes`, for each stage), then of the stages. Groups without such a place get the
/// remaining ones in order.
///
/// # Panics
/// If there are fewer places than replicas.
pub fn assign(
    before: &[PlacedGroup],
    partition: &Partition,
    places: &[usize],
    state_bytes: &[u64],
) -> Vec<usize> {
    assert!(partition.places() <= places.len(), "each replica has a place of its own");
    let mut overlaps = Vec::new();
    for (group, stages) in partition.replica_ranges().enumerate() {
        for old in before.iter().filter(|old| places.contains(&old.place)) {
            let shared = stages.start.max(old.stages.start)..stages.end.min(old.stages.end);
            if !shared.is_empty() {
                let bytes: u64 = state_bytes[shared.clone()].iter().sum();
                overlaps.push((Reverse((bytes, shared.len())), group, old.place));
            }
        }
    }
    overlaps.sort_unstable();
    let mut assigned: Vec<Option<usize>> = vec![None; partition.places()];
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
