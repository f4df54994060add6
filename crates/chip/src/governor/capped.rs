//! `capped`: the fastest rates that guarantee a power cap, whatever the cores do.
//!
//! Each domain is granted the maximum power of its cores in its gear; the sum of the grants and of the chip's constant
//! power stays under the cap, so the chip does too. The policy starts with the fastest gear that all domains with
//! places can have together. A domain that is idle for a while goes to the slowest gear; a busy one is raised by one
//! gear if that fits. During a change the larger of the old and the new grant counts. The power of flits in the mesh,
//! some microwatts, is not counted.

use super::{GovernorContext, GovernorError, Observation, Order};
use crate::gear::GearId;
use crate::quantity::Microwatts;

/// Thousandths of load below which a domain is idle.
const RESTING: u32 = 100;

/// Thousandths of load from which on a domain is raised.
const WORKING: u32 = 500;

/// Idle intervals after which a domain goes to the slowest gear.
const REST: u32 = 20;

/// One domain.
#[derive(Clone, Copy, Debug)]
struct Grant {
    gear: GearId,
    /// Maximum power until its last change is complete.
    power: Microwatts,
    rested: u32,
}

/// The policy.
#[derive(Clone, Debug)]
pub struct Capped {
    cap: Microwatts,
    context: GovernorContext,
    gears: Vec<GearId>,
    grants: Vec<Grant>,
}

impl Capped {
    pub(super) fn new(cap: Microwatts, context: GovernorContext) -> Result<Capped, GovernorError> {
        if context.table.is_none() {
            return Err(GovernorError::Power);
        }
        let slowest = context.gears.slowest();
        let gears = |gear: GearId| -> Vec<GearId> {
            let domains = 0..context.cores.len();
            domains.map(|domain| if context.has_places(domain) { gear } else { slowest }).collect()
        };
        let total = |gears: &[GearId]| -> Microwatts {
            let cores: Microwatts =
                gears.iter().enumerate().map(|(domain, gear)| needs(&context, domain, *gear)).sum();
            cores + context.constant
        };
        let fits = |gear: &GearId| total(&gears(*gear)) <= cap;
        let found = context.gears.all().map(|(gear, _)| gear).find(fits);
        let Some(gear) = found else {
            let places = context.cores.iter().map(|[placed, _]| placed).sum();
            return Err(GovernorError::Cap { least: total(&gears(slowest)), places });
        };
        let gears = gears(gear);
        let grant = |(domain, gear): (usize, &GearId)| Grant {
            gear: *gear,
            power: needs(&context, domain, *gear),
            rested: 0,
        };
        let grants = gears.iter().enumerate().map(grant).collect();
        Ok(Capped { cap, grants, gears, context })
    }

    /// Returns the initial gears.
    pub(super) fn gears(&self) -> &[GearId] {
        &self.gears
    }

    /// Returns the total granted power.
    pub(super) fn granted(&self) -> Microwatts {
        self.grants.iter().map(|grant| grant.power).sum::<Microwatts>() + self.context.constant
    }

    pub(super) fn decide(&mut self, observed: &[Observation]) -> Vec<Order> {
        let mut orders = Vec::new();
        for (domain, seen) in observed.iter().enumerate() {
            let grant = &mut self.grants[domain];
            grant.rested = if seen.busy < RESTING { grant.rested.saturating_add(1) } else { 0 };
            if !seen.settled {
                continue;
            }
            grant.power = needs(&self.context, domain, grant.gear);
            let slowest = self.context.gears.slowest();
            if grant.rested >= REST && grant.gear != slowest {
                // The old grant counts until the change is complete.
                grant.gear = slowest;
                orders.push(Order::Shift { domain, gear: slowest });
            }
        }
        for (domain, seen) in observed.iter().enumerate() {
            let changed = orders
                .iter()
                .any(|order| matches!(order, Order::Shift { domain: other, .. } if *other == domain));
            if seen.settled && !changed && seen.busy >= WORKING && self.context.has_places(domain) {
                orders.extend(self.raise(domain));
            }
        }
        orders
    }

    /// Raises a domain by one gear, if that fits.
    fn raise(&mut self, domain: usize) -> Option<Order> {
        let Grant { gear, power, .. } = self.grants[domain];
        let faster = GearId(gear.0.checked_sub(1)?);
        let needed = needs(&self.context, domain, faster);
        if self.granted().0 - power.0 + needed.0.max(power.0) > self.cap.0 {
            return None;
        }
        self.grants[domain] = Grant { gear: faster, power: needed.max(power), rested: 0 };
        Some(Order::Shift { domain, gear: faster })
    }
}

/// Returns the maximum power of a domain in a gear, at the voltage of that gear.
fn needs(context: &GovernorContext, domain: usize, gear: GearId) -> Microwatts {
    context.worst(domain, gear, context.gears.gear(gear).step)
}
