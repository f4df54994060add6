//! Energy of the cores and of the rest of the chip, from their ledgers.
//!
//! Reading it changes nothing of the cores except the windows of the profile.

use super::{Cores, PlacedCore};
use crate::energy::meter::{CoreUsage, EnergyByCategory};
use crate::energy::power_tables::PowerTables;
use crate::energy::{Energy, EnergyReading, ModelEnergy, Sample, Sampler};
use isles_chip::quantity::{Attojoules, Picoseconds};

impl Cores {
    /// Disables the sampling of power; the run has no energy then.
    pub(crate) fn disable_energy(&mut self) {
        self.sampler = None;
    }

    /// Closes the windows of the profile that end by `present`.
    #[inline]
    pub(crate) fn sample_until(&mut self, present: Picoseconds) {
        if self.sampler.as_ref().is_some_and(|sampler| sampler.end() <= present) {
            self.sample_all(present);
        }
    }

    fn sample_all(&mut self, present: Picoseconds) {
        let Some(mut sampler) = self.sampler.take() else { return };
        while sampler.end() <= present {
            sampler.close(|thing, end| self.sample(thing, end));
        }
        self.sampler = Some(sampler);
    }

    /// Returns the energy of one core, or for the index after the last core that of everything else, until `end` or the
    /// core's own clock if that is later, by the run's first power model.
    fn sample(&self, thing: usize, end: Picoseconds) -> Sample {
        if thing >= self.meters.plan().supplies.len() {
            return Sample { time: end, drawn: self.uncore_energy(0, end).uncore() };
        }
        if let Some(placed) = self.placed(thing) {
            let time = placed.now.max(end);
            let drawn = self.meters.drawn_total(thing, 0, self.usage(placed, time));
            return Sample { time, drawn };
        }
        let drawn = self.meters.drawn_idle_total(thing, 0, end);
        Sample { time: end, drawn }
    }

    /// Returns the energy that one core has drawn until `until`, by model number `model`.
    fn drawn(&self, core: usize, model: usize, until: Picoseconds) -> EnergyByCategory {
        match self.placed(core) {
            Some(placed) => self.meters.drawn(core, model, self.usage(placed, until)),
            None => self.meters.drawn_idle(core, model, until),
        }
    }

    /// Returns the state of core number `core`, if it has a place.
    #[inline]
    fn placed(&self, core: usize) -> Option<&PlacedCore> {
        self.core_map.place(core).map(|place| &self.cores[place.index()])
    }

    /// Returns the usage of a core until `until`.
    #[inline]
    fn usage<'a>(&self, placed: &'a PlacedCore, until: Picoseconds) -> CoreUsage<'a> {
        let wait = Picoseconds(until.0.saturating_sub(placed.now.0));
        let halted = self.rest.halted(wait, self.look);
        CoreUsage { ledger: &placed.ledger, now: placed.now, halted, until }
    }

    /// Returns the energy that everything besides the cores has drawn until `until`.
    fn uncore_energy(&self, model: usize, until: Picoseconds) -> ModelEnergy {
        let plan = self.meters.plan();
        let model = &plan.models[model];
        let flit = plan.routers.map_or(Attojoules::ZERO, |routers| routers.flit);
        ModelEnergy {
            name: model.name.clone(),
            cores: Vec::new(),
            constant: model.constant.over(until),
            mesh_at_rest: plan.routers.map(|routers| routers.at_rest.min(model.constant).over(until)),
            flits: Attojoules(flit.0 * u128::from(self.flit_hops())),
        }
    }

    /// Returns a reading of the energy at the start of the run; `None` if the chip has no power model.
    pub(crate) fn energy_reading(&self) -> Option<EnergyReading> {
        self.sampler.as_ref().map(|_| EnergyReading::new(self.meters.plan().supplies.len()))
    }

    /// Advances a reading to the present, before which nothing will happen any more; if the run is over, to the latest
    /// clock, as [`Cores::energy`].
    pub(crate) fn read_energy(&self, reading: &mut EnergyReading, is_over: bool) {
        let until = if is_over { self.latest() } else { self.present };
        reading.advance(until, |thing, end| self.sample(thing, end));
    }

    /// Returns the energy of the run until the latest clock; `None` if the chip has no power model.
    pub(crate) fn energy(&self) -> Option<Energy> {
        let plan = self.meters.plan();
        let span = self.latest();
        let profile = self.sampler.clone()?.finish(span, |thing, end| self.sample(thing, end));
        let all = |model| {
            let cores = (0..plan.supplies.len()).map(|core| self.drawn(core, model, span));
            ModelEnergy { cores: cores.collect(), ..self.uncore_energy(model, span) }
        };
        Some(Energy {
            span,
            models: (0..plan.models.len()).map(all).collect(),
            profile,
            assumed: plan.assumed.clone(),
            places: self.core_map.cores().to_vec(),
            supplies: plan.supplies.clone(),
        })
    }
}

/// Returns a sampler with a column for each voltage domain and one for everything else; `None` if the chip has no power
/// model.
pub(super) fn sampler(plan: &PowerTables) -> Option<Sampler> {
    let columns = || plan.supplies.iter().map(|domain| *domain as usize).chain([plan.domains()]);
    (!plan.models.is_empty()).then(|| Sampler::new(columns().collect()))
}
