//! Time as a program sees it, and what its steps cost where time is modelled.

use crate::local::Local;
use isles_transport::Work;
use std::time::Duration;

/// A number of cycles of the core that a place runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cycles(pub u64);

impl From<Cycles> for Work {
    fn from(cycles: Cycles) -> Work {
        Work::new().cycles(cycles.0)
    }
}

/// Says what the step that the calling task has just done, or does next, costs on a core: [`Cycles`], or a [`Work`]
/// with operations by class and the memory that they touch.
///
/// On a modelled chip the clock of the place moves on by that much; on a real machine the step takes the time it takes,
/// and this is free. Call it once for much work rather than often for little. Outside of a place it does nothing.
#[inline]
pub fn work(cost: impl Into<Work>) {
    let cost = cost.into();
    Local::try_with(|local| local.endpoint().work(&cost));
}

/// The time since the start of the run at the calling place: the host's, or on a modelled chip the chip's.
///
/// # Panics
/// Outside of a place.
#[track_caller]
pub fn now() -> Duration {
    Local::with(|local| local.clock().now())
}
