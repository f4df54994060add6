//! Which place runs which group after a change, so that little state moves.

use super::partition::Partition;
use std::cmp::Reverse;
use std::ops::Range;

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
/// the bytes that both have (`state_bytes`, for each stage), and of the stages if those are equal. Groups without such a
/// place get the remaining ones in order.
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
