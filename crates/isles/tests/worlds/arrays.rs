//! Distributed arrays in simulated worlds: random steps against arithmetic, in seeded orders, with lost places.
//!
//! Each seed determines the arrays, the steps and their order, and runs twice with the same digest. `ISLES_TEST_SEEDS`
//! sets the number of seeds; `ISLES_SEED` selects one.

use crate::seeds::seeds;
use isles::array::{DistArray, Distribution, Halo};
use isles::prelude::*;
use isles::{Combine, ErrorKind, Plan, PlannedDeath, Random, Result};

/// Seeds in the ordinary tests.
const SEEDS: u64 = 150;

type Grid = DistArray<u64, 2>;

fn cut(random: &mut Random, ways: u64) -> [Distribution; 2] {
    let mut any = || match random.below(ways) {
        0 => Distribution::Whole,
        1 => Distribution::Block,
        2 => Distribution::Cyclic,
        _ => Distribution::BlockCyclic(3),
    };
    match [any(), any()] {
        [Distribution::Whole, Distribution::Whole] => [Distribution::Block, Distribution::Whole],
        cut => cut,
    }
}

/// Returns the value of an element after `steps` steps, each of which adds 1.
fn value([row, column]: [usize; 2], steps: u64) -> u64 {
    (row * 1_000 + column) as u64 + steps
}

/// Runs the steps of a member: halo exchanges, and moves of the array there and back.
async fn steps(seed: u64, haloed: &Grid, dealt: &Grid, turned: &Grid) -> Result<u64> {
    let mut random = Random::stream(seed, 3);
    haloed.lock().for_each(|index, element| *element = value(index, 0));
    let count = 1 + random.below(4);
    for step in 0..count {
        haloed.exchange().await?;
        {
            let part = haloed.read();
            let [rows, columns] = part.extents();
            if rows * columns > 0 {
                let [first, extent] = [part.global([0, 0])[0], haloed.extents()[0]];
                let above = (first + extent - 1) % extent;
                let wanted = value([above, part.global([0, 0])[1]], step);
                assert_eq!(part[[-1, 0]], wanted, "ISLES_SEED={seed}: a halo of step {step}");
            }
        }
        haloed.copy_into(dealt).await?;
        dealt.lock().for_each(|index, element| {
            assert_eq!(*element, value(index, step), "ISLES_SEED={seed}: an element that moved");
            *element += 1;
        });
        dealt.transpose_into(turned).await?;
        turned.transpose_into(haloed).await?;
    }
    Ok(count)
}

/// All members add to elements of all members while the array is open; then each checks the sums in its slice.
async fn open_steps(seed: u64, opened: &Grid) -> Result<()> {
    let (mut random, size) = (Random::stream(seed, 4), opened.team().size() as u64);
    let [rows, columns] = opened.extents();
    let mut all = vec![0; rows * columns];
    for _ in 0..1 + random.below(3) {
        let open = opened.open().await?;
        for _ in 0..3 {
            let [row, column] = [rows, columns].map(|extent| random.below(extent as u64) as usize);
            let len = random.below((columns - column) as u64 + 1) as usize;
            open.accumulate([row, column], &vec![1; len], Combine::Sum).await?;
            all[row * columns + column..][..len].iter_mut().for_each(|sum| *sum += size);
        }
        open.close().await?;
        opened.lock().for_each(|[row, column], element| {
            assert_eq!(*element, all[row * columns + column], "ISLES_SEED={seed}: a sum of all members");
        });
    }
    Ok(())
}

/// The program of `seed`.
async fn program(seed: u64) -> Result<()> {
    let mut random = Random::stream(seed, 1);
    let team = Team::world();
    let extents @ [rows, columns] = [0; 2].map(|_| random.below(9) as usize + 1);
    let halo = Halo::periodic(1 + random.below(2) as usize);
    let haloed = Grid::with_halo(&team, extents, cut(&mut random, 2), halo).await?;
    let dealt = match seed % 2 {
        0 => Grid::new(&team, extents, cut(&mut random, 4)).await?,
        _ => Grid::in_window(&team, extents, cut(&mut random, 4), Halo::default()).await?,
    };
    let turned = Grid::new(&team, [columns, rows], cut(&mut random, 4)).await?;
    let counts = everywhere!(steps(seed, &haloed, &dealt, &turned).await?).await?;
    let index = [random.below(rows as u64) as usize, random.below(columns as u64) as usize];
    assert_eq!(haloed.get(index).await?, value(index, counts[0]), "ISLES_SEED={seed}");
    haloed.set_many(&[(index, 0), ([0, 0], 1)]).await?;
    let read = haloed.get_many(&[[0, 0], index]).await?;
    assert_eq!(read, if index == [0, 0] { [1, 1] } else { [1, 0] }, "ISLES_SEED={seed}");
    let sums = everywhere!(turned.reduce(|one, other| one + other).await?).await?;
    let all = (0..rows * columns).map(|at| value([at / columns, at % columns], counts[0]));
    assert!(sums.iter().all(|sum| *sum == sums[0]));
    assert_eq!(sums[0], all.sum::<u64>(), "ISLES_SEED={seed}");
    let opened = Grid::in_window(&team, extents, cut(&mut random, 4), Halo::default()).await?;
    everywhere!(open_steps(seed, &opened).await?).await.map(drop)
}

fn run(seed: u64, plan: Plan) -> (Result<()>, u64) {
    let places = 1 + (seed % 6) as u32;
    let (result, _, digest) = isles::simulate(places, plan, move || program(seed));
    (result, digest)
}

#[test]
fn arrays_have_what_arithmetic_says_in_every_order() {
    for seed in seeds(SEEDS) {
        for plan in [Plan::calm, Plan::adversarial] {
            let (result, digest) = run(seed, plan(seed));
            result.unwrap_or_else(|error| panic!("ISLES_SEED={seed}: {error}"));
            assert_eq!(digest, run(seed, plan(seed)).1, "ISLES_SEED={seed} gave two different runs");
        }
    }
}

#[test]
fn a_lost_place_ends_what_waits_for_it_and_nothing_is_wrong() {
    let mut noticed = 0;
    for seed in seeds(SEEDS).filter(|seed| seed % 6 > 0) {
        let mut random = Random::stream(seed, 2);
        let lost = 1 + random.below(seed % 6) as u32;
        let step = random.below(400);
        let plan = || {
            let mut plan = Plan::adversarial(seed);
            plan.losses = vec![PlannedDeath { place: isles_transport::PlaceId(lost), step }];
            plan
        };
        let (result, digest) = run(seed, plan());
        if let Err(error) = result {
            let is_of_dead = *error.kind() != ErrorKind::Misused && *error.kind() != ErrorKind::Panicked;
            assert!(is_of_dead, "ISLES_SEED={seed}: {error}");
            assert!(error.to_string().contains(&format!("place {lost}")), "ISLES_SEED={seed}: {error}");
            noticed += 1;
        }
        assert_eq!(digest, run(seed, plan()).1, "ISLES_SEED={seed} gave two different runs");
    }
    assert!(noticed > 0, "no loss came at a time when it mattered");
}
