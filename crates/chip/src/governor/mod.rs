//! Policies that choose the rates of a chip while it runs.
//!
//! A governor is called at equal intervals with an observation of each voltage domain, and returns the domains that
//! should change their gears. It is a pure state machine; the caller carries out the orders by the rules of
//! [`supply`](crate::supply), and marks domains whose last change is still in progress.
//!
//! - `fixed`: no changes; `fixed:D` starts all domains with the divider `D`.
//! - `on-demand`: as slow as the busiest core of a domain allows, by its load of the last interval.
//! - `phase-aware`: treats the activity of a domain as a sequence of phases, predicts the next one, and divides clocks
//!   ahead of it; only long idle times lower the voltage.
//! - `capped:WATTS`: the fastest rates with which the chip never exceeds a power, whatever its cores do.
//!
//! Invariant: a governor orders only gears of its chip, and none faster than its bound.

mod capped;
mod demand;
mod phase;
#[cfg(test)]
mod tests;

use crate::energy::Load;
use crate::gear::{GearId, Gears, PowerTable, VoltageStepId};
use crate::quantity::{Microwatts, Picoseconds};
use capped::Capped;
use demand::OnDemand;
use phase::PhaseAware;
use std::fmt;
use std::str::FromStr;

/// Interval between two calls of a governor. It is short, because dividers change at once; ten times a voltage change
/// of the SCC would be too long to follow a program.
pub const INTERVAL: Picoseconds = Picoseconds(1_000_000_000);

/// Requested policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Clocks stay at the preset of the chip.
    #[default]
    Fixed,
    /// Clocks stay at one divider.
    FixedAt(u32),
    /// Clocks follow the load of the last interval.
    OnDemand,
    /// Clocks follow a prediction of the next phase.
    PhaseAware,
    /// Clocks are chosen to stay under a power.
    Capped(Microwatts),
}

/// Names of the policies, for error texts.
pub(crate) const POLICIES: &str =
    "fixed, fixed:DIVIDER, on-demand, phase-aware, capped:WATTS such as capped:60W";

/// Allowed powers of a cap, for error texts.
const CAPS: &str = "a power with its unit, such as capped:60W or capped:800mW";

impl FromStr for Policy {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Policy, &'static str> {
        let found = match text.split_once(':') {
            None => match text {
                "fixed" => Some(Policy::Fixed),
                "on-demand" => Some(Policy::OnDemand),
                "phase-aware" => Some(Policy::PhaseAware),
                _ => None,
            },
            Some(("fixed", divider)) => divider.parse().ok().map(Policy::FixedAt),
            Some(("capped", power)) => return power.parse().map(Policy::Capped).map_err(|_| CAPS),
            Some(_) => None,
        };
        found.ok_or(POLICIES)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Policy::Fixed => f.write_str("fixed"),
            Policy::FixedAt(divider) => write!(f, "fixed:{divider}"),
            Policy::OnDemand => f.write_str("on-demand"),
            Policy::PhaseAware => f.write_str("phase-aware"),
            Policy::Capped(power) => write!(f, "capped:{}W", power.watts()),
        }
    }
}

/// Reason why a policy cannot govern a chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GovernorError {
    /// The clocks of the chip cannot be divided.
    Clocks,
    /// The divider does not exist, or has no voltage.
    Divider {
        /// The least divider: the fastest clock.
        least: u32,
        /// The greatest.
        most: u32,
    },
    /// The power of the chip is unpublished.
    Power,
    /// Even with the slowest clocks the chip may exceed the cap.
    Cap {
        /// The smallest possible cap.
        least: Microwatts,
        /// Number of places.
        places: u32,
    },
}

impl fmt::Display for GovernorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GovernorError::Clocks => f.write_str(
                "fixed on this chip, because its clocks cannot be \
                 divided",
            ),
            GovernorError::Divider { least, most } => write!(f, "a divider from {least} to {most}"),
            GovernorError::Power => f.write_str("no cap on this chip, because its file has no power model"),
            GovernorError::Cap { least, places } => {
                let watts = (least.watts() * 100.0).ceil() / 100.0;
                let places = if *places == 1 { "1 place".to_owned() } else { format!("{places} places") };
                write!(
                    f,
                    "at least {watts} W, the most that {places} can draw with all clocks at their \
                     slowest"
                )
            }
        }
    }
}

impl std::error::Error for GovernorError {}

/// Properties of the chip for a governor.
#[derive(Clone, Debug)]
pub struct GovernorContext {
    /// The gears.
    pub gears: Gears,
    /// The powers of a core, if published.
    pub table: Option<PowerTable>,
    /// Power of the chip besides its cores.
    pub constant: Microwatts,
    /// For each voltage domain, the numbers of cores with and without places.
    pub cores: Vec<[u32; 2]>,
}

impl GovernorContext {
    /// Returns the maximum power of a domain's cores in a gear, at a voltage step.
    pub fn worst(&self, domain: usize, gear: GearId, step: VoltageStepId) -> Microwatts {
        let Some(table) = &self.table else { return Microwatts(0) };
        let [placed, unplaced] = self.cores[domain];
        let busy = Load::ALL.map(|load| table.power(load, gear, step)).into_iter().max().unwrap_or_default();
        let idle = table.power(Load::Sleep, gear, step);
        Microwatts(busy.0 * u64::from(placed) + idle.0 * u64::from(unplaced))
    }

    fn has_places(&self, domain: usize) -> bool {
        self.cores[domain][0] > 0
    }
}

/// Activity of a voltage domain's cores with places since the last call of the governor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// Busy time of the busiest core, not counting polls, in thousandths.
    pub busy: u32,
    /// Computing time of all cores, in thousandths of their time.
    pub computing: u32,
    /// Time of all cores for moving lines or handling messages, in thousandths of their time.
    pub moving: u32,
    /// `true` if no change of the domain is in progress.
    pub settled: bool,
}

/// Change ordered by a governor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Sets all clocks of a domain to a gear, with the voltage that it needs.
    Shift {
        /// Number of the domain.
        domain: usize,
        /// Its new gear.
        gear: GearId,
    },
    /// Sets all clocks of a domain to a gear that its present voltage supports.
    Divide {
        /// Number of the domain.
        domain: usize,
        /// Its new gear.
        gear: GearId,
    },
}

/// A policy with its state.
#[derive(Clone, Debug)]
pub enum Governor {
    /// `fixed`.
    Fixed,
    /// `on-demand`.
    OnDemand(OnDemand),
    /// `phase-aware`.
    PhaseAware(PhaseAware),
    /// `capped`.
    Capped(Capped),
}

impl Governor {
    /// Makes the governor of a policy for a chip, with the initial gear of each voltage domain; no gears for
    /// [`Policy::Fixed`].
    ///
    /// All other policies start domains without places in the slowest gear.
    ///
    /// # Errors
    /// [`GovernorError`].
    pub fn new(policy: Policy, context: GovernorContext) -> Result<(Governor, Vec<GearId>), GovernorError> {
        let gears = &context.gears;
        if policy == Policy::Fixed {
            return Ok((Governor::Fixed, Vec::new()));
        }
        if gears.all().all(|(_, gear)| gear.divider.is_none()) {
            return Err(GovernorError::Clocks);
        }
        let start = |gear| {
            let domains = 0..context.cores.len();
            domains.map(|domain| if context.has_places(domain) { gear } else { gears.slowest() }).collect()
        };
        Ok(match policy {
            Policy::Fixed => (Governor::Fixed, Vec::new()),
            Policy::FixedAt(divider) => {
                let dividers = || gears.all().filter_map(|(_, gear)| gear.divider);
                let (least, most) = (dividers().min().unwrap_or(1), dividers().max().unwrap_or(1));
                let gear = gears.divided_by(divider).ok_or(GovernorError::Divider { least, most })?;
                (Governor::Fixed, start(gear))
            }
            Policy::OnDemand => {
                let first = start(gears.first());
                (Governor::OnDemand(OnDemand::new(context, first.clone())), first)
            }
            Policy::PhaseAware => {
                let first = start(gears.first());
                (Governor::PhaseAware(PhaseAware::new(context)), first)
            }
            Policy::Capped(cap) => {
                let capped = Capped::new(cap, context)?;
                let first = capped.gears().to_vec();
                (Governor::Capped(capped), first)
            }
        })
    }

    /// Returns `true` if the governor never orders a change.
    pub fn is_fixed(&self) -> bool {
        matches!(self, Governor::Fixed)
    }

    /// Returns the orders after an interval, given an observation of each voltage domain; assumes that all orders are
    /// carried out.
    pub fn decide(&mut self, observed: &[Observation]) -> Vec<Order> {
        match self {
            Governor::Fixed => Vec::new(),
            Governor::OnDemand(policy) => policy.decide(observed),
            Governor::PhaseAware(policy) => policy.decide(observed),
            Governor::Capped(policy) => policy.decide(observed),
        }
    }
}
