//! The rates that the cores of a chip can run at, and the voltage that each needs.
//!
//! A [`Gear`] is a rate with the lowest voltage step that supports it. A chip with clock dividers has a gear for each
//! divider, other chips have just one. The voltages come from the table of the chosen power model, or from the first
//! table of the chip.
//!
//! Changes over time are in `supply`. Invariant: gears are ordered by rate, fastest first, and each has a step.

use crate::chip::Chip;
use crate::energy::{Load, OperatingPoint, PowerModel, VoltageTable};
use crate::quantity::{Microvolts, Microwatts, Rate};

/// A gear, counted from the fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GearId(pub u16);

/// A step of voltage, counted from the lowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VoltageStepId(pub u16);

/// A rate of cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gear {
    /// Rate of the cores.
    pub rate: Rate,
    /// Divider of the clock; `None` if the chip has no dividers.
    pub divider: Option<u32>,
    /// The lowest voltage step that supports it.
    pub step: VoltageStepId,
}

/// All gears of a chip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gears {
    gears: Vec<Gear>,
    steps: Vec<OperatingPoint>,
    first: GearId,
}

impl Gears {
    /// Returns the gears of `chip` with the voltages of `model`; the initial gear has the rate of the default preset.
    pub fn of(chip: &Chip, model: Option<&PowerModel>) -> Gears {
        let table = model.and_then(|model| chip.voltage_table(model.voltages())).or(chip.voltages().first());
        let steps = table.map(VoltageTable::steps).unwrap_or_default().to_vec();
        let own = chip.default_preset().clocks().core;
        let step = |rate| {
            let step = steps.iter().position(|step| step.rate >= rate);
            if steps.is_empty() {
                Some(VoltageStepId(0))
            } else {
                step.map(|step| VoltageStepId(step as u16))
            }
        };
        let divided = chip.dividers().into_iter().flat_map(|dividers| dividers.rates());
        let mut rates: Vec<Rate> = divided.chain([own]).collect();
        rates.sort_by(|one, other| other.cmp(one));
        rates.dedup();
        let divider = |rate| chip.dividers().and_then(|dividers| dividers.divider(rate));
        let gear = |rate| Some(Gear { rate, divider: divider(rate), step: step(rate)? });
        let gears: Vec<Gear> = rates.into_iter().filter_map(gear).collect();
        let first = gears.iter().position(|gear| gear.rate == own).unwrap_or_default();
        Gears { first: GearId(first as u16), gears, steps }
    }

    /// Returns the initial gear.
    pub fn first(&self) -> GearId {
        self.first
    }

    /// Returns the slowest gear.
    pub fn slowest(&self) -> GearId {
        GearId(self.gears.len().saturating_sub(1) as u16)
    }

    /// Returns all gears, fastest first.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = (GearId, Gear)> + '_ {
        self.gears.iter().enumerate().map(|(number, gear)| (GearId(number as u16), *gear))
    }

    /// Returns a gear by its number.
    pub fn gear(&self, gear: GearId) -> Gear {
        self.gears[usize::from(gear.0)]
    }

    /// Returns the gear with a divider, if the chip has that divider with a voltage.
    pub fn divided_by(&self, divider: u32) -> Option<GearId> {
        self.all().find(|(_, gear)| gear.divider == Some(divider)).map(|(id, _)| id)
    }

    /// Returns the number of voltage steps; at least one, which has no voltage if the chip file has none.
    pub fn steps(&self) -> u16 {
        self.steps.len().max(1) as u16
    }

    /// Returns the voltage of a step, if the chip file has voltages.
    pub fn voltage(&self, step: VoltageStepId) -> Option<Microvolts> {
        self.steps.get(usize::from(step.0)).map(|step| step.voltage)
    }

    /// Returns the fastest rate that a step supports, if the chip file has voltages.
    pub fn ceiling(&self, step: VoltageStepId) -> Option<Rate> {
        self.steps.get(usize::from(step.0)).map(|step| step.rate)
    }
}

/// Power of a core by gear, voltage step and load, from one power model; computed once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PowerTable {
    steps: usize,
    watts: Vec<[Microwatts; Load::ALL.len()]>,
}

impl PowerTable {
    /// Makes the table of `model`, whose voltage at a step comes from the model's own table for the rate of the step.
    pub fn new(chip: &Chip, model: &PowerModel, gears: &Gears) -> PowerTable {
        let table = chip.voltage_table(model.voltages());
        let voltage = |step: VoltageStepId| {
            let ceiling = gears.ceiling(step).and_then(|rate| table?.voltage(rate));
            let highest = table.and_then(|table| table.steps().last()).map(|step| step.voltage);
            ceiling.or(highest).unwrap_or(Microvolts(0))
        };
        let mut watts = Vec::new();
        for (_, gear) in gears.all() {
            for step in (0..gears.steps()).map(VoltageStepId) {
                let point = OperatingPoint { rate: gear.rate, voltage: voltage(step) };
                watts.push(Load::ALL.map(|load| model.core(load, point)));
            }
        }
        PowerTable { steps: usize::from(gears.steps()), watts }
    }

    /// Returns the powers of a core, in the order of [`Load::ALL`].
    #[inline]
    pub fn powers(&self, gear: GearId, step: VoltageStepId) -> &[Microwatts; Load::ALL.len()] {
        &self.watts[usize::from(gear.0) * self.steps + usize::from(step.0)]
    }

    /// Returns the power of a core with a load.
    pub fn power(&self, load: Load, gear: GearId, step: VoltageStepId) -> Microwatts {
        self.powers(gear, step)[load as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chip(name: &str) -> Chip {
        Chip::find(name).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn the_scc_has_a_gear_for_each_divider_and_starts_in_the_second() {
        let chip = chip("scc");
        let gears = Gears::of(&chip, chip.power_models().first());
        let dividers: Vec<u32> = gears.all().filter_map(|(_, gear)| gear.divider).collect();
        assert_eq!(dividers, (2..=16).collect::<Vec<_>>());
        assert_eq!((gears.first(), gears.slowest()), (GearId(1), GearId(14)));
        let steps: Vec<u16> = gears.all().map(|(_, gear)| gear.step.0).collect();
        assert_eq!(steps[..6], [5, 4, 3, 2, 1, 0], "{steps:?}");
        assert!(steps[6..].iter().all(|step| *step == 0), "{steps:?}");
        assert_eq!(gears.voltage(VoltageStepId(4)), Some(Microvolts(856_250)));
        assert_eq!((gears.divided_by(4), gears.divided_by(17)), (Some(GearId(2)), None));
    }

    #[test]
    fn a_chip_whose_clock_stays_has_one_gear() {
        for name in ["bluegene-p", "c6678"] {
            let chip = chip(name);
            let gears = Gears::of(&chip, chip.power_models().first());
            assert_eq!((gears.first(), gears.slowest(), gears.steps()), (GearId(0), GearId(0), 1), "{name}");
        }
    }

    #[test]
    fn the_table_holds_what_the_model_says_and_each_author_keeps_his_voltages() {
        let chip = chip("scc");
        let gears = Gears::of(&chip, chip.power_models().first());
        let fast = GearId(0);
        let step = gears.gear(fast).step;
        let total = |name: &str, load| {
            let model = chip.power_model(name).unwrap();
            let core = PowerTable::new(&chip, model, &gears).power(load, fast, step);
            core.watts() * 48.0 + model.constant().watts()
        };
        assert!((total("manyman", Load::Compute) - 109.3).abs() < 0.1);
        assert!((total("manyman", Load::Sleep) - 62.0).abs() < 0.1);
        assert!((total("cichowski", Load::Compute) - 72.6).abs() < 0.1);
    }

    #[test]
    fn in_each_gear_the_table_has_the_power_at_the_voltage_of_each_step() {
        let chip = chip("scc");
        let model = chip.power_models().first().unwrap();
        let gears = Gears::of(&chip, Some(model));
        let table = PowerTable::new(&chip, model, &gears);
        for (id, gear) in gears.all() {
            for step in (0..gears.steps()).map(VoltageStepId) {
                let point = OperatingPoint { rate: gear.rate, voltage: gears.voltage(step).unwrap() };
                let known = Load::ALL.map(|load| model.core(load, point));
                assert_eq!(*table.powers(id, step), known, "{id:?} {step:?}");
            }
        }
    }
}
