//! The application `hf`: arguments, the run over all places, and what it tells.
//!
//! What is wrong with a molecule or a basis set is found before anything runs. The first place keeps the matrices and
//! decides when the field is self-consistent; all places build. Invariant: a calculation that does not converge is a
//! failure, and says its last energies.

use super::fock::{FockBuilder, Functions, units};
use super::molecule::Molecule;
use super::report::{HfOutcome, HfSummary};
use super::scf::{Scf, properties};
use super::shared_build::{SharedBuild, UnitBalance};
use super::{basis, effort, molecule};
use crate::frame::{OutputArguments, Outputs, RunFacts, SILENT};
use crate::registry::{App, Failure};
use clap::{ArgMatches, Args, Command, FromArgMatches, value_parser};
use isles::prelude::*;
use isles::{Claim, Launch, Machine};
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

/// Most iterations that can be asked for.
const ITERATIONS_MAX: u32 = 10_000;

/// Most iterations, and the change of the energy in hartree at which they end, unless something else is said.
pub(super) const ITERATIONS: u32 = 60;
pub(super) const CONVERGENCE: f64 = 1e-10;

/// The application `hf`.
pub struct HartreeFock;

/// The arguments of `isles run hf`.
#[derive(Args, Clone, Debug)]
pub(super) struct Arguments {
    #[command(flatten)]
    pub(super) input: CalculationInput,

    /// How the units of work, which are ordered pairs of shells, are assigned to the places
    #[arg(long, value_enum, default_value = "dynamic")]
    pub(super) balance: UnitBalance,

    /// Most iterations, 1 to 10000
    #[arg(long, value_name = "N", default_value_t = ITERATIONS,
          value_parser = value_parser!(u32).range(1..=i64::from(ITERATIONS_MAX)))]
    pub(super) max_iterations: u32,

    /// Change of the energy, in hartree, at which the iterations end, 1e-11 to 0.01
    #[arg(long, value_name = "E", default_value = "1e-10", value_parser = convergence, allow_negative_numbers = true)]
    pub(super) convergence: f64,

    #[command(flatten)]
    pub(super) outputs: OutputArguments,
}

/// What is computed.
#[derive(Args, Clone, Debug)]
pub(super) struct CalculationInput {
    /// A molecule: h2, h2o, ch4, nh3, benzene, aspirin, or a file .xyz (in ångström) or .inp (in bohr)
    #[arg(long, value_name = "NAME|FILE", default_value = "h2o")]
    pub(super) molecule: String,

    /// A basis set: sto-3g, 3-21g, 6-31g*, or a file in the form of NWChem or Gaussian
    #[arg(long, value_name = "NAME|FILE", default_value = "sto-3g")]
    pub(super) basis: String,

    /// The charge of the molecule, in elementary charges
    #[arg(long, value_name = "N", default_value = "0", allow_negative_numbers = true,
          value_parser = value_parser!(i32).range(-1000..=1000))]
    pub(super) charge: i32,

    /// Six Cartesian functions for each d shell instead of five spherical ones
    #[arg(long)]
    pub(super) cartesian: bool,
}

impl CalculationInput {
    /// A neutral molecule with spherical functions.
    pub(super) fn of(molecule: &str, basis: &str) -> CalculationInput {
        let [molecule, basis] = [molecule, basis].map(str::to_owned);
        CalculationInput { molecule, basis, charge: 0, cartesian: false }
    }
}

/// Reads a limit of convergence.
fn convergence(text: &str) -> Result<f64, &'static str> {
    let number = text.parse::<f64>().ok().filter(|number| (1e-11..=1e-2).contains(number));
    number.ok_or("a number from 1e-11 to 0.01")
}

impl App for HartreeFock {
    fn name(&self) -> &'static str {
        "hf"
    }

    fn about(&self) -> &'static str {
        "Energy of a molecule by the restricted Hartree-Fock method"
    }

    fn arguments(&self, command: Command) -> Command {
        Arguments::augment_args(command)
    }

    fn silent(&self) -> &'static [(&'static str, &'static str)] {
        &SILENT
    }

    fn reads(&self, arguments: &ArgMatches) -> Vec<Claim> {
        let said = |name| arguments.get_one::<String>(name);
        let molecule = said("molecule").filter(|name| molecule::is_file(name));
        let basis = said("basis").filter(|name| basis::is_file(name));
        let molecule = molecule.map(|file| Claim::read(file, "the molecule"));
        molecule.into_iter().chain(basis.map(|file| Claim::read(file, "the basis set"))).collect()
    }

    fn run(&self, arguments: &ArgMatches, launch: Launch) -> Result<(), Failure> {
        let arguments =
            Arguments::from_arg_matches(arguments).map_err(|error| Failure::Usage(error.to_string()))?;
        let file_name = |path: &str| {
            let name = Path::new(path).file_name();
            name.map_or_else(|| path.to_owned(), |name| name.to_string_lossy().into_owned())
        };
        let input = &arguments.input;
        let name = format!("hf-{}-{}", file_name(&input.molecule), file_name(&input.basis));
        let outputs = Outputs::check(&name, &arguments.outputs, &launch)?;
        let calculation = Calculation::new(input)?;
        let summary = HfSummary::of(&arguments, &calculation, RunFacts::of(&launch));
        outputs.tell(&summary.heading())?;
        // On a chip asking for them would be part of the prediction; its report says more.
        let asks_shares = !matches!(launch.chosen_machine(), Machine::Chip(_));
        let found = Rc::new(RefCell::new(HfOutcome::default()));
        let place = Rc::clone(&found);
        let Arguments { balance, max_iterations, convergence, .. } = arguments;
        let (result, report) = launch.run(move || async move {
            *place.borrow_mut() =
                calculation.run(balance, (max_iterations, convergence), asks_shares).await?;
            Ok::<_, isles::Error>(())
        })?;
        result.map_err(Failure::Run)?;
        let summary = summary.complete(found.take(), &report);
        if !summary.is_converged() {
            return Err(Failure::Ended(summary.unconverged()));
        }
        outputs.write(
            &summary.text(),
            |out| summary.write_json(out),
            |out| summary.write_csv(out),
            summary.verification(),
        )
    }
}

/// A molecule with its functions, ready to be computed.
pub(super) struct Calculation {
    pub(super) molecule: Molecule,
    pub(super) functions: Functions,
    scf: Scf,
}

impl Calculation {
    /// Reads the molecule and the basis set, and makes the first density.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(super) fn new(input: &CalculationInput) -> Result<Calculation, Failure> {
        let usage = |error: super::input_error::InputError| Failure::Usage(error.to_string());
        let molecule = molecule::open(&input.molecule, input.charge).map_err(usage)?;
        let basis = basis::open(&input.basis).map_err(usage)?;
        let shells = basis::shell::shells(&molecule, &basis, input.cartesian).map_err(usage)?;
        let functions = Functions { shells, is_cartesian: input.cartesian };
        let builder = FockBuilder::new(&functions);
        let scf = Scf::new(&molecule, &functions, &builder, &basis.name).map_err(usage)?;
        Ok(Calculation { molecule, functions, scf })
    }

    /// How many units a build has.
    pub(super) fn units(&self) -> u64 {
        units(self.functions.shells.len())
    }

    /// Iterates until the field is self-consistent, or as often as is allowed; at the first place.
    pub(super) async fn run(
        mut self,
        balance: UnitBalance,
        (iterations_max, convergence): (u32, f64),
        asks_shares: bool,
    ) -> isles::Result<HfOutcome> {
        let started = now();
        let build = SharedBuild::new(&self.functions, balance).await?;
        loop {
            let change = self.scf.density_change();
            let last = self.scf.advance(&build.of(&change).await?, convergence);
            work(effort::of_iteration(change.size(), self.molecule.electrons() / 2));
            if last.is_converged(convergence) || last.iteration == iterations_max {
                let seconds = (now() - started).as_secs_f64();
                let shares = if asks_shares { build.shares().await? } else { Vec::new() };
                let properties = properties(&self.scf, &self.molecule);
                let iterations = self.scf.iterations().to_vec();
                return Ok(HfOutcome { iterations, properties, seconds, shares });
            }
        }
    }
}
