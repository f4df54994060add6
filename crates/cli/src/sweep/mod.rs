//! `isles sweep`: runs an application, or a program of a user, at many settings of a modelled chip, and chooses one.
//!
//! Tries numbers of places, dividers of the clock (with the voltages that they need) and constants of the chip, each in
//! a process of its own, as many at once as this host has processors. The result is time and energy of each; a printed
//! rule chooses among those that a cap and a deadline allow. Invariant: nothing runs before the arguments are checked,
//! and a cap or a deadline that nothing can meet is refused.

mod choice;
mod constants;
mod jump;
mod point;
mod table;

use crate::plot::Picture;
use choice::{Limits, choose};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use constants::Constant;
use isles::{
    Claim, CodeTime, ConfigError, Destination, Flag, GovernorPolicy, Launch, Machine, SettingRow, setting,
};
use isles_app::console;
use isles_app::runs::{numbers, refusal};
use isles_app::{ChipArguments, Failure};
use isles_chip::gear::Gears;
use point::{Point, Runner, Setting, Subject};
use std::path::Path;

/// Largest number of times that a task can run its region.
const TIMES_MAX: u32 = 1_000_000;

/// The settings that the sweep itself reads.
const GOVERNOR: &SettingRow = setting("governor");
const WORK: &SettingRow = setting("work");
const MACHINE: &SettingRow = setting("machine");
const PLACES: &SettingRow = setting("places");
const SET: &SettingRow = setting("constants");

/// The arguments of `isles sweep`, besides those of the application.
#[derive(Args, Debug)]
struct Arguments {
    /// Application, by a name of `isles list`; --app may be left out if the name comes before its own flags
    #[arg(long, value_name = "NAME")]
    app: Option<String>,

    /// Arguments of the application, see `isles run NAME --help`; without --app, your program and its arguments
    #[arg(last = true, value_name = "WORDS")]
    words: Vec<String>,

    /// The modelled chip
    #[arg(long, value_name = "M", default_value = "chip:scc")]
    machine: String,

    /// Power cap of the chip, such as 60W
    #[arg(long, value_name = "WATTS", allow_hyphen_values = true)]
    cap: Option<String>,

    /// Deadline for the result, in modelled time, such as 90s
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    deadline: Option<String>,

    /// Energy budget of a run, such as 200J or 1800Wh
    #[arg(long, value_name = "ENERGY", allow_hyphen_values = true)]
    battery: Option<String>,

    /// Mesh clocks to try, in MHz, separated by commas [default: that of the preset]
    #[arg(long, value_name = "MHZ,MHZ", allow_hyphen_values = true)]
    mesh: Option<String>,

    /// Memory clocks to try, in MHz, separated by commas [default: that of the preset]
    #[arg(long, value_name = "MHZ,MHZ", allow_hyphen_values = true)]
    memory: Option<String>,

    /// Numbers of places to try, separated by commas [default: six from one to all cores, or to those of
    /// --placement; all cores only if --set has several values]
    #[arg(long, value_name = "N,N", allow_hyphen_values = true)]
    places: Option<String>,

    /// Dividers of the core clock to try, separated by commas [default: each with a voltage of its own, and the
    /// slowest; none with --governor, without dividers, or if --set has several values]
    #[arg(long, value_name = "D,D", allow_hyphen_values = true)]
    dividers: Option<String>,

    /// Marked region to judge by, or none for the whole run [default: the region, if the program marks one]
    #[arg(long, value_name = "NAME")]
    region: Option<String>,

    /// Number of times that the task runs the region: time and energy are those of one run, times this. A few steps of
    /// a long computation then stand for all
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    times: Option<String>,

    /// Print all settings, not only those that no other beats in both time and energy
    #[arg(long)]
    all: bool,

    /// File for all figures as CSV; - is standard output, and the table goes to standard error
    #[arg(long, value_name = "FILE")]
    csv: Option<String>,

    /// File for a picture as SVG: time against energy, or the speed-up if only places vary; - is standard output
    #[arg(long, value_name = "FILE")]
    svg: Option<String>,

    // Last, because it has a heading of its own.
    /// Options of the chip for all runs.
    #[command(flatten)]
    chip: ChipArguments,
}

impl Arguments {
    /// Takes the result files of an application for those of the sweep: its runs show no results of their own.
    fn take_files(&mut self) {
        let Arguments { words, csv, svg, .. } = self;
        for (flag, file) in [("--csv", csv), ("--svg", svg)] {
            let at = words
                .iter()
                .position(|word| word == flag)
                .filter(|at| file.is_none() && at + 1 < words.len());
            if let Some(at) = at {
                *file = Some(words.remove(at + 1));
                words.remove(at);
            }
        }
    }
}

/// Help of flags that differ here: the default is a divider and not the chip's own clock, and a tape is of one run.
const GOVERNOR_HELP: &str = "Governor to try, instead of the default dividers or in addition to the \
     given ones: fixed, fixed:DIVIDER, on-demand, phase-aware, capped:WATTS";
const SET_HELP: &str = "Constants of the chip to try, by keys of `isles chip show`: \
     links.flit_time=1,2,4 or links.flit_time=1..8; several keys are tried in all combinations";
const WORK_HELP: &str =
    "Cost of a program's own code: said, or host:RATIO to measure it here [default: said]";

/// Returns the command.
pub fn command() -> Command {
    let own = Arguments::augment_args(Command::new("sweep"));
    let own = own
        .mut_arg(GOVERNOR.variable, |flag| flag.help(GOVERNOR_HELP))
        .mut_arg(SET.variable, |flag| flag.help(SET_HELP))
        .mut_arg(WORK.variable, |flag| flag.help(WORK_HELP));
    own.about("Tries clocks, voltages and numbers of places on a modelled chip, and chooses")
}

/// Executes the command.
pub fn execute(matches: &ArgMatches) -> Result<(), Failure> {
    let mut arguments =
        Arguments::from_arg_matches(matches).map_err(|error| Failure::Usage(error.to_string()))?;
    if arguments.app.is_some() {
        arguments.take_files();
    }
    let subject = Subject::of(&arguments)?;
    let [cap, deadline, battery] =
        [&arguments.cap, &arguments.deadline, &arguments.battery].map(Option::as_deref);
    let limits = Limits::read(cap, deadline, battery)?;
    let times = read_times(arguments.times.as_deref())?;
    let chip = arguments.machine.strip_prefix("chip:").and_then(crate::chip::read);
    let mut claims: Vec<Claim> = chip.into_iter().chain(subject.reads()?).collect();
    let csv = arguments.csv.as_deref();
    let csv =
        csv.map(|path| Destination::check("--csv", Some(path), Path::new(path), &claims)).transpose()?;
    claims.extend(csv.as_ref().map(|csv| Claim::written(csv, "--csv")));
    let svg = arguments.svg.as_deref();
    let svg =
        svg.map(|path| Destination::check("--svg", Some(path), Path::new(path), &claims)).transpose()?;
    let context = SweepContext::of(&arguments)?;
    let settings = context.settings(&arguments, &limits)?;
    let region = arguments.region.as_deref();
    let points = Runner { subject: &subject, context: &context, region, times }.run(&settings)?;
    let flags: Vec<String> =
        context.said.iter().map(|flag| format!("{} {}", flag.name, flag.value)).collect();
    let origin =
        [("program", subject.words()), ("machine", arguments.machine.clone()), ("flags", flags.join(" "))];
    print_sweep(&arguments, &origin, &limits, &points, [csv, svg])
}

/// Reads the number of times that the task runs the region; 1 by default.
fn read_times(said: Option<&str>) -> Result<u32, Failure> {
    let Some(said) = said else { return Ok(1) };
    let times = said.parse().ok().filter(|times| (1..=TIMES_MAX).contains(times));
    times.ok_or_else(|| refusal("--times", said, &format!("a whole number from 1 to {TIMES_MAX}")))
}

/// Prints the table, the choice and the reason; if there is no choice, says so and writes nothing.
fn print_sweep(
    arguments: &Arguments,
    origin: &table::Origin,
    limits: &Limits,
    points: &[Point],
    [csv, svg]: [Option<Destination>; 2],
) -> Result<(), Failure> {
    let chosen = choose(limits, points).map_err(Failure::Usage)?;
    let text = table::text(limits, points, &chosen, arguments.all);
    let is_free = ![&csv, &svg].into_iter().flatten().any(Destination::is_standard);
    let printed = console::print_report(is_free, &text).map_err(Failure::stdout);
    let write =
        |csv: Destination| Ok(csv.write(|out| table::write_csv(out, origin, limits, points)).map(drop)?);
    let draw = |svg| {
        let mut rows = Vec::new();
        table::write_csv(&mut rows, origin, limits, points).map_err(Failure::stdout)?;
        let picture = Picture::of_text("the settings", &String::from_utf8_lossy(&rows))?;
        picture.write(svg)
    };
    Failure::first_of([printed, csv.map_or(Ok(()), write), svg.map_or(Ok(()), draw)])
}

/// The chip, and what can be set on it.
struct SweepContext<'a> {
    machine: &'a str,
    /// Flags of all runs, besides machine, places and governor.
    said: Vec<Flag<'a>>,
    /// Combinations of constants to try; at least one, which may be empty.
    constants: Vec<Vec<Constant>>,
    /// True if `--set` has several values: then places and dividers are tried only if they are named.
    varies_constants: bool,
    places_max: u32,
    /// `None` if its clocks cannot be divided.
    gears: Option<Gears>,
}

impl<'a> SweepContext<'a> {
    fn of(arguments: &'a Arguments) -> Result<SweepContext<'a>, Failure> {
        let machine = arguments.machine.as_str();
        let other = |allowed| refusal("--machine", machine, allowed);
        if !machine.starts_with("chip:") {
            return Err(other("a modelled chip such as chip:scc"));
        }
        let mut said = arguments.chip.flags();
        said.retain(|flag| ![GOVERNOR.variable, SET.variable].contains(&flag.variable));
        let source = arguments.chip.source(SET);
        let set = constants::combinations(source, arguments.chip.value_of(SET))?;
        let varies_constants = set.len() > 1;
        let constants = with_clocks(set, arguments)?;
        let mut context =
            SweepContext { machine, said, constants, varies_constants, places_max: 0, gears: None };
        let first = &context.constants[0];
        let launch = context.launch(None, "--governor", "fixed", first)?;
        if let CodeTime::Tape(_) = launch.chosen_work() {
            let allowed = "said, or host:RATIO, because a tape belongs to one run and a sweep makes many";
            return Err(refusal(arguments.chip.source(WORK), &launch.chosen_work().to_string(), allowed));
        }
        let Machine::Chip(modelled) = launch.chosen_machine() else {
            return Err(other("a modelled chip such as chip:scc"));
        };
        let chip = modelled.chip();
        let Some(model) = chip.power_models().first() else {
            return Err(other("a chip whose file has a power model"));
        };
        context.gears = chip.dividers().map(|_| Gears::of(chip, Some(model)));
        context.places_max = modelled.places_on(launch.chosen_placement());
        if arguments.dividers.is_some() && context.gears.is_none() {
            return Err(other("a chip whose clocks can be divided"));
        }
        Ok(context)
    }

    /// Returns all settings to try, without duplicates.
    fn settings(&self, arguments: &Arguments, limits: &Limits) -> Result<Vec<Setting>, Failure> {
        let places = self.places(arguments.places.as_deref())?;
        let dividers = arguments.dividers.as_deref();
        let governor = arguments.chip.value_of(GOVERNOR);
        let own_clock = dividers.is_none() && (self.varies_constants || self.gears.is_none());
        let governor = governor.or(own_clock.then_some("fixed"));
        let dividers = match (governor, dividers) {
            (Some(_), None) => Vec::new(),
            (_, list) => self.dividers(list)?,
        };
        self.check_cap(limits, places.iter().copied().min().unwrap_or(1))?;
        let mut settings = Vec::new();
        for constants in &self.constants {
            for places in places.iter().copied() {
                let divided = dividers.iter().map(|divider| GovernorPolicy::FixedAt(*divider));
                let governed = governor.map(|said| self.policy("--governor", said, places, constants));
                let governed = governed.transpose()?;
                let cap = limits.cap.map(|cap| GovernorPolicy::Capped(cap).to_string());
                let capped = cap.and_then(|cap| self.policy("--cap", &cap, places, constants).ok());
                for policy in divided.chain(governed).chain(capped) {
                    let setting = Setting { constants: constants.clone(), places, policy };
                    if !settings.contains(&setting) {
                        settings.push(setting);
                    }
                }
            }
        }
        Ok(settings)
    }

    fn places(&self, list: Option<&str>) -> Result<Vec<u32>, Failure> {
        let all = self.places_max;
        if list.is_none() && self.varies_constants {
            return Ok(vec![all]);
        }
        let Some(list) = list else {
            let mut places = vec![1, all / 8, all / 4, all / 2, all * 3 / 4, all];
            places.retain(|places| *places > 0);
            places.dedup();
            return Ok(places);
        };
        let allowed = format!("whole numbers from 1 to {all}, separated by commas");
        numbers("--places", list, &allowed, |places| (1..=all).contains(places))
    }

    fn dividers(&self, list: Option<&str>) -> Result<Vec<u32>, Failure> {
        let gears = || self.gears.iter().flat_map(Gears::all);
        let divided = || gears().filter_map(|(_, gear)| Some((gear.divider?, gear.step)));
        if let Some(list) = list {
            let known: Vec<u32> = divided().map(|(divider, _)| divider).collect();
            let (least, most) = (known.iter().min().unwrap_or(&1), known.iter().max().unwrap_or(&1));
            let allowed = format!("whole numbers from {least} to {most}, separated by commas");
            return numbers("--dividers", list, &allowed, |divider| known.contains(divider));
        }
        // The fastest clock at each voltage, and the slowest of all.
        let mut found: Vec<(u32, isles_chip::gear::VoltageStepId)> = divided().collect();
        let slowest = found.last().copied();
        found.dedup_by_key(|(_, step)| *step);
        let mut dividers: Vec<u32> = found.into_iter().chain(slowest).map(|(divider, _)| divider).collect();
        dividers.dedup();
        Ok(dividers)
    }

    /// Checks that the chip can keep a cap at all with that number of places.
    fn check_cap(&self, limits: &Limits, places: u32) -> Result<(), Failure> {
        let (Some(cap), Some(said)) = (limits.cap, &limits.cap_text) else { return Ok(()) };
        let policy = GovernorPolicy::Capped(cap).to_string();
        let kept = self.policy("--cap", &policy, places, &self.constants[0]).map(drop);
        kept.map_err(|error| refusal("--cap", said, &error.allowed))
    }

    /// Returns the governor that `policy` names, if the chip can have it with that number of places and these
    /// constants; `flag` is where it was set.
    fn policy(
        &self,
        flag: &str,
        policy: &str,
        places: u32,
        constants: &[Constant],
    ) -> Result<GovernorPolicy, ConfigError> {
        let launch = self.launch(Some(places), flag, policy, constants)?;
        Ok(launch.chosen_governor())
    }

    /// Returns the launch of a run that the environment and the flags describe; without a number of places, with all of
    /// the chip.
    fn launch(
        &self,
        places: Option<u32>,
        flag: &str,
        policy: &str,
        constants: &[Constant],
    ) -> Result<Launch, ConfigError> {
        let constants = constants::to_argument(constants);
        let mut said = self.said.clone();
        if !constants.is_empty() {
            said.push(Flag { variable: SET.variable, name: "--set", value: &constants });
        }
        launch(self.machine, &said, places, flag, policy)
    }
}

/// Combines these constants with all given clocks of mesh and memory.
///
/// # Errors
/// A clock is not a number of MHz from 1 to 10,000, or is among the constants as well.
fn with_clocks(mut all: Vec<Vec<Constant>>, arguments: &Arguments) -> Result<Vec<Vec<Constant>>, Failure> {
    for (flag, key, list) in [("--mesh", "mesh", &arguments.mesh), ("--memory", "memory", &arguments.memory)]
    {
        let Some(list) = list else { continue };
        let clocks = numbers(flag, list, "MHz from 1 to 10000, separated by commas", |clock| {
            (1..=10_000).contains(clock)
        })?;
        if all.iter().flatten().any(|constant| constant.key == key) {
            return Err(refusal(flag, list, &format!("the clock given once, but --set has {key}")));
        }
        let with = |before: Vec<Constant>| {
            let one = |clock: &u32| Constant { key: key.to_owned(), value: format!("{clock} MHz") };
            clocks.iter().map(|clock| [&before[..], &[one(clock)]].concat()).collect::<Vec<_>>()
        };
        all = all.into_iter().flat_map(with).collect();
    }
    Ok(all)
}

/// Returns the launch of a run that the environment and these flags describe; without a number of places, with all of
/// the chip.
fn launch(
    machine: &str,
    said: &[Flag<'_>],
    places: Option<u32>,
    flag: &str,
    policy: &str,
) -> Result<Launch, ConfigError> {
    let places = places.map(|places| places.to_string());
    let mut flags = said.to_vec();
    flags.push(Flag { variable: MACHINE.variable, name: "--machine", value: machine });
    flags.push(Flag { variable: GOVERNOR.variable, name: flag, value: policy });
    flags.extend(places.iter().map(|value| Flag { variable: PLACES.variable, name: "--places", value }));
    Launch::from_environment_with(Machine::Processes, &flags)
}
