//! Energy of the cores of a run: the time of each core by load, gear and voltage, times the powers of the chip's
//! models.

use isles_chip::energy::Load;
use isles_chip::gear::{GearId, Gears, PowerTable, VoltageStepId};
use isles_chip::quantity::{Attojoules, Microwatts, Picoseconds};
use isles_chip::{Chip, Preset};

/// A power model of the chip.
struct MeteredModel {
    name: String,
    table: PowerTable,
    constant: Microwatts,
}

/// The activity of one core since its gear or its voltage changed.
#[derive(Clone)]
struct CoreAccount {
    gear: GearId,
    step: VoltageStepId,
    times: [Picoseconds; Load::ALL.len()],
    /// Total booked time, including earlier gears.
    booked: Picoseconds,
    /// Energy by model, including earlier gears.
    drawn: Vec<Attojoules>,
}

/// The accounts of all cores.
pub struct EnergyAccounts {
    models: Vec<MeteredModel>,
    cores: Vec<CoreAccount>,
}

impl EnergyAccounts {
    /// Returns the accounts of a chip whose cores run at `preset`.
    pub fn new(chip: &Chip, preset: &Preset, gears: &Gears) -> EnergyAccounts {
        let rate = preset.clocks().core;
        let first = gears.all().find(|(_, gear)| gear.rate == rate).map_or(gears.first(), |(id, _)| id);
        let models: Vec<MeteredModel> = chip
            .power_models()
            .iter()
            .map(|model| MeteredModel {
                name: model.name().to_owned(),
                table: PowerTable::new(chip, model, gears),
                constant: model.constant(),
            })
            .collect();
        let account = CoreAccount {
            gear: first,
            step: gears.gear(first).step,
            times: [Picoseconds::ZERO; Load::ALL.len()],
            booked: Picoseconds::ZERO,
            drawn: vec![Attojoules(0); models.len()],
        };
        EnergyAccounts { models, cores: vec![account; chip.topology().cores() as usize] }
    }

    /// Books time of a core.
    pub fn book(&mut self, core: usize, load: Load, time: Picoseconds) {
        let account = &mut self.cores[core];
        account.times[load as usize] += time;
        account.booked += time;
    }

    /// Records a change of the gear or the voltage of a core.
    pub fn change(&mut self, core: usize, gear: Option<GearId>, step: Option<VoltageStepId>) {
        self.close(core);
        let account = &mut self.cores[core];
        account.gear = gear.unwrap_or(account.gear);
        account.step = step.unwrap_or(account.step);
    }

    fn close(&mut self, core: usize) {
        let account = &mut self.cores[core];
        for (model, drawn) in self.models.iter().zip(&mut account.drawn) {
            let powers = model.table.powers(account.gear, account.step);
            *drawn =
                account.times.iter().zip(powers).fold(*drawn, |sum, (time, power)| sum + power.over(*time));
        }
        account.times = Default::default();
    }

    /// Returns the joules of the whole chip until `end`, by the name of the model; cores count as halted for the
    /// unbooked time.
    pub fn joules(mut self, end: Picoseconds) -> Vec<(String, f64)> {
        for core in 0..self.cores.len() {
            let rest = Picoseconds(end.0.saturating_sub(self.cores[core].booked.0));
            self.book(core, Load::Sleep, rest);
            self.close(core);
        }
        let of = |(number, model): (usize, &MeteredModel)| {
            let cores = self.cores.iter().map(|account| account.drawn[number]);
            let all = cores.fold(model.constant.over(end), |sum, drawn| sum + drawn);
            (model.name.clone(), all.joules())
        };
        self.models.iter().enumerate().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chip_at_rest_draws_what_its_model_says_and_a_core_that_computes_more() {
        let chip = Chip::find("scc").unwrap();
        let gears = Gears::of(&chip, chip.power_models().first());
        let second = Picoseconds(1_000_000_000_000);
        let accounts = || EnergyAccounts::new(&chip, chip.default_preset(), &gears);
        let at_rest = accounts().joules(second);
        let mut busy = accounts();
        busy.book(7, Load::Compute, second);
        for ((name, rest), (_, busy)) in at_rest.into_iter().zip(busy.joules(second)) {
            let model = chip.power_model(&name).unwrap();
            let table = PowerTable::new(&chip, model, &gears);
            let watts = |load| table.power(load, gears.first(), gears.gear(gears.first()).step).watts();
            let expected = model.constant().watts() + 48.0 * watts(Load::Sleep);
            assert!((rest - expected).abs() < 1e-9 * expected, "{name}: {rest} J, not {expected} J");
            let more = watts(Load::Compute) - watts(Load::Sleep);
            assert!(
                (busy - rest - more).abs() < 1e-9 * expected,
                "{name}: {} J more, not {more} J",
                busy - rest
            );
        }
    }
}
