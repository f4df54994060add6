//! Voltages and powers: the voltage that a rate needs, and the power of a chip.
//!
//! Published sources disagree on both by more than their stated errors, so a chip file has several tables and models,
//! named after their authors, from which a run chooses. This file does not integrate over time, nor decide when a
//! voltage changes.
//!
//! Invariant: a power is computed in floating point with plain multiplications only (no library function, whose last
//! bit may differ between hosts), then rounded once to a microwatt; sums over time are exact integers.

use crate::quantity::{Attojoules, Microvolts, Microwatts, Rate};

/// A legal pair of voltage and rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperatingPoint {
    /// The rate of the core.
    pub rate: Rate,
    /// The voltage of the core.
    pub voltage: Microvolts,
}

/// Table of the fastest rate at each voltage, by one author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VoltageTable {
    pub(crate) name: String,
    /// The fastest rate at each voltage; both rise.
    pub(crate) steps: Vec<OperatingPoint>,
}

impl VoltageTable {
    /// Returns the name of the table in its file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the fastest rate at each voltage, slowest first.
    pub fn steps(&self) -> &[OperatingPoint] {
        &self.steps
    }

    /// Returns the lowest voltage that allows the rate; `None` if none does.
    pub fn voltage(&self, rate: Rate) -> Option<Microvolts> {
        self.steps.iter().find(|step| step.rate >= rate).map(|step| step.voltage)
    }

    /// Returns the rate with the lowest voltage that allows it; `None` if none does.
    pub fn operating_point(&self, rate: Rate) -> Option<OperatingPoint> {
        self.voltage(rate).map(|voltage| OperatingPoint { rate, voltage })
    }

    /// Returns the fastest rate of the table.
    pub(crate) fn rate_max(&self) -> Option<Rate> {
        self.steps.last().map(|step| step.rate)
    }
}

/// Activity of a core, for a power model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Load {
    /// The core computes.
    Compute,
    /// The core moves lines between memories.
    Copy,
    /// The core polls.
    Poll,
    /// The core is halted until an interrupt.
    Sleep,
}

impl Load {
    /// All loads.
    pub const ALL: [Self; 4] = [Self::Compute, Self::Copy, Self::Poll, Self::Sleep];

    /// Returns the name in a chip file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Copy => "copy",
            Self::Poll => "poll",
            Self::Sleep => "sleep",
        }
    }
}

/// Formula of one core's power at an operating point, in watts, megahertz and volts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PowerForm {
    /// `load · cubic · f³ + linear · f`: the voltage is implicit, because it follows the rate.
    Rate {
        /// Watts for each MHz³.
        cubic: f64,
        /// Watts for each MHz.
        linear: f64,
    },
    /// `leakage · V³ + load · dynamic · V² · f`.
    Voltage {
        /// Watts for each V³.
        leakage: f64,
        /// Watts for each V² · MHz of a computing core.
        dynamic: f64,
    },
}

/// Power of a chip, by one author.
#[derive(Clone, Debug, PartialEq)]
pub struct PowerModel {
    pub(crate) name: String,
    pub(crate) voltages: String,
    pub(crate) constant: Microwatts,
    pub(crate) form: PowerForm,
    /// Factors of the dynamic part, in the order of [`Load::ALL`].
    pub(crate) load: [f64; Load::ALL.len()],
}

impl PowerModel {
    /// Returns the name of the model in its file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the name of the voltage table in use: the chosen one, or the one that the model was fitted with.
    pub fn voltages(&self) -> &str {
        &self.voltages
    }

    /// Returns the power of the chip besides its cores: mesh, controllers, and everything constant.
    pub const fn constant(&self) -> Microwatts {
        self.constant
    }

    /// Returns the formula of a core's power at an operating point.
    pub const fn form(&self) -> PowerForm {
        self.form
    }

    /// Returns the factor of a load.
    pub const fn factor(&self, load: Load) -> f64 {
        self.load[load as usize]
    }

    /// Returns the power of one core.
    pub fn core(&self, load: Load, point: OperatingPoint) -> Microwatts {
        let (megahertz, volts) = (point.rate.megahertz(), point.voltage.volts());
        let factor = self.factor(load);
        let watts = match self.form {
            PowerForm::Rate { cubic, linear } => {
                factor * cubic * megahertz * megahertz * megahertz + linear * megahertz
            }
            PowerForm::Voltage { leakage, dynamic } => {
                leakage * volts * volts * volts + factor * dynamic * volts * volts * megahertz
            }
        };
        Microwatts((watts * 1e6).round() as u64)
    }

    /// Returns the power of the chip with `cores` cores at one point and load, including the constant part.
    pub fn chip(&self, cores: u32, load: Load, point: OperatingPoint) -> Microwatts {
        let all = self.core(load, point).0.saturating_mul(u64::from(cores));
        Microwatts(all.saturating_add(self.constant.0))
    }
}

/// Power of a mesh's routers: a part proportional to their clock, and a part for each flit that passes one.
///
/// It splits the constant part of a [`PowerModel`] and adds the part of the traffic, because chips were measured with
/// an idle mesh.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeshPower {
    /// Power of one router at full load, at the measured point.
    pub(crate) router: Microwatts,
    /// The clock and the voltage of the measurement.
    pub(crate) measured: OperatingPoint,
    /// Flits through a router per cycle at full load.
    pub(crate) flits: u32,
    /// Fraction of the power that depends on the flits, from 0 to 1.
    pub(crate) moving: f64,
    /// The voltage of the mesh in use.
    pub(crate) supply: Microvolts,
}

impl MeshPower {
    /// Returns the power of one router without traffic.
    pub fn router_at_rest(&self, mesh: Rate) -> Microwatts {
        let share = (1.0 - self.moving) * self.router.0 as f64 * self.square();
        Microwatts((share * (mesh.megahertz() / self.measured.rate.megahertz())).round() as u64)
    }

    /// Returns the energy of one flit at one router.
    pub fn flit(&self) -> Attojoules {
        let flits_a_second = self.measured.rate.megahertz() * 1e6 * f64::from(self.flits);
        // Microwatts are 10^12 attojoules a second.
        Attojoules(
            (self.moving * self.router.0 as f64 * 1e12 / flits_a_second * self.square()).round() as u128
        )
    }

    /// Returns the power of one router at full load.
    pub fn router_at_full_load(&self, mesh: Rate) -> Microwatts {
        let flits_a_second = mesh.megahertz() * 1e6 * f64::from(self.flits);
        let moving = self.flit().0 as f64 * flits_a_second / 1e12;
        self.router_at_rest(mesh) + Microwatts(moving.round() as u64)
    }

    /// Returns the factor of the power for a supply that differs from the measured voltage.
    fn square(&self) -> f64 {
        let ratio = self.supply.volts() / self.measured.voltage.volts();
        ratio * ratio
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn megahertz(rate: u64) -> Rate {
        Rate::new(rate * 1_000_000, 1).unwrap()
    }

    fn table() -> VoltageTable {
        let step = |rate, voltage| OperatingPoint { rate: megahertz(rate), voltage: Microvolts(voltage) };
        VoltageTable { name: "here".to_owned(), steps: vec![step(400, 700_000), step(800, 1_100_000)] }
    }

    #[test]
    fn a_rate_takes_the_lowest_voltage_that_allows_it() {
        assert_eq!(table().voltage(megahertz(100)), Some(Microvolts(700_000)));
        assert_eq!(table().voltage(megahertz(400)), Some(Microvolts(700_000)));
        assert_eq!(table().voltage(megahertz(401)), Some(Microvolts(1_100_000)));
    }

    #[test]
    fn a_rate_beyond_the_table_has_no_voltage() {
        assert_eq!(table().operating_point(megahertz(801)), None);
    }

    #[test]
    fn a_router_draws_by_its_clock_and_by_its_flits() {
        let measured = OperatingPoint { rate: megahertz(2_000), voltage: Microvolts(1_100_000) };
        let (router, supply) = (Microwatts(550_000), Microvolts(1_100_000));
        let power = MeshPower { router, measured, flits: 5, moving: 0.3, supply };
        assert_eq!(power.router_at_full_load(megahertz(2_000)), router);
        assert_eq!(power.router_at_rest(megahertz(800)), Microwatts(154_000));
        assert_eq!(power.flit(), Attojoules(16_500_000));
        let lower = MeshPower { supply: Microvolts(550_000), ..power };
        assert_eq!(lower.flit(), Attojoules(4_125_000));
        assert_eq!(lower.router_at_rest(megahertz(800)), Microwatts(38_500));
    }

    #[test]
    fn leakage_remains_when_a_core_sleeps() {
        let form = PowerForm::Voltage { leakage: 0.4, dynamic: 0.001 };
        let model = PowerModel {
            name: "here".to_owned(),
            voltages: "here".to_owned(),
            constant: Microwatts(12_000_000),
            form,
            load: [1.0, 0.7, 0.7, 0.0],
        };
        let point = OperatingPoint { rate: megahertz(800), voltage: Microvolts(1_000_000) };
        assert_eq!(model.core(Load::Sleep, point), Microwatts(400_000));
        assert_eq!(model.core(Load::Compute, point), Microwatts(1_200_000));
        assert_eq!(model.chip(48, Load::Sleep, point), Microwatts(12_000_000 + 48 * 400_000));
    }
}
