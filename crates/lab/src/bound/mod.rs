//! `isles bound`: the longest that an access, a message or a pattern of messages can take on a chip.
//!
//! The formulas are in `isles_chip::bound`; the command, the search for bad cases on the model, and the report are
//! here. Invariant: times that are printed as seen come from runs of the model that are the same on every host.

mod automaton;
pub mod case;
mod flows;
mod report;
pub mod search;

use case::BoundCase;
use clap::{Args, ValueEnum};
use isles::{Claim, Destination};
use isles_app::{Failure, console, picture};
use isles_chip::Chip;
use isles_chip::bound::NoBound;
use isles_chip::bound::pattern::ParallelPattern;
use isles_chip::quantity::Picoseconds;
use report::{BoundReport, SpeedUp};
use std::path::Path;

/// The longest that a pattern can take.
#[derive(Args)]
pub struct BoundArguments {
    /// The pattern to bound
    #[arg(value_enum)]
    pub target: BoundTarget,
    /// Name of a chip, or path of a chip file
    #[arg(long, value_name = "NAME", default_value = "scc")]
    chip: String,
    /// Override a constant of the chip file, such as links.flit_time=2; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Preset of its clocks [default: that of the file]
    #[arg(long, value_name = "NAME")]
    pub preset: Option<String>,
    /// Number of participating cores, from core 0 on [default: all]; a read or a message is between the first and
    /// the last
    #[arg(long, value_name = "N")]
    pub places: Option<u32>,
    /// Bytes of a message; of an automaton, cells in all
    #[arg(long, value_name = "BYTES", default_value_t = 32, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub size: u64,
    /// Upper limit of work in core cycles: of a farm, an item of a pipeline or a round, in total; of a lock, the
    /// time that each holds it
    #[arg(long, value_name = "CYCLES", default_value_t = 100_000)]
    pub work: u64,
    /// Items of a pipeline, rounds of a control loop, a stencil or an automaton
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub items: u32,
    /// Library that sends the messages
    #[arg(long, value_enum, default_value = "rcce")]
    pub library: LibraryName,
    /// Behaviour of the cores that do not participate
    #[arg(long, value_enum, default_value = "anything")]
    pub others: OtherCores,
    /// The lock of a mutex [default: tickets]
    #[arg(long, value_enum)]
    pub lock: Option<LockName>,
    /// Distribution of the work of a farm [default: fixed]
    #[arg(long, value_enum)]
    pub shares: Option<Shares>,
    /// Lines from one core to another, at least a period apart, such as 0-47@100ns; for flows, one or more
    #[arg(long = "flow", value_name = "FROM-TO@PERIOD")]
    flows: Vec<String>,
    /// Deadline, such as 1ms; exit code 1 if the bound is later
    #[arg(long, value_name = "TIME")]
    deadline: Option<Picoseconds>,
    /// Take each constant of the chip at the bad end of its error
    #[arg(long)]
    pub errors: bool,
    /// Number of runs of the model in search of a bad case; 0 for none
    #[arg(long, value_name = "N", default_value_t = 20)]
    runs: u32,
    /// Draw the bound and the longest run seen, over the message size, to this file as SVG; - is standard output
    #[arg(long, value_name = "FILE")]
    svg: Option<String>,
    /// Write all figures to this file, as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<String>,
}

/// A pattern that can be bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BoundTarget {
    /// A read of a line of core 0's message buffer by the last core
    Read,
    /// A message from the first to the last core
    Message,
    /// RCCE's barrier
    Barrier,
    /// A binomial broadcast
    Broadcast,
    /// A broadcast in which the first core sends to each other one
    BroadcastSerial,
    /// A sum that the first core collects
    Reduce,
    /// Mutual exclusion: the wait for a lock
    Mutex,
    /// Work in fixed shares, distributed and collected by the first core
    Farm,
    /// Items that pass all cores
    Pipeline,
    /// Steps of the application control-loop: four tasks and their hubs, on four cores
    ControlLoop,
    /// Rounds of work and exchange with neighbours, with a barrier
    Stencil,
    /// A cellular automaton of --size cells in a ring, in --items rounds
    Automaton,
    /// Periodically written lines: --flow
    Flows,
}

/// A library by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LibraryName {
    Rcce,
    Ircce,
}

/// The behaviour of the cores that do not take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OtherCores {
    /// Nothing outside their caches
    Idle,
    /// Back-to-back accesses, to any buffer or memory
    Anything,
}

/// The order in which a lock is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LockName {
    /// By tickets: in the order of asking
    Tickets,
    /// By a test-and-set register, which has no bound
    TestAndSet,
}

/// The dealing of work to the workers of a farm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shares {
    /// To each the same, before the run
    Fixed,
    /// As workers ask for it, which has no bound
    OnDemand,
}

impl BoundTarget {
    /// Returns the pattern, if the target is a static program.
    pub fn pattern(self) -> Option<ParallelPattern> {
        Some(match self {
            BoundTarget::Message => ParallelPattern::Message,
            BoundTarget::Barrier => ParallelPattern::Barrier,
            BoundTarget::Broadcast => ParallelPattern::BroadcastBinomial,
            BoundTarget::BroadcastSerial => ParallelPattern::BroadcastSerial,
            BoundTarget::Reduce => ParallelPattern::Reduce,
            BoundTarget::Farm => ParallelPattern::Farm,
            BoundTarget::Pipeline => ParallelPattern::Pipeline,
            BoundTarget::ControlLoop => ParallelPattern::ControlLoop,
            BoundTarget::Stencil => ParallelPattern::Stencil,
            BoundTarget::Read | BoundTarget::Mutex | BoundTarget::Automaton | BoundTarget::Flows => {
                return None;
            }
        })
    }

    /// Returns the name of the target.
    pub fn name(self) -> &'static str {
        match self {
            BoundTarget::Read => "read",
            BoundTarget::Mutex => "mutex",
            BoundTarget::Automaton => "automaton",
            BoundTarget::Flows => "flows",
            _ => self.pattern().map_or("", ParallelPattern::name),
        }
    }
}

/// Executes the command.
pub fn execute(arguments: &BoundArguments) -> Result<(), Failure> {
    let chip = Chip::find(&arguments.chip).map_err(|error| Failure::Usage(error.to_string()))?;
    let refused = |error: isles_chip::file::ChangeError| {
        isles_app::runs::refusal("--set", &error.asked, &error.allowed)
    };
    let chip = match arguments.set.is_empty() {
        true => chip,
        false => chip.with_constants(&arguments.set.join(";"), None).map_err(refused)?,
    };
    if arguments.target == BoundTarget::Flows {
        return flows::execute(&chip, arguments.preset.as_deref(), &arguments.flows, arguments.deadline);
    }
    if let Some(flow) = arguments.flows.first() {
        return Err(isles_app::runs::refusal("--flow", flow, "only with flows"));
    }
    let case = BoundCase::read(arguments, &chip)?;
    let files = OutputFiles::check(arguments)?;
    let bound = case.bound().map_err(no_bound)?;
    let seen = case.seen(arguments.runs);
    let report = BoundReport::new(&case, &bound, seen, arguments.deadline, speed_ups(&case)?);
    let printed =
        console::print_report(files.leave_standard_output_free(), &report.text()).map_err(Failure::stdout);
    let json = files.json.map_or(Ok(()), |json| {
        let text = serde_json::to_string_pretty(&report).expect("numbers and texts are JSON");
        Ok(json.write(|out| out.write_all(format!("{text}\n").as_bytes())).map(drop)?)
    });
    let svg = files.svg.map_or(Ok(()), |svg| {
        picture::draw("isles", &report::by_size(&case, arguments.runs).map_err(no_bound)?, svg)
    });
    let met = match report.meets_deadline() {
        true => Ok(()),
        false => Err(Failure::Ended("the bound is later than the deadline".to_owned())),
    };
    Failure::first_of([printed, json, svg, met])
}

/// Converts the reason for a missing bound into an error of the command.
fn no_bound(reason: NoBound) -> Failure {
    Failure::Usage(reason.to_string())
}

/// Returns the worst-case speed-ups over one core for 1, 2, 4, … cores; empty for a target without work.
fn speed_ups(case: &BoundCase<'_>) -> Result<Vec<SpeedUp>, Failure> {
    let Some(serial) = case.serial() else { return Ok(Vec::new()) };
    let most = case.size.participants;
    let doubled =
        std::iter::successors(Some(1_u32), |count| Some(count * 2)).take_while(|count| *count < most);
    doubled
        .chain([most])
        .map(|participants| {
            let bound_ns =
                case.of_participants(participants).bound().map_err(no_bound)?.terms.total().nanoseconds();
            Ok(SpeedUp { participants, bound_ns, speed_up: serial.nanoseconds() / bound_ns })
        })
        .collect()
}

/// Destinations of the result, besides the text for people.
struct OutputFiles {
    svg: Option<Destination>,
    json: Option<Destination>,
}

impl OutputFiles {
    fn check(arguments: &BoundArguments) -> Result<OutputFiles, Failure> {
        let mut claims: Vec<Claim> = Vec::new();
        let mut check = |flag: &'static str, path: &Option<String>| -> Result<_, Failure> {
            let Some(path) = path else { return Ok(None) };
            let destination = Destination::check(flag, Some(path), Path::new(path), &claims)?;
            claims.push(Claim::written(&destination, flag));
            Ok(Some(destination))
        };
        let json = check("--json", &arguments.json)?;
        Ok(OutputFiles { svg: check("--svg", &arguments.svg)?, json })
    }

    fn leave_standard_output_free(&self) -> bool {
        ![&self.svg, &self.json].into_iter().flatten().any(Destination::is_standard)
    }
}
