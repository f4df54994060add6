//! Random numbers by item and by place: the same on every machine; those by item with any number of places.

use isles::prelude::*;
use isles::{Random, Result, random_here};

const SEED: u64 = 42;

/// Returns the numbers of 20 items, distributed over all places.
async fn by_item() -> Result<Vec<u64>> {
    let mine = everywhere!({
        let items = (here().index()..20).step_by(place_count());
        items.map(|item| (item, Random::stream(SEED, item as u64).bits())).collect::<Vec<_>>()
    });
    let mut all = mine.await?.concat();
    all.sort_unstable();
    Ok(all.into_iter().map(|(_, number)| number).collect())
}

fn expected() -> Vec<u64> {
    (0..20).map(|item| Random::stream(SEED, item).bits()).collect()
}

#[isles::test(places = 1, machines = [threads, processes, loopback])]
async fn one_place_has_the_numbers_of_the_items() -> Result<()> {
    let numbers = by_item().await?;
    assert_eq!((numbers[7], &numbers), (17_854_260_268_781_168_342, &expected()));
    Ok(())
}

#[isles::test(places = 2)]
async fn two_places_have_the_same_numbers() -> Result<()> {
    assert_eq!(by_item().await?, expected());
    Ok(())
}

#[isles::test(places = 5)]
async fn five_places_have_the_same_numbers() -> Result<()> {
    assert_eq!(by_item().await?, expected());
    Ok(())
}

#[isles::test(places = 3)]
async fn each_place_has_a_stream_of_its_own() -> Result<()> {
    let by_place = everywhere!(random_here(SEED).bits()).await?;
    assert_eq!(by_place, expected()[..3]);
    Ok(())
}
