//! How long a place waits in which way before it sleeps.
//!
//! The whole waiting policy in one place, so that it can be read and tuned with the `raw` example. It does not
//! wait itself.

use std::time::Duration;

/// The steps of one wait, in order: look in a loop, look between giving the processor away, sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaitPolicy {
    /// How long to look in a loop, keeping the processor.
    ///
    /// A sleep and its wake-up cost some 5 microseconds at each side; so a place with a processor of its own
    /// looks for several times that, and an idle one then sleeps for good.
    pub spin: Duration,
    /// How many times to give the processor away after that, looking in between.
    ///
    /// Where places share processors, the one that has the work gets the processor at once this way, without
    /// the cost of a sleep for the one that waits.
    pub yields: u32,
}

/// Most places a processor for which giving the processor away goes round faster than a sleep and its wake-up:
/// some 0.8 microseconds a place (measured with 8 places on 2 processors) against some 15.
const CROWD_MAX: u32 = 16;

impl WaitPolicy {
    /// Whether places give the processor to each other for as long as they wait.
    pub fn waits_in_turn(self) -> bool {
        self.spin.is_zero() && self.yields > 1
    }

    /// The policy of a run of `places` places on `processors` processors.
    pub fn of(places: u32, processors: u32) -> WaitPolicy {
        if places <= processors {
            WaitPolicy { spin: Duration::from_micros(50), yields: 2 }
        } else if places <= CROWD_MAX * processors {
            WaitPolicy { spin: Duration::ZERO, yields: 250 }
        } else {
            WaitPolicy { spin: Duration::ZERO, yields: 1 }
        }
    }
}
