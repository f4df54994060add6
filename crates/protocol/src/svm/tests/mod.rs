//! Tests of the page protocols: all orders of small worlds, and random programs beside a sequential memory.
//!
//! `ISLES_TEST_SEEDS` sets the number of random programs; `ISLES_SEED` selects one.

mod lock;
mod permission;
mod release;

use std::ops::Range;

/// Number of random programs of each kind in ordinary test runs.
const SEEDS: u64 = 2000;

/// The seeds of a test.
fn seeds() -> Range<u64> {
    let read = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    match read("ISLES_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..read("ISLES_TEST_SEEDS").unwrap_or(SEEDS),
    }
}

/// A source of choices (splitmix64).
struct Choices(u64);

impl Choices {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ mixed >> 31) % limit as u64) as usize
    }
}
