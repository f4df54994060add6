//! The application `prk`: the Parallel Research Kernels over distributed arrays; the stencil also over shared pages.
//!
//! The kernels, their sizes, checks and lines of output are those of R. F. Van der Wijngaart and T. G. Mattson, "The
//! Parallel Research Kernels", HPEC 2014, in the MPI form; the code is our own. Each kernel is a module. The first
//! iteration is an untimed warm-up, as in the original. Invariant: every kernel checks its whole result in each run.

#![forbid(unsafe_code)]

mod nstream;
mod p2p;
mod random;
mod stencil;
mod stencil_pages;
mod transpose;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum, value_parser};
use isles::Machine;
use isles::array::check_memory;
use isles::prelude::*;
use isles::svm::{self, Consistency, RegionCounts};
use isles_app::Failure;
use isles_app::frame::{Application, ApplicationInfo, RunResult, Verification, WorkDistributor, WorkDone};
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::time::Duration;

/// Default number of iterations, excluding the warm-up.
const ITERATIONS: u64 = 10;

/// Largest accepted error, as in the kernels.
const EPSILON: f64 = 1e-8;

/// A kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kernel {
    /// A star-shaped stencil over a square grid in blocks; halos
    Stencil,
    /// A square matrix is transposed and added; all to all
    Transpose,
    /// A wave over a grid whose columns are split; one number at a time
    P2p,
    /// Adds two vectors to a third; no message
    Nstream,
    /// Updates of random entries of a table; many small messages, gathered
    Random,
}

/// The memory of the arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ArrayMemory {
    /// In parts, one at each place; halos arrive by messages
    Parts,
    /// In pages that places share; rows of neighbours arrive by page faults
    Svm,
}

/// Returns the parser of `--model`.
fn model_parser() -> impl TypedValueParser<Value = Consistency> {
    PossibleValuesParser::new(Consistency::NAMES.map(|(name, _)| name)).map(|value| {
        let model = Consistency::NAMES.into_iter().find(|(name, _)| *name == value);
        model.map_or(Consistency::Release, |(_, model)| model)
    })
}

/// The arguments of `isles run prk`.
#[derive(Args, Clone, Debug)]
pub struct Prk {
    /// Kernel to run
    #[arg(long, value_enum)]
    kernel: Kernel,

    /// Iterations after the warm-up, 1 to 10^9 [default: 10]; not for random
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=1_000_000_000))]
    iterations: Option<u64>,

    /// Rows and columns of stencil and transpose [default: 1000]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=1 << 20))]
    order: Option<u64>,

    /// Radius of stencil, 1 to 4 [default: 2]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=4))]
    radius: Option<u64>,

    /// Columns of p2p, which are split [default: 1024]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(2..=1 << 30))]
    columns: Option<u64>,

    /// Rows of p2p [default: 1024]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(2..=1 << 30))]
    rows: Option<u64>,

    /// Elements of each vector of nstream [default: 10000000]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=1 << 40))]
    length: Option<u64>,

    /// Entries of the table of random, as a power of two: 2^N [default: 20]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=40))]
    bits: Option<u64>,

    /// Updates of random for each entry, a power of two [default: 16]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=1 << 20))]
    ratio: Option<u64>,

    /// Memory that holds the arrays of stencil [default: parts]
    #[arg(long, value_enum)]
    memory: Option<ArrayMemory>,

    /// Consistency model of pages, with --memory svm [default: release]
    #[arg(long, value_parser = model_parser())]
    model: Option<Consistency>,
}

/// Arguments of a run, with their defaults.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Sizes {
    kernel: Kernel,
    iterations: u64,
    order: usize,
    radius: usize,
    columns: usize,
    rows: usize,
    length: usize,
    bits: u32,
    ratio: u64,
    /// Consistency model of the shared pages; `None` if the arrays are in parts.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pages: Option<Consistency>,
}

impl Sizes {
    /// Checks the requirements of a kernel, and that its arrays fit into memory; the error is a one-line message.
    fn check(&self, places: u32) -> Result<(), String> {
        let Sizes { order, columns, rows, length, bits, .. } = *self;
        let (of, extents) = match self.kernel {
            Kernel::Stencil if self.pages.is_some() => (stencil::check(self, places), [3, order, order]),
            Kernel::Stencil => (stencil::check(self, places), [2, order, order]),
            Kernel::Transpose => (Ok(()), [2, order, order]),
            Kernel::P2p => (p2p::check(self, places), [1, columns, rows]),
            Kernel::Nstream => (Ok(()), [3, length, 1]),
            Kernel::Random => (random::check(self, places), [1, 1 << bits, 1]),
        };
        of?;
        check_memory::<f64>(&extents).map_err(|error| format!("--kernel {}: {error}", Prk::name(self.kernel)))
    }
}

/// Result of a run.
#[derive(Serialize)]
pub struct PrkFound {
    /// Rate per second, in the unit of the kernel.
    kernel_rate: f64,
    /// Unit of the rate: `MFlops/s`, `MB/s` or `GUPS/s`.
    unit: &'static str,
    /// Operations, bytes or updates in the timed iterations.
    operations: f64,
    /// Seconds per iteration; for random, of the whole run.
    seconds_each: f64,
    /// Error of the result, as defined by the kernel.
    error: f64,
    /// Stencil only: the digest of all bits of the output, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    /// Page counts summed over all places, if the arrays are in shared pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pages: Option<RegionCounts>,
    #[serde(skip)]
    is_average: bool,
}

/// Unit of a rate.
#[derive(Clone, Copy)]
struct RateUnit {
    name: &'static str,
    /// Operations per second in one unit.
    size: f64,
}

const MB_PER_S: RateUnit = RateUnit { name: "MB/s", size: 1e6 };
const MFLOPS: RateUnit = RateUnit { name: "MFlops/s", size: 1e6 };
const GUPS: RateUnit = RateUnit { name: "GUPS/s", size: 1e9 };

/// Result of a kernel, as returned by its module.
struct KernelOutcome {
    /// The longest time of a place for all timed iterations.
    seconds: f64,
    /// Operations, bytes or updates in that time.
    operations: f64,
    unit: RateUnit,
    error: f64,
    /// Stencil only.
    digest: Option<u64>,
    pages: Option<RegionCounts>,
}

impl KernelOutcome {
    /// Creates an outcome without digest and pages.
    fn new(seconds: f64, operations: f64, unit: RateUnit, error: f64) -> KernelOutcome {
        KernelOutcome { seconds, operations, unit, error, digest: None, pages: None }
    }
}

impl Prk {
    /// Returns the arguments that only some kernels take: name, whether it is given, and those kernels.
    fn own(&self) -> [(&'static str, bool, &'static [Kernel]); 10] {
        use Kernel::{Nstream, P2p, Random, Stencil, Transpose};
        [
            ("--iterations", self.iterations.is_some(), &[Stencil, Transpose, P2p, Nstream]),
            ("--order", self.order.is_some(), &[Stencil, Transpose]),
            ("--radius", self.radius.is_some(), &[Stencil]),
            ("--columns", self.columns.is_some(), &[P2p]),
            ("--rows", self.rows.is_some(), &[P2p]),
            ("--length", self.length.is_some(), &[Nstream]),
            ("--bits", self.bits.is_some(), &[Random]),
            ("--ratio", self.ratio.is_some(), &[Random]),
            ("--memory", self.memory.is_some(), &[Stencil]),
            ("--model", self.model.is_some(), &[Stencil]),
        ]
    }

    fn name(kernel: Kernel) -> String {
        kernel.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

impl Application for Prk {
    const INFO: ApplicationInfo = ApplicationInfo::new("prk", env!("CARGO_PKG_DESCRIPTION"), "iterations");
    type Input = Sizes;
    type Found = PrkFound;

    fn run_name(&self) -> String {
        format!("prk-{}", Prk::name(self.kernel))
    }

    fn check_machine(&self, machine: Machine) -> Result<(), Failure> {
        if self.memory != Some(ArrayMemory::Svm) || svm::runs_on(machine) {
            return Ok(());
        }
        let machine = machine.name();
        Err(Failure::Usage(format!(
            "--memory is \"svm\" with machine {machine}; allowed with svm: processes, threads, mpi"
        )))
    }

    fn open(&self, places: u32) -> Result<Sizes, Failure> {
        let foreign =
            self.own().into_iter().find(|(_, is_given, of)| *is_given && !of.contains(&self.kernel));
        if let Some((flag, _, of)) = foreign {
            let of: Vec<String> = of.iter().map(|kernel| Prk::name(*kernel)).collect();
            let (own, others) = (Prk::name(self.kernel), of.join(", "));
            return Err(Failure::Usage(format!("{flag} is not for --kernel {own}; allowed with: {others}")));
        }
        let is_in_pages = self.memory == Some(ArrayMemory::Svm);
        if self.model.is_some() && !is_in_pages {
            return Err(Failure::Usage(
                "--model is not for --memory parts; allowed only with --memory svm".into(),
            ));
        }
        let size = |value: Option<u64>, otherwise: u64| value.unwrap_or(otherwise) as usize;
        let sizes = Sizes {
            kernel: self.kernel,
            iterations: self.iterations.unwrap_or(ITERATIONS),
            order: size(self.order, 1_000),
            radius: size(self.radius, 2),
            columns: size(self.columns, 1_024),
            rows: size(self.rows, 1_024),
            length: size(self.length, 10_000_000),
            bits: self.bits.unwrap_or(20) as u32,
            ratio: self.ratio.unwrap_or(16),
            pages: is_in_pages.then(|| self.model.unwrap_or(Consistency::Release)),
        };
        sizes.check(places).map(|()| sizes).map_err(Failure::Usage)
    }

    fn heading(&self, sizes: &Sizes) -> String {
        let name = Prk::name(self.kernel);
        let Sizes { iterations, order, radius, columns, rows, length, bits, ratio, .. } = sizes;
        match self.kernel {
            Kernel::Stencil => {
                let memory = sizes.pages.map(|model| format!(", shared pages, model {}", model.name()));
                let memory = memory.unwrap_or_default();
                format!("{name} of radius {radius} on {order} x {order}, {iterations} iterations{memory}")
            }
            Kernel::Transpose => format!("{name} of order {order}, {iterations} iterations"),
            Kernel::P2p => format!("{name} on {columns} x {rows}, {iterations} iterations"),
            Kernel::Nstream => format!("{name} of {length} elements, {iterations} iterations"),
            Kernel::Random => format!("{name} on 2^{bits} entries, {ratio} updates each"),
        }
    }

    async fn compute(sizes: Sizes, _: WorkDistributor) -> isles::Result<(PrkFound, WorkDone)> {
        let outcome = match sizes.kernel {
            Kernel::Stencil if sizes.pages.is_some() => stencil_pages::run(sizes).await,
            Kernel::Stencil => stencil::run(sizes).await,
            Kernel::Transpose => transpose::run(sizes).await,
            Kernel::P2p => p2p::run(sizes).await,
            Kernel::Nstream => nstream::run(sizes).await,
            Kernel::Random => random::run(sizes).await,
        }?;
        let KernelOutcome { seconds, operations, unit, error, digest, pages } = outcome;
        let digest = digest.map(|digest| format!("{digest:016x}"));
        let is_average = sizes.kernel != Kernel::Random;
        let each = if is_average { seconds / sizes.iterations as f64 } else { seconds };
        let rate = operations / seconds / unit.size;
        let found = PrkFound {
            kernel_rate: rate,
            unit: unit.name,
            operations,
            seconds_each: each,
            error,
            digest,
            pages,
            is_average,
        };
        Ok((found, WorkDone { seconds, ..WorkDone::default() }))
    }
}

impl RunResult for Prk {
    fn text(&self, found: &PrkFound) -> String {
        let PrkFound { kernel_rate: rate, unit, seconds_each, .. } = found;
        let validates = if found.error < EPSILON { "Solution validates\n" } else { "" };
        let time = if found.is_average { "Avg time (s)" } else { "Time (s)" };
        let mut text = format!("{validates}Rate ({unit}): {rate:.6} {time}: {seconds_each:.6}");
        if let Some(digest) = &found.digest {
            text += &format!("\ndigest   {digest}");
        }
        if let Some(RegionCounts { faults, pages, messages, bytes, .. }) = found.pages {
            text += &format!(
                "\nfaults   {faults}\npages    {pages} came\nmessages {messages} of pages\nbytes    {bytes} copied"
            );
        }
        text
    }

    fn speed(&self, found: &PrkFound, _: f64) -> String {
        format!("{:.4} {}", found.kernel_rate, found.unit)
    }

    fn verify(&self, found: &PrkFound, _: bool) -> Result<Option<Verification>, Failure> {
        let text =
            format!("the kernel's own check is off by {:.1e}; allowed: below {EPSILON:.0e}", found.error);
        Ok(Some(Verification { holds: found.error < EPSILON, text }))
    }

    fn write_csv(&self, found: &PrkFound, out: &mut dyn Write) -> io::Result<()> {
        let PrkFound { kernel_rate: rate, unit, seconds_each, error, .. } = found;
        let name = Prk::name(self.kernel);
        writeln!(out, "kernel,rate,unit,seconds_each,error\n{name},{rate},{unit},{seconds_each},{error}")
    }
}

/// Returns the time at this place after a barrier.
async fn begin(team: &Team) -> isles::Result<Duration> {
    team.barrier().await?;
    Ok(now())
}

/// Returns the longest time of the places, and their merged values.
fn together(found: Vec<(f64, f64)>, merge: fn(f64, f64) -> f64) -> (f64, f64) {
    let seconds = found.iter().map(|(seconds, _)| *seconds).fold(0.0, f64::max);
    (seconds, found.into_iter().map(|(_, value)| value).fold(0.0, merge))
}

/// The `main` of the program.
pub fn main() -> std::process::ExitCode {
    isles_app::main::<Prk>()
}
