//! The applications, by name, and what every run can be told of its places.
//!
//! An application is what `isles run NAME` runs. The list of them is in the crate's root. An application folder has no
//! `main` of its own. Invariant: a setting that is not allowed is said before anything starts.

use crate::APPS;
use crate::frame::Draw;
use clap::{ArgMatches, Args, Command};
use isles::{Claim, Flag, Launch, Machine};
use std::fmt;

/// One application of the suite, whatever its type; see [`crate::frame::Application`].
pub trait App: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// One line that says what it computes.
    fn about(&self) -> &'static str;

    /// Adds the arguments of this application alone to `command`.
    fn own_arguments(&self, command: Command) -> Command;

    /// Adds the arguments that say what becomes of a result, which all applications have.
    fn frame_arguments(&self, command: Command) -> Command;

    /// The files that it will read. `matches` may lack the arguments of the frame.
    ///
    /// # Errors
    /// An argument cannot be read.
    fn reads(&self, matches: &ArgMatches) -> Result<Vec<Claim>, Failure>;

    /// Runs it over the places of `launch`, and writes its results; its picture, if one is wanted, by `draw`.
    ///
    /// # Errors
    /// [`Failure`], which also says the exit code.
    fn run(&self, matches: &ArgMatches, launch: Launch, draw: Draw<'_>) -> Result<(), Failure>;
}

/// The application of this name.
///
/// # Errors
/// There is none; `source` is where the name was said.
pub fn app(source: &str, name: &str) -> Result<&'static dyn App, Failure> {
    let names = || APPS.iter().map(|app| app.name()).collect::<Vec<_>>().join(", ");
    let found = APPS.iter().find(|app| app.name() == name);
    found.copied().ok_or_else(|| Failure::Usage(format!("{source} is {name:?}; allowed: {}", names())))
}

/// Why an application ended without a result.
#[derive(Debug)]
pub enum Failure {
    /// What was asked for cannot be done: exit code 2, and nothing was started.
    Usage(String),
    /// The run failed: exit code 1.
    Run(isles::Error),
    /// The result is not what it must be: exit code 1. What it was checked against.
    Refuted(String),
    /// A run in another process failed: exit code 1.
    Ended(String),
    /// A result could not be written: exit code 1.
    Output {
        /// Where it was to go.
        path: String,
        /// What the system says.
        cause: std::io::Error,
    },
}

impl Failure {
    /// Standard output could not be written.
    pub fn stdout(cause: std::io::Error) -> Failure {
        Failure::Output { path: "standard output".to_owned(), cause }
    }

    /// The exit code of the process.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Usage(_) => 2,
            Failure::Run(_) | Failure::Refuted(_) | Failure::Ended(_) | Failure::Output { .. } => 1,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(text) | Failure::Ended(text) => f.write_str(text),
            Failure::Refuted(text) => write!(f, "the result is not confirmed: {text}"),
            Failure::Run(error) => error.fmt(f),
            Failure::Output { path, cause } => write!(f, "cannot write {path}: {cause}"),
        }
    }
}

impl From<isles::LaunchError> for Failure {
    fn from(error: isles::LaunchError) -> Self {
        match error {
            isles::LaunchError::Output { path, cause } => Failure::Output { path, cause },
            error @ isles::LaunchError::Diverged { .. } => Failure::Ended(error.to_string()),
            error => Failure::Usage(error.to_string()),
        }
    }
}

impl From<isles::ConfigError> for Failure {
    fn from(error: isles::ConfigError) -> Self {
        Failure::Usage(error.to_string())
    }
}

/// What every application can be told about its places.
#[derive(Args, Clone, Debug)]
pub struct PlaceArguments {
    /// Number of places [default: one for each processor, or core of a modelled chip (at most 256), or of its
    /// --placement]
    #[arg(short = 'n', long, value_name = "N", allow_negative_numbers = true)]
    pub places: Option<String>,

    /// What the places are: threads, processes, mpi, loopback, chip:NAME (`isles chip list`) or chip:FILE.toml
    /// [default: processes]
    #[arg(long, value_name = "M")]
    pub machine: Option<String>,

    /// Processors of the host that the places stay on: auto, no, or one for each such as 0,2,4-7 [default: auto]
    #[arg(long, value_name = "HOW", allow_hyphen_values = true)]
    pub pin: Option<String>,

    /// Print at the end: captures, finish, messages, balance, chip, or several with commas
    #[arg(long, value_name = "WHAT")]
    pub report: Option<String>,

    /// Record the run in DIR, which is empty or not there yet: for `isles top`, `isles replay` and `isles report`
    #[arg(long, value_name = "DIR")]
    pub record: Option<String>,

    /// How a modelled chip is set.
    #[command(flatten)]
    pub chip: ChipArguments,

    /// What a run writes.
    #[command(flatten)]
    pub exports: ExportArguments,
}

/// What a run on a modelled chip can be told of it; also a sweep, all of whose runs are told the same.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Settings of a modelled chip")]
pub struct ChipArguments {
    /// How messages cross a modelled chip: doorbell, rcce-x10, sections, sockets, rcce, ring or packets
    /// [default: what the chip carries]
    #[arg(long, value_name = "NAME")]
    pub protocol: Option<String>,

    /// Which place runs on which core of a modelled chip: linear, spread over the tiles, or a list of cores such as
    /// 0,2,10-13 [default: linear]
    #[arg(long, value_name = "HOW", allow_hyphen_values = true)]
    pub placement: Option<String>,

    /// Clocks of a modelled chip, by a name of `isles chip show`, such as 800/1600/1066 [default: as its file says]
    #[arg(long, value_name = "NAME")]
    pub preset: Option<String>,

    /// Power model of a modelled chip by which caps are kept, by a name of `isles chip show` [default: its file's
    /// first]
    #[arg(long, value_name = "NAME")]
    pub power: Option<String>,

    /// Voltage table of a modelled chip, by a name of `isles chip show` [default: the one that the power model was
    /// fitted with]
    #[arg(long, value_name = "NAME")]
    pub voltages: Option<String>,

    /// What chooses the clocks of a modelled chip: fixed, fixed:DIVIDER, on-demand, phase-aware, capped:WATTS
    /// [default: fixed]
    #[arg(long, value_name = "POLICY")]
    pub governor: Option<String>,

    /// What waiting places do on a modelled chip: poll, or nap:TIME to halt so long before each look [default: poll]
    #[arg(long, value_name = "HOW")]
    pub rest: Option<String>,

    /// How `broadcast` of teams goes on a modelled chip: auto, flat, binomial, chain, scatter-allgather, fan:CHILDREN
    /// (as OC-Bcast) or async:CHILDREN (by interrupts) [default: auto]
    #[arg(long, value_name = "HOW")]
    pub broadcast: Option<String>,

    /// How `reduce` of teams goes on a modelled chip: auto, serial or logarithmic [default: auto]
    #[arg(long, value_name = "HOW")]
    pub reduce: Option<String>,

    /// What a program's own code costs on a modelled chip: said, host:RATIO to measure it here, or tape:FILE
    /// [default: said]
    #[arg(long, value_name = "HOW")]
    pub work: Option<String>,

    /// The order of what happens at one time on a modelled chip, or of all on the loopback: a whole number [default: 0]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub seed: Option<String>,
}

/// What a run can be told to write; all but the trace on a modelled chip only.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Files of a run on a modelled chip")]
pub struct ExportArguments {
    /// What each place did when, for ui.perfetto.dev; slower. Of threads, processes and modelled chips
    #[arg(long, value_name = "FILE", help_heading = "Files of a run")]
    pub trace: Option<String>,

    /// The summary as JSON; - is standard output, as for all of these
    #[arg(long, value_name = "FILE")]
    pub summary: Option<String>,

    /// Flits, time and utilisation of each link as CSV
    #[arg(long, value_name = "FILE")]
    pub links: Option<String>,

    /// Messages and bytes from each place to each other one as CSV
    #[arg(long, value_name = "FILE")]
    pub traffic: Option<String>,

    /// The chip with its links in the colours of their utilisation as SVG
    #[arg(long, value_name = "FILE")]
    pub heat: Option<String>,

    /// Modelled picoseconds by core and category as folded stacks
    #[arg(long, value_name = "FILE")]
    pub folded: Option<String>,

    /// Modelled nanojoules by core and category as folded stacks
    #[arg(long, value_name = "FILE")]
    pub joules: Option<String>,

    /// What was measured with --work host:RATIO, to be played with --work tape:FILE
    #[arg(long, value_name = "FILE")]
    pub tape: Option<String>,
}

/// A flag: the variable in whose place it stands, its name, and its value, if it was said.
#[derive(Clone, Copy, Debug)]
pub struct FlagValue<'a>(pub &'static str, pub &'static str, pub &'a Option<String>);

impl<'a> FlagValue<'a> {
    /// The flag, if it was said.
    pub fn flag(self) -> Option<Flag<'a>> {
        let FlagValue(variable, name, value) = self;
        Some(Flag { variable, name, value: value.as_deref()? })
    }
}

impl PlaceArguments {
    /// The launch that the flags describe; the environment where there is no flag, then the default, which is the
    /// machine `processes`. The program reads `reads`.
    ///
    /// # Errors
    /// A flag or a variable has a value that is not allowed.
    pub fn launch(&self, reads: Vec<Claim>) -> Result<Launch, Failure> {
        let flags: Vec<Flag<'_>> = self.flags().into_iter().filter_map(FlagValue::flag).collect();
        let launch = Launch::from_environment_with(Machine::Processes, &flags)?.reading(reads);
        launch.check_outputs()?;
        Ok(launch)
    }

    /// What there is to say, and what is said.
    pub fn flags(&self) -> Vec<FlagValue<'_>> {
        let own = [
            FlagValue("ISLES_PLACES", "--places", &self.places),
            FlagValue("ISLES_MACHINE", "--machine", &self.machine),
            FlagValue("ISLES_PIN", "--pin", &self.pin),
            FlagValue("ISLES_REPORT", "--report", &self.report),
            FlagValue("ISLES_RECORD", "--record", &self.record),
        ];
        own.into_iter().chain(self.chip.flags()).chain(self.exports.flags()).collect()
    }
}

impl ChipArguments {
    /// What there is to say, and what is said.
    pub fn flags(&self) -> [FlagValue<'_>; 11] {
        [
            FlagValue("ISLES_CHIP_PROTOCOL", "--protocol", &self.protocol),
            FlagValue("ISLES_CHIP_PLACEMENT", "--placement", &self.placement),
            FlagValue("ISLES_CHIP_PRESET", "--preset", &self.preset),
            FlagValue("ISLES_CHIP_POWER", "--power", &self.power),
            FlagValue("ISLES_CHIP_VOLTAGES", "--voltages", &self.voltages),
            FlagValue("ISLES_CHIP_GOVERNOR", "--governor", &self.governor),
            FlagValue("ISLES_CHIP_REST", "--rest", &self.rest),
            FlagValue("ISLES_SEED", "--seed", &self.seed),
            FlagValue("ISLES_CHIP_BROADCAST", "--broadcast", &self.broadcast),
            FlagValue("ISLES_CHIP_REDUCE", "--reduce", &self.reduce),
            FlagValue("ISLES_CHIP_WORK", "--work", &self.work),
        ]
    }
}

impl ExportArguments {
    /// What there is to say, and what is said.
    pub fn flags(&self) -> [FlagValue<'_>; 8] {
        [
            FlagValue("ISLES_CHIP_SUMMARY", "--summary", &self.summary),
            FlagValue("ISLES_CHIP_LINKS", "--links", &self.links),
            FlagValue("ISLES_CHIP_TRAFFIC", "--traffic", &self.traffic),
            FlagValue("ISLES_CHIP_HEAT", "--heat", &self.heat),
            FlagValue("ISLES_TRACE", "--trace", &self.trace),
            FlagValue("ISLES_CHIP_FOLDED", "--folded", &self.folded),
            FlagValue("ISLES_CHIP_JOULES", "--joules", &self.joules),
            FlagValue("ISLES_CHIP_TAPE", "--tape", &self.tape),
        ]
    }
}
