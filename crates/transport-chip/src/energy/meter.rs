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
        };
        Meters { meters: vec![meter; plan.supplies.len()], plan }
    }

    pub(crate) fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// What a core has drawn until `until`, by the model of that number, if it has done nothing but `idle` since its
    /// own clock `now`.
    pub(crate) fn drawn(
        &self,
        core: usize,
        model: usize,
        (ledger, now): (&Ledger, Picoseconds),
        (idle, until): (Spending, Picoseconds),
    ) -> Drawn {
        let meter = &self.meters[core];
        let mut drawn = meter.drawn[model];
        let mut point = (meter.gear, meter.step);
        self.book(&mut drawn, model, point, |spending| {
            Picoseconds(ledger.time(spending).0 - meter.closed.time(spending).0)
        });
        let mut time = now;
        for shift in meter.shifts.iter().take_while(|shift| shift.time < until) {
            let end = shift.time.max(time);
            self.book_idle(&mut drawn, model, point, (idle, Picoseconds(end.0 - time.0)));
            (time, point) = (end, (shift.gear, shift.step));
        }
        let rest = Picoseconds(until.0.saturating_sub(time.0));
        self.book_idle(&mut drawn, model, point, (idle, rest));
        drawn
    }

    fn book_idle(
        &self,
        drawn: &mut Drawn,
        model: usize,
        point: (GearId, StepId),
        (idle, time): (Spending, Picoseconds),
    ) {
        self.book(drawn, model, point, |spending| if spending == idle { time } else { Picoseconds::ZERO });
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
        Spending::Working | Spending::Handling => Load::Compute,
        Spending::Copying => Load::Copy,
        Spending::Polling | Spending::Waiting => Load::Poll,
        Spending::Sleeping => Load::Sleep,
    }
}
