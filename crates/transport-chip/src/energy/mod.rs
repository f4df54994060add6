//! The energy that a run has drawn.
//!
//! `power_tables` has the powers, `meter` computes energies from ledgers, and `profile` divides them by time; this file
//! has the results. Every figure covers the time from the start to the latest clock of a place: a place whose clock is
//! behind waits until then. Cores without a place are halted. The power besides the cores is a constant of the model,
//! which includes the idle mesh; each flit that passes a router adds to it.
//!
//! Invariant: all energies are integers until they are printed.

pub(crate) mod meter;
pub(crate) mod power_tables;
mod profile;
mod reading;

pub use profile::{Peak, Profile};
pub use reading::EnergyReading;

pub(crate) use profile::{Sample, Sampler};

use crate::report::TIME_CATEGORIES;
use isles_chip::quantity::{Attojoules, Microwatts, PICOSECONDS_PER_SECOND, Picoseconds, scaled};
use isles_chip::topology::CoreId;
use meter::EnergyByCategory;
use std::fmt;

/// The energy of a run, by each power model of the chip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Energy {
    /// Time from the start of the run to the latest clock of a place, which all figures cover.
    pub span: Picoseconds,
    /// Energy by each power model of the chip; the first is the chosen one.
    pub models: Vec<ModelEnergy>,
    /// Power over time, by the first model.
    pub profile: Profile,
    /// Unpublished figures of the chip file, as text.
    pub assumed: Vec<String>,
    /// The core of each place.
    pub places: Vec<CoreId>,
    /// The voltage domain of each core.
    pub(crate) supplies: Vec<u32>,
}

/// The energy of a run by one model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelEnergy {
    /// The name of the model in the chip file.
    pub name: String,
    /// Energy of each core of the chip, by category.
    pub(crate) cores: Vec<EnergyByCategory>,
    /// Constant part of the model: mesh at rest, memory controllers, the rest.
    pub constant: Attojoules,
    /// Part of the constant energy that is the mesh; `None` if the mesh is not modelled.
    pub mesh_at_rest: Option<Attojoules>,
    /// Energy added by flits in the mesh; zero if the mesh is not modelled.
    pub flits: Attojoules,
}

impl ModelEnergy {
    /// Returns the energy of one core.
    pub fn core(&self, core: usize) -> Attojoules {
        self.cores[core].iter().copied().sum()
    }

    /// Returns the total energy of `cores`.
    pub(crate) fn these_cores(&self, cores: &[CoreId]) -> Attojoules {
        cores.iter().map(|core| self.core(core.0 as usize)).sum()
    }

    /// Returns the total energy of `cores` in category number `number`.
    pub(crate) fn category(&self, cores: &[CoreId], number: usize) -> Attojoules {
        cores.iter().map(|core| self.cores[core.0 as usize][number]).sum()
    }

    /// Returns the energy of all cores.
    pub fn all_cores(&self) -> Attojoules {
        (0..self.cores.len()).map(|core| self.core(core)).sum()
    }

    /// Returns the energy of everything besides the cores.
    pub fn uncore(&self) -> Attojoules {
        self.constant + self.flits
    }

    /// Returns the energy of the mesh, if it is modelled.
    pub fn mesh(&self) -> Option<Attojoules> {
        self.mesh_at_rest.map(|at_rest| at_rest + self.flits)
    }

    /// Returns the energy of the chip.
    pub fn total(&self) -> Attojoules {
        self.all_cores() + self.uncore()
    }
}

impl Energy {
    /// Returns the mean power of the chip by `model`.
    pub fn mean(&self, model: &ModelEnergy) -> Microwatts {
        model.total().mean_over(self.span)
    }

    /// Returns the energy-delay product in joule seconds by `model`.
    pub fn energy_delay(&self, model: &ModelEnergy) -> f64 {
        model.total().joules() * self.seconds()
    }

    /// Returns the energy-delay-squared product, in joules times seconds squared, by `model`.
    pub(crate) fn energy_delay_delay(&self, model: &ModelEnergy) -> f64 {
        self.energy_delay(model) * self.seconds()
    }

    /// Returns the energy of each voltage domain's cores by `model`.
    pub fn by_domain(&self, model: &ModelEnergy) -> Vec<Attojoules> {
        let domains = self.supplies.iter().max().map_or(0, |last| *last as usize + 1);
        let mut sums = vec![Attojoules::ZERO; domains];
        for (core, supply) in self.supplies.iter().enumerate() {
            sums[*supply as usize] += model.core(core);
        }
        sums
    }

    /// Returns the excess of the highest model over the lowest, as a fraction of the lowest; `None` if there is only
    /// one model.
    pub fn disagreement(&self) -> Option<f64> {
        let totals = || self.models.iter().map(|model| model.total().joules());
        let (least, most) = (totals().reduce(f64::min)?, totals().reduce(f64::max)?);
        (self.models.len() > 1 && least > 0.0).then(|| most / least - 1.0)
    }

    /// Returns the span in seconds.
    fn seconds(&self) -> f64 {
        self.span.0 as f64 / PICOSECONDS_PER_SECOND as f64
    }
}

/// Formats an energy in joules with about four digits.
pub(crate) fn joules(energy: Attojoules) -> String {
    scaled(energy.joules(), "J")
}

/// Formats a power in watts with about four digits.
fn watts(power: Microwatts) -> String {
    scaled(power.watts(), "W")
}

/// Number of values in a line of text.
const NUMBERS_IN_A_LINE: usize = 8;

/// Maximum number of places whose energies are listed.
const PLACES_LISTED: usize = 64;

impl fmt::Display for Energy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, model) in self.models.iter().enumerate() {
            let about = if number == 0 { "energy          " } else { "  another model " };
            writeln!(
                f,
                "{about}{} by {}: mean {}; energy-delay {}, delay squared {}",
                joules(model.total()),
                model.name,
                watts(self.mean(model)),
                scaled(self.energy_delay(model), "J s"),
                scaled(self.energy_delay_delay(model), "J s^2"),
            )?;
        }
        if let Some(share) = self.disagreement() {
            let percent = share * 100.0;
            writeln!(
                f,
                "  caveat        the models differ by {percent:.1} %: other boards, loads and voltages"
            )?;
        }
        let Some(own) = self.models.first() else { return Ok(()) };
        self.parts(f, own)?;
        let by_domain: Vec<String> = self.by_domain(own).into_iter().map(joules).collect();
        writeln!(f, "  by domain     {}", by_domain.join(", "))?;
        self.by_place(f, own)?;
        write!(f, "  assumed       ")?;
        if self.assumed.is_empty() { write!(f, "nothing") } else { write!(f, "{}", self.assumed.join(", ")) }
    }
}

impl Energy {
    /// Writes the energy of each place's core; for many places only minimum and maximum.
    fn by_place(&self, f: &mut fmt::Formatter<'_>, own: &ModelEnergy) -> fmt::Result {
        let drawn = || self.places.iter().map(|core| own.core(core.0 as usize));
        if self.places.len() > PLACES_LISTED {
            let [least, most] = [drawn().min(), drawn().max()].map(|one| joules(one.unwrap_or_default()));
            return writeln!(f, "  by place      from {least} to {most}; each is in the summary");
        }
        let each: Vec<String> = drawn().map(joules).collect();
        for (line, numbers) in each.chunks(NUMBERS_IN_A_LINE).enumerate() {
            let about = if line == 0 { "  by place      " } else { "                " };
            writeln!(f, "{about}{}", numbers.join(", "))?;
        }
        Ok(())
    }

    /// Writes the peak power and the parts of the energy.
    fn parts(&self, f: &mut fmt::Formatter<'_>, own: &ModelEnergy) -> fmt::Result {
        let (peak, window) = (self.profile.peak(), self.profile.window);
        let (power, start) = (watts(peak.power), peak.start.0 as f64 / 1e9);
        writeln!(f, "  peak          {power} over {window} from {start:.3} ms")?;
        let placed = own.these_cores(&self.places);
        let idle = Attojoules(own.all_cores().0 - placed.0);
        let (placed, idle, uncore) = (joules(placed), joules(idle), joules(own.uncore()));
        write!(f, "  parts         places {placed}, cores without a place {idle}, uncore {uncore}")?;
        match own.mesh() {
            Some(mesh) => writeln!(f, " (of it the mesh {}, flits {})", joules(mesh), joules(own.flits))?,
            None => writeln!(f)?,
        }
        let part = |(number, (_, name)): (usize, (_, &str))| {
            let drawn = own.category(&self.places, number);
            (drawn.0 > 0).then(|| format!("{name} {}", joules(drawn)))
        };
        let parts: Vec<String> = TIME_CATEGORIES.into_iter().enumerate().filter_map(part).collect();
        writeln!(f, "  by category   {}", parts.join(", "))
    }
}
