//! Time as a program sees it, and what its steps cost where time is modelled.

use crate::local::Local;
use std::time::Duration;

/// A number of cycles of the core that a place runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cycles(pub u64);

/// Says what the step that the calling task has just done, or does next, costs on a core.
///
/// On a modelled chip the clock of the place moves on by that much; on a real machine the step takes the time it takes,
/// and this is free. Call it once for much work rather than often for little. Outside of a place it does nothing.
#[inline]
pub fn work(cost: Cycles) {
    Local::try_with(|local| local.endpoint().work(cost.0));
}

/// The time since the start of the run at the calling place: the host's, or on a modelled chip the chip's.
///
/// # Panics
/// Outside of a place.
#[track_caller]
pub fn now() -> Duration {
    Local::with(|local| local.clock().now())
}
