//! The application `hf`: arguments, the run over all places, and its output.
//!
//! Errors in a molecule or a basis set are found before anything runs. The first place keeps the matrices and decides
//! when the field is self-consistent; all places build the Fock matrix. A run goes through named phases ([`HfPhase`]).
//! Invariant: a calculation that does not converge is a failure, and reports its last energies.

use super::fock::{FockBuilder, Functions, units};
use super::molecule::Molecule;
use super::report::HfFound;
use super::scf::{Guess, Iteration, Scf, Stability, StabilitySearch, properties};
use super::shared_build::SharedBuild;
use super::{basis, effort, molecule, verify};
use clap::{Args, value_parser};
use isles::Claim;
use isles::prelude::*;
use isles_app::Failure;
use isles_app::frame::{
    Application, ApplicationInfo, Balance, RunResult, Verification, WorkDistributor, WorkDone, count,
};
use serde::Serialize;
use std::io::{self, Write};
use std::path::Path;

/// Largest accepted number of iterations.
const ITERATIONS_MAX: u32 = 10_000;

/// Default maximum number of iterations.
const ITERATIONS: u32 = 100;

/// Most unstable solutions from which a run continues to a lower one.
const FOLLOWED_MAX: usize = 10;

/// Most two-electron parts built to examine the stability of a solution: if requested, and by default.
const BUILDS_MAX: (usize, usize) = (200, 30);

/// A phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HfPhase {
    /// Each place computes the bounds of the pairs of shells.
    Screening,
    /// Iterations whose densities are extrapolated.
    Scf,
    /// Iterations whose orbitals are rotated downhill.
    Descent,
    /// The search for a lower energy near a converged one.
    Stability,
}

impl HfPhase {
    fn name(self) -> &'static str {
        match self {
            HfPhase::Screening => "Schwarz screening",
            HfPhase::Scf => "SCF",
            HfPhase::Descent => "descent",
            HfPhase::Stability => "stability check",
        }
    }
}

/// The arguments of `isles run hf`.
#[derive(Args, Clone, Debug)]
pub struct HartreeFock {
    /// A molecule: h2, h2o, ch4, nh3, benzene, aspirin, or a file .xyz (in ångström) or .inp (in bohr)
    #[arg(long, value_name = "NAME|FILE", default_value = "h2o")]
    molecule: String,

    /// Number of the molecule in an .xyz file with several, from 1
    #[arg(long, value_name = "N")]
    frame: Option<usize>,

    /// Basis set: sto-3g, 3-21g, 6-31g*, or a file in the format of NWChem or Gaussian
    #[arg(long, value_name = "NAME|FILE", default_value = "sto-3g")]
    basis: String,

    /// Charge of the molecule, in elementary charges
    #[arg(long, value_name = "N", default_value = "0", allow_negative_numbers = true,
          value_parser = value_parser!(i32).range(-1000..=1000))]
    charge: i32,

    /// Use six Cartesian functions for each d shell instead of five spherical ones
    #[arg(long)]
    cartesian: bool,

    /// Initial density: superposed atoms, or electrons that feel only the nuclei
    #[arg(long, value_enum, default_value = "atoms")]
    guess: Guess,

    /// Assignment of the units of work, which are ordered pairs of shells, to the places
    #[arg(long, value_enum, default_value = "dynamic")]
    balance: Balance,

    /// Continue from an unstable solution to a lower one until it is stable
    #[arg(long)]
    stable: bool,

    /// Do not check whether the solution is stable
    #[arg(long, conflicts_with = "stable")]
    no_stability: bool,

    /// Maximum number of iterations to a solution, 1 to 10000
    #[arg(long, value_name = "N", default_value_t = ITERATIONS,
          value_parser = value_parser!(u32).range(1..=i64::from(ITERATIONS_MAX)))]
    max_iterations: u32,

    /// Change of the energy, in hartree, at which the iterations end, 1e-11 to 0.01
    #[arg(long, value_name = "E", default_value = "1e-10", value_parser = convergence, allow_negative_numbers = true)]
    convergence: f64,
}

/// Parses a threshold of convergence.
fn convergence(text: &str) -> Result<f64, &'static str> {
    let number = text.parse::<f64>().ok().filter(|number| (1e-11..=1e-2).contains(number));
    number.ok_or("a number from 1e-11 to 0.01")
}

impl Application for HartreeFock {
    const INFO: ApplicationInfo = ApplicationInfo::new("hf", env!("CARGO_PKG_DESCRIPTION"), "units");
    type Input = HfInput;
    type Found = HfFound;

    fn run_name(&self) -> String {
        let file_name = |path: &str| {
            let name = Path::new(path).file_name();
            name.map_or_else(|| path.to_owned(), |name| name.to_string_lossy().into_owned())
        };
        format!("hf-{}-{}", file_name(&self.molecule), file_name(&self.basis))
    }

    fn reads(&self) -> Vec<Claim> {
        let molecule = Some(&self.molecule).filter(|name| molecule::is_file(name));
        let basis = Some(&self.basis).filter(|name| basis::is_file(name));
        let molecule = molecule.map(|file| Claim::read(file, "the molecule"));
        molecule.into_iter().chain(basis.map(|file| Claim::read(file, "the basis set"))).collect()
    }

    fn open(&self, _: u32) -> Result<HfInput, Failure> {
        let usage = |error: super::input_error::InputError| Failure::Usage(error.to_string());
        let molecule = molecule::open_frame(&self.molecule, self.charge, self.frame).map_err(usage)?;
        let basis = basis::open(&self.basis, &molecule.elements()).map_err(usage)?;
        let is_cartesian = self.cartesian || basis.is_cartesian;
        let shells = basis::shell::shells(&molecule, &basis, is_cartesian).map_err(usage)?;
        let functions = Functions { shells, is_cartesian };
        let builder = FockBuilder::new(&functions);
        let scf = Scf::new(&molecule, &functions, &builder, &basis.name, self.guess).map_err(usage)?;
        Ok(HfInput::new(self, molecule, functions, scf))
    }

    fn heading(&self, input: &HfInput) -> String {
        let HfInput { molecule, basis, charge, .. } = input;
        let charge = if *charge == 0 { String::new() } else { format!(", charge {charge:+}") };
        let [electrons, shells, functions] =
            [(input.electrons, "electron"), (input.shells, "shell"), (input.functions, "function")]
                .map(|(number, noun)| count(number as u64, noun, &format!("{noun}s")));
        format!("{molecule} in {basis}{charge}: {electrons}, {shells}, {functions}, {} units", input.units)
    }

    /// Iterates until the field is self-consistent, or up to the limit.
    async fn compute(mut input: HfInput, distributor: WorkDistributor) -> isles::Result<(HfFound, WorkDone)> {
        let started = now();
        let _held = isles::hold_memory(input.scf.bytes());
        distributor.begin_phase(HfPhase::Screening.name());
        let mut build = SharedBuild::new(&input.all_functions, &distributor, input.balance).await?;
        let pairs = input.nuclei.electrons() / 2;
        let mut is_converged = iterate(&mut input, &mut build, &distributor).await?;
        let mut stability = None;
        let followed_max = if input.stable { FOLLOWED_MAX } else { 0 };
        for _ in 0..followed_max {
            let Some(mut search) = input.scf.stability(BUILDS_MAX.0).filter(|_| is_converged) else { break };
            let known = search_stability(&mut search, &mut build, pairs, &distributor).await?;
            stability = Some(known);
            if known.is_stable != Some(false) {
                break;
            }
            input.scf.follow(search);
            is_converged = iterate(&mut input, &mut build, &distributor).await?;
        }
        let done = build.done(started).await?;
        // On a chip the check would be part of the prediction; on a host its time is excluded from the reported one.
        let unchecked = match done.shares.is_empty() {
            _ if input.stable => None,
            _ if input.no_stability => Some("--no-stability"),
            true => Some("on a modelled chip only --stable checks it"),
            false => None,
        };
        let is_checked = is_converged && !input.stable && unchecked.is_none();
        if let Some(mut search) = input.scf.stability(BUILDS_MAX.1).filter(|_| is_checked) {
            stability = Some(search_stability(&mut search, &mut build, pairs, &distributor).await?);
        }
        let iterations = input.scf.iterations().to_vec();
        let found = HfFound {
            energy: iterations.last().map_or(f64::NAN, |last| last.energy),
            properties: properties(&input.scf, &input.nuclei),
            iterations,
            stability,
            unchecked,
            imbalance: (!done.shares.is_empty()).then(|| done.imbalance()),
            convergence: input.convergence,
            is_stable_wanted: input.stable,
            golden: verify::golden(&input.nuclei, &input.basis, input.cartesian),
        };
        Ok((found, done))
    }
}

impl RunResult for HartreeFock {
    fn text(&self, found: &HfFound) -> String {
        found.text()
    }

    fn speed(&self, found: &HfFound, seconds: f64) -> String {
        format!("{:.2} iterations a second", found.iterations.len() as f64 / seconds)
    }

    /// A field that is not self-consistent has no energy to check, so the run fails.
    fn verify(&self, found: &HfFound, _: bool) -> Result<Option<Verification>, Failure> {
        if let Some(text) = found.unconverged(&format!("{} in {}", self.molecule, self.basis)) {
            return Err(Failure::Ended(text));
        }
        Ok(found.golden.map(|golden| verify::check(golden, found.energy, self.convergence)))
    }

    fn write_csv(&self, found: &HfFound, out: &mut dyn Write) -> io::Result<()> {
        found.write_csv(out)
    }
}

/// Iterates until the field is self-consistent, or up to the limit; returns `true` if it is.
async fn iterate(
    input: &mut HfInput,
    build: &mut SharedBuild,
    distributor: &WorkDistributor,
) -> isles::Result<bool> {
    let (convergence, pairs) = (input.convergence, input.nuclei.electrons() / 2);
    let mut phase = None;
    for _ in 0..input.iterations_max {
        let next = if input.scf.is_descending() { HfPhase::Descent } else { HfPhase::Scf };
        if phase.replace(next) != Some(next) {
            distributor.begin_phase(next.name());
        }
        distributor.begin_step(&next_iteration(input.scf.iterations()));
        let change = input.scf.density_change();
        let last = input.scf.advance(&build.of(&change).await?, convergence);
        work(effort::of_iteration(change.size(), pairs));
        if last.is_converged(convergence) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the name of the iteration after `iterations`, with the last change of the energy in hartree.
fn next_iteration(iterations: &[Iteration]) -> String {
    let number = iterations.len() + 1;
    match iterations {
        // The first change is relative to zero.
        [_, .., last] => format!("iteration {number}, ΔE {:.1e}", last.change),
        _ => format!("iteration {number}"),
    }
}

/// Searches for lower energies and returns the stability.
async fn search_stability(
    search: &mut StabilitySearch,
    build: &mut SharedBuild,
    pairs: usize,
    distributor: &WorkDistributor,
) -> isles::Result<Stability> {
    distributor.begin_phase(HfPhase::Stability.name());
    loop {
        let (product, products_max) = search.next_product();
        distributor.begin_step(&format!("product {product} of at most {products_max}"));
        let density = search.density();
        let known = search.advance(&build.of(&density).await?);
        work(effort::of_iteration(density.size(), pairs)); // as many products of matrices, or fewer
        if let Some(known) = known {
            return Ok(known);
        }
    }
}

/// A molecule with its functions, ready for the calculation.
#[derive(Serialize)]
pub struct HfInput {
    molecule: String,
    basis: String,
    charge: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    frame: Option<usize>,
    cartesian: bool,
    atoms: usize,
    electrons: usize,
    shells: usize,
    functions: usize,
    units: u64,
    balance: Balance,
    convergence: f64,
    guess: Guess,
    stable: bool,
    no_stability: bool,
    #[serde(skip)]
    iterations_max: u32,
    #[serde(skip)]
    nuclei: Molecule,
    #[serde(skip)]
    all_functions: Functions,
    #[serde(skip)]
    scf: Scf,
}

impl HfInput {
    fn new(arguments: &HartreeFock, nuclei: Molecule, all_functions: Functions, scf: Scf) -> HfInput {
        HfInput {
            molecule: nuclei.name.clone(),
            basis: arguments.basis.to_ascii_lowercase(),
            charge: nuclei.charge,
            frame: arguments.frame,
            cartesian: all_functions.is_cartesian,
            atoms: nuclei.atoms.len(),
            electrons: nuclei.electrons(),
            shells: all_functions.shells.len(),
            functions: all_functions.shells.iter().map(|shell| shell.functions).sum(),
            units: units(all_functions.shells.len()),
            balance: arguments.balance,
            convergence: arguments.convergence,
            guess: arguments.guess,
            stable: arguments.stable,
            no_stability: arguments.no_stability,
            iterations_max: arguments.max_iterations,
            nuclei,
            all_functions,
            scf,
        }
    }
}
