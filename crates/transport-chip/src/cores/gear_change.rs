//! Changes of the rate or voltage of cores during a run.
//!
//! A change has a time, and each core makes it when its own clock gets there: computing is split at the end of the
//! current cycle; other operations continue unchanged and are only booked in two parts. A core that has computed beyond
//! the time of a change before it was requested changes at the end of that step, at most one turn late; as with credit,
//! requests of others cannot be known earlier. Invariant: a core's gear is that of the last change not after its clock.

use super::{Cores, PlacedCore};
use crate::clocks::{ClockChange, ClockError};
use crate::cores;
use crate::energy::meter::GearChange;
use crate::record::InitialState;
use crate::report::{Ledger, TimeCategory};
use isles_chip::clock::Clock;
use isles_chip::gear::{GearId, Gears, VoltageStepId};
use isles_chip::governor::{Governor, GovernorError, Order, Policy};
use isles_chip::quantity::{Cycles, Microvolts, Picoseconds, Rate};
use isles_chip::supply::{Supplies, SupplyChange, SupplyError, SupplyResponse};
use isles_chip::topology::CoreId;
use isles_chip::{FrequencyDomainId, VoltageDomainId};
use isles_transport::PlaceId;

impl Cores {
    /// Computes at `place` across changes of its rate.
    #[cold]
    pub(super) fn compute_across(&mut self, place: PlaceId, cycles: Cycles, category: TimeCategory) {
        let mut left = cycles;
        loop {
            let PlacedCore { clock, now, next_shift, .. } = &mut self.cores[place.index()];
            let until = Picoseconds(next_shift.0.saturating_sub(now.0));
            let part = clock.begun_within(until).min(left);
            let time = clock.advance(part);
            left = Cycles(left.0 - part.0);
            let end = cores::end(place, *now, time);
            self.book(place, end, category);
            self.pass(place);
            if left.0 == 0 {
                return;
            }
        }
    }

    /// Spends the time until `end` at `place` across changes.
    #[cold]
    pub(super) fn spend_across(&mut self, place: PlaceId, end: Picoseconds, category: TimeCategory) {
        loop {
            let PlacedCore { now, next_shift, .. } = self.cores[place.index()];
            let until = next_shift.max(now).min(end);
            self.book(place, until, category);
            self.pass(place);
            if until == end {
                return;
            }
        }
    }

    /// Books the time until `end`, at which a change may follow.
    fn book(&mut self, place: PlaceId, end: Picoseconds, category: TimeCategory) {
        let core = &mut self.cores[place.index()];
        let start = std::mem::replace(&mut core.now, end);
        core.ledger.add(category, Picoseconds(end.0 - start.0));
        if let Some(recorder) = &mut self.recorder {
            recorder.spend(place, start, end, category);
        }
    }

    /// Makes the changes of `place` that are due.
    fn pass(&mut self, place: PlaceId) {
        let core = &mut self.cores[place.index()];
        if core.next_shift > core.now {
            return;
        }
        let number = self.core_map.core(place);
        let gear = self.meters.pass(number, &core.ledger, core.now);
        core.next_shift = self.meters.next_shift(number);
        if gear != core.gear {
            core.gear = gear;
            core.clock.set_rate(self.costs.plan.gears.gear(gear).rate);
        }
    }

    /// Makes a waiting `place` perform the changes until the present; its polls restart at each.
    pub(crate) fn settle(&mut self, place: PlaceId) {
        while self.cores[place.index()].next_shift <= self.present {
            let next = self.cores[place.index()].next_shift;
            let idle = self.idle();
            let now = self.now(place);
            self.spend(place, Picoseconds(next.0.saturating_sub(now.0)), idle);
            self.pass(place);
        }
    }

    /// Returns the last pending change of `place` until `time`.
    #[inline]
    pub(crate) fn shift_until(&self, place: PlaceId, time: Picoseconds) -> Option<GearChange> {
        if self.cores[place.index()].next_shift > time {
            return None;
        }
        self.meters.last_shift(self.core_map.core(place), time)
    }

    /// Temporarily sets the gear of `place`, to compute its times; returns the former gear.
    pub(crate) fn assume_gear(&mut self, place: PlaceId, gear: GearId) -> GearId {
        let core = &mut self.cores[place.index()];
        if gear != core.gear {
            core.clock.set_rate(self.costs.plan.gears.gear(gear).rate);
        }
        std::mem::replace(&mut core.gear, gear)
    }

    /// Returns the clock divider of `place`, if the chip has dividers.
    pub(crate) fn divider(&self, place: PlaceId) -> Option<u32> {
        self.costs.plan.gears.gear(self.cores[place.index()].gear).divider
    }

    /// Returns the clock rate of the core of `place`, and the voltage of its supply, if the chip file has voltages.
    pub(crate) fn operating_point(&self, place: PlaceId) -> (Rate, Option<Microvolts>) {
        let gears = &self.costs.plan.gears;
        let gear = gears.gear(self.cores[place.index()].gear);
        let supply = VoltageDomainId(self.supply(place));
        let step = self.supplies.as_ref().map_or(gear.step, |supplies| supplies.step(supply));
        (gear.rate, gears.voltage(step))
    }

    /// Returns the number of the supply of the core of `place`.
    pub(crate) fn supply(&self, place: PlaceId) -> u32 {
        self.costs.plan.supplies[self.core_map.core(place)]
    }

    /// Returns `true` if `place` is the first of its supply, which makes the requests for it.
    fn is_master(&self, place: PlaceId) -> bool {
        let of_supply = |other: &PlaceId| self.supply(*other) == self.supply(place);
        (0..self.core_map.places()).map(PlaceId).find(of_supply) == Some(place)
    }

    /// Sets the clock divider of all cores that share the supply of `place`, with the matching voltage. Does nothing
    /// unless `place` is the first of them.
    pub(crate) fn shift_supply(
        &mut self,
        place: PlaceId,
        divider: u32,
    ) -> Result<Option<ClockChange>, ClockError> {
        let gear = self.gear_of(divider)?;
        if !self.is_master(place) {
            return Ok(None);
        }
        let (now, supply) = (self.now(place), VoltageDomainId(self.supply(place)));
        let answer = self.ask(now, supply, gear).map_err(ClockError::under_way)?;
        Ok(Some(self.await_controller(place, &answer)))
    }

    /// Makes `place` wait until the controller has accepted its request.
    fn await_controller(&mut self, place: PlaceId, answer: &SupplyResponse) -> ClockChange {
        let Some(transition) = answer.transition else { return ClockChange::at(self.now(place)) };
        // The second write to the controller's register waits until the first change is complete.
        self.wait_until(place, transition.start);
        ClockChange::new(transition.start, transition.end)
    }

    /// Sets the supply of `place` to the lowest voltage that is not below `asked`; clocks are unchanged. Does nothing
    /// unless `place` is the first of its supply.
    pub(crate) fn set_supply_voltage(
        &mut self,
        place: PlaceId,
        asked: Microvolts,
    ) -> Result<Option<ClockChange>, ClockError> {
        let step = self.voltage_step(asked)?;
        if !self.is_master(place) {
            return Ok(None);
        }
        let (now, supply) = (self.now(place), VoltageDomainId(self.supply(place)));
        let supplies = self.supplies.as_mut().ok_or(ClockError::Fixed)?;
        let answer = supplies.set_voltage(now, supply, step).map_err(|refusal| match refusal {
            SupplyError::UnderWay { until } => ClockError::under_way(until),
            SupplyError::VoltageTooLow => ClockError::ClocksTooFast { asked },
        })?;
        self.carry_out(&answer);
        Ok(Some(self.await_controller(place, &answer)))
    }

    fn voltage_step(&self, asked: Microvolts) -> Result<VoltageStepId, ClockError> {
        let gears = &self.costs.plan.gears;
        let all = || (0..gears.steps()).filter_map(|step| gears.voltage(VoltageStepId(step)));
        let (Some(least), Some(most), true) = (all().min(), all().max(), self.supplies.is_some()) else {
            return Err(ClockError::Fixed);
        };
        let found = all().position(|voltage| voltage >= asked).filter(|_| asked >= least);
        found.map(|step| VoltageStepId(step as u16)).ok_or(ClockError::Voltage { asked, least, most })
    }

    /// Sets the clock divider of the tile of `place` at the present voltage.
    pub(crate) fn divide_tile(
        &mut self,
        place: PlaceId,
        divider: u32,
    ) -> Result<Option<ClockChange>, ClockError> {
        let gear = self.gear_of(divider)?;
        let clock = FrequencyDomainId(self.costs.plan.clocks[self.core_map.core(place)]);
        let now = self.now(place);
        let supplies = self.supplies.as_mut().ok_or(ClockError::Fixed)?;
        let answer = supplies.divide(now, clock, gear).map_err(|refusal| ClockError::of(refusal, divider))?;
        self.carry_out(&answer);
        Ok(Some(ClockChange::at(now)))
    }

    /// Makes `place` wait until no change of its supply is in progress.
    pub(crate) fn await_supply(&mut self, place: PlaceId) {
        let supply = VoltageDomainId(self.supply(place));
        let settled = self.supplies.as_ref().map(|supplies| supplies.settled(supply));
        self.wait_until(place, settled.unwrap_or_default());
    }

    pub(crate) fn gear_of(&self, divider: u32) -> Result<GearId, ClockError> {
        let gears = &self.costs.plan.gears;
        if self.supplies.is_none() {
            return Err(ClockError::Fixed);
        }
        gears.divided_by(divider).ok_or_else(|| {
            let dividers = || gears.all().filter_map(|(_, gear)| gear.divider);
            let (least, most) = (dividers().min().unwrap_or(1), dividers().max().unwrap_or(1));
            ClockError::Divider { asked: divider, least, most }
        })
    }

    /// Requests a gear for all clocks of a supply at `now`.
    ///
    /// # Errors
    /// The end of an earlier change that is still in progress.
    pub(crate) fn ask(
        &mut self,
        now: Picoseconds,
        supply: VoltageDomainId,
        gear: GearId,
    ) -> Result<SupplyResponse, Picoseconds> {
        let Some(supplies) = &mut self.supplies else { return Ok(SupplyResponse::default()) };
        let answer = supplies.shift(now, supply, gear).map_err(|_| supplies.settled(supply))?;
        self.carry_out(&answer);
        Ok(answer)
    }

    /// Carries out an order of a governor at `now`; an impossible order is ignored.
    pub(crate) fn apply_order(&mut self, now: Picoseconds, order: Order) {
        match order {
            Order::Shift { domain, gear } => {
                let _ = self.ask(now, VoltageDomainId(domain as u32), gear); // if in progress, the governor asks again
            }
            Order::Divide { domain, gear } => {
                let Some(supplies) = &mut self.supplies else { return };
                let clocks = supplies.clocks(VoltageDomainId(domain as u32)).to_vec();
                let answers: Vec<_> =
                    clocks.into_iter().filter_map(|clock| supplies.divide(now, clock, gear).ok()).collect();
                answers.iter().for_each(|answer| self.carry_out(answer));
            }
        }
    }

    /// Returns the number of voltage domains.
    pub(crate) fn supply_count(&self) -> usize {
        self.costs.plan.domains()
    }

    /// Returns the voltage domain of the core of `place`, its ledger and its clock.
    pub(crate) fn look_at(&self, place: PlaceId) -> (usize, &Ledger, Picoseconds) {
        let PlacedCore { ledger, now, .. } = &self.cores[place.index()];
        (self.costs.plan.supplies[self.core_map.core(place)] as usize, ledger, *now)
    }

    /// Returns `true` if no change of the voltage domain is in progress at `time`.
    pub(crate) fn is_settled(&self, domain: usize, time: Picoseconds) -> bool {
        self.supplies.is_some() && self.settled(domain) <= time
    }

    /// Returns the end of a voltage domain's last change, in the past or the future.
    pub(crate) fn settled(&self, domain: usize) -> Picoseconds {
        let settled = |supplies: &Supplies| supplies.settled(VoltageDomainId(domain as u32));
        self.supplies.as_ref().map(settled).unwrap_or_default()
    }

    /// Returns the governor for the places of this run, or of `only` one voltage domain, with the initial gears.
    pub(crate) fn governor(
        &self,
        policy: Policy,
        only: Option<usize>,
    ) -> Result<(Governor, Vec<GearId>), GovernorError> {
        self.costs.governor(policy, &self.core_map, only)
    }

    /// Sets the gear of each voltage domain before anything runs.
    pub(crate) fn begin(&mut self, gears: &[GearId]) {
        for (supply, gear) in (0..).map(VoltageDomainId).zip(gears) {
            self.begin_in(supply, *gear);
        }
    }

    /// Passes the changes on to all affected cores and the recorder.
    fn carry_out(&mut self, answer: &SupplyResponse) {
        for change in &answer.changes {
            match change {
                SupplyChange::Rate { .. } => self.shifts.rates += 1,
                SupplyChange::Voltage { .. } => self.shifts.voltages += 1,
            }
            let (time, gear, step) = match *change {
                SupplyChange::Rate { time, gear, .. } => (time, Some(gear), None),
                SupplyChange::Voltage { time, step, .. } => (time, None, Some(step)),
            };
            let plan = &self.costs.plan;
            let concerns = |core: usize| match change {
                SupplyChange::Rate { clock, .. } => plan.clocks[core] == clock.0,
                SupplyChange::Voltage { supply, .. } => plan.supplies[core] == supply.0,
            };
            let concerned: Vec<usize> = (0..plan.supplies.len()).filter(|core| concerns(*core)).collect();
            for core in concerned {
                self.meters.add_shift(core, time, gear, step);
                match self.core_map.place(core) {
                    Some(place) => {
                        self.cores[place.index()].next_shift = self.meters.next_shift(core);
                        self.pass(place);
                    }
                    None => self.meters.pass_idle(core, self.present),
                }
            }
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.shifted(answer);
        }
    }

    /// Returns the state of the places' cores, and the gears of the chip, for the start of a trace.
    pub(crate) fn initial_state(&self) -> (Vec<InitialState>, &Gears) {
        let plan = &self.costs.plan;
        let initial_state = |(core, placed): (&CoreId, &PlacedCore)| {
            let number = core.0 as usize;
            let (gear, step) = self.meters.gear_and_step(number);
            let (clock, supply) = (plan.clocks[number], plan.supplies[number]);
            InitialState { core: *core, now: placed.now, clock, supply, gear, step }
        };
        (self.core_map.cores().iter().zip(&self.cores).map(initial_state).collect(), &plan.gears)
    }

    /// Sets the gear of all clocks of a supply before anything runs.
    fn begin_in(&mut self, supply: VoltageDomainId, gear: GearId) {
        let Some(supplies) = &mut self.supplies else { return };
        supplies.begin(supply, gear);
        let (plan, step) = (&self.costs.plan, supplies.step(supply));
        for core in (0..plan.supplies.len()).filter(|core| plan.supplies[*core] == supply.0) {
            self.meters.begin(core, gear, step);
            if let Some(place) = self.core_map.place(core) {
                let placed = &mut self.cores[place.index()];
                (placed.gear, placed.clock) = (gear, Clock::new(plan.gears.gear(gear).rate));
            }
        }
    }
}
