//! Random readers and writers of shared objects in simulated worlds, in seeded orders, with loss of places.
//!
//! `ISLES_TEST_SEEDS` sets the number of seeds; `ISLES_SEED` selects one. `tests/shared` has the programs.

use crate::seeds::seeds;
use isles::{Plan, PlannedDeath, Random, Result};

#[path = "../shared/round.rs"]
mod round;

/// Seeds in the ordinary tests.
const SEEDS: u64 = 120;

/// Seeds that found bugs.
const FOUND: [u64; 1] = [738];

fn places_of(seed: u64) -> u32 {
    1 + (seed % 5) as u32
}

fn run(seed: u64, plan: Plan) -> (Result<()>, u64) {
    let (result, _, digest) = isles::simulate(places_of(seed), plan, move || round::round(seed));
    (result, digest)
}

#[test]
fn guards_see_what_the_sequential_register_holds_whatever_comes_first() {
    for seed in seeds(SEEDS).chain(FOUND) {
        for make in [Plan::calm, Plan::adversarial] {
            let (result, digest) = run(seed, make(seed));
            result.unwrap_or_else(|error| panic!("ISLES_SEED={seed}: {error}"));
            assert_eq!(digest, run(seed, make(seed)).1, "ISLES_SEED={seed} gave two different runs");
        }
    }
}

/// Every wait ends, and the only errors are the death and the resulting poison.
#[test]
fn with_a_dead_place_nothing_hangs_and_its_writes_are_poisoned() {
    let (mut lost, mut poisoned) = (0, 0);
    for seed in seeds(SEEDS).chain(FOUND).filter(|seed| places_of(*seed) > 1) {
        let world = || {
            let mut random = Random::stream(seed, 2);
            let place = isles_transport::PlaceId(1 + random.below(u64::from(places_of(seed)) - 1) as u32);
            let step = random.below(1_500);
            Plan { losses: vec![PlannedDeath { place, step }], ..Plan::adversarial(seed) }
        };
        let (result, digest) = run(seed, world());
        if let Err(error) = result {
            let text = error.to_string();
            let is_poisoned = text.contains("a writer of the shared object died");
            let is_known = text.contains("DeadPlace") || is_poisoned;
            assert!(is_known && !text.contains("panicked at"), "ISLES_SEED={seed}: {error}");
            lost += 1;
            poisoned += u32::from(is_poisoned);
        }
        assert_eq!(digest, run(seed, world()).1, "ISLES_SEED={seed} gave two different runs");
    }
    assert!(lost > 0 && poisoned > 0, "a loss was noticed, and poison");
}
