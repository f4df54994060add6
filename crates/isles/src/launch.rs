//! Starting a run: on which machine, with how many places, and how it ends.

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

/// Time without progress before a run reports what it waits for, unless the environment sets another.
const STALL: Stall = Stall { report: Some(Duration::from_secs(30)), limit: None };

/// Exit code of a run whose main task ended with an error.
const EXIT_FAILED: u8 = 1;

/// Exit code of a run that could not be started as asked.
pub(crate) const EXIT_USAGE: u8 = 2;

/// Reason why a run could not be started, or not be written down. Nothing is left behind.
#[derive(Debug)]
#[non_exhaustive]
pub enum LaunchError {
    /// A setting is not allowed.
    Config(ConfigError),
    /// The machine could not be set up; the text says what and why.
    Machine(String),
    /// The run has ended, and something that it was to write of itself could not be written. Nothing else is lost.
    Output {
        /// Results that could not be written, in the order in which they were tried; at least one.
        unwritten: Vec<WriteError>,
        /// The result of `main` and what the places did: what [`Launch::run`] returns if all can be written.
        ended: Box<(Result<()>, RunReport)>,
    },
    /// The run was not that of its tape, although all that can be compared before was the same: the program does not do
    /// the same twice, or something that it reads has changed.
    Diverged {
        /// The tape.
        tape: String,
        /// Measurements that were played.
        played: u64,
        /// Measurements on the tape.
        all: u64,
    },
}

impl LaunchError {
    /// The exit code of a program that ends with it.
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

/// Settings by which a run is started; those not set come from the environment, then from the defaults.
///
/// Defaults: as many places as processors (on a modelled chip, as cores), as threads of this process.
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
    /// Summary of a run on a modelled chip, kept here if somebody wants it.
    pub(crate) summary: Option<Arc<OnceLock<String>>>,
    /// Over whose processes the run is, if an MPI program has called it.
    pub(crate) communicator: Option<i32>,
}

impl Launch {
    /// Reads the settings from the environment, in the variables of [`SETTINGS`](crate::SETTINGS).
    ///
    /// # Errors
    /// A variable has a value that is not allowed.
    pub fn from_environment() -> std::result::Result<Launch, ConfigError> {
        Launch::from_environment_with(Machine::Threads, &[])
    }

    /// As [`Launch::from_environment`], with another machine where none is said, and with flags, each in the place
    /// of a variable.
    ///
    /// # Errors
    /// A flag, or a variable without a flag, has a value that is not allowed, or a flag is one of modelled chips and
    /// the machine is none.
    pub fn from_environment_with(
        machine: Machine,
        flags: &[Flag<'_>],
    ) -> std::result::Result<Launch, ConfigError> {
        Launch::with(Environment::read(flags)?, machine, flags)
    }

    /// The launch that `environment` describes, to which the flags have gone; on `machine` where it names none.
    pub(crate) fn with(
        environment: Environment,
        machine: Machine,
        flags: &[Flag<'_>],
    ) -> std::result::Result<Launch, ConfigError> {
        // A launcher of ranks wants one run of them. Their number is known when they have met; all but the first
        // serve from here on.
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

    /// A launch on `machine` over `places` places, with all other settings of `environment`.
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

    /// The machine.
    pub fn machine(mut self, machine: Machine) -> Launch {
        self.machine = machine;
        self
    }

    /// The number of places: at most 256, or on a modelled chip its cores, of which a run can have 32,768. Whether the
    /// machine has that many is checked when the run starts.
    ///
    /// # Panics
    /// If no machine has that many.
    pub fn places(mut self, places: u32) -> Launch {
        assert!((1..=isles_runtime::limits::PLACES_MAX).contains(&places), "{places} places");
        self.places = places;
        self
    }

    /// Sets the processors of the host on which the places stay; ignored on the loopback machine and on modelled
    /// chips. The run checks at its start that the program may use them, and that they are enough.
    pub fn pinning(mut self, pinning: Pinning) -> Launch {
        self.pinning = Setting::new(pinning::DEFAULT_PINNING, pinning);
        self
    }

    /// Adds files that the program reads, which the run then does not write over.
    pub fn reading(mut self, files: impl IntoIterator<Item = Claim>) -> Launch {
        self.reads.extend(files);
        self
    }

    /// Keeps the summary of a run on a modelled chip (what `--summary` writes) in `kept`, which is empty.
    pub fn keeping_summary(mut self, kept: &Arc<OnceLock<String>>) -> Launch {
        self.summary = Some(Arc::clone(kept));
        self
    }

    /// The machine that will be used.
    pub fn chosen_machine(&self) -> Machine {
        self.machine
    }

    /// The number of places that will be used.
    pub fn chosen_places(&self) -> u32 {
        self.places
    }

    /// Checks that all that the run is to write can be written. [`Launch::run`] does so, too; this is for who has much
    /// to do before.
    ///
    /// # Errors
    /// The first variable or flag that asks for what cannot be written.
    pub fn check_outputs(&self) -> std::result::Result<(), ConfigError> {
        observe::check(self.record.as_ref(), self.machine)?;
        output::check(self, self.machine)
    }

    /// Returns `true` if the run writes no result to standard output.
    pub fn leaves_standard_output_free(&self) -> bool {
        !self.exports.iter().any(|wanted| wanted.destination().is_standard())
    }

    /// Returns the claims that a result of the program must stay apart from: all that the run reads and writes.
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
    /// In a process that was started as a place of another process's run this serves that run, and never returns.
    ///
    /// # Errors
    /// [`LaunchError`]: the run could not be started, or a file of it not be written. Then the result of `main` and
    /// what the places did are in [`LaunchError::Output`].
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
        // Of a section of an MPI program, every process calls this.
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
        glb::take_balance(); // of what was no launch
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
    /// Prints the regions that the program has marked, a line each; a modelled chip has done so with its prediction.
    fn tell_regions(&self, report: &RunReport) {
        if matches!(self.machine, Machine::Chip(_)) {
            return;
        }
        for region in report.regions() {
            notice(format_args!("{region}: {:.3} ms", region.time().as_secs_f64() * 1e3));
        }
    }
}

/// The table of `ISLES_REPORT=balance`.
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

/// The same where places may be pinned: one for each processor that the list names, if there is a list.
pub(crate) fn pinned_places(environment: &Environment) -> u32 {
    match &environment.pinning.value {
        Pinning::Processors(list) => places_on(list.len()),
        _ => processors(),
    }
}

/// Returns a place for each of `processors` processors, up to the largest number of places.
fn places_on(processors: usize) -> u32 {
    processors.min(isles_transport_shm::PLACES_MAX as usize) as u32
}

/// Returns `true` if the error says only that nobody reads standard output any more.
fn is_closed_output(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::OutputClosed => true,
        ErrorKind::Several => error.causes().iter().all(is_closed_output),
        _ => false,
    }
}

/// The future of `main`, on the heap from the start.
///
/// A future holds the local variables of its function. The runtime wraps it several times, and each time would move it
/// through a stack frame of its own. Here it is on the stack once, in a frame that has ended before the first poll.
#[inline(never)]
fn on_heap<F>(main: impl FnOnce() -> F) -> Pin<Box<F>> {
    Box::pin(main())
}

/// A `main` under way, whatever its type.
pub(crate) type MainFuture = Pin<Box<dyn Future<Output = Result<()>>>>;

/// Starts `main` at the first place.
///
/// Machines take this and no type of the program, so that they are compiled once, with this crate.
pub(crate) type Main<'a> = Box<dyn FnOnce() -> MainFuture + 'a>;

/// The future of `main`, whose output becomes a result by `into_result`.
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

/// Runs `main` as the environment says; the exit code of the program.
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

/// Returns the exit code of a program whose main task has ended with `result`, and says its error.
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
