//! What a program hears when it asks for other rates of cores.

use isles_chip::governor::{GovernorError, Policy};
use isles_chip::quantity::{Microvolts, Picoseconds};
use isles_chip::supply::SupplyError;
use std::fmt;
use std::time::Duration;

/// A change that was asked for, by the clock of the chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockChange {
    /// Start of the change: at once, or when the controller has completed earlier requests.
    pub start: Duration,
    /// Time from which rate and voltage are those asked for.
    pub end: Duration,
}

impl ClockChange {
    pub(crate) fn new(start: Picoseconds, end: Picoseconds) -> ClockChange {
        ClockChange { start: duration(start), end: duration(end) }
    }

    pub(crate) fn at(time: Picoseconds) -> ClockChange {
        ClockChange::new(time, time)
    }
}

/// Error of a change of clocks or voltage; nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClockError {
    /// The clocks of this chip cannot be divided.
    Fixed,
    /// There is no such divider, or no voltage for it.
    Divider {
        /// Divider asked for.
        asked: u32,
        /// The least divider: the fastest clock.
        least: u32,
        /// The greatest divider.
        most: u32,
    },
    /// The present voltage does not carry that rate; ask for it with the supply.
    VoltageTooLow {
        /// Divider asked for.
        divider: u32,
    },
    /// There is no such voltage.
    Voltage {
        /// Voltage asked for.
        asked: Microvolts,
        /// The lowest voltage of a supply.
        least: Microvolts,
        /// The highest.
        most: Microvolts,
    },
    /// The voltage does not carry the fastest clock of the supply; divide clocks first.
    ClocksTooFast {
        /// Voltage asked for.
        asked: Microvolts,
    },
    /// The policy cannot govern this run.
    Governor(GovernorError),
    /// A governor governs the whole chip, so a supply can have none of its own.
    ChipGoverned {
        /// Policy of the chip's governor.
        policy: Policy,
    },
    /// A change of the supply is under way; ask again then.
    UnderWay {
        /// End of that change, by the clock of the chip.
        until: Duration,
    },
}

impl ClockError {
    pub(crate) fn of(refusal: SupplyError, divider: u32) -> ClockError {
        match refusal {
            SupplyError::UnderWay { until } => ClockError::under_way(until),
            SupplyError::VoltageTooLow => ClockError::VoltageTooLow { divider },
        }
    }

    pub(crate) fn under_way(until: Picoseconds) -> ClockError {
        ClockError::UnderWay { until: duration(until) }
    }
}

impl fmt::Display for ClockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClockError::Fixed => write!(f, "the clocks of this chip cannot be divided"),
            ClockError::Divider { asked, least, most } => {
                write!(f, "the divider is {asked}; allowed: a whole number from {least} to {most}")
            }
            ClockError::VoltageTooLow { divider } => {
                write!(f, "the present voltage is too low for the divider {divider}")
            }
            ClockError::Voltage { asked, least, most } => {
                let [asked, least, most] = [asked, least, most].map(volts);
                write!(f, "the voltage is {asked} V; allowed: from {least} V to {most} V")
            }
            ClockError::ClocksTooFast { asked } => {
                let asked = volts(asked);
                write!(
                    f,
                    "{asked} V is too low for the fastest clock of the supply; divide its clocks \
                     first"
                )
            }
            ClockError::Governor(error) => write!(
                f,
                "the governor does not suit this run; allowed: \
                 {error}"
            ),
            ClockError::ChipGoverned { policy } => {
                write!(f, "the governor {policy} is set for the whole chip; set fixed for the chip first")
            }
            ClockError::UnderWay { until } => {
                write!(f, "a change of the supply is in progress until {until:?}")
            }
        }
    }
}

impl std::error::Error for ClockError {}

fn volts(voltage: &Microvolts) -> f64 {
    f64::from(voltage.0) / 1e6
}

/// The first time of a clock of nanoseconds that is not before `time`.
fn duration(time: Picoseconds) -> Duration {
    Duration::from_nanos(time.0.div_ceil(1_000))
}
