//! Aggregators in simulated worlds: nested finishes, buckets of a few items, tasks that wait for room, lost places.
//!
//! Each seed determines a program and its order, and runs twice with the same digest. `ISLES_TEST_SEEDS` sets the
//! number of seeds; `ISLES_SEED` selects one.

use crate::seeds::seeds;
use isles::prelude::*;
use isles::{AggregatorOptions, ErrorKind, ItemRoute, Plan, PlannedDeath, Result, Torus};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::pin::Pin;

/// Seeds in the ordinary tests.
const SEEDS: u64 = 200;

/// An item: its number, and the finish that counts it.
type Item = (u64, u64);

/// A pushed item: its number, the place of the push, and the target.
#[derive(Clone, Copy)]
struct Pushed {
    number: u64,
    from: usize,
    to: usize,
}

thread_local! {
    /// Number of times each item was applied. All simulated places share this thread.
    static APPLIED: RefCell<HashMap<u64, u32>> = RefCell::default();
    /// Items by finish whose push succeeded.
    static PUSHED: RefCell<HashMap<u64, Vec<Pushed>>> = RefCell::default();
    /// Completed finishes, and the items applied after the end of their finish.
    static OVER: RefCell<HashSet<u64>> = RefCell::default();
    static LATE: RefCell<Vec<u64>> = RefCell::default();
}

fn scramble(seed: u64) -> u64 {
    let mut word = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

fn apply((): &mut (), (number, finish): Item) {
    APPLIED.with_borrow_mut(|applied| *applied.entry(number).or_default() += 1);
    if OVER.with_borrow(|over| over.contains(&finish)) {
        LATE.with_borrow_mut(|late| late.push(number));
    }
}

/// A task that pushes items, starts tasks elsewhere, and opens nested finishes, as its seed determines.
fn grow(
    seed: u64,
    depth: u32,
    scope: u64,
    items: Aggregator<Item>,
) -> Pin<Box<dyn Future<Output = Result<()>>>> {
    Box::pin(async move {
        for index in 0..1 + scramble(seed) % 8 {
            let draw = scramble(seed ^ (index + 1) << 32);
            let place = Place::new(draw as usize % isles::place_count()).unwrap();
            match draw >> 32 & 7 {
                0 if depth > 0 => spawn_at!(place, [draw, depth, scope, items] {
                    grow(draw, depth - 1, scope, items.clone()).await?;
                }),
                1 if depth > 0 => {
                    let result = finish(grow(draw, depth - 1, draw, items.clone())).await;
                    conclude(draw, &result)?;
                    result?;
                }
                2 => isles::yield_now().await,
                _ => {
                    items.push(place, (draw, scope)).await?;
                    let item = Pushed { number: draw, from: here().index(), to: place.index() };
                    PUSHED.with_borrow_mut(|pushed| pushed.entry(scope).or_default().push(item));
                }
            }
        }
        Ok(())
    })
}

/// Checks a completed finish: each of its items was applied once, or its error is a death.
fn conclude(scope: u64, result: &Result<()>) -> Result<()> {
    OVER.with_borrow_mut(|over| over.insert(scope));
    let pushed = PUSHED.with_borrow(|pushed| pushed.get(&scope).cloned().unwrap_or_default());
    let lost = APPLIED
        .with_borrow(|applied| pushed.iter().filter(|item| !applied.contains_key(&item.number)).count());
    if result.is_ok() && lost > 0 {
        return Err(isles::Error::message(format!(
            "{lost} items of a finish that ended well were not applied"
        )));
    }
    Ok(())
}

/// Returns the number of items of the outermost finish that were not applied, although their route avoids the place
/// `lost`.
fn lost_beside(seed: u64, lost: usize) -> usize {
    // Along the first dimension first: then an item is where that coordinate is the target's and the others are not.
    let width = match seed % 3 {
        0 => 1,
        1 => 2,
        _ => 3,
    };
    let is_safe = |item: &&Pushed| {
        let between = item.to % width + item.from / width * width;
        ![item.from, between, item.to].contains(&lost)
    };
    let pushed = PUSHED.with_borrow(|pushed| pushed.get(&0).cloned().unwrap_or_default());
    APPLIED.with_borrow(|applied| {
        pushed.iter().filter(is_safe).filter(|item| !applied.contains_key(&item.number)).count()
    })
}

/// Runs the program of `seed`; returns its result and digest.
fn run(seed: u64, plan: Plan) -> (Result<()>, u64) {
    APPLIED.with_borrow_mut(HashMap::clear);
    PUSHED.with_borrow_mut(HashMap::clear);
    OVER.with_borrow_mut(HashSet::clear);
    LATE.with_borrow_mut(Vec::clear);
    let (places, route) = match seed % 3 {
        0 => (2 + (seed % 5) as u32, ItemRoute::Direct),
        1 => (4, ItemRoute::Torus(Torus::new(&[2, 2]).unwrap())),
        _ => (6, ItemRoute::Torus(Torus::new(&[3, 1, 2]).unwrap())),
    };
    let main = async move {
        let nothing = PlaceLocal::new(|| ()).await?;
        let options = AggregatorOptions::default().route(route).bucket(1 + (seed % 4) as usize);
        let items = Aggregator::with(options, &nothing, apply).await?;
        let result = finish(grow(scramble(seed), 4, 0, items)).await;
        conclude(0, &result)?;
        for _ in 0..100 {
            isles::yield_now().await;
        }
        result
    };
    let (result, _, digest) = isles::simulate(places, plan, move || main);
    let twice = APPLIED.with_borrow(|applied| applied.values().filter(|times| **times > 1).count());
    assert_eq!(twice, 0, "ISLES_SEED={seed}: items were applied twice");
    let late = LATE.with_borrow(Vec::len);
    // An item on its way through a dead place is lost; one that is applied late would be a finish that ended too
    // early.
    assert_eq!(late, 0, "ISLES_SEED={seed}: items were applied after the end of their finish");
    (result, digest)
}

#[test]
fn every_item_of_a_random_program_is_applied_once_before_its_finish_ends() {
    let mut items = 0;
    for seed in seeds(SEEDS) {
        for plan in [Plan::calm, Plan::adversarial] {
            let (result, digest) = run(seed, plan(seed));
            result.unwrap_or_else(|error| panic!("ISLES_SEED={seed}: {error}"));
            items += APPLIED.with_borrow(HashMap::len);
            assert_eq!(digest, run(seed, plan(seed)).1, "ISLES_SEED={seed} gave two different runs");
        }
    }
    assert!(items > 0, "no seed pushed anything");
}

#[test]
fn an_item_is_applied_once_or_its_finish_says_which_place_is_gone() {
    let mut noticed = 0;
    for seed in seeds(SEEDS) {
        let lost = 1 + (scramble(seed) % 2) as u32;
        let (lost, step) = (if seed % 3 == 0 { 1 } else { lost }, scramble(seed ^ 7) % 300);
        let plan = || {
            let mut plan = Plan::adversarial(seed);
            plan.losses = vec![PlannedDeath { place: isles_transport::PlaceId(lost), step }];
            plan
        };
        let (result, digest) = run(seed, plan());
        let beside = lost_beside(seed, lost as usize);
        assert_eq!(beside, 0, "ISLES_SEED={seed}: items were lost whose way leads past place {lost}");
        if let Err(error) = result {
            assert!(*error.kind() != ErrorKind::Misused, "ISLES_SEED={seed}: {error}");
            assert!(error.to_string().contains(&format!("place {lost}")), "ISLES_SEED={seed}: {error}");
            noticed += 1;
        }
        assert_eq!(digest, run(seed, plan()).1, "ISLES_SEED={seed} gave two different runs");
    }
    assert!(noticed > 0, "no loss came at a time when it mattered");
}

/// Pushes items for place 1 and for place 3, which is dead, by way of place 1.
async fn push_beside_a_dead_place() -> Result<()> {
    let counts = PlaceLocal::new(|| 0_u64).await?;
    let options = AggregatorOptions::default().route(ItemRoute::Torus(Torus::new(&[2, 2]).unwrap()));
    let items = Aggregator::with(options, &counts, |count: &mut u64, number: u64| *count += number).await?;
    let [between, dead] = [1, 3].map(|index| Place::new(index).unwrap());
    // Both know that it is dead.
    while at!(dead, ()).await.is_ok() {}
    at!(between, while at!(dead, ()).await.is_ok() {}).await?;
    let result = finish(async {
        for number in 0..100 {
            items.push(if number % 2 == 0 { dead } else { between }, number).await?;
        }
        Ok::<_, isles::Error>(())
    })
    .await;
    assert_eq!(*result.unwrap_err().kind(), ErrorKind::DeadPlace(isles_transport::PlaceId(3)));
    assert_eq!(at!(between, *counts.lock()).await?, (1..100).step_by(2).sum::<u64>());
    Ok(())
}

/// Items that share a part of their route with items for a dead place are still applied.
#[test]
fn items_in_a_bucket_with_some_for_a_dead_place_are_applied() {
    for seed in seeds(20) {
        let mut plan = Plan::adversarial(seed);
        plan.losses = vec![PlannedDeath { place: isles_transport::PlaceId(3), step: 1_000 }];
        let (result, ..) = isles::simulate(4, plan, push_beside_a_dead_place);
        // The program called the place when it died, so it ends with that, and with nothing else.
        let kind = result.as_ref().err().map(isles::Error::kind);
        let dead = ErrorKind::DeadPlace(isles_transport::PlaceId(3));
        assert!(kind.is_none_or(|kind| *kind == dead), "ISLES_SEED={seed}: {result:?}");
    }
}
