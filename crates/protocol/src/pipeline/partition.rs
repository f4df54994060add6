//! Groups of consecutive stages, and the best ones for a number of cores.

use std::ops::Range;

/// What the stages of a pipeline cost for one item, in any one unit of time.
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

    /// How many times as many items pass as on one core, in the stable state.
    pub fn speed_up(&self, costs: &StageCosts) -> f64 {
        costs.total() as f64 / self.bottleneck(costs).max(1) as f64
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
