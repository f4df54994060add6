//! Aggregators whose pushes and gathers are cancelled, and whose functions panic occasionally.

use super::{attempt, interrupt, run_worlds};
use isles::prelude::*;
use isles::{AggregatorOptions, ErrorKind, Gatherer, Random, Result};
use std::cell::RefCell;
use std::collections::BTreeSet;

/// The item that the function of the second aggregator refuses with a panic.
const REFUSED: u64 = u64::MAX;

thread_local! {
    /// Items that were applied, pushed, or perhaps pushed.
    static APPLIED: RefCell<BTreeSet<u64>> = RefCell::default();
    static PUSHED: RefCell<BTreeSet<u64>> = RefCell::default();
    static UNSURE: RefCell<BTreeSet<u64>> = RefCell::default();
}

fn apply((): &mut (), item: u64) {
    assert!(item != REFUSED, "it is refused");
    assert!(APPLIED.with_borrow_mut(|applied| applied.insert(item)), "{item} was applied twice");
}

/// Pushes items from `first` on; returns `true` if some pushes were cancelled.
async fn push_all(seed: u64, first: u64, items: &Aggregator<u64>) -> Result<()> {
    let mut random = Random::stream(seed, first);
    for item in first..first + random.below(30) {
        let to = Place::new(random.below(place_count() as u64) as usize).expect("it is there");
        let pushed = match random.below(4) {
            0 => {
                let pushed = items.push_all([(to, item)]);
                interrupt("services/aggregation/aggregator push_all", &mut random, pushed).await
            }
            _ => interrupt("services/aggregation/aggregator push", &mut random, items.push(to, item)).await,
        };
        let noted = if pushed.transpose()?.is_some() { &PUSHED } else { &UNSURE };
        noted.with_borrow_mut(|noted| noted.insert(item));
    }
    Ok(())
}

/// Requests squares, and checks each answer, whatever was cancelled before.
async fn gather(seed: u64, squares: &Gatherer<u64, u64>) -> Result<()> {
    let mut random = Random::stream(seed, 50 + here().index() as u64);
    for _ in 0..4 {
        let numbers: Vec<u64> = (0..random.below(12)).collect();
        let to = |number: &u64| (Place::new(*number as usize % place_count()).expect("it is there"), *number);
        let right: Vec<u64> = numbers.iter().map(|number| number * number).collect();
        if random.below(2) == 0 {
            let gathered = squares.gather(numbers.iter().map(to));
            if let Some(found) =
                interrupt("services/aggregation/gatherer gather", &mut random, gathered).await
            {
                assert_eq!(found?, right);
            }
        } else {
            let mut found = vec![0; numbers.len()];
            let gathered = squares.gather_into(numbers.iter().map(to), &mut found);
            if let Some(gathered) =
                interrupt("services/aggregation/gatherer gather_into", &mut random, gathered).await
            {
                gathered?;
                assert_eq!(found, right);
            }
        }
    }
    Ok(())
}

async fn program(seed: u64) -> Result<()> {
    for set in [&APPLIED, &PUSHED, &UNSURE] {
        set.with_borrow_mut(BTreeSet::clear);
    }
    let mut random = Random::stream(seed, 0);
    let nothing = PlaceLocal::new(|| ()).await?;
    let made = Aggregator::new(&nothing, apply);
    attempt("services/aggregation/aggregator new", &mut random, made).await?;
    let options = AggregatorOptions::default().bucket(1 + random.below(6) as usize);
    let made = Aggregator::batched(options.clone(), &nothing, |state, items: Vec<u64>| {
        items.into_iter().for_each(|item| apply(state, item));
    });
    attempt("services/aggregation/aggregator batched", &mut random, made).await?;
    let made = Aggregator::addressed(
        options.clone(),
        &nothing,
        |_, _: &u64| here(),
        |state, items: Vec<u64>| items.into_iter().for_each(|item| apply(state, item)),
    );
    attempt("services/aggregation/aggregator addressed", &mut random, made).await?;
    let made = Aggregator::with(options.clone(), &nothing, apply);
    let items = match interrupt("services/aggregation/aggregator with", &mut random, made).await {
        Some(items) => items?,
        None => Aggregator::with(options, &nothing, apply).await?,
    };
    finish(async {
        for place in places() {
            for task in 0..2 {
                let first = (1 + place.index() as u64 * 2 + task) << 10;
                spawn_at!(place, [seed, first, items] push_all(seed, first, &items).await?);
            }
        }
    })
    .await?;
    let (applied, pushed, unsure) = (APPLIED.take(), PUSHED.take(), UNSURE.take());
    assert!(pushed.is_subset(&applied), "lost: {:?}", pushed.difference(&applied).collect::<Vec<_>>());
    assert!(applied.iter().all(|item| pushed.contains(item) || unsure.contains(item)), "invented");
    // A function that panics fails the finish, and the aggregator still works.
    let to = places().last().expect("there is a place");
    let failed = finish(async { items.push(to, REFUSED).await }).await.expect_err("it is refused");
    assert_eq!(*failed.kind(), ErrorKind::Panicked, "{failed}");
    finish(async { items.push(to, 1).await }).await?;
    assert!(APPLIED.with_borrow(|applied| applied.contains(&1)));
    let state = PlaceLocal::new(|| ()).await?;
    let made = Gatherer::new(&state, |(): &(), number: u64| number * number);
    let squares = match interrupt("services/aggregation/gatherer new", &mut random, made).await {
        Some(squares) => squares?,
        None => Gatherer::new(&state, |(): &(), number: u64| number * number).await?,
    };
    everywhere!(gather(seed, &squares).await?).await.map(drop)
}

#[test]
fn no_item_is_lost_or_doubled() {
    run_worlds("aggregation", program);
}
