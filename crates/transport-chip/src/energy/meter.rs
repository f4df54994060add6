//! What each core has drawn, out of its ledger.
//!
//! Power changes with what a core does, with its rate and with its voltage. What it does the ledger knows, so nothing
//! is added up while the run goes on: only when rate or voltage of a core change, what its ledger has gathered since
//! the last change is multiplied with the powers of the gear that ends. The sums are integers, so their order is of no
//! meaning.
//!
//! Invariant: a core's changes are made in the order of time, at its own clock or, while it does nothing, later.

use super::plan::Plan;
use crate::report::{Ledger, SPENDINGS, Spending};
use isles_chip::energy::Load;
use isles_chip::gear::{GearId, StepId};
use isles_chip::quantity::{Attojoules, Picoseconds};
use std::collections::VecDeque;
use std::sync::Arc;

/// The end of all time.
pub(crate) const NEVER: Picoseconds = Picoseconds(u64::MAX);

/// Energies by spending.
pub(crate) type Drawn = [Attojoules; SPENDINGS.len()];

/// A change of a core's rate or voltage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shift {
    pub(crate) time: Picoseconds,
    pub(crate) gear: GearId,
    pub(crate) step: StepId,
}

/// What power knows of one core.
#[derive(Clone)]
struct Meter {
    gear: GearId,
    step: StepId,
    /// The ledger when the gear was shifted last.
    closed: Ledger,
    /// What it had drawn then, by model.
    drawn: Vec<Drawn>,
    /// Changes to come, in the order of time.
    shifts: VecDeque<Shift>,
    /// Until when it is booked, if it has no place and so no ledger.
    idle_from: Picoseconds,
}

/// The meters of all cores of a chip, also of those without a place.
#[derive(Clone)]
pub(crate) struct Meters {
    plan: Arc<Plan>,
    meters: Vec<Meter>,
}

impl Meters {
    /// Meters of cores that all run in `gear`, at the voltage that it needs.
    pub(crate) fn new(plan: Arc<Plan>) -> Meters {
        let gear = plan.gears.first();
        let meter = Meter {
            gear,
            step: plan.gears.gear(gear).step,
            closed: Ledger::default(),
            drawn: vec![Drawn::default(); plan.models.len()],
            shifts: VecDeque::new(),
            idle_from: Picoseconds::ZERO,
        };
        Meters { meters: vec![meter; plan.supplies.len()], plan }
    }

    /// Puts a core that has done nothing yet into a gear, at a step of voltage.
    pub(crate) fn begin(&mut self, core: usize, gear: GearId, step: StepId) {
        (self.meters[core].gear, self.meters[core].step) = (gear, step);
    }

    /// From `time` on a core is in another gear, or at another step, or both. Changes come in the order of time.
    pub(crate) fn add_shift(
        &mut self,
        core: usize,
        time: Picoseconds,
        gear: Option<GearId>,
        step: Option<StepId>,
    ) {
        let meter = &mut self.meters[core];
        let last = meter.shifts.back();
        let (known_gear, known_step) = last.map_or((meter.gear, meter.step), |last| (last.gear, last.step));
        let time = last.map_or(time, |last| time.max(last.time));
        let (gear, step) = (gear.unwrap_or(known_gear), step.unwrap_or(known_step));
        meter.shifts.push_back(Shift { time, gear, step });
    }

    /// When a core changes next; the end of all time if never.
    pub(crate) fn next_shift(&self, core: usize) -> Picoseconds {
        self.meters[core].shifts.front().map_or(NEVER, |shift| shift.time)
    }

    /// The last change of a core that comes by `time`.
    pub(crate) fn last_shift(&self, core: usize, time: Picoseconds) -> Option<Shift> {
        self.meters[core].shifts.iter().take_while(|shift| shift.time <= time).last().copied()
    }

    /// What a core without a place has drawn until `until`.
    pub(crate) fn drawn_idle(&self, core: usize, model: usize, until: Picoseconds) -> Drawn {
        let from = self.meters[core].idle_from;
        self.drawn(core, model, (&Ledger::default(), from), (Picoseconds(u64::MAX), until))
    }

    /// The sum of what [`Meters::drawn_idle`] says.
    pub(crate) fn drawn_idle_in_all(&self, core: usize, model: usize, until: Picoseconds) -> Attojoules {
        let from = self.meters[core].idle_from;
        self.drawn_in_all(core, model, (&Ledger::default(), from), (Picoseconds(u64::MAX), until))
    }

    /// Makes the changes of a core without a place until `present`.
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

    /// Makes the changes of a core that are due at its clock `now`, with its ledger until then; gives its gear.
    pub(crate) fn pass(&mut self, core: usize, ledger: &Ledger, now: Picoseconds) -> GearId {
        while self.next_shift(core) <= now {
            for model in 0..self.plan.models.len() {
                let drawn = self.drawn(core, model, (ledger, now), (Picoseconds::ZERO, now));
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

    /// The gear of a core and the step of its voltage.
    pub(crate) fn point(&self, core: usize) -> (GearId, StepId) {
        (self.meters[core].gear, self.meters[core].step)
    }

    pub(crate) fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// The sum of what [`Meters::drawn`] says.
    pub(crate) fn drawn_in_all(
        &self,
        core: usize,
        model: usize,
        (ledger, now): (&Ledger, Picoseconds),
        (halted, until): (Picoseconds, Picoseconds),
    ) -> Attojoules {
        let meter = &self.meters[core];
        if !meter.shifts.is_empty() {
            return self.drawn(core, model, (ledger, now), (halted, until)).into_iter().sum();
        }
        let rest = Picoseconds(until.0.saturating_sub(now.0));
        let halted = halted.min(rest);
        // What has one power is multiplied once.
        let mut times = [Picoseconds::ZERO; Load::ALL.len()];
        for (spending, _) in SPENDINGS {
            times[load(spending) as usize] += ledger.time(spending) - meter.closed.time(spending);
        }
        times[Load::Sleep as usize] += halted;
        times[Load::Poll as usize] += rest - halted;
        let powers = self.plan.models[model].table.powers(meter.gear, meter.step);
        let before: Attojoules = meter.drawn[model].iter().copied().sum();
        times.into_iter().zip(powers).fold(before, |sum, (time, power)| sum + power.over(time))
    }

    /// What a core has drawn until `until`, by the model of that number, if since its own clock `now` it was halted for
    /// that long, and has looked for messages since.
    pub(crate) fn drawn(
        &self,
        core: usize,
        model: usize,
        (ledger, now): (&Ledger, Picoseconds),
        (halted, until): (Picoseconds, Picoseconds),
    ) -> Drawn {
        let meter = &self.meters[core];
        let mut drawn = meter.drawn[model];
        let mut point = (meter.gear, meter.step);
        self.book(&mut drawn, model, point, |spending| {
            Picoseconds(ledger.time(spending).0 - meter.closed.time(spending).0)
        });
        let (mut time, looks_from) = (now, now.saturating_add(halted));
        let mut rest = |drawn: &mut Drawn, (gear, step), end: Picoseconds| {
            if end <= time {
                return;
            }
            let middle = looks_from.clamp(time, end);
            let powers = self.plan.models[model].table.powers(gear, step);
            for (spending, part) in [(Spending::Sleeping, middle - time), (Spending::Waiting, end - middle)] {
                drawn[spending as usize] += powers[load(spending) as usize].over(part);
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
        drawn: &mut Drawn,
        model: usize,
        (gear, step): (GearId, StepId),
        time: impl Fn(Spending) -> Picoseconds,
    ) {
        let powers = self.plan.models[model].table.powers(gear, step);
        for ((spending, _), sum) in SPENDINGS.into_iter().zip(drawn) {
            *sum += powers[load(spending) as usize].over(time(spending));
        }
    }
}

/// What a core does, as far as power can tell.
pub(crate) fn load(spending: Spending) -> Load {
    match spending {
        Spending::Working | Spending::Measured | Spending::Handling => Load::Compute,
        Spending::Copying | Spending::Fetching => Load::Copy,
        Spending::Polling | Spending::Waiting => Load::Poll,
        Spending::Sleeping => Load::Sleep,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isles_chip::Chip;

    #[test]
    fn the_sum_is_that_of_all_spendings() {
        let meters = Meters::new(Arc::new(Plan::new(&Chip::find("scc").unwrap(), 0)));
        let (halted, until) = (Picoseconds(2_000), Picoseconds(5_000));
        for (spending, _) in SPENDINGS {
            let mut ledger = Ledger::default();
            ledger.add(spending, Picoseconds(1_000));
            let spent = (&ledger, ledger.total());
            let drawn = meters.drawn(0, 0, spent, (halted, until));
            assert_ne!(drawn[spending as usize], Attojoules::default(), "{spending:?}");
            let sum = drawn.into_iter().sum();
            assert_eq!(meters.drawn_in_all(0, 0, spent, (halted, until)), sum, "{spending:?}");
        }
    }
}
