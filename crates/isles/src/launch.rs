//! Starting a run: on which machine, with how many places, and how it ends.

use crate::chip::{self, ModelledChip};
use crate::claim::Claim;
use crate::collectives::{Broadcast, Reduce};
use crate::environment::{self, ConfigError, Environment, Flag, Machine, Report};
use crate::export::{self, Wanted};
use crate::pinning;
use crate::work::{self, CodeTime};
use crate::{loopback, processes, threads};
use isles_chip::governor::Policy;
use isles_runtime::capture::{MainOutcome, TaskOutcome};
use isles_runtime::run::Stall;
use isles_runtime::{Error, ErrorKind, Result, RunReport};
use isles_transport_chip::{Bands, Placement, Protocol, Report as ChipReport, Rest, Seating};
use isles_transport_shm::Pinning;
use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How long nothing may happen before a run says what it waits for, unless the environment says otherwise.
const STALL: Stall = Stall { report: Some(Duration::from_secs(30)), limit: None };

/// Exit code of a run whose main task ended with an error.
const EXIT_FAILED: u8 = 1;

/// Exit code of a program of which nobody reads the output any more: as a shell says it of one that the signal SIGPIPE
/// ended, 128 + 13.
const EXIT_CLOSED_PIPE: u8 = 141;

/// Exit code of a run that could not be started as asked.
const EXIT_USAGE: u8 = 2;

/// Why a run could not be started, or not be written down. Nothing is left behind.
#[derive(Debug)]
#[non_exhaustive]
pub enum LaunchError {
    /// A setting is not allowed.
    Config(ConfigError),
    /// The machine could not be set up; the text says what and why.
    Machine(String),
    /// The run has ended, and what it was to write could not be written.
    Output {
        /// Where it was to go.
        path: String,
        /// What the system says.
        cause: io::Error,
    },
    /// The run was not that of its tape, although all that can be compared before was the same: the program does not do
    /// the same twice, or something that it reads has changed.
    Departed {
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
            LaunchError::Output { .. } | LaunchError::Departed { .. } => EXIT_FAILED,
        }
    }
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LaunchError::Config(error) => error.fmt(f),
            LaunchError::Machine(text) => f.write_str(text),
            LaunchError::Output { path, cause } => write!(f, "cannot write {path}: {cause}"),
            LaunchError::Departed { tape, played, all } => write!(
                f,
                "the run is not that of {tape}: they part after {played} of {all} measurements, so the program does not \
                 do the same twice, or what it reads has changed"
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

/// How a run is started; what is not said comes from the environment, then from the defaults.
///
/// Defaults: as many places as processors (on a modelled chip, as cores), as threads of this process.
#[derive(Clone, Debug)]
pub struct Launch {
    pub(crate) machine: Machine,
    pub(crate) places: u32,
    pub(crate) pinning: Pinning,
    /// The flag or variable that said so.
    pub(crate) pinning_source: String,
    pub(crate) reports: Vec<Report>,
    pub(crate) exports: Vec<Wanted>,
    /// What the program itself reads.
    pub(crate) reads: Vec<Claim>,
    pub(crate) protocol: Option<Protocol>,
    pub(crate) placement: Placement,
    pub(crate) governor: Policy,
    pub(crate) rest: Rest,
    pub(crate) broadcast: Broadcast,
    pub(crate) reduce: Reduce,
    pub(crate) work: CodeTime,
    /// The flag or variable that said so.
    pub(crate) work_source: String,
    /// Arguments of the process that are none of these.
    pub(crate) own_arguments: Vec<Vec<u8>>,
    pub(crate) stall: Stall,
    pub(crate) seed: u64,
}

impl Launch {
    /// What the environment says: `ISLES_MACHINE`, `ISLES_PLACES`, `ISLES_PIN`, `ISLES_REPORT`, `ISLES_STALL`,
    /// `ISLES_STALL_LIMIT`, `ISLES_SEED`, `ISLES_CHIP_PRESET`, `ISLES_CHIP_POWER`, `ISLES_CHIP_VOLTAGES`,
    /// `ISLES_CHIP_PROTOCOL`, `ISLES_CHIP_PLACEMENT`, `ISLES_CHIP_GOVERNOR`, `ISLES_CHIP_REST`, `ISLES_CHIP_BROADCAST`,
    /// `ISLES_CHIP_REDUCE`, `ISLES_CHIP_WORK`, and what a run on a chip writes (`ISLES_CHIP_*`).
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
        let mut environment = Environment::read(flags)?;
        let machine = environment.chosen(environment.machine.unwrap_or(machine))?;
        environment::check_flags(machine, flags)?;
        let (placement, placement_source) = environment.placement.take().unwrap_or_default();
        let (pinning, pinning_source) = environment.pinning.take().unwrap_or_default();
        let places = match (machine, environment.places, &pinning) {
            (_, Some(places), _) => places,
            (Machine::Chip(chip), None, _) => chip.places_on(&placement),
            (Machine::Threads | Machine::Processes, None, Pinning::Processors(list)) => places_on(list.len()),
            (_, None, _) => processors(),
        };
        if matches!(machine, Machine::Threads | Machine::Processes) {
            pinning::check(&pinning_source, &pinning, places)?;
        }
        if let Machine::Chip(chip) = machine {
            let seating = chip.seat(&placement_source, &placement, places)?;
            let source_of = |variable: &'static str| {
                flags.iter().find(|flag| flag.variable == variable).map_or(variable, |flag| flag.name)
            };
            let (source, protocol) = match environment.protocol {
                Some(protocol) => (source_of("ISLES_CHIP_PROTOCOL"), protocol),
                None => ("the protocol", chip.default_protocol()),
            };
            chip.check_protocol(source, protocol, places)?;
            chip.check_broadcast(source_of("ISLES_CHIP_BROADCAST"), environment.broadcast, protocol, places)?;
            if let Some((policy, source)) = &environment.governor {
                chip.check_policy(source, *policy, &seating)?;
            }
        }
        let (work, work_source) = environment.work.take().unwrap_or_default();
        if work != CodeTime::Said && !matches!(machine, Machine::Chip(_)) {
            let allowed = format!("said with the machine {machine}, which is no modelled chip");
            return Err(ConfigError::new(&work_source, &work.to_string(), allowed));
        }
        Ok(Launch {
            machine,
            broadcast: environment.broadcast,
            reduce: environment.reduce,
            work,
            work_source,
            own_arguments: work::own_arguments(flags),
            places,
            pinning,
            pinning_source,
            governor: environment.governor.as_ref().map(|(policy, _)| *policy).unwrap_or_default(),
            stall: environment.stall(STALL),
            reports: environment.reports,
            exports: environment.exports,
            reads: Vec::new(),
            protocol: environment.protocol,
            placement,
            rest: environment.rest,
            seed: environment.seed,
        })
    }

    /// The machine.
    pub fn machine(mut self, machine: Machine) -> Launch {
        self.machine = machine;
        self
    }

    /// The number of places: at most 256, or on a modelled chip its cores, of which a run can have 32,768. Whether the
    /// machine has so many is seen when the run starts.
    ///
    /// # Panics
    /// If no machine has so many.
    pub fn places(mut self, places: u32) -> Launch {
        assert!((1..=isles_runtime::limits::PLACES_MAX).contains(&places), "{places} places");
        self.places = places;
        self
    }

    /// On which processors of the host the places stay; of no meaning on the loopback machine and on modelled chips.
    /// Whether the program may use them, and whether they are enough, is seen when the run starts.
    pub fn pinning(mut self, pinning: Pinning) -> Launch {
        self.pinning = pinning;
        self.pinning_source = "the pinning".to_owned();
        self
    }

    /// What the program reads, which the run then does not write over.
    pub fn reading(mut self, files: impl IntoIterator<Item = Claim>) -> Launch {
        self.reads.extend(files);
        self
    }

    /// How messages cross a modelled chip; of no meaning on another machine.
    pub fn protocol(mut self, protocol: Protocol) -> Launch {
        self.protocol = Some(protocol);
        self
    }

    /// Which place runs on which core of a modelled chip; of no meaning on another machine. Whether the chip has these
    /// cores, and enough of them, is seen when the run starts.
    pub fn placement(mut self, placement: Placement) -> Launch {
        self.placement = placement;
        self
    }

    /// What chooses the rates of the cores of a modelled chip; of no meaning on another machine.
    pub fn governor(mut self, policy: Policy) -> Launch {
        self.governor = policy;
        self
    }

    /// What places do on a modelled chip while they wait for messages; of no meaning on another machine.
    pub fn rest(mut self, rest: Rest) -> Launch {
        self.rest = rest;
        self
    }

    /// How broadcasts of teams go on a modelled chip; of no meaning on another machine.
    pub fn broadcast(mut self, broadcast: Broadcast) -> Launch {
        self.broadcast = broadcast;
        self
    }

    /// How reductions of teams go on a modelled chip; of no meaning on another machine.
    pub fn reduce(mut self, reduce: Reduce) -> Launch {
        self.reduce = reduce;
        self
    }

    /// Which place will run on which core of a modelled chip.
    pub fn chosen_placement(&self) -> &Placement {
        &self.placement
    }

    /// The places of this run on the cores of `chip`.
    pub(crate) fn seating_on(&self, chip: ModelledChip) -> std::result::Result<Seating, ConfigError> {
        chip.seat("the placement", &self.placement, self.places)
    }

    /// What will choose the rates of the cores of a modelled chip.
    pub fn chosen_governor(&self) -> Policy {
        self.governor
    }

    /// Where the time of the program's code on a modelled chip will come from.
    pub fn chosen_work(&self) -> &CodeTime {
        &self.work
    }

    /// The protocol that will be used on a modelled chip.
    ///
    /// Without a word it is the chip's own: `isles` over message buffers, or the packets of the hardware.
    pub fn chosen_protocol(&self) -> Protocol {
        match self.machine {
            Machine::Chip(chip) => self.protocol_on(chip),
            _ => self.protocol.unwrap_or_default(),
        }
    }

    pub(crate) fn protocol_on(&self, chip: ModelledChip) -> Protocol {
        self.protocol.unwrap_or_else(|| chip.default_protocol())
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
        export::check_places(&self.exports, self.places)?;
        export::check(self, self.machine)
    }

    /// Checks that the tape that the run is to play is one of this program, its arguments and these settings.
    /// [`Launch::run`] does so, too; this is for who has much to do before.
    ///
    /// # Errors
    /// It is not.
    pub fn check_tape(&self) -> std::result::Result<(), ConfigError> {
        match self.machine {
            Machine::Chip(chip) => work::find_tape(self, chip).map(drop),
            _ => Ok(()),
        }
    }

    /// Whether nothing of what the run is to write goes to standard output.
    pub fn leaves_standard_output_free(&self) -> bool {
        !self.exports.iter().any(|wanted| wanted.destination().is_standard())
    }

    /// What a result of the program must stay apart from: all that the run reads and writes.
    pub fn claims(&self) -> Vec<Claim> {
        let written = self.exports.iter().map(|wanted| Claim::written(&wanted.destination(), &wanted.source));
        self.read_on(self.machine).into_iter().chain(written).collect()
    }

    /// What a run on `machine` reads.
    pub(crate) fn read_on(&self, machine: Machine) -> Vec<Claim> {
        let mut read = self.reads.clone();
        if let Machine::Chip(chip) = machine {
            read.extend(chip.file().map(|path| Claim::read(path, "the chip file")));
        }
        if let CodeTime::Tape(path) = &self.work {
            read.push(Claim::read(path, "the tape"));
        }
        read
    }

    /// Runs `main` at the first place until everything it has started, anywhere, has ended.
    ///
    /// In a process that was started as a place of another process's run this serves that run, and never returns.
    ///
    /// # Errors
    /// [`LaunchError`]: the run could not be started, or a file of it not be written. The result of `main` is inside,
    /// with what the places did.
    pub fn run<M, F>(self, main: M) -> std::result::Result<(Result<()>, RunReport), LaunchError>
    where
        M: FnOnce() -> F,
        F: Future + 'static,
        F::Output: TaskOutcome,
    {
        processes::serve_if_joined();
        self.check_outputs()?;
        if matches!(self.machine, Machine::Threads | Machine::Processes) {
            pinning::check(&self.pinning_source, &self.pinning, self.places)?;
        }
        let (result, report) = match self.machine {
            Machine::Threads => threads::run(&self, main)?,
            Machine::Processes => processes::run(&self, main)?,
            Machine::Loopback => loopback::run(&self, main),
            Machine::Chip(chip) => {
                let tell = |modelled: &ChipReport, host| self.tell(chip, modelled, host);
                let (result, report, _) = self.model(chip, main, tell)?;
                (result, report)
            }
        };
        for wanted in &self.reports {
            // A report that nobody can read any more changes nothing about the run.
            let _ = match wanted {
                Report::Captures => write!(io::stderr(), "{}", report.captures()),
                Report::Finish => write!(io::stderr(), "{}", report.finishes()),
                Report::Chip => Ok(()),
            };
        }
        Ok((result, report))
    }

    /// As [`Launch::run`] on the machine that is `chip`, whatever machine was chosen; gives what the chip did instead
    /// of printing it. Warnings are printed.
    ///
    /// # Errors
    /// [`LaunchError`]: the chip has no such number of cores, or a file cannot be written.
    pub fn run_on_chip<M, F>(
        &self,
        chip: ModelledChip,
        main: M,
    ) -> std::result::Result<(Result<()>, RunReport, ChipReport), LaunchError>
    where
        M: FnOnce() -> F,
        F: Future + 'static,
        F::Output: TaskOutcome,
    {
        self.model(chip, main, |_, _| ())
    }

    /// Runs on a modelled chip; `tell` gets what the chip did and how long that took this host.
    fn model<M, F>(
        &self,
        chip: ModelledChip,
        main: M,
        tell: impl FnOnce(&ChipReport, Duration),
    ) -> std::result::Result<(Result<()>, RunReport, ChipReport), LaunchError>
    where
        M: FnOnce() -> F,
        F: Future + 'static,
        F::Output: TaskOutcome,
    {
        export::check_places(&self.exports, self.places)?;
        export::check(self, Machine::Chip(chip))?;
        let started = Instant::now();
        let (result, report, ended) = chip::run(self, chip, main)?;
        let host = started.elapsed();
        let modelled = ended.report.clone();
        tell(&modelled, host);
        // As above: a warning that nobody can read changes nothing.
        if let Some(stale) = modelled.stale.as_ref().filter(|stale| stale.number > 0) {
            let reads = if stale.number == 1 { "read" } else { "reads" };
            let first = stale.first.first().map(|read| read.told("place")).unwrap_or_default();
            let _ =
                writeln!(io::stderr(), "warning: {} stale {reads} of shared memory: {first}", stale.number);
        }
        if let Some(warning) = work::warning(ended.code) {
            let _ = writeln!(io::stderr(), "{warning}");
        }
        match ended.write(self, (chip, host)) {
            Err(error) if result.is_ok() => return Err(error),
            // The error of the program itself is the one that is given.
            Err(error) => _ = writeln!(io::stderr(), "error: {error}"),
            Ok(()) => {}
        }
        Ok((result, report, modelled))
    }

    /// Prints the prediction to standard error, as one line, or with all figures if the report `chip` is wanted.
    fn tell(&self, chip: ModelledChip, modelled: &ChipReport, host: Duration) {
        // As above.
        let _ = writeln!(io::stderr(), "{}", chip::heading(chip, self, modelled, host));
        if self.reports.contains(&Report::Chip) {
            let speed = modelled.digest.events() as f64 / host.as_secs_f64();
            let _ = writeln!(io::stderr(), "settings        {}", chip::settings(chip, self));
            let bands = Bands::of(chip.chip(), modelled);
            let _ = writeln!(
                io::stderr(),
                "{modelled}\n{bands}\nspeed           {speed:.0} events a second on this host"
            );
        }
    }
}

/// How many places there are if nobody says: one for each processor that this process may use.
fn processors() -> u32 {
    places_on(std::thread::available_parallelism().map_or(1, usize::from))
}

/// A place for each of `processors` processors, as far as there can be so many.
fn places_on(processors: usize) -> u32 {
    processors.min(isles_transport_shm::PLACES_MAX as usize) as u32
}

/// Whether nothing else is wrong than that nobody reads standard output any more.
fn is_closed_output(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::OutputClosed => true,
        ErrorKind::Several => error.causes().iter().all(is_closed_output),
        _ => false,
    }
}

/// What `#[isles::main]` expands to.
pub fn main<M, F>(main: M) -> ExitCode
where
    M: FnOnce() -> F,
    F: Future + 'static,
    F::Output: MainOutcome,
{
    processes::serve_if_joined();
    let main = || {
        let main = main();
        async { main.await.into_main_result() }
    };
    let launched = Launch::from_environment().map_err(LaunchError::from).and_then(|launch| launch.run(main));
    match launched {
        Ok((Ok(()), _)) => ExitCode::SUCCESS,
        Ok((Err(error), _)) if is_closed_output(&error) => ExitCode::from(EXIT_CLOSED_PIPE),
        Ok((Err(error), _)) => {
            eprintln!("error: {error}");
            ExitCode::from(EXIT_FAILED)
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
