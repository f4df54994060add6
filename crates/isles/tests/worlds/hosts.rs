//! Places on several simulated hosts: counters and teams have bitwise the same results as on one host, in seeded
//! orders.
//!
//! `ISLES_TEST_SEEDS` sets the number of seeds; `ISLES_SEED` selects one.

use crate::seeds::seeds;
use isles::prelude::*;
use isles::{Plan, Result};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Seeds in the ordinary tests.
const SEEDS: u64 = 21;

/// The number of places: a prime, and enough for a hierarchical `all_reduce`.
const PLACES: u32 = 13;

/// Elements of the slices of a team: one message, and several chunks by halves.
const SLICES: [usize; 3] = [1, 700, 20_000];

thread_local! {
    /// Final results of each member of each team, as bits. All simulated places share this thread.
    static RESULTS: RefCell<BTreeMap<(String, usize), Vec<u64>>> = RefCell::default();
    /// Numbers that a counter gave out.
    static TAKEN: RefCell<Vec<u64>> = RefCell::default();
}

/// Returns an adversarial plan of `seed` with `places_per_host` places on each host.
fn plan(seed: u64, places_per_host: u32) -> Plan {
    Plan { places_per_host, words: if seed.is_multiple_of(3) { 0 } else { 16 }, ..Plan::adversarial(seed) }
}

/// Returns a number whose sums depend on their order.
fn odd(rank: usize, index: usize) -> f64 {
    0.1 / (rank as f64 + 1.0) + 1e9 / (index as f64 + 3.0)
}

/// Runs all collectives whose algorithm depends on hosts, with the first, a middle and the last member as the root.
async fn collect(name: &str, team: &Team) -> Result<()> {
    let mut bits = Vec::new();
    for root in [0, team.size() / 2, team.size() - 1] {
        let text = (team.rank() == root).then(|| format!("from {root}"));
        assert_eq!(team.broadcast(root, text).await?, format!("from {root}"));
        team.barrier().await?;
        bits.push(team.all_reduce(odd(team.rank(), root), |a, b| a + b).await?.to_bits());
        for len in SLICES {
            let mut slice: Vec<f64> = (0..len).map(|index| odd(team.rank(), index)).collect();
            team.all_reduce_slice(&mut slice, |a, b| a + b).await?;
            bits.extend([slice[0].to_bits(), slice[len - 1].to_bits()]);
            let mut copy: Vec<f64> = (0..len).map(|index| odd(team.rank() + 1, index)).collect();
            team.broadcast_slice(root, &mut copy).await?;
            assert!(copy.iter().enumerate().all(|(index, element)| *element == odd(root + 1, index)));
        }
    }
    RESULTS.with_borrow_mut(|results| results.insert((name.to_owned(), team.rank()), bits));
    Ok(())
}

/// Runs the collectives of the team of all places, of the reversed team, and of its odd and even members.
async fn teams() -> Result<()> {
    let backwards = Team::from_places(&places().rev().collect::<Vec<Place>>())?;
    let world = Team::world();
    finish(async {
        for place in places() {
            spawn_at!(place, {
                collect("all", &world).await?;
                collect("backwards", &backwards).await?;
                let parity = world.rank() % 2;
                let part = world.split(parity, 0).await?;
                collect(&format!("part {parity}"), &part).await?;
            });
        }
    })
    .await
}

#[test]
fn teams_have_the_bits_of_one_host() {
    let run = |seed, places_per_host| {
        let (result, ..) = isles::simulate(PLACES, plan(seed, places_per_host), teams);
        result.unwrap_or_else(|error| panic!("seed {seed}, hosts of {places_per_host}: {error}"));
        RESULTS.take()
    };
    let expected = run(0, PLACES);
    assert_eq!(expected.len(), 3 * PLACES as usize);
    for seed in seeds(SEEDS) {
        let places_per_host = 1 + (seed % u64::from(PLACES)) as u32;
        assert!(run(seed, places_per_host) == expected, "seed {seed}, hosts of {places_per_host}");
    }
}

/// Each place takes numbers, one or several at a time, until none is left.
async fn count() -> Result<()> {
    const NUMBERS: u64 = 300;
    let homes: Vec<Place> = places().collect();
    for home in [homes[0], homes[PLACES as usize - 1]] {
        let next = at!(home, Counter::new()).await?;
        let before = TAKEN.take().len();
        assert!(before == 0 || before == NUMBERS as usize);
        finish(async {
            for place in places() {
                spawn_at!(place, {
                    let mut taken: Vec<u64> = Vec::new();
                    if here().index().is_multiple_of(2) {
                        while let Some(number) = next.take_below(NUMBERS).await? {
                            taken.push(number);
                        }
                    } else {
                        loop {
                            let some = next.ask_below(NUMBERS, 1 + taken.len() as u32 % 5).await?;
                            if some.is_empty() {
                                break;
                            }
                            taken.extend(some);
                        }
                    }
                    TAKEN.with_borrow_mut(|all| all.extend(taken));
                });
            }
        })
        .await?;
        let mut all = TAKEN.with_borrow(Vec::clone);
        all.sort_unstable();
        assert!(all.into_iter().eq(0..NUMBERS), "numbers of {home} are missing, or twice there");
        assert!(next.get().await? >= NUMBERS);
    }
    Ok(())
}

#[test]
fn a_counter_gives_each_number_once_whoever_shares_memory_with_it() {
    for seed in seeds(SEEDS) {
        let places_per_host = 1 + (seed % u64::from(PLACES)) as u32;
        let (result, ..) = isles::simulate(PLACES, plan(seed, places_per_host), count);
        result.unwrap_or_else(|error| panic!("seed {seed}, hosts of {places_per_host}: {error}"));
        TAKEN.take();
    }
}
