//! The seeds of a test of simulated worlds.

use std::ops::Range;

/// Returns the seed `ISLES_SEED` if set; otherwise the seeds from 0, `ISLES_TEST_SEEDS` or `usual` in number.
pub fn seeds(usual: u64) -> Range<u64> {
    let read = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    match read("ISLES_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..read("ISLES_TEST_SEEDS").unwrap_or(usual),
    }
}
