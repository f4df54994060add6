//! The schedules, run by all members without a message, for all sizes up to [`SIZE_MAX`].

use super::*;
use std::collections::BTreeSet;

const SIZE_MAX: usize = 40;

const SHAPES: [Shape; 6] =
    [Shape::Binomial, Shape::Chain, Shape::Flat, Shape::Fan(1), Shape::Fan(2), Shape::Fan(7)];

fn sizes() -> impl Iterator<Item = usize> {
    1..=SIZE_MAX
}

#[test]
fn after_dissemination_everybody_has_heard_of_everybody() {
    for size in sizes() {
        let mut heard: Vec<BTreeSet<usize>> = (0..size).map(|rank| BTreeSet::from([rank])).collect();
        let rounds: Vec<Vec<Round>> = (0..size).map(|rank| dissemination(rank, size).collect()).collect();
        let turns = rounds.iter().map(Vec::len).max().unwrap_or(0);
        let round_of = |rank: usize, number: usize| rounds[rank][number];
        for number in 0..turns {
            let before = heard.clone();
            for (rank, known) in heard.iter_mut().enumerate() {
                let round = round_of(rank, number);
                assert_eq!(round_of(round.from, number).to, rank);
                known.extend(&before[round.from]);
            }
        }
        assert!(heard.iter().all(|known| known.len() == size), "size {size}");
        assert_eq!(rounds[0].len(), size.next_power_of_two().ilog2() as usize);
    }
}

#[test]
fn pairwise_rounds_meet_each_other_member_once() {
    for size in sizes() {
        for rank in 0..size {
            let targets: BTreeSet<usize> = pairwise(rank, size).map(|round| round.to).collect();
            let sources: BTreeSet<usize> = pairwise(rank, size).map(|round| round.from).collect();
            let others: BTreeSet<usize> = (0..size).filter(|other| *other != rank).collect();
            assert_eq!((&targets, &sources), (&others, &others));
        }
    }
}

#[test]
fn a_tree_reaches_every_member_once() {
    for (size, shape) in sizes().flat_map(|size| SHAPES.map(|shape| (size, shape))) {
        for root in 0..size {
            let tree = |rank| Tree::new(shape, rank, root, size);
            assert_eq!(tree(root).parent(), None);
            let mut reached = vec![root];
            let mut next = 0;
            while let Some(rank) = reached.get(next).copied() {
                for child in tree(rank).children() {
                    assert_eq!(tree(child).parent(), Some(rank));
                    reached.push(child);
                }
                next += 1;
            }
            assert_eq!(reached.iter().copied().collect::<BTreeSet<_>>(), (0..size).collect());
            assert_eq!(reached.len(), size);
        }
    }
}

#[test]
fn below_a_member_of_a_binomial_tree_are_the_ranks_from_its_own_on() {
    for size in sizes() {
        for root in 0..size {
            let tree = |rank| Tree::new(Shape::Binomial, rank, root, size);
            for rank in 0..size {
                let mut below = vec![rank];
                let mut next = 0;
                while let Some(rank) = below.get(next).copied() {
                    below.extend(tree(rank).children());
                    next += 1;
                }
                let expected = (0..tree(rank).members()).map(|count| (rank + count) % size);
                assert_eq!(below.into_iter().collect::<BTreeSet<_>>(), expected.collect());
            }
        }
    }
}

#[test]
fn who_folds_alone_brackets_as_those_do_who_fold_on_the_way() {
    for size in sizes() {
        let values: Vec<String> = (0..size).map(|rank| rank.to_string()).collect();
        let folding = ReductionTree::new(size, size / 2);
        let alone = folding.fold(values, |left, right| bracket(&left, &right)).unwrap();
        assert_eq!(alone, expected(size));
    }
}

/// A folded value: the bracketing, as text.
fn bracket(left: &str, right: &str) -> String {
    format!("({left} {right})")
}

fn put(side: RankSide, own: &str, other: &str) -> String {
    if side == RankSide::Before { bracket(other, own) } else { bracket(own, other) }
}

/// Returns the bracketing that all reductions of `size` members must use.
fn expected(size: usize) -> String {
    let width = if size.is_power_of_two() { size } else { size.next_power_of_two() / 2 };
    let pairs = size - width;
    let mut values: Vec<String> = (0..pairs).map(|pair| format!("({} {})", 2 * pair, 2 * pair + 1)).collect();
    values.extend((2 * pairs..size).map(|rank| rank.to_string()));
    while values.len() > 1 {
        values = values.chunks(2).map(|pair| bracket(&pair[0], &pair[1])).collect();
    }
    values.remove(0)
}

/// Runs the steps of all members against each other; returns their final values.
fn play(size: usize, steps: impl Fn(usize) -> Vec<ReductionStep>) -> Vec<String> {
    let mut values: Vec<String> = (0..size).map(|rank| rank.to_string()).collect();
    let mut next = vec![0; size];
    let mut given = vec![false; size];
    let mut sent: Vec<Vec<Vec<String>>> = vec![vec![Vec::new(); size]; size];
    let all: Vec<Vec<ReductionStep>> = (0..size).map(steps).collect();
    let mut moved = true;
    while std::mem::take(&mut moved) {
        for rank in 0..size {
            let Some(step) = all[rank].get(next[rank]) else { continue };
            let own = values[rank].clone();
            let (to, from) = match *step {
                ReductionStep::Send { to } => (Some(to), None),
                ReductionStep::Swap { with, .. } => (Some(with), Some(with)),
                ReductionStep::Merge { from, .. } | ReductionStep::Receive { from } => (None, Some(from)),
            };
            if let (Some(to), false) = (to, std::mem::replace(&mut given[rank], true)) {
                sent[rank][to].push(own.clone());
                moved = true;
            }
            if let Some(from) = from {
                if sent[from][rank].is_empty() {
                    continue;
                }
                let other = sent[from][rank].remove(0);
                values[rank] = match *step {
                    ReductionStep::Merge { side, .. } | ReductionStep::Swap { side, .. } => {
                        put(side, &own, &other)
                    }
                    _ => other,
                };
            }
            (next[rank], given[rank], moved) = (next[rank] + 1, false, true);
        }
    }
    assert!((0..size).all(|rank| next[rank] == all[rank].len()), "size {size} stands still");
    assert!(sent.iter().flatten().all(Vec::is_empty), "size {size} sends what nobody takes");
    values
}

#[test]
fn every_reduction_folds_by_the_same_tree_in_the_order_of_the_ranks() {
    for size in sizes() {
        let expected = expected(size);
        let ranks: Vec<usize> =
            expected.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect();
        assert_eq!(ranks, (0..size).collect::<Vec<_>>());
        for root in 0..size {
            let values = play(size, |rank| ReductionTree::new(size, root).to_root(rank).collect());
            assert_eq!(values[root], expected, "size {size}, root {root}");
        }
        let values = play(size, |rank| ReductionTree::new(size, 0).to_all(rank).collect());
        assert!(values.iter().all(|value| *value == expected), "size {size}");
    }
}

#[test]
fn only_the_root_of_a_reduction_does_not_give() {
    for size in sizes() {
        for root in 0..size {
            for rank in 0..size {
                let steps: Vec<ReductionStep> = ReductionTree::new(size, root).to_root(rank).collect();
                let gives = |step: &ReductionStep| matches!(step, ReductionStep::Send { .. });
                assert_eq!(steps.iter().filter(|step| gives(step)).count(), usize::from(rank != root));
                assert!(rank == root || gives(&steps[steps.len() - 1]));
            }
        }
    }
}

/// Runs a reduction by halves of a vector of `len` elements; returns the final vectors of the members.
fn play_halves(size: usize, len: usize) -> Vec<Vec<String>> {
    let folding = ReductionTree::new(size, 0);
    let mut vectors: Vec<Vec<String>> = (0..size).map(|rank| vec![rank.to_string(); len]).collect();
    for rank in (0..size).filter(|rank| !folding.stays(*rank)) {
        let Some(ReductionStep::Send { to }) = folding.pair(rank) else {
            panic!("{rank} neither stays nor gives")
        };
        let Some(ReductionStep::Merge { side, .. }) = folding.pair(to) else { panic!("{to} does not merge") };
        let merged = (0..len).map(|index| put(side, &vectors[to][index], &vectors[rank][index])).collect();
        vectors[to] = merged;
    }
    let stays: Vec<usize> = (0..folding.width()).map(|leaf| folding.member(leaf)).collect();
    let rounds = |rank: usize| folding.halving(rank, len).collect::<Vec<_>>();
    for number in 0..rounds(0).len() {
        let before = vectors.clone();
        for rank in &stays {
            let half = &rounds(*rank)[number];
            assert_eq!(rounds(half.with)[number].given, half.kept);
            for index in half.kept.clone() {
                vectors[*rank][index] = put(half.side, &before[*rank][index], &before[half.with][index]);
            }
        }
    }
    for number in (0..rounds(0).len()).rev() {
        let before = vectors.clone();
        for rank in &stays {
            let half = &rounds(*rank)[number];
            vectors[*rank][half.given.clone()].clone_from_slice(&before[half.with][half.given.clone()]);
        }
    }
    stays.into_iter().map(|rank| vectors[rank].clone()).collect()
}

#[test]
fn a_reduction_by_halves_folds_by_the_same_tree() {
    for size in sizes() {
        for len in [0, 1, 2, 3, 7, 64] {
            let expected = vec![expected(size); len];
            assert!(
                play_halves(size, len).iter().all(|vector| *vector == expected),
                "size {size}, length {len}"
            );
        }
    }
}

#[test]
fn chunks_cover_a_slice_in_order() {
    for len in 0..50 {
        for chunk_len in 1..12 {
            let chunks = Chunks::new(len, chunk_len);
            let covered: Vec<usize> = (0..chunks.count()).flat_map(|index| chunks.range(index)).collect();
            assert_eq!(covered, (0..len).collect::<Vec<_>>());
            assert!(chunks.count() >= 1);
        }
    }
}
