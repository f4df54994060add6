//! Changes of one group: the cheapest fusion of two neighbours, the best fission of one.

use super::partition::{Partition, StageCosts};
use std::cmp::Reverse;

impl Partition {
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
