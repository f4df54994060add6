//! One instance at each place: shared and exclusive use, and what a reduction of numbers comes to.

use isles::prelude::*;
use isles::{ErrorKind, Result};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[isles::test(places = 3)]
async fn tasks_wait_on_the_monitors_of_a_place_local() -> Result<()> {
    let boxes = PlaceLocal::new(|| Monitor::new(Vec::new())).await?;
    let sum = PlaceLocal::new(|| Cell::new(0)).await?;
    finish(async {
        for place in places() {
            // Two readers at a time, each across an `await`.
            for _ in 0..2 {
                spawn_at!(place, {
                    let item: usize =
                        boxes.read().when(|items| !items.is_empty(), |items| items.remove(0)).await;
                    sum.read().set(sum.read().get() + item);
                });
            }
            for item in [1, 2] {
                spawn_at!(place.next(), [boxes, item] boxes.read().atomic(|items| items.push(item)));
            }
        }
    })
    .await?;
    assert_eq!(sum.read().get(), 3);
    Ok(())
}

/// What a panic says.
fn panic_text(f: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(f)).expect_err("it panics");
    payload
        .downcast_ref::<&str>()
        .map(|text| text.to_string())
        .or(payload.downcast_ref::<String>().cloned())
        .unwrap()
}

#[isles::test(places = 2)]
async fn an_instance_that_is_in_use_says_how() -> Result<()> {
    let number = PlaceLocal::new(|| 1.0).await?;
    let shared = (number.read(), number.read());
    assert!(panic_text(|| drop(number.lock())).contains("the instance is being read"));
    assert_eq!(number.reduce(|a, b| a + b).await?, 2.0);
    drop(shared);
    let _guard = number.lock();
    assert!(panic_text(|| drop(number.read())).contains("the instance is locked"));
    assert!(panic_text(|| drop(number.lock())).contains("the instance is locked"));
    assert_eq!(number.reduce(|a, b| a + b).await.unwrap_err().kind(), &ErrorKind::Misused);
    Ok(())
}

/// Numbers whose sum depends on the order: large ones that cancel each other, and small ones.
fn number(place: usize) -> f64 {
    (1.0 + place as f64 / 3.0) * 10_f64.powi([16, -3, 16, 0, 7][place % 5]) * [1.0, 1.0, -1.0][place % 3]
}

/// The tree of `PlaceLocal::reduce`, written out: the first, then each half of the rest.
fn tree_sum(numbers: &[f64]) -> f64 {
    let (first, rest) = numbers.split_first().expect("there is one");
    let (low, high) = rest.split_at(rest.len() / 2);
    [low, high].into_iter().filter(|half| !half.is_empty()).fold(*first, |sum, half| sum + tree_sum(half))
}

async fn sums() -> Result<()> {
    let numbers = PlaceLocal::new(|| number(here().index())).await?;
    let all: Vec<f64> = (0..places().len()).map(number).collect();
    for asker in places() {
        let sum = at!(asker, numbers.reduce(|a, b| a + b).await?).await?;
        assert_eq!(sum.to_bits(), tree_sum(&all).to_bits(), "asked at {asker}");
    }
    Ok(())
}

#[isles::test(places = 3)]
async fn a_sum_of_floats_has_the_bits_of_one_tree_of_3_places() -> Result<()> {
    sums().await
}

#[isles::test(places = 7)]
async fn a_sum_of_floats_has_the_bits_of_one_tree_of_7_places() -> Result<()> {
    sums().await
}
