//! Replicas against exhaustive search, and their order for every schedule.

use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;

/// Returns all partitions of the stages, with all allowed numbers of replicas, over at most `cores` places.
fn all_partitions(costs: &StageCosts, cores: usize) -> Vec<Partition> {
    let stages = costs.stages();
    let mut all = Vec::new();
    for cuts in 0..1_u32 << (stages - 1) {
        let ends: Vec<usize> = (1..stages).filter(|end| cuts >> (end - 1) & 1 == 1).chain([stages]).collect();
        let groups = Partition::of_ends(ends);
        let mut replicas = vec![vec![]];
        for stages in groups.ranges() {
            let most = costs.replicas_of_group(stages);
            let longer = |list: &Vec<usize>| {
                let list = list.clone();
                (1..=most).map(move |own| list.iter().copied().chain([own]).collect())
            };
            replicas = replicas.iter().flat_map(longer).collect();
        }
        all.extend(replicas.into_iter().map(|replicas| groups.clone().with_replicas(replicas)));
    }
    all.retain(|partition| partition.places() <= cores);
    all
}

fn costs(stages: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = StageCosts> {
    let stage = (0_u64..1000, prop_oneof![Just(1_usize), 2_usize..5], 0_u64..100);
    prop::collection::vec(stage, stages).prop_map(|stages| {
        let links = stages[1..].iter().map(|stage| stage.2).collect();
        let replicas = stages.iter().map(|stage| stage.1).collect();
        let costs = StageCosts::new(stages.iter().map(|stage| stage.0).collect());
        costs.with_links(links).with_replicas(replicas)
    })
}

/// A message in flight: its number, and its item unless it is a marker.
type Message = (u64, Option<u64>);

/// Replicas with a queue of `queue` messages before and behind each, and the merge.
struct Replicas {
    queue: usize,
    inputs: Vec<VecDeque<Message>>,
    outputs: Vec<VecDeque<Message>>,
    merge: OrderedMerge<Option<u64>>,
    left: Vec<Option<u64>>,
}

impl Replicas {
    /// Makes a replica or the merge take the step `choice`; returns whether there was a step to take.
    fn step(&mut self, choice: usize) -> bool {
        let replica = choice / 2 % self.inputs.len();
        if choice.is_multiple_of(2) {
            if self.outputs[replica].len() == self.queue {
                return false;
            }
            let Some(message) = self.inputs[replica].pop_front() else { return false };
            self.outputs[replica].push_back(message);
            return true;
        }
        if !self.merge.takes_from(replica) {
            return false;
        }
        let Some((number, item)) = self.outputs[replica].pop_front() else { return false };
        self.merge.put(replica, number, item).expect("replicas keep the order");
        self.left.extend(std::iter::from_fn(|| self.merge.pop()));
        true
    }
}

proptest! {
    #[test]
    fn the_optimal_partition_with_replicas_is_that_of_exhaustive_search(costs in costs(1..=5)) {
        for cores in 1..=8 {
            let partition = Partition::optimal(&costs, cores);
            prop_assert!(partition.places() <= cores && partition.is_allowed_by(&costs), "{:?}", partition);
            prop_assert_eq!(partition.stages(), costs.stages());
            let best = all_partitions(&costs, cores).iter().map(|other| other.bottleneck(&costs)).min();
            prop_assert_eq!(Some(partition.bottleneck(&costs)), best);
        }
    }

    #[test]
    fn resizes_with_replicas_use_at_most_the_places_asked_for_and_each_stage_once(
        costs in costs(1..=8),
        cores in prop::collection::vec(1_usize..24, 1..20),
    ) {
        let mut partition = Partition::of_ends(vec![costs.stages()]);
        for cores in cores {
            let before = partition.clone();
            partition = partition.resized(&costs, cores);
            prop_assert!(partition.places() <= cores && partition.is_allowed_by(&costs), "{:?}", partition);
            let covered: Vec<usize> = partition.ranges().flatten().collect();
            prop_assert_eq!(covered, (0..costs.stages()).collect::<Vec<_>>());
            prop_assert_eq!(partition.replica_ranges().count(), partition.places());
            let (fused, split) = (before.fused(&costs), before.split(&costs));
            prop_assert_eq!(fused.is_some(), before.places() > 1);
            prop_assert!(fused.is_none_or(|fused| fused.places() + 1 == before.places()));
            prop_assert!(split.is_none_or(|split| split.places() == before.places() + 1));
        }
    }

    #[test]
    fn replicas_get_places_of_their_own_and_stay(costs in costs(2..=6), cores in 1_usize..12) {
        let partition = Partition::optimal(&costs, cores);
        let (bytes, all): (_, Vec<usize>) = (vec![10; costs.stages()], (0..cores).rev().collect());
        let assigned = assign(&[], &partition, &all, &bytes);
        let distinct: std::collections::BTreeSet<_> = assigned.iter().collect();
        prop_assert_eq!(distinct.len(), partition.places());
        let placed = |(stages, place): (_, &usize)| PlacedGroup { stages, place: *place };
        let before: Vec<_> = partition.replica_ranges().zip(&assigned).map(placed).collect();
        let again = assign(&before, &partition, &all, &bytes);
        prop_assert_eq!(again.iter().collect::<std::collections::BTreeSet<_>>(), distinct);
    }

    #[test]
    fn messages_leave_replicas_in_order_each_once_whoever_goes_on_next_and_none_waits_for_ever(
        replicas in 1_usize..5,
        queue in 1_usize..4,
        is_marker in prop::collection::vec(prop::bool::weighted(0.2), 0..60),
        mut choices in prop::collection::vec(any::<u16>(), 0..200),
    ) {
        let mut turns = ReplicaTurns::new(replicas);
        let mut all = Replicas {
            queue,
            inputs: vec![VecDeque::new(); replicas],
            outputs: vec![VecDeque::new(); replicas],
            merge: OrderedMerge::new(replicas),
            left: Vec::new(),
        };
        for (item, is_marker) in (0..).zip(&is_marker) {
            let targets = if *is_marker { 0..replicas } else { turns.peek()..turns.peek() + 1 };
            let number = if *is_marker { turns.number_marker() } else { turns.number_item() };
            for target in targets {
                // The sender waits for room; others go on, in an arbitrary order.
                while all.inputs[target].len() == queue {
                    let chosen = choices.pop().is_some_and(|choice| all.step(usize::from(choice)));
                    let went_on = chosen || (0..2 * replicas).any(|choice| all.step(choice));
                    prop_assert!(went_on, "all wait for each other");
                }
                all.inputs[target].push_back((number, (!is_marker).then_some(item)));
            }
            prop_assert!(all.merge.len() <= replicas);
        }
        while (0..2 * replicas).any(|choice| all.step(choice)) {}
        let sent = (0..).zip(&is_marker).map(|(item, is_marker)| (!is_marker).then_some(item));
        prop_assert_eq!(all.left, sent.collect::<Vec<_>>());
        prop_assert!(all.merge.is_empty());
    }
}

#[test]
fn a_replica_that_breaks_the_order_or_is_not_asked_is_refused() {
    let mut merge = OrderedMerge::new(2);
    merge.put(0, 1, "second").unwrap();
    assert_eq!(merge.put(0, 2, "third"), Err(MergeFault::NotTakenFrom { replica: 0 }));
    assert_eq!(merge.put(2, 0, "first"), Err(MergeFault::NotTakenFrom { replica: 2 }));
    assert_eq!(merge.pop(), None);
    merge.put(1, 0, "first").unwrap();
    assert_eq!([merge.pop(), merge.pop(), merge.pop()], [Some("first"), Some("second"), None]);
    assert_eq!(merge.put(1, 0, "again"), Err(MergeFault::OutOfOrder { replica: 1, number: 0, last: 0 }));
}

#[test]
fn a_slow_stage_is_replicated_before_the_others_are_split_further() {
    let costs = StageCosts::new(vec![10, 90, 10, 10]).with_replicas(vec![1, 3, 1, 1]);
    let partition = Partition::optimal(&costs, 5);
    assert_eq!(partition, Partition::of_ends(vec![1, 2, 4]).with_replicas(vec![1, 3, 1]));
    assert_eq!((partition.bottleneck(&costs), partition.speed_up(&costs)), (30, 4.0));
    // More places than stages only if that is faster.
    assert_eq!(Partition::optimal(&costs, 6).places(), 5);
}
