//! `phase-aware`: predicts the next phase from earlier sequences.
//!
//! Each interval of a domain is a phase: its cores compute, move messages, or are idle. The last four phases of each
//! domain are its history, and for each history the followers are counted. The most frequent follower is the
//! prediction; a new history predicts a repetition of the last phase. Computing gets the full rate, moving half of it
//! (lines take time of the mesh as well as of the core), idling the slowest. Dividers change at once, so a wrong
//! prediction costs one interval; the voltage is lowered only after a long idle time, because raising it takes long.
//! After Ioannou et al., who predict phases of MPI programs on the SCC.

use super::{GovernorContext, Observation, Order};
use crate::gear::GearId;
use std::collections::BTreeMap;

/// Number of phases of a history.
const HISTORY: usize = 4;

/// Idle intervals after which the voltage is lowered: three times the duration of a change on the SCC.
const LONG_REST: u32 = 50;

/// Thousandths of load below which a domain is idle.
const RESTING: u32 = 50;

/// Phase of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Rest,
    Move,
    Compute,
}

impl Phase {
    pub(super) fn of(seen: &Observation) -> Phase {
        if seen.busy < RESTING {
            Phase::Rest
        } else if seen.moving > seen.computing {
            Phase::Move
        } else {
            Phase::Compute
        }
    }
}

/// History of one domain.
#[derive(Clone, Debug, Default)]
pub(super) struct PhaseHistory {
    history: Vec<Phase>,
    /// Number of times each phase followed a history, in the order of `Phase`.
    followers: BTreeMap<Vec<Phase>, [u32; 3]>,
    rested: u32,
    /// `true` if its voltage was lowered.
    lowered: bool,
    gear: Option<GearId>,
}

impl PhaseHistory {
    /// Records a phase and predicts the next one.
    pub(super) fn next(&mut self, phase: Phase) -> Phase {
        if self.history.len() == HISTORY {
            let counts = self.followers.entry(self.history.clone()).or_default();
            counts[phase as usize] = counts[phase as usize].saturating_add(1);
            self.history.remove(0);
        }
        self.history.push(phase);
        self.rested = if phase == Phase::Rest { self.rested.saturating_add(1) } else { 0 };
        let Some(counts) = self.followers.get(&self.history) else { return phase };
        // Of equal counts the last, because too fast is better than too slow.
        let all = [Phase::Rest, Phase::Move, Phase::Compute];
        all.into_iter().max_by_key(|phase| counts[*phase as usize]).unwrap_or(phase)
    }
}

/// The policy.
#[derive(Clone, Debug)]
pub struct PhaseAware {
    context: GovernorContext,
    histories: Vec<PhaseHistory>,
}

impl PhaseAware {
    pub(super) fn new(context: GovernorContext) -> PhaseAware {
        PhaseAware { histories: vec![PhaseHistory::default(); context.cores.len()], context }
    }

    pub(super) fn decide(&mut self, observed: &[Observation]) -> Vec<Order> {
        let mut orders = Vec::new();
        for (domain, seen) in
            observed.iter().enumerate().filter(|(domain, _)| self.context.has_places(*domain))
        {
            let history = &mut self.histories[domain];
            let expected = history.next(Phase::of(seen));
            if !seen.settled {
                continue;
            }
            let gears = &self.context.gears;
            let full = gears.first();
            if expected == Phase::Rest && history.rested >= LONG_REST {
                if !history.lowered {
                    (history.lowered, history.gear) = (true, Some(gears.slowest()));
                    orders.push(Order::Shift { domain, gear: gears.slowest() });
                }
                continue;
            }
            if history.lowered && expected == Phase::Rest {
                continue;
            }
            if history.lowered {
                (history.lowered, history.gear) = (false, Some(full));
                orders.push(Order::Shift { domain, gear: full });
                continue;
            }
            let gear = match expected {
                Phase::Compute => full,
                Phase::Move => half(&self.context),
                Phase::Rest => gears.slowest(),
            };
            if history.gear.unwrap_or(full) != gear {
                history.gear = Some(gear);
                orders.push(Order::Divide { domain, gear });
            }
        }
        orders
    }
}

/// Returns the slowest gear with at least half of the full rate.
fn half(context: &GovernorContext) -> GearId {
    let gears = &context.gears;
    let rate = |gear| gears.gear(gear).rate.megahertz();
    let full = gears.first();
    let mut slow = gears.all().rev().map(|(gear, _)| gear).filter(|gear| *gear >= full);
    slow.find(|gear| 2.0 * rate(*gear) >= rate(full)).unwrap_or(full)
}
