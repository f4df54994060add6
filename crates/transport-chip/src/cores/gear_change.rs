//! Cores whose rate or voltage changes while they run.
//!
//! A change has a time, and each core makes it when its own clock gets there: computing is cut at the end of the cycle
//! under way, everything else goes on as it began and is only booked apart. A core that has computed beyond the time
//! of a change before that was asked for changes when it is done, at most one turn late; as with credit, nobody knows
//! earlier what others will ask for. Invariant: a core's gear is that of the last change not after its clock.

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
    /// Lets `place` compute although its rate may change meanwhile.
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

    /// Lets `place` spend the time until `end`, with changes in it.
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

    /// Books the time until `end`, whatever changes then.
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

    /// Lets a waiting `place` make the changes until the present moment: its polls begin anew at each.
    pub(crate) fn settle(&mut self, place: PlaceId) {
        while self.cores[place.index()].next_shift <= self.present {
            let next = self.cores[place.index()].next_shift;
            let idle = self.idle();
            let now = self.now(place);
            self.spend(place, Picoseconds(next.0.saturating_sub(now.0)), idle);
            self.pass(place);
        }
    }

    /// The last change of `place` that is not made yet and comes by `time`.
    #[inline]
    pub(crate) fn shift_until(&self, place: PlaceId, time: Picoseconds) -> Option<GearChange> {
        if self.cores[place.index()].next_shift > time {
            return None;
        }
        self.meters.last_shift(self.core_map.core(place), time)
    }

    /// Lets `place` have another gear, for a question about it; returns the one that it has.
    pub(crate) fn assume_gear(&mut self, place: PlaceId, gear: GearId) -> GearId {
        let core = &mut self.cores[place.index()];
        if gear != core.gear {
            core.clock.set_rate(self.costs.plan.gears.gear(gear).rate);
        }
        std::mem::replace(&mut core.gear, gear)
    }

    /// The divider of the clock of `place`, if the chip can divide it.
    pub(crate) fn divider(&self, place: PlaceId) -> Option<u32> {
        self.costs.plan.gears.gear(self.cores[place.index()].gear).divider
    }

    /// The rate of the core of `place`, and the voltage of its supply, if the chip says any.
    pub(crate) fn operating_point(&self, place: PlaceId) -> (Rate, Option<Microvolts>) {
        let gears = &self.costs.plan.gears;
        let gear = gears.gear(self.cores[place.index()].gear);
        let supply = VoltageDomainId(self.supply(place));
        let step = self.supplies.as_ref().map_or(gear.step, |supplies| supplies.step(supply));
        (gear.rate, gears.voltage(step))
    }

    /// The number of the supply of the core of `place`.
    pub(crate) fn supply(&self, place: PlaceId) -> u32 {
        self.costs.plan.supplies[self.core_map.core(place)]
    }

    /// Returns `true` if `place` is the first of its supply, which asks for all of them.
    fn is_master(&self, place: PlaceId) -> bool {
        let of_supply = |other: &PlaceId| self.supply(*other) == self.supply(place);
        (0..self.core_map.places()).map(PlaceId).find(of_supply) == Some(place)
    }

    /// `place` asks for a divider of all cores that share its supply, the voltage following. No change comes of it
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

    /// Lets `place` wait until the controller has accepted its request.
    fn await_controller(&mut self, place: PlaceId, answer: &SupplyResponse) -> ClockChange {
        let Some(transition) = answer.transition else { return ClockChange::at(self.now(place)) };
        // The second write into the register of the controller waits until the first is done.
        self.wait_until(place, transition.start);
        ClockChange::new(transition.start, transition.end)
    }

    /// `place` asks for the lowest voltage of its supply that is not below `asked`; clocks stay. No change comes of it
    /// unless `place` is the first of them.
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

    /// `place` asks for a divider of its own tile at the present voltage.
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

    /// Lets `place` wait until no change of its supply is under way.
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

    /// At `now` somebody asks for a gear of all clocks of a supply.
    ///
    /// # Errors
    /// Until when an earlier change is under way.
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

    /// Carries out what a governor wants at `now`; what cannot be now is left.
    pub(crate) fn apply_order(&mut self, now: Picoseconds, order: Order) {
        match order {
            Order::Shift { domain, gear } => {
                let _ = self.ask(now, VoltageDomainId(domain as u32), gear); // under way: it is asked again
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

    /// The voltage domain of the core of `place`, its ledger and its clock.
    pub(crate) fn look_at(&self, place: PlaceId) -> (usize, &Ledger, Picoseconds) {
        let PlacedCore { ledger, now, .. } = &self.cores[place.index()];
        (self.costs.plan.supplies[self.core_map.core(place)] as usize, ledger, *now)
    }

    /// Returns `true` if no change of the voltage domain is under way at `time`.
    pub(crate) fn is_settled(&self, domain: usize, time: Picoseconds) -> bool {
        self.supplies.is_some() && self.settled(domain) <= time
    }

    /// Returns the end of a voltage domain's last change, in the past or the future.
    pub(crate) fn settled(&self, domain: usize) -> Picoseconds {
        let settled = |supplies: &Supplies| supplies.settled(VoltageDomainId(domain as u32));
        self.supplies.as_ref().map(settled).unwrap_or_default()
    }

    /// A policy for the places of this run, or for those of `only` one voltage domain.
    pub(crate) fn governor(
        &self,
        policy: Policy,
        only: Option<usize>,
    ) -> Result<(Governor, Vec<GearId>), GovernorError> {
        self.costs.governor(policy, &self.core_map, only)
    }

    /// Puts each voltage domain into a gear before anything runs.
    pub(crate) fn begin(&mut self, gears: &[GearId]) {
        for (supply, gear) in (0..).map(VoltageDomainId).zip(gears) {
            self.begin_in(supply, *gear);
        }
    }

    /// Tells all cores and the recorder what changes.
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

    /// The cores of places and the gears of the chip, for a trace that begins.
    pub(crate) fn initial_state(&self) -> (Vec<InitialState>, &Gears) {
        let plan = &self.costs.plan;
        let initial_state = |(core, placed): (&CoreId, &PlacedCore)| {
            let number = core.0 as usize;
            let (gear, step) = self.meters.announce_multicast(number);
            let (clock, supply) = (plan.clocks[number], plan.supplies[number]);
            InitialState { core: *core, now: placed.now, clock, supply, gear, step }
        };
        (self.core_map.cores().iter().zip(&self.cores).map(initial_state).collect(), &plan.gears)
    }

    /// Puts all clocks of a supply into a gear before anything runs.
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
