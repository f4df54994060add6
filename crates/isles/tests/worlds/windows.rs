//! Random programs over windows in simulated worlds, in seeded orders, with loss of places.
//!
//! `ISLES_TEST_SEEDS` sets the number of seeds; `ISLES_SEED` selects one. `tests/windows` has the programs.

use crate::seeds::seeds;
use isles::{Plan, PlannedDeath, Random, Result};

#[path = "../windows/round.rs"]
mod round;

/// Seeds in the ordinary tests.
const SEEDS: u64 = 120;

fn places_of(seed: u64) -> u32 {
    1 + (seed % 5) as u32
}

fn run(seed: u64, plan: Plan) -> (Result<()>, u64) {
    let (result, _, digest) = isles::simulate(places_of(seed), plan, move || round::round(seed));
    (result, digest)
}

#[test]
fn each_part_is_as_in_the_sequential_model_whatever_comes_first() {
    for seed in seeds(SEEDS) {
        for make in [Plan::calm, Plan::adversarial] {
            let (result, digest) = run(seed, make(seed));
            result.unwrap_or_else(|error| panic!("ISLES_SEED={seed}: {error}"));
            assert_eq!(digest, run(seed, make(seed)).1, "ISLES_SEED={seed} gave two different runs");
        }
    }
}

/// Every wait for the dead place ends, and its death is the only error.
#[test]
fn with_a_dead_place_nothing_hangs_and_what_is_seen_is_right() {
    let mut lost = 0;
    for seed in seeds(SEEDS).filter(|seed| places_of(*seed) > 1) {
        let world = || {
            let mut random = Random::stream(seed, 2);
            let place = isles_transport::PlaceId(1 + random.below(u64::from(places_of(seed)) - 1) as u32);
            let step = random.below(1_500);
            Plan { losses: vec![PlannedDeath { place, step }], ..Plan::adversarial(seed) }
        };
        let (result, digest) = run(seed, world());
        if let Err(error) = result {
            let text = error.to_string();
            assert!(text.contains("DeadPlace") && !text.contains("panicked"), "ISLES_SEED={seed}: {error}");
            lost += 1;
        }
        assert_eq!(digest, run(seed, world()).1, "ISLES_SEED={seed} gave two different runs");
    }
    assert!(lost > 0, "a loss was noticed");
}
