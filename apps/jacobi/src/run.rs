//! The application `jacobi`: arguments, the run over all places, output.

use super::sweeps::{self, digest_alone};
use clap::{Args, ValueEnum, value_parser};
use isles::Machine;
use isles::array::check_memory;
#[cfg(feature = "svm")]
use isles::svm::{Consistency, RegionCounts};
use isles_app::Failure;
use isles_app::frame::{Application, ApplicationInfo, RunResult, Verification, WorkDistributor, WorkDone};
use serde::{Deserialize, Serialize};
use std::io::{self, Write};

/// Stands for the counts of shared virtual memory, without which this program was built.
#[cfg(not(feature = "svm"))]
type RegionCounts = ();

/// The memory of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum GridMemory {
    /// In parts, one at each place; neighbouring rows arrive by messages
    Parts,
    /// In pages that places of one host share; neighbouring rows arrive by page faults
    Svm,
}

/// The consistency model of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum PageModel {
    /// One place at a time has a page
    Exclusive,
    /// Many places read a page, or one writes it
    Strong,
    /// Changes reach others at barriers
    Release,
}

/// The arguments of `isles run jacobi`.
#[derive(Args, Clone, Debug)]
pub struct Jacobi {
    /// Rows and columns of the grid, including its edge
    #[arg(long, value_name = "N", default_value = "1024", value_parser = value_parser!(u64).range(3..=1 << 20))]
    order: u64,

    /// Sweeps over the grid
    #[arg(long, value_name = "N", default_value = "100", value_parser = value_parser!(u64).range(1..=1_000_000_000))]
    sweeps: u64,

    /// Memory that holds the grid
    #[arg(long, value_enum, default_value = "parts")]
    memory: GridMemory,

    /// Consistency model of pages, with --memory svm [default: release]
    #[arg(long, value_enum)]
    model: Option<PageModel>,
}

/// The size of a run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Sizes {
    pub(super) order: usize,
    pub(super) sweeps: u64,
}

/// The settings that are checked before any place starts.
#[derive(Serialize)]
pub struct JacobiInput {
    #[serde(flatten)]
    sizes: Sizes,
    memory: GridMemory,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<PageModel>,
}

/// The result of one place.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct PlaceOutcome {
    pub(super) seconds: f64,
    pub(super) digest: u64,
    pub(super) counts: Option<RegionCounts>,
    /// `true` if page faults in system calls are not handled.
    pub(super) is_user_mode_only: bool,
}

/// The result of a run.
#[derive(Serialize)]
pub struct JacobiFound {
    /// The digest of the grid, in hexadecimal digits.
    digest: String,
    /// The time of the sweeps at the slowest place, without set-up.
    sweep_seconds: f64,
    /// The page counts of all places, summed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pages: Option<RegionCounts>,
    /// `true` if page faults in system calls are not handled, because a privilege is missing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_user_mode_only: bool,
    #[serde(skip)]
    sizes: Sizes,
}

impl Application for Jacobi {
    const INFO: ApplicationInfo = ApplicationInfo {
        note: "The digest is the same with either memory and at any number of places.",
        ..ApplicationInfo::new("jacobi", env!("CARGO_PKG_DESCRIPTION"), "sweeps")
    };
    type Input = JacobiInput;
    type Found = JacobiFound;

    fn check_machine(&self, machine: Machine) -> Result<(), Failure> {
        if self.memory == GridMemory::Parts || runs_on(machine) {
            return Ok(());
        }
        let text = format!(
            "--memory is \"svm\" with machine {}; allowed with svm: processes, threads, mpi",
            machine.name()
        );
        Err(Failure::Usage(text))
    }

    fn open(&self, places: u32) -> Result<JacobiInput, Failure> {
        let Jacobi { memory, model, sweeps, .. } = *self;
        if model.is_some() && memory == GridMemory::Parts {
            return Err(Failure::Usage(
                "--model is not for --memory parts; allowed only with --memory svm".into(),
            ));
        }
        if memory == GridMemory::Svm && cfg!(not(feature = "svm")) {
            return Err(Failure::Usage("--memory svm needs a program built with the feature svm".into()));
        }
        let order = self.order as usize;
        if order < places as usize {
            let text = format!("--order is {order}; allowed with {places} places: at least one row for each");
            return Err(Failure::Usage(text));
        }
        check_memory::<f64>(&[2, order, order])
            .map_err(|error| Failure::Usage(format!("--order: {error}")))?;
        let model = (memory == GridMemory::Svm).then(|| model.unwrap_or(PageModel::Release));
        Ok(JacobiInput { sizes: Sizes { order, sweeps }, memory, model })
    }

    fn heading(&self, input: &JacobiInput) -> String {
        let Sizes { order, sweeps } = input.sizes;
        let memory = match input.model {
            None => "parts",
            Some(PageModel::Exclusive) => "shared pages, model exclusive",
            Some(PageModel::Strong) => "shared pages, model strong",
            Some(PageModel::Release) => "shared pages, model release",
        };
        format!("{sweeps} sweeps over {order} x {order} cells in {memory}")
    }

    async fn compute(input: JacobiInput, _: WorkDistributor) -> isles::Result<(JacobiFound, WorkDone)> {
        let sizes = input.sizes;
        let outcomes = match input.model {
            None => sweeps::run_by_parts(sizes).await?,
            Some(model) => by_pages(sizes, model).await?,
        };
        let seconds = outcomes.iter().map(|outcome| outcome.seconds).fold(0.0, f64::max);
        let digest = outcomes.iter().fold(0_u64, |sum, outcome| sum.wrapping_add(outcome.digest));
        let found = JacobiFound {
            digest: format!("{digest:016x}"),
            sweep_seconds: seconds,
            pages: sum_of(&outcomes),
            is_user_mode_only: outcomes.iter().any(|outcome| outcome.is_user_mode_only),
            sizes,
        };
        Ok((found, WorkDone { seconds, ..WorkDone::default() }))
    }
}

impl RunResult for Jacobi {
    fn text(&self, found: &JacobiFound) -> String {
        let mut text = format!("digest   {}\nsweeps   {:.4} s", found.digest, found.sweep_seconds);
        if let Some(pages) = &found.pages {
            text += &text_of(pages);
        }
        if found.is_user_mode_only {
            text += "\nlimit    without CAP_SYS_PTRACE, a system call that touches a missing page fails";
        }
        text
    }

    fn speed(&self, found: &JacobiFound, _: f64) -> String {
        let Sizes { order, sweeps } = found.sizes;
        let cells = ((order - 2) * (order - 2)) as f64 * sweeps as f64;
        format!("{:.1} million cells a second", cells / found.sweep_seconds / 1e6)
    }

    fn verify(&self, found: &JacobiFound, is_thorough: bool) -> Result<Option<Verification>, Failure> {
        if !is_thorough {
            return Ok(None);
        }
        let alone = format!("{:016x}", digest_alone(found.sizes.order, found.sizes.sweeps));
        let text = format!("compared with all bits of the grid that was computed without places: {alone}");
        Ok(Some(Verification { holds: alone == found.digest, text }))
    }

    fn write_csv(&self, found: &JacobiFound, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "digest,sweep_seconds\n{},{}", found.digest, found.sweep_seconds)
    }
}

#[cfg(feature = "svm")]
async fn by_pages(sizes: Sizes, model: PageModel) -> isles::Result<Vec<PlaceOutcome>> {
    let model = match model {
        PageModel::Exclusive => Consistency::Exclusive,
        PageModel::Strong => Consistency::Strong,
        PageModel::Release => Consistency::Release,
    };
    sweeps::run_by_pages(sizes, model).await
}

/// Returns `true` if places of the machine can share pages.
#[cfg(feature = "svm")]
fn runs_on(machine: Machine) -> bool {
    isles::svm::runs_on(machine)
}

/// Always `false`; [`Application::open`] names the missing feature.
#[cfg(not(feature = "svm"))]
fn runs_on(_: Machine) -> bool {
    true
}

/// Never called, because [`Application::open`] refuses it.
#[cfg(not(feature = "svm"))]
async fn by_pages(sizes: Sizes, _: PageModel) -> isles::Result<Vec<PlaceOutcome>> {
    sweeps::run_by_parts(sizes).await
}

#[cfg(feature = "svm")]
fn sum_of(outcomes: &[PlaceOutcome]) -> Option<RegionCounts> {
    outcomes.iter().filter_map(|outcome| outcome.counts).reduce(RegionCounts::plus)
}

#[cfg(not(feature = "svm"))]
fn sum_of(_: &[PlaceOutcome]) -> Option<RegionCounts> {
    None
}

#[cfg(feature = "svm")]
fn text_of(counts: &RegionCounts) -> String {
    let RegionCounts { faults, pages, revoked, messages, bytes, .. } = counts;
    format!(
        "\nfaults   {faults}\npages    {pages} came, {revoked} went or were dropped\nmessages {messages} of pages\nbytes    {bytes} copied"
    )
}

#[cfg(not(feature = "svm"))]
fn text_of((): &RegionCounts) -> String {
    String::new()
}
