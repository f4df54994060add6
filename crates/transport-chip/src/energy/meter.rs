//! Energy of each core, computed from its ledger.
//!
//! Power depends on a core's activity, rate and voltage. The ledger has the activity, so nothing is summed up during
//! the run: only when the rate or voltage of a core changes, its times since the last change are multiplied by the
//! powers of the old gear. The sums are integers, so their order does not matter.
//!
//! Invariant: a core's changes are made in the order of time, at its own clock, or later while it is idle.

use super::power_tables::PowerTables;
use crate::report::{Ledger, TIME_CATEGORIES, TimeCategory};
use isles_chip::energy::Load;
use isles_chip::gear::{GearId, VoltageStepId};
use isles_chip::quantity::{Attojoules, Picoseconds};
use std::collections::VecDeque;
use std::sync::Arc;

/// A time that is never reached.
pub(crate) const NEVER: Picoseconds = Picoseconds(u64::MAX);

/// Energies by category.
pub(crate) type EnergyByCategory = [Attojoules; TIME_CATEGORIES.len()];

/// A change of a core's rate or voltage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GearChange {
    pub(crate) time: Picoseconds,
    pub(crate) gear: GearId,
    pub(crate) step: VoltageStepId,
}

/// State of one core for the power model.
#[derive(Clone)]
struct Meter {
    gear: GearId,
    step: VoltageStepId,
    /// The ledger at the last change.
    closed: Ledger,
    /// Energy drawn until then, by model.
    drawn: Vec<EnergyByCategory>,
    /// Pending changes, in the order of time.
    shifts: VecDeque<GearChange>,
    /// For a core without a place, and so without a ledger: the time until which its energy is booked.
    idle_from: Picoseconds,
}

/// Use of a core until some time.
#[derive(Clone, Copy)]
pub(crate) struct CoreUsage<'a> {
    /// Time spent until its own clock, by category.
    pub(crate) ledger: &'a Ledger,
    /// Its own clock.
    pub(crate) now: Picoseconds,
    /// Time halted from then on; it polls for the rest.
    pub(crate) halted: Picoseconds,
    /// End of the usage.
    pub(crate) until: Picoseconds,
}

impl CoreUsage<'_> {
    /// Returns the usage of a core without a place, which is halted from `now` on; `ledger` is empty.
    fn idle(ledger: &Ledger, now: Picoseconds, until: Picoseconds) -> CoreUsage<'_> {
        CoreUsage { ledger, now, halted: Picoseconds(u64::MAX), until }
    }
}

/// The meters of all cores of a chip, including those without a place.
#[derive(Clone)]
pub(crate) struct Meters {
    plan: Arc<PowerTables>,
    meters: Vec<Meter>,
}

impl Meters {
    /// Makes the meters of cores that are all in the first gear.
    pub(crate) fn new(plan: Arc<PowerTables>) -> Meters {
        let gear = plan.gears.first();
        let meter = Meter {
            gear,
            step: plan.gears.gear(gear).step,
            closed: Ledger::default(),
            drawn: vec![EnergyByCategory::default(); plan.models.len()],
            shifts: VecDeque::new(),
            idle_from: Picoseconds::ZERO,
        };
        Meters { meters: vec![meter; plan.supplies.len()], plan }
    }

    /// Sets the initial gear and voltage step of a core.
    pub(crate) fn begin(&mut self, core: usize, gear: GearId, step: VoltageStepId) {
        (self.meters[core].gear, self.meters[core].step) = (gear, step);
    }

    /// Adds a change of a core's gear, voltage step or both at `time`. Changes are added in the order of time.
    pub(crate) fn add_shift(
        &mut self,
        core: usize,
        time: Picoseconds,
        gear: Option<GearId>,
        step: Option<VoltageStepId>,
    ) {
        let meter = &mut self.meters[core];
        let last = meter.shifts.back();
        let (known_gear, known_step) = last.map_or((meter.gear, meter.step), |last| (last.gear, last.step));
        let time = last.map_or(time, |last| time.max(last.time));
        let (gear, step) = (gear.unwrap_or(known_gear), step.unwrap_or(known_step));
        meter.shifts.push_back(GearChange { time, gear, step });
    }

    /// Returns the time of a core's next change; [`NEVER`] if there is none.
    pub(crate) fn next_shift(&self, core: usize) -> Picoseconds {
        self.meters[core].shifts.front().map_or(NEVER, |shift| shift.time)
    }

    /// Returns the last pending change of a core until `time`.
    pub(crate) fn last_shift(&self, core: usize, time: Picoseconds) -> Option<GearChange> {
        self.meters[core].shifts.iter().take_while(|shift| shift.time <= time).last().copied()
    }

    /// Returns the energy that a core without a place has drawn until `until`.
    pub(crate) fn drawn_idle(&self, core: usize, model: usize, until: Picoseconds) -> EnergyByCategory {
        let from = self.meters[core].idle_from;
        self.drawn(core, model, CoreUsage::idle(&Ledger::default(), from, until))
    }

    /// Returns the sum of [`Meters::drawn_idle`] over the categories.
    pub(crate) fn drawn_idle_total(&self, core: usize, model: usize, until: Picoseconds) -> Attojoules {
        let from = self.meters[core].idle_from;
        self.drawn_total(core, model, CoreUsage::idle(&Ledger::default(), from, until))
    }

    /// Applies the changes of a core without a place until `present`.
    pub(crate) fn pass_idle(&mut self, core: usize, present: Picoseconds) {
        while self.next_shift(core) <= present {
            let until = self.next_shift(core).max(self.meters[core].idle_from);
            for model in 0..self.plan.models.len() {
                self.meters[core].drawn[model] = self.drawn_idle(core, model, until);
            }
            let meter = &mut self.meters[core];
            meter.idle_from = until;
            if let Some(shift) = meter.shifts.pop_front() {
                (meter.gear, meter.step) = (shift.gear, shift.step);
            }
        }
    }

    /// Applies the changes of a core that are due at its clock `now`, with its ledger until then; returns its gear.
    pub(crate) fn pass(&mut self, core: usize, ledger: &Ledger, now: Picoseconds) -> GearId {
        while self.next_shift(core) <= now {
            for model in 0..self.plan.models.len() {
                let usage = CoreUsage { ledger, now, halted: Picoseconds::ZERO, until: now };
                let drawn = self.drawn(core, model, usage);
                self.meters[core].drawn[model] = drawn;
            }
            let meter = &mut self.meters[core];
            meter.closed = *ledger;
            if let Some(shift) = meter.shifts.pop_front() {
                (meter.gear, meter.step) = (shift.gear, shift.step);
            }
        }
        self.meters[core].gear
    }

    /// Returns the gear of a core and its voltage step.
    pub(crate) fn gear_and_step(&self, core: usize) -> (GearId, VoltageStepId) {
        (self.meters[core].gear, self.meters[core].step)
    }

    pub(crate) fn plan(&self) -> &Arc<PowerTables> {
        &self.plan
    }

    /// Returns the sum of [`Meters::drawn`] over the categories.
    pub(crate) fn drawn_total(&self, core: usize, model: usize, usage: CoreUsage<'_>) -> Attojoules {
        let meter = &self.meters[core];
        if !meter.shifts.is_empty() {
            return self.drawn(core, model, usage).into_iter().sum();
        }
        let CoreUsage { ledger, now, halted, until } = usage;
        let rest = Picoseconds(until.0.saturating_sub(now.0));
        let halted = halted.min(rest);
        // Categories with the same power are multiplied together.
        let mut times = [Picoseconds::ZERO; Load::ALL.len()];
        for (category, _) in TIME_CATEGORIES {
            times[load(category) as usize] += ledger.time(category) - meter.closed.time(category);
        }
        times[Load::Sleep as usize] += halted;
        times[Load::Poll as usize] += rest - halted;
        let powers = self.plan.models[model].table.powers(meter.gear, meter.step);
        let before: Attojoules = meter.drawn[model].iter().copied().sum();
        times.into_iter().zip(powers).fold(before, |sum, (time, power)| sum + power.over(time))
    }

    /// Returns the energy that a core of this usage has drawn, by model number `model`.
    pub(crate) fn drawn(&self, core: usize, model: usize, usage: CoreUsage<'_>) -> EnergyByCategory {
        let CoreUsage { ledger, now, halted, until } = usage;
        let meter = &self.meters[core];
        let mut drawn = meter.drawn[model];
        let mut point = (meter.gear, meter.step);
        self.book(&mut drawn, model, meter.gear, meter.step, |category| {
            Picoseconds(ledger.time(category).0 - meter.closed.time(category).0)
        });
        let (mut time, looks_from) = (now, now.saturating_add(halted));
        let mut rest = |drawn: &mut EnergyByCategory, (gear, step), end: Picoseconds| {
            if end <= time {
                return;
            }
            let middle = looks_from.clamp(time, end);
            let powers = self.plan.models[model].table.powers(gear, step);
            for (category, part) in
                [(TimeCategory::Sleeping, middle - time), (TimeCategory::Waiting, end - middle)]
            {
                drawn[category as usize] += powers[load(category) as usize].over(part);
            }
            time = end;
        };
        for shift in meter.shifts.iter().take_while(|shift| shift.time < until) {
            rest(&mut drawn, point, shift.time);
            point = (shift.gear, shift.step);
        }
        rest(&mut drawn, point, until);
        drawn
    }

    fn book(
        &self,
        drawn: &mut EnergyByCategory,
        model: usize,
        gear: GearId,
        step: VoltageStepId,
        time: impl Fn(TimeCategory) -> Picoseconds,
    ) {
        let powers = self.plan.models[model].table.powers(gear, step);
        for ((category, _), sum) in TIME_CATEGORIES.into_iter().zip(drawn) {
            *sum += powers[load(category) as usize].over(time(category));
        }
    }
}

/// Returns the load of a core in a category, for the power model.
pub(crate) fn load(category: TimeCategory) -> Load {
    match category {
        TimeCategory::Working | TimeCategory::Measured | TimeCategory::Handling => Load::Compute,
        TimeCategory::Copying | TimeCategory::Fetching => Load::Copy,
        TimeCategory::Polling | TimeCategory::Waiting => Load::Poll,
        TimeCategory::Sleeping => Load::Sleep,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isles_chip::Chip;

    #[test]
    fn the_sum_is_that_of_all_spendings() {
        let meters = Meters::new(Arc::new(PowerTables::new(&Chip::find("scc").unwrap(), 0)));
        let (halted, until) = (Picoseconds(2_000), Picoseconds(5_000));
        for (category, _) in TIME_CATEGORIES {
            let mut ledger = Ledger::default();
            ledger.add(category, Picoseconds(1_000));
            let usage = CoreUsage { ledger: &ledger, now: ledger.total(), halted, until };
            let drawn = meters.drawn(0, 0, usage);
            assert_ne!(drawn[category as usize], Attojoules::default(), "{category:?}");
            let sum = drawn.into_iter().sum();
            assert_eq!(meters.drawn_total(0, 0, usage), sum, "{category:?}");
        }
    }
}
