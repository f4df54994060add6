//! Decisions about pipelines against exhaustive search, and properties of every result.

use super::*;
use proptest::prelude::*;

/// Returns all partitions of `stages` stages into at most `cores` groups.
fn all_partitions(stages: usize, cores: usize) -> Vec<Partition> {
    let cuts = 0..1_u32 << (stages - 1);
    let few = cuts.filter(|cuts| (cuts.count_ones() as usize) < cores);
    few.map(|cuts| {
        Partition::of_ends((1..stages).filter(|end| cuts >> (end - 1) & 1 == 1).chain([stages]).collect())
    })
    .collect()
}

fn costs(stages: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = StageCosts> {
    let pairs = prop::collection::vec((0_u64..1000, prop_oneof![Just(0), 0_u64..200]), stages);
    pairs.prop_map(|pairs| {
        let links = pairs[1..].iter().map(|pair| pair.1).collect();
        StageCosts::new(pairs.iter().map(|pair| pair.0).collect()).with_links(links)
    })
}

proptest! {
    #[test]
    fn the_optimal_partition_of_12_stages_is_that_of_exhaustive_search_for_all_numbers_of_cores(
        costs in costs(12..=12),
    ) {
        for cores in 1..=13 {
            let partition = Partition::optimal(&costs, cores);
            prop_assert!(partition.groups() <= cores);
            prop_assert_eq!(partition.stages(), 12);
            let all = all_partitions(12, cores);
            let least = all.iter().map(|partition| partition.bottleneck(&costs)).min();
            prop_assert_eq!(Some(partition.bottleneck(&costs)), least);
            let most = all.iter().filter(|other| Some(other.bottleneck(&costs)) == least).map(Partition::groups).max();
            prop_assert_eq!(Some(partition.groups()), most);
        }
    }

    #[test]
    fn a_fusion_is_the_cheapest_of_all_and_a_fission_the_one_that_gains_most(
        costs in costs(2..=10),
        cuts in any::<u32>(),
    ) {
        let stages = costs.stages();
        let ends = (1..stages).filter(|end| cuts >> end & 1 == 1).chain([stages]).collect();
        let partition = Partition::of_ends(ends);
        let differs_by_one = |other: &Partition, one: &Partition| {
            let (more, fewer) = if other.groups() > one.groups() { (other, one) } else { (one, other) };
            more.groups() == fewer.groups() + 1 && fewer.ends().iter().all(|end| more.ends().contains(end))
        };
        let best = |groups: usize| {
            let all = all_partitions(stages, stages).into_iter();
            let near = all.filter(|other| other.groups() == groups && differs_by_one(other, &partition));
            near.map(|other| other.bottleneck(&costs)).min()
        };
        let fused = partition.fused(&costs);
        prop_assert!(fused.as_ref().is_none_or(|fused| differs_by_one(fused, &partition)));
        prop_assert_eq!(fused.map(|fused| fused.bottleneck(&costs)), best(partition.groups() - 1));
        let split = partition.split(&costs);
        prop_assert!(split.as_ref().is_none_or(|split| differs_by_one(split, &partition)));
        prop_assert_eq!(split.map(|split| split.bottleneck(&costs)), best(partition.groups() + 1));
    }

    #[test]
    fn groups_cover_all_stages_in_order_after_any_resizes(
        costs in costs(1..=18),
        cores in prop::collection::vec(1_usize..20, 1..20),
    ) {
        let mut partition = Partition::of_ends(vec![costs.stages()]);
        for cores in cores {
            partition = partition.resized(&costs, cores);
            prop_assert!(partition.groups() <= cores);
            let covered: Vec<usize> = partition.ranges().flatten().collect();
            prop_assert_eq!(covered, (0..costs.stages()).collect::<Vec<_>>());
            for (group, stages) in partition.ranges().enumerate() {
                prop_assert!(stages.clone().all(|stage| partition.group_of(stage) == group));
            }
        }
    }

    #[test]
    fn without_links_more_cores_are_never_slower(costs in costs(1..=18)) {
        let costs = StageCosts::new((0..costs.stages()).map(|stage| 1 + costs.of_stage(stage)).collect());
        let speed_ups = speed_ups(&costs, 18);
        prop_assert_eq!(speed_ups[0], 1.0);
        prop_assert!(speed_ups.is_sorted());
        prop_assert!(speed_ups.iter().zip(1..).all(|(speed_up, cores)| *speed_up <= f64::from(cores)));
    }

    #[test]
    fn groups_get_places_of_their_own_and_one_that_did_not_change_stays(
        ends in prop::collection::btree_set(1_usize..10, 0..6),
        places in 10_usize..14,
    ) {
        let partition = Partition::of_ends(ends.into_iter().chain([10]).collect());
        let bytes = vec![100; 10];
        let all: Vec<usize> = (0..places).rev().collect();
        let first = assign(&[], &partition, &all, &bytes);
        let distinct: std::collections::BTreeSet<_> = first.iter().collect();
        prop_assert_eq!(distinct.len(), partition.groups());
        let placed = |(stages, place): (_, &usize)| PlacedGroup { stages, place: *place };
        let before: Vec<_> = partition.ranges().zip(&first).map(placed).collect();
        prop_assert_eq!(assign(&before, &partition, &all, &bytes), first);
    }

    #[test]
    fn divisions_are_those_of_exhaustive_search(
        demands in prop::collection::vec((prop::collection::vec(0.1_f64..5.0, 0..6), 0.0_f64..8.0), 1..4),
        spare in 0_usize..8,
    ) {
        let of_pair = |(speed_ups, needed)| Demand { speed_ups, needed };
        let demands: Vec<Demand> = demands.into_iter().map(of_pair).collect();
        let cores = demands.len() + spare;
        for objective in [Objective::Throughput, Objective::Fairness, Objective::Deadline] {
            let divided = divide(&demands, cores, objective).unwrap();
            prop_assert!(divided.iter().sum::<usize>() <= cores);
            let best = all_divisions(&demands, cores).into_iter().map(|division| objective.value(&demands, &division));
            let best = best.reduce(|one, other| if other > one { other } else { one }).unwrap();
            let value = objective.value(&demands, &divided);
            prop_assert_eq!(value.0, best.0);
            prop_assert!((value.1 - best.1).abs() < 1e-9, "{:?} is below {:?}", value, best);
        }
    }

    #[test]
    fn neighbours_that_exchange_come_to_an_end_and_two_of_them_to_the_best(
        speed_ups in prop::collection::vec(prop::collection::vec(0.1_f64..5.0, 4..8), 2..6),
        cores in prop::collection::vec(1_usize..5, 6),
    ) {
        let demands: Vec<Demand> = speed_ups.into_iter().map(Demand::new).collect();
        let mut owns = cores[..demands.len()].to_vec();
        let objective = Objective::Throughput;
        let (all, before) = (owns.iter().sum::<usize>(), objective.value(&demands, &owns));
        let mut rounds = 0;
        while exchange(&demands, &mut owns, objective) {
            rounds += 1;
            prop_assert!(rounds < 1000, "they go on for ever");
        }
        let after = objective.value(&demands, &owns);
        prop_assert!(after >= before);
        prop_assert!(owns.iter().sum::<usize>() <= all);
        let best = objective.value(&demands, &divide(&demands, all, objective).unwrap());
        prop_assert!(after.1 <= best.1 + 1e-9);
        if demands.len() == 2 {
            prop_assert!((after.1 - best.1).abs() < 1e-9);
        }
    }
}

/// Returns all ways to give each pipeline at least one core and no more than it can use.
fn all_divisions(demands: &[Demand], cores: usize) -> Vec<Vec<usize>> {
    let Some((first, rest)) = demands.split_first() else { return vec![Vec::new()] };
    let mut all = Vec::new();
    for own in 1..=first.speed_ups.len().max(1).min(cores.saturating_sub(rest.len())) {
        for division in all_divisions(rest, cores - own) {
            all.push([own].into_iter().chain(division).collect());
        }
    }
    all
}

#[test]
fn a_pipeline_without_speed_ups_gets_one_core_and_the_others_the_rest() {
    let demands = [Demand::new(Vec::new()), Demand::new(vec![1.0, 1.9, 2.5])];
    for objective in [Objective::Throughput, Objective::Fairness, Objective::Deadline] {
        assert_eq!(divide(&demands, 4, objective), Ok(vec![1, 3]), "{objective:?}");
        assert_eq!(divide(&demands[..1], 4, objective), Ok(vec![1]), "{objective:?}");
    }
}

#[test]
fn fewer_cores_than_pipelines_are_refused() {
    let demands = vec![Demand::new(vec![1.0]); 3];
    let fault = divide(&demands, 2, Objective::Fairness).unwrap_err();
    assert_eq!(fault.to_string(), "3 pipelines cannot share 2 cores: each needs at least one");
}

#[test]
fn a_group_stays_with_its_large_state_and_not_with_its_many_stages() {
    let before = [PlacedGroup { stages: 0..3, place: 0 }, PlacedGroup { stages: 3..4, place: 1 }];
    let one = Partition::of_ends(vec![4]);
    assert_eq!(assign(&before, &one, &[0, 1], &[10, 10, 10, 38_000]), [1]);
    assert_eq!(assign(&before, &one, &[0, 1], &[0, 0, 0, 0]), [0]);
    assert_eq!(assign(&before, &one, &[0, 2], &[10, 10, 10, 38_000]), [0]);
}

#[test]
fn means_follow_a_change_and_forget_an_outlier() {
    let mut monitor = CostMonitor::new(3);
    assert_eq!(monitor.costs(), StageCosts::new(vec![1, 1, 1]));
    monitor.measured(0, 100);
    assert_eq!(monitor.costs(), StageCosts::new(vec![100, 100, 100]));
    monitor.measured(1, 200);
    monitor.measured(1, 1_000_000); // counts as 1600
    assert_eq!(monitor.costs(), StageCosts::new(vec![100, 375, 238]));
    for _ in 0..100 {
        monitor.measured(0, 50);
    }
    assert_eq!(monitor.costs().of_stage(0), 50);
}
