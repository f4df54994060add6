//! Random numbers that do not depend on the machine.
//!
//! The generator is in `transport`, whose seeded worlds use it too; this module adds one stream for each place.

use isles_runtime::here;
pub use isles_transport::random::Random;

/// Returns the generator of `seed` for this place: the stream with the number of the place.
///
/// Use it for choices of the place itself, such as the victim of a steal. Results then depend on the number of places.
/// For results that do not, number the streams by work items with [`Random::stream`]. Do not use both with one seed,
/// because they are the same streams.
///
/// # Panics
/// Outside of a place.
#[track_caller]
pub fn random_here(seed: u64) -> Random {
    Random::stream(seed, here().index() as u64)
}
