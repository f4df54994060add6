//! `on-demand`: by the load of the last interval, like the Linux governor of that name.
//!
//! From four fifths of load on, a domain gets the full rate at once; below, the slowest gear in which the same work
//! would take three fifths of the time. The full rate is that of the chip's preset, so that a run can be compared with
//! `fixed`.

use super::{GovernorContext, Observation, Order};
use crate::gear::GearId;

/// Thousandths of load from which on a domain gets the full rate.
const HIGH: u32 = 800;

/// Target load in a slower gear, in thousandths.
const WANTED: u32 = 600;

/// The policy, with the gear of each domain.
#[derive(Clone, Debug)]
pub struct OnDemand {
    context: GovernorContext,
    gears: Vec<GearId>,
}

impl OnDemand {
    pub(super) fn new(context: GovernorContext, gears: Vec<GearId>) -> OnDemand {
        OnDemand { context, gears }
    }

    pub(super) fn decide(&mut self, observed: &[Observation]) -> Vec<Order> {
        let mut orders = Vec::new();
        for (domain, seen) in observed.iter().enumerate() {
            if !seen.settled || !self.context.has_places(domain) {
                continue;
            }
            let gear = self.wanted(self.gears[domain], seen.busy);
            if gear != self.gears[domain] {
                self.gears[domain] = gear;
                orders.push(Order::Shift { domain, gear });
            }
        }
        orders
    }

    /// Returns the gear for a load observed in the present one.
    fn wanted(&self, present: GearId, busy: u32) -> GearId {
        let (gears, full) = (&self.context.gears, self.context.gears.first());
        if busy >= HIGH {
            return full;
        }
        let rate = |gear| gears.gear(gear).rate.megahertz();
        let needed = rate(present) * f64::from(busy) / f64::from(WANTED);
        let mut enough = gears.all().rev().map(|(gear, _)| gear).filter(|gear| *gear >= full);
        enough.find(|gear| rate(*gear) >= needed).unwrap_or(full)
    }
}
