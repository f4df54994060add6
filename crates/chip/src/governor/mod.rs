//! Policies that choose the rates of a chip while it runs.
//!
//! A governor is asked at equal intervals: it sees what the cores of each voltage domain did since it was asked last,
//! and says which domains shall run in which gear. It is a pure state machine; who asks it carries the answers out by
//! the rules of [`supply`](crate::supply), and asks about no domain whose last change is still under way.
//!
//! - `fixed`: never anything; `fixed:D` starts all domains with the divider `D`.
//! - `on-demand`: as slow as the busiest core of a domain allows, by its load of the last interval.
//! - `phase-aware`: takes what a domain does for a sequence of phases, predicts the next one, and divides clocks ahead
//!   of it; only long rest lowers the voltage.
//! - `capped:WATTS`: as fast as fits under a power that the chip never exceeds, whatever its cores do.
//!
//! Invariant: a governor names gears of its chip only, and none faster than its bound.

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

/// Interval between two calls of a governor. Ten times a voltage change of the SCC would be too long to follow a
/// program, and dividers change at once.
pub const INTERVAL: Picoseconds = Picoseconds(1_000_000_000);

/// Requested policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Clocks stay as the setting of the chip has them.
    #[default]
    Fixed,
    /// Clocks stay at one divider.
    FixedAt(u32),
    /// By the load of the last interval.
    OnDemand,
    /// By a prediction of the next phase.
    PhaseAware,
    /// Under a power.
    Capped(Microwatts),
}

/// Names of the policies, for messages.
pub(crate) const POLICIES: &str =
    "fixed, fixed:DIVIDER, on-demand, phase-aware, capped:WATTS such as capped:60W";

/// Allowed powers of a cap, for messages.
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
    /// There is no such divider, or no voltage for it.
    Divider {
        /// The least divider: the fastest clock.
        least: u32,
        /// The greatest.
        most: u32,
    },
    /// Nobody has published the power of the chip.
    Power,
    /// Even with all clocks at their slowest the chip may draw more.
    Cap {
        /// The least power that can be kept.
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

/// Properties of the chip that a governor must know.
#[derive(Clone, Debug)]
pub struct GovernorContext {
    /// The gears.
    pub gears: Gears,
    /// The powers of a core, if anybody has published them.
    pub table: Option<PowerTable>,
    /// Power of the chip besides its cores.
    pub constant: Microwatts,
    /// Of each voltage domain how many of its cores have places, and how many have none.
    pub cores: Vec<[u32; 2]>,
}

impl GovernorContext {
    /// The most that the cores of a domain can draw in a gear, at a step of voltage.
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

/// Activity of a voltage domain's cores that have places, since the last call of the governor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// The share of time in which the busiest core did anything but look for messages, in thousandths.
    pub busy: u32,
    /// The share of all cores' time that they computed, in thousandths.
    pub computing: u32,
    /// The share of all cores' time that they moved lines or handled messages, in thousandths.
    pub moving: u32,
    /// `true` if no change of the domain is under way.
    pub settled: bool,
}

/// Change ordered by a governor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// All clocks of a domain in a gear, at the voltage that it needs.
    Shift {
        /// Number of the domain.
        domain: usize,
        /// Its new gear.
        gear: GearId,
    },
    /// All clocks of a domain in a gear that its present voltage carries.
    Divide {
        /// Number of the domain.
        domain: usize,
        /// Its new gear.
        gear: GearId,
    },
}

/// A policy at work.
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
    /// A policy for a chip, and the gear of each voltage domain to start in; none of them for [`Policy::Fixed`].
    ///
    /// All others start domains without a place in the slowest gear.
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

    /// Returns the orders after an interval, given an observation of each voltage domain. Assumes that all of them are
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
