//! The settings of a run: the variables `ISLES_*`, the flags that stand for them, and what they may say.

pub(crate) mod pinning;
pub(crate) mod unknown_variables;

use crate::chip;
use crate::chip::{ChipSettings, ModelledChip};
use crate::machine::Machine;
use crate::observe;
use crate::output::{EXPORTS, Export, ExportRequest};
use crate::settings::unknown_variables::warn_of_unknown_variables;
use isles_runtime::run::Stall;
use isles_transport_shm::Pinning;
use std::cell::RefCell;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// What is printed at the end of a run, to standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Report {
    /// Calls and bytes by call site.
    Captures,
    /// Finishes by kind, and what they cost.
    Finish,
    /// What tasks said to other tasks: over channels, and from member to member of a team.
    Messages,
    /// How [`glb`](crate::glb) has balanced tasks: steals and idle time of each place, of all its runs.
    Balance,
    /// What a modelled chip did; nothing on another machine.
    Chip,
}

/// A setting that is not allowed; nothing was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Where the value comes from: a variable, or a flag.
    pub source: String,
    /// The value.
    pub value: String,
    /// What is allowed.
    pub allowed: String,
}

impl ConfigError {
    pub(crate) fn new(source: &str, value: &str, allowed: impl Into<String>) -> Self {
        ConfigError { source: source.to_owned(), value: value.to_owned(), allowed: allowed.into() }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {:?}; allowed: {}", self.source, self.value, self.allowed)
    }
}

impl std::error::Error for ConfigError {}

/// Reads a machine's name; `source` is where it was written.
fn machine(source: &str, value: &str) -> Result<Machine, ConfigError> {
    let known = [Machine::Threads, Machine::Processes, Machine::Mpi, Machine::Loopback];
    let found = known.into_iter().find(|machine| machine.name() == value);
    match (found, ModelledChip::of_machine(source, value)) {
        (Some(machine), _) => Ok(machine),
        (None, Some(chip)) => chip.map(Machine::Chip),
        (None, None) => Err(ConfigError::new(
            source,
            value,
            format!("threads, processes, mpi, loopback{}", chip::MACHINES),
        )),
    }
}

/// Reads a number of places on `machine`.
fn places(source: &str, value: &str, machine: Machine) -> Result<u32, ConfigError> {
    let (most, why) = machine.places_max();
    let number = value.parse().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| ConfigError::new(source, value, format!("a whole number from 1 to {most}{why}")))
}

/// Reads a list of reports.
fn reports(source: &str, value: &str) -> Result<Vec<Report>, ConfigError> {
    let names = value.split(',').filter(|name| !name.is_empty());
    names
        .map(|name| match name {
            "captures" => Ok(Report::Captures),
            "finish" => Ok(Report::Finish),
            "messages" => Ok(Report::Messages),
            "balance" => Ok(Report::Balance),
            "chip" => Ok(Report::Chip),
            _ => Err(ConfigError::new(
                source,
                name,
                "captures, finish, messages, balance, chip, or several with commas",
            )),
        })
        .collect()
}

/// Reads seconds of silence.
fn silence(source: &str, value: &str) -> Result<Option<Duration>, ConfigError> {
    let seconds: f64 = value
        .parse()
        .ok()
        .filter(|seconds| (0.0..=86_400.0).contains(seconds))
        .ok_or_else(|| ConfigError::new(source, value, "seconds of silence, from 0 (never) to 86400"))?;
    Ok((seconds > 0.0).then(|| Duration::from_secs_f64(seconds)))
}

/// A flag of a command line that says what a variable would.
#[derive(Clone, Copy, Debug)]
pub struct Flag<'a> {
    /// The variable, for example `ISLES_PLACES`.
    pub variable: &'a str,
    /// The flag, for example `--places`.
    pub name: &'a str,
    /// What it says.
    pub value: &'a str,
}

/// What has a meaning on modelled chips only; as variables they are passed over elsewhere, because they may be set for
/// many programs. What is written, and work, is refused either way where it is read.
pub(crate) const CHIP_ONLY: [&str; 9] = [
    "ISLES_CHIP_PRESET",
    "ISLES_CHIP_POWER",
    "ISLES_CHIP_VOLTAGES",
    "ISLES_CHIP_PROTOCOL",
    "ISLES_CHIP_PLACEMENT",
    "ISLES_CHIP_GOVERNOR",
    "ISLES_CHIP_REST",
    "ISLES_CHIP_BROADCAST",
    "ISLES_CHIP_REDUCE",
];

/// What has a meaning on processors of the host only.
const HOST_ONLY: [&str; 1] = ["ISLES_PIN"];

/// Checks that no flag asks of `machine` what only another one has.
///
/// # Errors
/// The first flag that does.
pub(crate) fn check_flags(machine: Machine, flags: &[Flag<'_>]) -> Result<(), ConfigError> {
    if !matches!(machine, Machine::Threads | Machine::Processes)
        && let Some(flag) = flags.iter().find(|flag| HOST_ONLY.contains(&flag.variable))
    {
        let why = if machine == Machine::Mpi {
            "whose launcher says where ranks run"
        } else {
            "all of whose places are one thread"
        };
        let allowed = format!("nothing with the machine {machine}, {why}");
        return Err(ConfigError::new(flag.name, flag.value, allowed));
    }
    if matches!(machine, Machine::Chip(_)) {
        return Ok(());
    }
    let other = format!("with the machine {machine}, which is no modelled chip");
    for Flag { variable, name, value } in flags {
        if CHIP_ONLY.contains(variable) {
            return Err(ConfigError::new(name, value, format!("nothing {other}")));
        }
        if *variable == "ISLES_REPORT" && value.split(',').any(|report| report == "chip") {
            return Err(ConfigError::new(name, value, format!("captures, finish {other}")));
        }
    }
    Ok(())
}

/// The variable by which `isles launch` tells its program which flags were said: `ISLES_PLACES=--places`, with commas.
/// A refusal then names what the user wrote.
pub const FLAGS_VARIABLE: &str = "ISLES_LAUNCH_FLAGS";

/// The variable by which `isles sweep` and `isles run --seeds` tell each of their runs the number of their own process,
/// with which they end.
pub const SWEEP_VARIABLE: &str = "ISLES_SWEEP";

/// After how many seconds of silence a place of another host counts as lost; 0: never. Ranks of MPI read it.
pub(crate) const HOST_SILENCE_VARIABLE: &str = "ISLES_HOST_SILENCE";

/// Where settings are written: flags, and the variables behind them.
pub(crate) struct SettingSources<'a> {
    pub(crate) flags: &'a [Flag<'a>],
    /// What [`FLAGS_VARIABLE`] says.
    launched: String,
    variable: &'a dyn Fn(&str) -> Option<String>,
}

impl<'a> SettingSources<'a> {
    pub(crate) fn new(
        flags: &'a [Flag<'a>],
        variable: &'a dyn Fn(&str) -> Option<String>,
    ) -> SettingSources<'a> {
        SettingSources { flags, launched: variable(FLAGS_VARIABLE).unwrap_or_default(), variable }
    }

    /// What `read` makes of the flag in the place of `variable`, or of the variable; none if neither is set. `read`
    /// gets the word's source and the word.
    pub(crate) fn take<T>(
        &self,
        variable: &str,
        read: impl Fn(&str, &str) -> Result<T, ConfigError>,
    ) -> Result<Option<T>, ConfigError> {
        if let Some(flag) = self.flags.iter().find(|flag| flag.variable == variable) {
            return read(flag.name, flag.value).map(Some);
        }
        let mut said = self.launched.split(',').filter_map(|pair| pair.split_once('='));
        let source = said.find(|(name, _)| *name == variable).map_or(variable, |(_, flag)| flag);
        // An empty variable counts as not set: that is how a shell takes one back for a command.
        let value = (self.variable)(variable).filter(|value| !value.is_empty());
        value.map(|value| read(source, &value)).transpose()
    }
}

/// A setting, and where it was written; in words what it is, if nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting<T> {
    pub(crate) value: T,
    pub(crate) source: String,
}

impl<T> Setting<T> {
    pub(crate) fn new(source: &str, value: T) -> Setting<T> {
        Setting { value, source: source.to_owned() }
    }
}

/// What the environment says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Environment {
    pub(crate) machine: Option<Machine>,
    pub(crate) places: Option<u32>,
    /// On which processors of the host the places stay.
    pub(crate) pinning: Setting<Pinning>,
    pub(crate) reports: Vec<Report>,
    /// What `ISLES_CHIP_*` want to be written.
    pub(crate) exports: Vec<ExportRequest>,
    /// What `ISLES_CHIP_*` say of how a modelled chip runs.
    pub(crate) chip: ChipSettings,
    /// What `ISLES_STALL` and `ISLES_STALL_LIMIT` say of the first place's silence; what is not said is `None`.
    pub(crate) stall_report: Option<Option<Duration>>,
    pub(crate) stall_limit: Option<Option<Duration>>,
    pub(crate) seed: u64,
    /// The run directory, if the run is to be observed.
    pub(crate) record: Option<Setting<PathBuf>>,
}

impl Environment {
    /// How long nothing may happen, with `default` where nothing is said.
    pub(crate) fn stall(&self, default: Stall) -> Stall {
        Stall {
            report: self.stall_report.unwrap_or(default.report),
            limit: self.stall_limit.unwrap_or(default.limit),
        }
    }

    /// Reads the variables of the process; a flag takes the place of its variable, which is then not looked at. Warns
    /// of those that have no meaning.
    ///
    /// # Errors
    /// The first flag or variable with a value that is not allowed.
    pub(crate) fn read(flags: &[Flag<'_>]) -> Result<Self, ConfigError> {
        warn_of_unknown_variables();
        let variable = |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
        Self::read_from(&SettingSources::new(flags, &variable))
    }

    /// The names of all variables that [`Environment::read`] looks at.
    pub(crate) fn names() -> Vec<String> {
        let names = RefCell::new(Vec::new());
        // Nothing that is not set is refused, so every one is asked for.
        let note = |name: &str| {
            names.borrow_mut().push(name.to_owned());
            None
        };
        let _ = Self::read_from(&SettingSources::new(&[], &note));
        names.into_inner()
    }

    fn read_from(sources: &SettingSources<'_>) -> Result<Self, ConfigError> {
        let seed = |source: &str, value: &str| {
            value
                .parse::<u64>()
                .map_err(|_| ConfigError::new(source, value, "a whole number from 0 to 2^64 - 1"))
        };
        let export = |(export, variable): (Export, &str)| {
            sources.take(variable, |source, value| {
                Ok(ExportRequest { export, source: source.to_owned(), path: value.to_owned() })
            })
        };
        let exports = EXPORTS.into_iter().filter_map(|wanted| export(wanted).transpose());
        let exports = exports.collect::<Result<_, _>>()?;
        let machine = sources.take("ISLES_MACHINE", machine)?;
        // All machines that are no chips have the same bound, so it is no matter which of them is taken for none.
        let of_machine =
            |source: &str, value: &str| places(source, value, machine.unwrap_or(Machine::Threads));
        Ok(Environment {
            exports,
            machine,
            places: sources.take("ISLES_PLACES", of_machine)?,
            pinning: sources.take("ISLES_PIN", pinning::read)?.unwrap_or(pinning::unsaid()),
            reports: sources.take("ISLES_REPORT", reports)?.unwrap_or_default(),
            chip: ChipSettings::read(sources)?,
            stall_report: sources.take("ISLES_STALL", silence)?,
            stall_limit: sources.take("ISLES_STALL_LIMIT", silence)?,
            seed: sources.take("ISLES_SEED", seed)?.unwrap_or_default(),
            record: sources.take("ISLES_RECORD", observe::read)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, value: &str) -> Result<Environment, String> {
        let get = |asked: &str| (asked == name).then(|| value.to_owned());
        Environment::read_from(&SettingSources::new(&[], &get)).map_err(|error| error.to_string())
    }

    #[test]
    fn good_values_are_taken() {
        assert_eq!(read("ISLES_MACHINE", "processes").unwrap().machine, Some(Machine::Processes));
        assert_eq!(read("ISLES_PLACES", "48").unwrap().places, Some(48));
        assert_eq!(
            read("ISLES_REPORT", "captures,finish").unwrap().reports,
            [Report::Captures, Report::Finish]
        );
        assert_eq!(read("ISLES_STALL", "0").unwrap().stall_report, Some(None));
        let limit = read("ISLES_STALL_LIMIT", "0.5").unwrap();
        assert_eq!((limit.stall_report, limit.stall_limit), (None, Some(Some(Duration::from_millis(500)))));
        assert_eq!(read("ISLES_PLACES", "").unwrap().places, None);
    }

    #[test]
    fn a_flag_takes_the_place_of_its_variable_and_of_no_other() {
        let flag = |value| [Flag { variable: "ISLES_PLACES", name: "--places", value }];
        let bad = |asked: &str| asked.starts_with("ISLES_P").then(|| "0".to_owned());
        let read = |value, get: &dyn Fn(&str) -> Option<String>| {
            Environment::read_from(&SettingSources::new(&flag(value), get))
        };
        assert_eq!(read("3", &bad).unwrap().places, Some(3));
        let error = |value| read(value, &bad).unwrap_err().to_string();
        assert_eq!(error(""), r#"--places is ""; allowed: a whole number from 1 to 256"#);
        let bad = |asked: &str| (asked == "ISLES_MACHINE").then(|| "gpu".to_owned());
        assert_eq!(read("3", &bad).unwrap_err().source, "ISLES_MACHINE");
    }

    #[test]
    fn a_variable_that_a_flag_of_the_launcher_set_is_named_by_the_flag() {
        let get = |asked: &str| match asked {
            FLAGS_VARIABLE => Some("ISLES_PLACES=--places".to_owned()),
            "ISLES_PLACES" | "ISLES_SEED" => Some("x".to_owned()),
            _ => None,
        };
        let source = |get: &dyn Fn(&str) -> Option<String>| {
            Environment::read_from(&SettingSources::new(&[], get)).unwrap_err().source
        };
        assert_eq!(source(&get), "--places");
        assert_eq!(source(&|asked| get(asked).filter(|_| asked != "ISLES_PLACES")), "ISLES_SEED");
    }

    #[test]
    fn an_empty_variable_counts_as_not_set() {
        let asked = RefCell::new(Vec::new());
        let empty = |name: &str| {
            asked.borrow_mut().push(name.to_owned());
            Some(String::new())
        };
        let environment = Environment::read_from(&SettingSources::new(&[], &empty)).unwrap();
        assert!(asked.borrow().iter().any(|name| name == "ISLES_MACHINE"));
        assert_eq!((environment.machine, environment.places), (None, None));
    }

    #[test]
    fn bad_values_are_named_with_what_is_allowed() {
        let error = |name, value| read(name, value).unwrap_err();
        assert_eq!(
            error("ISLES_MACHINE", "gpu"),
            format!(
                r#"ISLES_MACHINE is "gpu"; allowed: threads, processes, mpi, loopback{}"#,
                chip::MACHINES
            )
        );
        for value in ["0", "257", "-1", "two", "1e9"] {
            assert_eq!(
                error("ISLES_PLACES", value),
                format!("ISLES_PLACES is {value:?}; allowed: a whole number from 1 to 256")
            );
        }
        assert!(error("ISLES_REPORT", "captures,all").starts_with(r#"ISLES_REPORT is "all""#));
        assert!(error("ISLES_STALL", "-3").starts_with("ISLES_STALL is"));
        assert!(error("ISLES_STALL_LIMIT", "soon").starts_with("ISLES_STALL_LIMIT is"));
        assert!(error("ISLES_SEED", "x").starts_with("ISLES_SEED"));
    }
}
