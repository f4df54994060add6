//! The frame of all applications: an [`Application`] has arguments and a kernel, a [`RunResult`] the output of its
//! result; the frame does the rest.
//!
//! The frame checks before the run that results can be written, prints the heading, distributes the work and shows its
//! progress, times it, prints the result, writes JSON and CSV, and reports the verification in one line. It computes
//! nothing itself. Invariant: an application's answer does not depend on its frame.

mod facts;
mod outputs;
mod run_meter;
mod steps;
mod task_balance;
mod unit_bag;
mod work_units;

pub use facts::{Verification, bar, count};
pub use outputs::NO_FILES;
pub use run_meter::RunMeter;
pub use steps::{StepsGuard, add_done};
pub use task_balance::BalanceArguments;
pub use unit_bag::UnitKernel;
pub use work_units::{Balance, PlaceWork, UnitQueue, WorkDone, WorkUnits};

use crate::{Failure, console, failure};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use facts::{RunFacts, duration};
use isles::glb::RunBalance;
use isles::{Claim, Launch, Machine};
use outputs::{DrawnRun, OutputArguments, Outputs, RunOutcome};
use serde::Serialize;
use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use steps::ProgressReporter;
use task_balance::steals_text;

/// Name and texts of an application.
#[derive(Clone, Copy, Debug)]
pub struct ApplicationInfo {
    /// Its name on the command line.
    pub name: &'static str,
    /// One line that says what it computes.
    pub about: &'static str,
    /// The last line of its help.
    pub note: &'static str,
    /// Name of the units of its work, in the plural.
    pub units: &'static str,
    /// `true` if `--svg` draws the result, by [`RunResult::write_picture`], instead of the times of places.
    pub draws_result: bool,
}

impl ApplicationInfo {
    /// An application without a note, whose result is not drawn.
    pub const fn new(name: &'static str, about: &'static str, units: &'static str) -> ApplicationInfo {
        ApplicationInfo { name, about, note: "", units, draws_result: false }
    }
}

/// The computation of an application of the suite. The type holds its own arguments; the frame has those of places,
/// machine and files.
pub trait Application: Args + 'static {
    /// Its name and texts.
    const INFO: ApplicationInfo;

    /// Input that is read before any place starts; its fields are in `run` of the JSON document.
    type Input: Serialize + 'static;

    /// Result of the run; its fields are in the JSON document.
    type Found: Serialize + 'static;

    /// Returns the name of the files of this run.
    fn run_name(&self) -> String {
        Self::INFO.name.to_owned()
    }

    /// The files that it will read.
    fn reads(&self) -> Vec<Claim> {
        Vec::new()
    }

    /// Checks that the arguments suit `machine`.
    ///
    /// # Errors
    /// [`Failure::Usage`] if they do not.
    fn check_machine(&self, machine: Machine) -> Result<(), Failure> {
        let _ = machine;
        Ok(())
    }

    /// Checks the arguments for a run on `places` places, and reads the input.
    ///
    /// # Errors
    /// [`Failure::Usage`]: an argument or a file is invalid.
    fn open(&self, places: u32) -> Result<Self::Input, Failure>;

    /// Returns remarks on `input` for people before the run, a line each, such as the parts of a file that are not
    /// used.
    fn remarks(&self, input: &Self::Input) -> Vec<String> {
        let _ = input;
        Vec::new()
    }

    /// Returns the heading, one line that describes the computation.
    fn heading(&self, input: &Self::Input) -> String;

    /// Runs the computation over all places; called at the first place.
    fn compute(
        input: Self::Input,
        distributor: WorkDistributor,
    ) -> impl Future<Output = isles::Result<(Self::Found, WorkDone)>> + 'static;
}

/// The output of an [`Application`]: text, files and verification of its result.
pub trait RunResult: Application {
    /// Returns the result as text, without a line feed at its end.
    fn text(&self, found: &Self::Found) -> String;

    /// Returns the work done per second in a run of `seconds`, as text.
    fn speed(&self, found: &Self::Found, seconds: f64) -> String;

    /// Checks the result; if `is_thorough`, also with slow checks. `None` if there is no reference.
    ///
    /// # Errors
    /// Something needed for the check is unavailable.
    fn verify(&self, found: &Self::Found, is_thorough: bool) -> Result<Option<Verification>, Failure>;

    /// Writes the result as CSV: a line of names, then lines of values.
    ///
    /// # Errors
    /// `out` returns an error.
    fn write_csv(&self, found: &Self::Found, out: &mut dyn Write) -> io::Result<()>;

    /// The requested pictures of the result: the flag of each, and its destination.
    fn pictures(&self) -> Vec<(&'static str, &str)> {
        Vec::new()
    }

    /// Writes the picture that `flag` asks for, one of [`RunResult::pictures`].
    ///
    /// # Errors
    /// `out` returns an error.
    fn write_picture(&self, flag: &str, found: &Self::Found, out: &mut dyn Write) -> io::Result<()> {
        let _ = (flag, found, out);
        Ok(())
    }
}

/// Distributes the work of a run, or records the work of places that choose it themselves.
pub struct WorkDistributor {
    /// Name of the units, in the plural.
    unit: &'static str,
    reports_shares: bool,
}

impl WorkDistributor {
    /// A distributor for [`Application`] `A` that does not report the work of each place.
    pub fn plain<A: Application>() -> WorkDistributor {
        WorkDistributor { unit: A::INFO.units, reports_shares: false }
    }

    /// Starts the phase `name` of the run, such as "check", which lasts until the next one starts or the run ends. Its
    /// steps count from zero. Called at the first place, while no place counts steps.
    ///
    /// The terminal and observers of the run show its name. If standard error is not a terminal, the start of the phase
    /// is printed as a line.
    pub fn begin_phase(&self, name: &str) {
        steps::begin_phase(name, self.unit);
    }

    /// Starts a step of the current phase, such as "iteration 7", whose units count from zero; otherwise as
    /// [`WorkDistributor::begin_phase`], without a line of its own.
    pub fn begin_step(&self, name: &str) {
        steps::begin_step(name, self.unit);
    }

    /// Work of `count` units.
    ///
    /// # Errors
    /// A place has died.
    pub async fn units(&self, count: u64, balance: Balance) -> isles::Result<WorkUnits> {
        Ok(WorkUnits::new(count, self.unit, balance, RunMeter::new(self.reports_shares).await?))
    }

    /// Returns the meter of the steps of a run whose kernel decides itself which place takes which; `total` is their
    /// number, if known.
    ///
    /// # Errors
    /// A place has died.
    pub async fn meter(&self, total: Option<u64>) -> isles::Result<RunMeter> {
        isles::progress::add_total(total.unwrap_or_default(), self.unit);
        RunMeter::new(self.reports_shares).await
    }

    /// Reports progress of a run with an unknown number of units until it is dropped; each place calls [`add_done`].
    /// Called at the first place.
    pub fn open_steps(&self) -> StepsGuard {
        isles::progress::add_total(0, self.unit);
        // Without observers, the progress of other processes is unknown.
        let is_part =
            self.reports_shares && isles::place_count() > 1 && isles::progress::observed().is_none();
        let unit = if is_part { format!("{} at the first place", self.unit) } else { self.unit.to_owned() };
        StepsGuard::begin(ProgressReporter::new(0, unit, 0), 0, true)
    }

    /// Returns the work of the places on tasks balanced by `isles::glb`.
    pub fn done_of(&self, balance: RunBalance) -> WorkDone {
        task_balance::work_done(balance, self.reports_shares)
    }
}

impl Drop for WorkDistributor {
    fn drop(&mut self) {
        steps::end_phase();
    }
}

/// Returns the text about a result at the end of its run.
fn report_text<A: RunResult>(app: &A, found: &A::Found, work: &WorkDone, machine: Machine) -> String {
    // The loopback has its own time, in which computing takes none.
    let is_by_one_clock = machine != Machine::Loopback;
    let shares = if work.shares.is_empty() {
        String::new()
    } else {
        work.table(A::INFO.units, is_by_one_clock) + "\n"
    };
    let steals = work.balance.as_ref().map_or(String::new(), |balance| steals_text(balance) + "\n\n");
    let (seconds, speed) = (duration(work.seconds), app.speed(found, work.seconds));
    let mut result = app.text(found);
    result.push_str(if result.is_empty() { "" } else { "\n\n" });
    format!("{result}{steals}{shares}time   {seconds}\nspeed  {speed}")
}

/// Arguments of the frame itself.
#[derive(Args, Clone, Debug)]
struct FrameArguments {
    #[command(flatten)]
    outputs: OutputArguments,

    /// Also run the slow checks of the result; having nothing to check it against is then a failure
    #[arg(long)]
    verify: bool,
}

/// The JSON document of a run.
#[derive(Serialize)]
struct Document<'a, S, F> {
    run: RunHeader<'a, S>,
    verification: Option<&'a Verification>,
    /// Balance of the tasks, if `isles::glb` has balanced them.
    #[serde(skip_serializing_if = "Option::is_none")]
    balance: Option<&'a RunBalance>,
    #[serde(flatten)]
    result: F,
}

/// Description of the run.
#[derive(Serialize)]
struct RunHeader<'a, S> {
    app: &'static str,
    #[serde(flatten)]
    facts: &'a RunFacts,
    #[serde(flatten)]
    settings: S,
    /// Work of each place, in order of the places; empty on a modelled chip.
    shares: &'a [PlaceWork],
}

/// Adds the output arguments of all applications to `command`.
pub(crate) fn frame_arguments(command: Command) -> Command {
    FrameArguments::augment_args(command)
}

/// Returns the arguments of one kind among the given ones.
///
/// # Errors
/// One cannot be read.
pub(crate) fn parsed<T: FromArgMatches>(matches: &ArgMatches) -> Result<T, Failure> {
    T::from_arg_matches(matches).map_err(|error| Failure::Usage(error.to_string()))
}

/// Runs an application over the places of `launch`, and writes its results; `typed` is the command of its program.
///
/// # Errors
/// [`Failure`], which has the exit code.
pub(crate) fn run<A: RunResult>(matches: &ArgMatches, launch: Launch, typed: &str) -> Result<(), Failure> {
    let (app, FrameArguments { outputs, verify }) = (parsed::<A>(matches)?, parsed(matches)?);
    app.check_machine(launch.chosen_machine())?;
    let outputs = Outputs::check(&app.run_name(), &outputs, &app.pictures(), &launch)?;
    let mut facts = RunFacts::of(&launch);
    let input = app.open(facts.places)?;
    outputs.print_heading(&format!("{}; {}", app.heading(&input), facts.machine_text()))?;
    app.remarks(&input).iter().for_each(console::notice);
    let settings = serde_json::to_value(&input).map_err(|fault| Failure::Ended(fault.to_string()))?;
    // On a chip, gathering shares would be part of the prediction; the chip's report has more.
    let reports_shares = !matches!(launch.chosen_machine(), Machine::Chip(_));
    let machine = launch.chosen_machine();
    let distributor = WorkDistributor { unit: A::INFO.units, reports_shares };
    let found = Rc::new(RefCell::new(None));
    let (place, app) = (Rc::clone(&found), Rc::new(app));
    let shown = Rc::clone(&app);
    let main = move || async move {
        let (found, work) = A::compute(input, distributor).await?;
        let text = report_text(&*shown, &found, &work, machine);
        isles::show(&text);
        *place.borrow_mut() = Some((found, work, text));
        Ok::<_, isles::Error>(())
    };
    let summary = Arc::new(OnceLock::new());
    let ((result, report), unwritten) = failure::ended(launch.keeping_summary(&summary).run(main))?;
    if let Err(error) = result {
        return Failure::first_of([Failure::Run(error)].into_iter().chain(unwritten).map(Err));
    }
    let nothing = || Failure::Ended("the run ended without a result".to_owned());
    let (found, work, text) = found.take().ok_or_else(nothing)?;
    facts.complete(work.seconds, &report);
    let phase = verify.then(|| console::PhaseLine::begin("verification"));
    let verification = app.verify(&found, verify)?.or_else(|| verify.then(Verification::impossible));
    drop(phase);
    let run = RunHeader { app: A::INFO.name, facts: &facts, settings, shares: &work.shares };
    let (verification, balance) = (verification.as_ref(), work.balance.as_ref());
    let document = Document { run, verification, balance, result: &found };
    let json = serde_json::to_string(&document).map_err(|fault| Failure::Ended(fault.to_string()))? + "\n";
    // The work of places on a chip is in the summary of its run.
    let drawn = DrawnRun { typed, document: summary.get().map_or(&json, String::as_str) };
    let written = outputs.write(RunOutcome {
        text: &format!("{text}\nmoved  {}", facts.moved()),
        json: &json,
        csv: &|out| app.write_csv(&found, out),
        drawn: (!A::INFO.draws_result).then_some(drawn),
        picture: &|flag, out| app.write_picture(flag, &found, out),
        verification,
        has_run_files: unwritten.is_empty(),
    });
    Failure::first_of([written].into_iter().chain(unwritten.into_iter().map(Err)))
}
