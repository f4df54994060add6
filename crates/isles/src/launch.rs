//! Starts a run: chooses the machine and the places, runs the program, and reports its end.

use super::{glb, observe, output};
#[cfg(feature = "chip")]
use crate::chip::ChipSettings;
use crate::machine::driver::{LaunchResult, is_first_rank, serve_if_rank};
use crate::machine::{Machine, processes};
use crate::output::{Claim, EXIT_CLOSED_PIPE, ExportRequest, WriteError};
use crate::print::{StandardStream, notice, print_text};
use crate::settings;
use crate::settings::{ConfigError, Environment, Flag, Report, Setting, pinning};
use crate::trace::TraceRequest;
use isles_runtime::capture::{MainOutcome, TaskOutcome};
use isles_runtime::run::Stall;
use isles_runtime::{Error, ErrorKind, Result, RunReport};
use isles_transport_shm::Pinning;
use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Default time without progress before a run reports what it waits for.
const STALL: Stall = Stall { report: Some(Duration::from_secs(30)), limit: None };

/// Exit code of a run whose main task ended with an error.
const EXIT_FAILED: u8 = 1;

/// Exit code of a run that could not start.
pub(crate) const EXIT_USAGE: u8 = 2;

/// Reason why a run could not start, or why its output could not be written. Nothing is left behind.
#[derive(Debug)]
#[non_exhaustive]
pub enum LaunchError {
    /// A setting has an invalid value.
    Config(ConfigError),
    /// The machine could not be set up; the text says what and why.
    Machine(String),
    /// The run has ended, but some of its requested output could not be written. Nothing else is lost.
    Output {
        /// Outputs that failed, in the order of the attempts; at least one.
        unwritten: Vec<WriteError>,
        /// The result of `main` and the report of the places, as [`Launch::run`] returns them on success.
        ended: Box<(Result<()>, RunReport)>,
    },
    /// The run departed from its tape, although program and settings match: the program is not deterministic, or an
    /// input has changed.
    Diverged {
        /// The tape.
        tape: String,
        /// Number of measurements played back.
        played: u64,
        /// Number of measurements on the tape.
        all: u64,
    },
}

impl LaunchError {
    /// Returns the exit code of a program that ends with this error.
    fn exit_code(&self) -> u8 {
        match self {
            LaunchError::Config(_) | LaunchError::Machine(_) => EXIT_USAGE,
            LaunchError::Output { .. } | LaunchError::Diverged { .. } => EXIT_FAILED,
        }
    }
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LaunchError::Config(error) => error.fmt(f),
            LaunchError::Machine(text) => f.write_str(text),
            LaunchError::Output { unwritten, .. } => {
                let lines: Vec<String> = unwritten.iter().map(WriteError::to_string).collect();
                f.write_str(&lines.join("; "))
            }
            LaunchError::Diverged { tape, played, all } => write!(
                f,
                "the run differs from {tape} after {played} of {all} measurements: the program is not \
                 deterministic, or its input has changed"
            ),
        }
    }
}

impl std::error::Error for LaunchError {}

impl From<ConfigError> for LaunchError {
    fn from(error: ConfigError) -> Self {
        LaunchError::Config(error)
    }
}

/// Settings of a run; those not set come from the environment, then from the defaults.
///
/// By default the places are threads of this process, one for each processor; on a modelled chip, one for each core.
#[derive(Clone, Debug)]
pub struct Launch {
    pub(crate) machine: Machine,
    pub(crate) places: u32,
    pub(crate) pinning: Setting<Pinning>,
    pub(crate) reports: Vec<Report>,
    pub(crate) exports: Vec<ExportRequest>,
    /// Files that the program itself reads.
    pub(crate) reads: Vec<Claim>,
    /// Settings of runs on modelled chips.
    #[cfg(feature = "chip")]
    pub(crate) chip: ChipSettings,
    pub(crate) stall: Stall,
    pub(crate) seed: u64,
    /// The run directory, if the run is observed.
    pub(crate) record: Option<Setting<PathBuf>>,
    /// Receives the summary of a run on a modelled chip, if requested.
    pub(crate) summary: Option<Arc<OnceLock<String>>>,
    /// Communicator whose processes form the run, if an MPI program calls it.
    pub(crate) communicator: Option<i32>,
}

impl Launch {
    /// Reads the settings from the environment, in the variables of [`SETTINGS`](crate::SETTINGS).
    ///
    /// # Errors
    /// A variable has an invalid value.
    pub fn from_environment() -> std::result::Result<Launch, ConfigError> {
        Launch::from_environment_with(Machine::Threads, &[])
    }

    /// As [`Launch::from_environment`], with another default machine, and with flags, which override their variables.
    ///
    /// # Errors
    /// A flag, or a variable that no flag overrides, has an invalid value; or a flag is for modelled chips and the
    /// machine is not one.
    pub fn from_environment_with(
        machine: Machine,
        flags: &[Flag<'_>],
    ) -> std::result::Result<Launch, ConfigError> {
        Launch::with(Environment::read(flags)?, machine, flags)
    }

    /// Returns the launch of `environment`, which includes `flags`; on `machine` if it names none.
    pub(crate) fn with(
        environment: Environment,
        machine: Machine,
        flags: &[Flag<'_>],
    ) -> std::result::Result<Launch, ConfigError> {
        // An MPI launcher starts all ranks for one run. Their number is known once they have met; all ranks but the
        // first serve from here on.
        serve_if_rank();
        let machine = if is_first_rank() { Machine::Mpi } else { machine };
        let machine = environment.machine_or(machine)?;
        settings::check_flags(machine, flags)?;
        let said = environment.places_on(machine)?;
        let places = said.unwrap_or_else(|| machine.driver().places(&environment));
        if matches!(machine, Machine::Threads | Machine::Processes | Machine::Guests) {
            pinning::check(&environment.pinning, places)?;
        }
        machine.driver().check(&environment, places)?;
        Ok(Launch::of(environment, machine, places))
    }

    /// Returns a launch on `machine` over `places` places, with all other settings from `environment`.
    pub(crate) fn of(environment: Environment, machine: Machine, places: u32) -> Launch {
        Launch {
            machine,
            places,
            stall: environment.stall(STALL),
            pinning: environment.pinning,
            reports: environment.reports,
            exports: environment.exports,
            reads: Vec::new(),
            #[cfg(feature = "chip")]
            chip: environment.chip,
            seed: environment.seed,
            record: environment.record,
            summary: None,
            communicator: None,
        }
    }

    /// Sets the machine.
    pub fn machine(mut self, machine: Machine) -> Launch {
        self.machine = machine;
        self
    }

    /// Sets the number of places: at most 256; on a modelled chip at most its cores, up to 32,768. The run checks at
    /// its start that the machine has that many.
    ///
    /// # Panics
    /// If no machine can have that many.
    pub fn places(mut self, places: u32) -> Launch {
        assert!((1..=isles_runtime::limits::PLACES_MAX).contains(&places), "{places} places");
        self.places = places;
        self
    }

    /// Pins the places to processors of the host; ignored on the loopback machine and on modelled chips. The run checks
    /// at its start that the program may use these processors and that there are enough.
    pub fn pinning(mut self, pinning: Pinning) -> Launch {
        self.pinning = Setting::new(pinning::DEFAULT_PINNING, pinning);
        self
    }

    /// Adds files that the program reads, so that no output of the run overwrites them.
    pub fn reading(mut self, files: impl IntoIterator<Item = Claim>) -> Launch {
        self.reads.extend(files);
        self
    }

    /// Stores the summary of a run on a modelled chip (the text that `--summary` writes) in `kept`, which must be
    /// empty.
    pub fn keeping_summary(mut self, kept: &Arc<OnceLock<String>>) -> Launch {
        self.summary = Some(Arc::clone(kept));
        self
    }

    /// Returns the machine of the run.
    pub fn chosen_machine(&self) -> Machine {
        self.machine
    }

    /// Returns the number of places of the run.
    pub fn chosen_places(&self) -> u32 {
        self.places
    }

    /// Checks that every output of the run can be written. [`Launch::run`] does this too; call it earlier to fail
    /// before long preparations.
    ///
    /// # Errors
    /// The first variable or flag whose output cannot be written.
    pub fn check_outputs(&self) -> std::result::Result<(), ConfigError> {
        observe::check(self.record.as_ref(), self.machine)?;
        output::check(self, self.machine)
    }

    /// Returns `true` if the run writes no result to standard output.
    pub fn leaves_standard_output_free(&self) -> bool {
        !self.exports.iter().any(|wanted| wanted.destination().is_standard())
    }

    /// Returns a claim for each file that the run reads or writes, to keep results of the program apart from them.
    pub fn claims(&self) -> Vec<Claim> {
        let written = self.exports.iter().map(|wanted| Claim::written(&wanted.destination(), &wanted.source));
        self.read_on(self.machine).into_iter().chain(written).collect()
    }

    /// Returns the claims of the files that a run on `machine` reads.
    pub(crate) fn read_on(&self, machine: Machine) -> Vec<Claim> {
        let mut read = self.reads.clone();
        read.extend(machine.driver().reads(self));
        read
    }

    /// Runs `main` at the first place until everything it has started, anywhere, has ended.
    ///
    /// In a process that was started as a place of another run, it serves that run and never returns.
    ///
    /// # Errors
    /// [`LaunchError`] if the run could not start, or one of its files could not be written. In the second case
    /// [`LaunchError::Output`] has the result of `main` and the report.
    pub fn run<M, F>(self, main: M) -> std::result::Result<(Result<()>, RunReport), LaunchError>
    where
        M: FnOnce() -> F,
        F: Future + 'static,
        F::Output: TaskOutcome,
    {
        self.run_boxed(Box::new(|| future_of(main, TaskOutcome::into_result)))
    }

    /// As [`Launch::run`].
    pub(crate) fn run_boxed(self, main: Main<'_>) -> LaunchResult {
        // In a section of an MPI program every process calls this.
        if self.communicator.is_none() {
            processes::serve_if_place();
        }
        self.check_outputs()?;
        if matches!(self.machine, Machine::Threads | Machine::Processes | Machine::Guests) {
            pinning::check(&self.pinning, self.places)?;
        }
        if !matches!(self.machine, Machine::Processes | Machine::Guests) {
            isles_runtime::watch_exits();
        }
        let mut unwritten = Vec::new();
        let trace = TraceRequest::of(&self)?;
        let collector = trace.as_ref().map(TraceRequest::collector);
        glb::take_balance(); // of an earlier run without a launch
        let (result, report) = self.machine.driver().run(&self, collector, main, &mut unwritten)?;
        let balance = glb::take_balance();
        self.tell_regions(&report);
        for wanted in &self.reports {
            let text = match wanted {
                Report::Captures => report.captures(),
                Report::Finish => report.finishes(),
                Report::Messages => report.task_messages(),
                Report::Counters => report.counters(),
                Report::Balance => balance_text(&balance),
                Report::Chip => continue,
            };
            let _ = print_text(StandardStream::Error, &text); // which never fails
        }
        unwritten.extend(trace.and_then(|trace| trace.write().err()));
        match unwritten.is_empty() {
            true => Ok((result, report)),
            false => Err(LaunchError::Output { unwritten, ended: Box::new((result, report)) }),
        }
    }
}

impl Launch {
    /// Prints a line for each region that the program has marked. A modelled chip prints them with its prediction.
    fn tell_regions(&self, report: &RunReport) {
        if matches!(self.machine, Machine::Chip(_)) {
            return;
        }
        for region in report.regions() {
            notice(format_args!("{region}: {:.3} ms", region.time().as_secs_f64() * 1e3));
        }
    }
}

/// Returns the table of `ISLES_REPORT=balance`.
fn balance_text(balance: &Option<glb::RunBalance>) -> String {
    match balance {
        Some(balance) => format!("{:>11.1} %  idle\n{balance}", 100.0 * balance.idle()),
        None => "nothing was balanced\n".to_owned(),
    }
}

/// Returns the default number of places: one for each processor that this process may use.
pub(crate) fn processors() -> u32 {
    places_on(std::thread::available_parallelism().map_or(1, usize::from))
}

/// Returns the default number of places on a machine that can pin them: one for each processor of the pinning list, if
/// given.
pub(crate) fn pinned_places(environment: &Environment) -> u32 {
    match &environment.pinning.value {
        Pinning::Processors(list) => places_on(list.len()),
        _ => processors(),
    }
}

/// Returns `processors`, limited to the largest number of places.
fn places_on(processors: usize) -> u32 {
    processors.min(isles_transport_shm::PLACES_MAX as usize) as u32
}

/// Returns `true` if every cause of the error is a closed standard output.
fn is_closed_output(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::OutputClosed => true,
        ErrorKind::Several => error.causes().iter().all(is_closed_output),
        _ => false,
    }
}

/// Returns the future of `main`, boxed at once.
///
/// The future holds the local variables of `main`, and the runtime wraps it several times; each wrapper would move it
/// through its own stack frame. Boxed here, it is on the stack once, in a frame that has ended before the first poll.
#[inline(never)]
fn on_heap<F>(main: impl FnOnce() -> F) -> Pin<Box<F>> {
    Box::pin(main())
}

/// A running `main` of any type.
pub(crate) type MainFuture = Pin<Box<dyn Future<Output = Result<()>>>>;

/// Starts `main` at the first place.
///
/// Machines take this type and not the program's own, so that they are compiled once, with this crate.
pub(crate) type Main<'a> = Box<dyn FnOnce() -> MainFuture + 'a>;

/// Returns the future of `main`, with its output converted by `into_result`.
pub(crate) fn future_of<F: Future + 'static>(
    main: impl FnOnce() -> F,
    into_result: fn(F::Output) -> Result<()>,
) -> MainFuture {
    let main = on_heap(main);
    Box::pin(async move { into_result(main.await) })
}

/// Runs the program; `#[isles::main]` expands to this.
pub fn main<M, F>(main: M) -> ExitCode
where
    M: FnOnce() -> F,
    F: Future + 'static,
    F::Output: MainOutcome,
{
    run_program(Box::new(|| future_of(main, MainOutcome::into_main_result)))
}

/// Runs `main` with the settings of the environment and returns the exit code of the program.
fn run_program(main: Main<'_>) -> ExitCode {
    processes::serve_if_joined();
    let launched = Launch::from_environment().map_err(LaunchError::from);
    let launched = launched.and_then(|launch| launch.run_boxed(main));
    match launched {
        Ok((result, _)) => ExitCode::from(exit_code(&result)),
        Err(error) => {
            if let LaunchError::Output { ended, unwritten } = &error {
                let code = exit_code(&ended.0);
                if unwritten.iter().all(WriteError::is_closed_output) {
                    return ExitCode::from(if code == 0 { EXIT_CLOSED_PIPE } else { code });
                }
            }
            notice(format_args!("error: {error}"));
            ExitCode::from(error.exit_code())
        }
    }
}

/// Prints the error of `result`, if any, and returns the exit code of the program.
fn exit_code(result: &Result<()>) -> u8 {
    match result {
        Ok(()) => 0,
        Err(error) if is_closed_output(error) => EXIT_CLOSED_PIPE,
        Err(error) => {
            notice(format_args!("error: {error}"));
            EXIT_FAILED
        }
    }
}
