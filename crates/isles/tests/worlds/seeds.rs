//! The seeds that a test of invented worlds runs.

use std::ops::Range;

/// The seed that `ISLES_SEED` names; else as many from 0 as `ISLES_TEST_SEEDS` says, or `usual`.
pub fn seeds(usual: u64) -> Range<u64> {
    let read = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    match read("ISLES_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..read("ISLES_TEST_SEEDS").unwrap_or(usual),
    }
}
