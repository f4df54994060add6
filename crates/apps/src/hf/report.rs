//! What a calculation came to, for people, as JSON and as CSV.
//!
//! Computes nothing but ratios, and knows no places. Invariant: the same calculation gives the same bytes but for
//! times.

use super::run::{Arguments, Calculation};
use super::scf::{Iteration, Properties};
use super::shared_build::{BuildShare, UnitBalance};
use super::verify::{self, Golden};
use crate::frame::{RunFacts, Verification, count, duration, write_json};
use isles::RunReport;
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Electronvolts in a hartree: CODATA 2018.
const ELECTRONVOLTS: f64 = 27.211_386_245_988;

/// Orbitals on each side of the gap that are shown.
const ORBITALS_SHOWN: usize = 3;

/// What a calculation comes to.
#[derive(Clone, Debug, Default)]
pub(super) struct HfOutcome {
    pub(super) iterations: Vec<Iteration>,
    pub(super) properties: Properties,
    /// Seconds from the first build to the last.
    pub(super) seconds: f64,
    /// What each place did, if that was asked for.
    pub(super) shares: Vec<BuildShare>,
}

/// All that is known of a run; the JSON document.
#[derive(Clone, Debug, Serialize)]
pub(super) struct HfSummary {
    run: RunFacts,
    molecule: String,
    basis: String,
    charge: i32,
    cartesian: bool,
    atoms: usize,
    electrons: usize,
    shells: usize,
    functions: usize,
    units: u64,
    balance: UnitBalance,
    convergence: f64,
    /// In hartree.
    energy: f64,
    #[serde(flatten)]
    properties: Properties,
    iterations: Vec<Iteration>,
    /// What each place did, in order of the places; empty on a modelled chip.
    shares: Vec<BuildShare>,
    /// The time of the place that computed longest, by the mean of all; none on a modelled chip.
    imbalance: Option<f64>,
    verification: Option<Verification>,
    /// The energy that another program gives.
    #[serde(skip)]
    golden: Option<&'static Golden>,
}

impl HfSummary {
    /// What is known before the run.
    pub(super) fn of(arguments: &Arguments, calculation: &Calculation, run: RunFacts) -> HfSummary {
        let Calculation { molecule, functions, .. } = calculation;
        HfSummary {
            run,
            molecule: molecule.name.clone(),
            basis: arguments.input.basis.to_ascii_lowercase(),
            charge: molecule.charge,
            cartesian: arguments.input.cartesian,
            atoms: molecule.atoms.len(),
            electrons: molecule.electrons(),
            shells: functions.shells.len(),
            functions: functions.shells.iter().map(|shell| shell.functions).sum(),
            units: calculation.units(),
            balance: arguments.balance,
            convergence: arguments.convergence,
            energy: f64::NAN,
            properties: Properties::default(),
            iterations: Vec::new(),
            shares: Vec::new(),
            imbalance: None,
            verification: None,
            golden: verify::golden(molecule, &arguments.input.basis, arguments.input.cartesian),
        }
    }

    /// Adds what the run came to.
    pub(super) fn complete(mut self, outcome: HfOutcome, report: &RunReport) -> HfSummary {
        let HfOutcome { iterations, properties, seconds, shares } = outcome;
        self.run.complete(seconds, report);
        self.energy = iterations.last().map_or(f64::NAN, |last| last.energy);
        self.verification = self.golden.map(|golden| verify::check(golden, self.energy, self.convergence));
        let longest = shares.iter().map(|share| share.seconds).fold(0.0, f64::max);
        let mean = shares.iter().map(|share| share.seconds).sum::<f64>() / shares.len() as f64;
        self.imbalance = (mean > 0.0).then(|| longest / mean);
        (self.iterations, self.properties, self.shares) = (iterations, properties, shares);
        self
    }

    /// What is computed, and where.
    pub(super) fn heading(&self) -> String {
        let HfSummary { molecule, basis, charge, run, .. } = self;
        let charge = if *charge == 0 { String::new() } else { format!(", charge {charge:+}") };
        let [electrons, shells, functions] =
            [(self.electrons, "electron"), (self.shells, "shell"), (self.functions, "function")]
                .map(|(number, noun)| count(number as u64, noun, &format!("{noun}s")));
        format!(
            "{molecule} in {basis}{charge}: {electrons}, {shells}, {functions}, {} units; {}",
            self.units,
            run.where_it_runs()
        )
    }

    /// Whether the last iteration is the last because nothing changed any more.
    pub(super) fn is_converged(&self) -> bool {
        self.iterations.last().is_some_and(|last| last.is_converged(self.convergence))
    }

    /// That it did not converge, with the last energies.
    pub(super) fn unconverged(&self) -> String {
        let first = self.iterations.len().saturating_sub(ORBITALS_SHOWN);
        let last: Vec<String> = self.iterations[first..]
            .iter()
            .map(|one| {
                format!("{:.9} (iteration {}, gradient {:.1e})", one.energy, one.iteration, one.gradient)
            })
            .collect();
        format!(
            "the energy of {} in {} did not converge to {:.0e} hartree in {}: {}",
            self.molecule,
            self.basis,
            self.convergence,
            count(self.iterations.len() as u64, "iteration", "iterations"),
            last.join(", ")
        )
    }

    /// What the result was checked against.
    pub(super) fn verification(&self) -> Option<&Verification> {
        self.verification.as_ref()
    }

    /// The result for people.
    pub(super) fn text(&self) -> String {
        let HfSummary { properties, run, .. } = self;
        let mut text = format!("{:>9}  {:>18}  {:>11}  {:>8}\n", "iteration", "energy", "change", "gradient");
        for Iteration { iteration, energy, change, gradient } in &self.iterations {
            let _ = writeln!(text, "{iteration:>9}  {energy:>18.10}  {change:>11.2e}  {gradient:>8.1e}");
        }
        let [x, y, z] = properties.dipole;
        let _ = write!(
            text,
            "\n{}\n{}energy     {:.10} hartree, {:.10} of it between the nuclei\n\
             gap        {}\ndipole     {:.4} debye ({x:.4}, {y:.4}, {z:.4})\ntime       {} for {}\nmoved      {}",
            self.orbitals(),
            self.share_table(),
            self.energy,
            properties.nuclear_repulsion,
            match properties.gap {
                Some(gap) => format!("{gap:.6} hartree, {:.3} electronvolts", gap * ELECTRONVOLTS),
                None => "none: all orbitals are occupied".to_owned(),
            },
            properties.dipole_length(),
            duration(run.seconds),
            count(self.iterations.len() as u64, "iteration", "iterations"),
            run.moved()
        );
        text
    }

    /// The orbitals around the gap.
    fn orbitals(&self) -> String {
        let Properties { orbital_energies, occupied, .. } = &self.properties;
        let shown =
            occupied.saturating_sub(ORBITALS_SHOWN)..(occupied + ORBITALS_SHOWN).min(orbital_energies.len());
        let mut text = format!("{:>7}  {:>11}\n", "orbital", "energy");
        for index in shown {
            let name = match index {
                index if index + 1 == *occupied => "  highest occupied",
                index if index == *occupied => "  lowest unoccupied",
                _ => "",
            };
            let _ = writeln!(text, "{:>7}  {:>11.6}{name}", index + 1, orbital_energies[index]);
        }
        text
    }

    /// What each place did; nothing if it is not known.
    fn share_table(&self) -> String {
        let Some(imbalance) = self.imbalance else { return String::new() };
        let mut text = format!("{:>5}  {:>8}  {:>10}  {:>10}\n", "place", "units", "quartets", "computing");
        for (place, BuildShare { units, quartets, seconds }) in self.shares.iter().enumerate() {
            let _ = writeln!(text, "{place:>5}  {units:>8}  {quartets:>10}  {:>10}", duration(*seconds));
        }
        text + &format!("imbalance  {imbalance:.3} (longest by mean)\n\n")
    }

    /// Writes one object.
    pub(super) fn write_json(&self, out: impl Write) -> io::Result<()> {
        write_json(out, self)
    }

    /// Writes a line for each iteration.
    pub(super) fn write_csv(&self, mut out: impl Write) -> io::Result<()> {
        writeln!(out, "iteration,energy,change,gradient")?;
        for Iteration { iteration, energy, change, gradient } in &self.iterations {
            writeln!(out, "{iteration},{energy},{change},{gradient}")?;
        }
        out.flush()
    }
}
