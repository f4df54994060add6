//! Random numbers that do not depend on the machine.
//!
//! The generator lies in `transport`, whose seeded worlds use it, too; here is what places add.

use isles_runtime::here;
pub use isles_transport::random::Random;

/// The generator of `seed` for this place: the stream whose number is that of the place.
///
/// For what belongs to a place, such as the victim of a steal or the noise of its piece. The numbers then depend on how
/// many places there are. To have the same ones with any number of places, name streams by the items of work:
/// [`Random::stream`]. Do not use both with one seed, because they are the same streams.
///
/// # Panics
/// Outside of a place.
#[track_caller]
pub fn random_here(seed: u64) -> Random {
    Random::stream(seed, here().index() as u64)
}
