//! Results and errors of requests to change clocks and voltages.

use isles_chip::governor::{GovernorError, Policy};
use isles_chip::quantity::{Microvolts, Picoseconds};
use isles_chip::supply::SupplyError;
use std::fmt;
use std::time::Duration;

/// A requested change, in chip time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockChange {
    /// Start of the change: at once, or when the controller has completed earlier requests.
    pub start: Duration,
    /// Time from which the requested rate and voltage apply.
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
    /// The divider does not exist, or has no voltage.
    Divider {
        /// Requested divider.
        asked: u32,
        /// The least divider: the fastest clock.
        least: u32,
        /// The greatest divider.
        most: u32,
    },
    /// The present voltage is too low for that rate; change the supply instead.
    VoltageTooLow {
        /// Requested divider.
        divider: u32,
    },
    /// The voltage is out of range.
    Voltage {
        /// Requested voltage.
        asked: Microvolts,
        /// The lowest voltage of a supply.
        least: Microvolts,
        /// The highest.
        most: Microvolts,
    },
    /// The voltage is too low for the fastest clock of the supply; divide the clocks first.
    ClocksTooFast {
        /// Requested voltage.
        asked: Microvolts,
    },
    /// The policy cannot govern this run.
    Governor(GovernorError),
    /// The whole chip has a governor, so a supply cannot have its own.
    ChipGoverned {
        /// Policy of the chip's governor.
        policy: Policy,
    },
    /// A change of the supply is in progress; retry when it has ended.
    UnderWay {
        /// End of that change, in chip time.
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

/// Converts `time` to a duration, rounded up to nanoseconds.
fn duration(time: Picoseconds) -> Duration {
    Duration::from_nanos(time.0.div_ceil(1_000))
}
