//! The settings of a run: their sources and values.
//!
//! Each row of the `table` has a reader, in `readers` or in the module that uses the setting. This file has the common
//! rules: a flag overrides its variable, an empty variable counts as not set, and an error names what the user wrote.
//! Invariant: reading changes nothing but the resulting [`Environment`].

pub(crate) mod color;
pub(crate) mod pinning;
pub(crate) mod readers;
pub(crate) mod table;
mod text;
pub(crate) mod unknown_variables;

#[cfg(feature = "chip")]
use crate::chip::ChipSettings;
use crate::machine::Machine;
use crate::output::{Export, ExportRequest};
use crate::settings::table::{FlagGroup, OnOtherMachines, SETTINGS, SettingRow, setting};
use crate::settings::unknown_variables::warn_of_unknown_variables;
use isles_runtime::run::Stall;
use isles_transport_shm::Pinning;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Report printed at the end of a run, to standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Report {
    /// Calls and bytes by call site.
    Captures,
    /// Finishes by kind, with their costs.
    Finish,
    /// Messages between tasks: over channels, and between members of a team.
    Messages,
    /// Counters of the places: the sum of each, and the minimum and maximum of a place.
    Counters,
    /// Balance of tasks by [`glb`](crate::glb): steals and idle time of each place over all its runs.
    Balance,
    /// Activity of a modelled chip; nothing on another machine.
    Chip,
}

impl Report {
    /// All reports, by their names on the command line and in `ISLES_REPORT`.
    pub(crate) const ALL: [(&'static str, Report); 6] = [
        ("captures", Report::Captures),
        ("finish", Report::Finish),
        ("messages", Report::Messages),
        ("counters", Report::Counters),
        ("balance", Report::Balance),
        ("chip", Report::Chip),
    ];

    /// Returns the names of the reports that `is_allowed`, separated by commas.
    pub(crate) fn names(is_allowed: impl Fn(Report) -> bool) -> String {
        let names = Report::ALL.into_iter().filter(|(_, report)| is_allowed(*report));
        names.map(|(name, _)| name).collect::<Vec<_>>().join(", ")
    }
}

/// A setting with an invalid value; nothing was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The variable or flag with the value.
    pub source: String,
    /// The value.
    pub value: String,
    /// Allowed values.
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

/// A command-line flag that overrides a variable.
#[derive(Clone, Copy, Debug)]
pub struct Flag<'a> {
    /// The variable, for example `ISLES_PLACES`.
    pub variable: &'a str,
    /// The flag, for example `--places`.
    pub name: &'a str,
    /// Value of the flag.
    pub value: &'a str,
}

/// Checks that `machine` supports all flags.
///
/// # Errors
/// The first flag that only other machines support.
pub(crate) fn check_flags(machine: Machine, flags: &[Flag<'_>]) -> Result<(), ConfigError> {
    for Flag { variable, name, value } in flags {
        let refused = |allowed| Err(ConfigError::new(name, value, allowed));
        let row = SETTINGS.iter().find(|row| row.variable == *variable);
        if let Some(SettingRow { machines, .. }) = row
            && machines.on_other_machines == OnOtherMachines::FlagRefused
            && !machines.include(machine)
        {
            return refused(machines.refusal(machine));
        }
        let is_of_chips = *variable == REPORT.variable && value.split(',').any(|report| report == "chip");
        if is_of_chips && !matches!(machine, Machine::Chip(_)) {
            let names = Report::names(|report| report != Report::Chip);
            return refused(format!("{names} with machine {machine} (not a modelled chip)"));
        }
    }
    Ok(())
}

/// The setting of which some values are for one machine only.
const REPORT: &SettingRow = setting("report");

/// Variable in which `isles launch` names the flags of the user to its program: `ISLES_PLACES=--places`, separated by
/// commas. Errors then name what the user wrote.
pub const FLAGS_VARIABLE: &str = "ISLES_LAUNCH_FLAGS";

/// Variable in which `isles sweep` and `isles run --seeds` pass their process id to each of their runs, which end with
/// that process.
pub const SWEEP_VARIABLE: &str = "ISLES_SWEEP";

/// Variable in which a program of Isles passes its version to another that it starts; both versions must be equal.
pub const VERSION_VARIABLE: &str = "ISLES_COMMAND_VERSION";

/// Sources of settings: flags, and the variables behind them.
pub(crate) struct SettingSources<'a> {
    pub(crate) flags: &'a [Flag<'a>],
    /// Value of [`FLAGS_VARIABLE`].
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

    /// Passes the flag of `row`, or else its variable, to the reader; does nothing if neither is set.
    fn take(&self, row: &SettingRow, environment: &mut Environment) -> Result<(), ConfigError> {
        let variable = row.variable;
        if let Some(flag) = self.flags.iter().find(|flag| flag.variable == variable) {
            return (row.read)(environment, flag.name, flag.value);
        }
        let mut said = self.launched.split(',').filter_map(|pair| pair.split_once('='));
        let source = said.find(|(name, _)| *name == variable).map_or(variable, |(_, flag)| flag);
        // An empty variable counts as not set, because a shell unsets one for a single command that way.
        let value = (self.variable)(variable).filter(|value| !value.is_empty());
        value.map_or(Ok(()), |value| (row.read)(environment, source, &value))
    }
}

/// A value with its source: a flag, a variable, or a description for values set otherwise.
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

/// Name of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MachineName {
    /// A machine other than a chip.
    Known(Machine),
    /// A modelled chip, such as `chip:scc`, not looked up yet.
    Chip(String),
}

#[cfg(feature = "mpi")]
impl MachineName {
    /// Returns the name as it was set.
    pub(crate) fn text(&self) -> &str {
        match self {
            MachineName::Known(machine) => machine.name(),
            MachineName::Chip(name) => name,
        }
    }
}

/// Settings of a run as plain data; nothing has been looked up in the system yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Environment {
    pub(crate) machine: Option<Setting<MachineName>>,
    pub(crate) places: Option<Setting<u32>>,
    /// Processors of the host to which the places are pinned.
    pub(crate) pinning: Setting<Pinning>,
    pub(crate) reports: Vec<Report>,
    /// Requested outputs of the run.
    pub(crate) exports: Vec<ExportRequest>,
    /// Settings of a modelled chip from `ISLES_CHIP_*`.
    #[cfg(feature = "chip")]
    pub(crate) chip: ChipSettings,
    /// `ISLES_STALL` and `ISLES_STALL_LIMIT`: limits of the time without progress at the first place; `None` if not
    /// set.
    pub(crate) stall_report: Option<Option<Duration>>,
    pub(crate) stall_limit: Option<Option<Duration>>,
    pub(crate) seed: u64,
    /// Choice of colours, if set.
    pub(crate) color: Option<color::ColorChoice>,
    /// The run directory, if the run is observed.
    pub(crate) record: Option<Setting<PathBuf>>,
}

impl Environment {
    /// Returns the machine, or `default` if none is set; a modelled chip with its settings applied.
    ///
    /// # Errors
    /// The chip does not exist, or lacks what a setting selects.
    pub(crate) fn machine_or(&self, default: Machine) -> Result<Machine, ConfigError> {
        let machine = self.machine.as_ref().map_or(Ok(default), Machine::find)?;
        machine.with_settings(self)
    }

    /// Returns the number of places, if set.
    ///
    /// # Errors
    /// `machine` cannot have that many.
    pub(crate) fn places_on(&self, machine: Machine) -> Result<Option<u32>, ConfigError> {
        let places = self.places.as_ref();
        places.map(|said| readers::check_places(&said.source, &said.value.to_string(), machine)).transpose()
    }

    /// Returns the limits of time without progress, with `default` for those not set.
    pub(crate) fn stall(&self, default: Stall) -> Stall {
        Stall {
            report: self.stall_report.unwrap_or(default.report),
            limit: self.stall_limit.unwrap_or(default.limit),
        }
    }

    /// Reads flags and variables of the process; a flag overrides its variable, which is then not read. Warns of
    /// unknown variables.
    ///
    /// # Errors
    /// The first flag or variable with an invalid value.
    pub(crate) fn read(flags: &[Flag<'_>]) -> Result<Self, ConfigError> {
        warn_of_unknown_variables();
        let environment = Self::read_from(&SettingSources::new(flags, &variable))?;
        color::choose(environment.color);
        Ok(environment)
    }

    /// Returns the defaults, with nothing set.
    fn defaults() -> Environment {
        Environment {
            machine: None,
            places: None,
            pinning: pinning::default_pinning(),
            reports: Vec::new(),
            exports: Vec::new(),
            #[cfg(feature = "chip")]
            chip: ChipSettings::default(),
            stall_report: None,
            stall_limit: None,
            seed: 0,
            color: None,
            record: None,
        }
    }

    pub(crate) fn read_from(sources: &SettingSources<'_>) -> Result<Self, ConfigError> {
        Self::read_rows(sources, SETTINGS.iter())
    }

    /// Reads the settings of `rows`.
    fn read_rows(
        sources: &SettingSources<'_>,
        mut rows: impl Iterator<Item = &'static SettingRow>,
    ) -> Result<Self, ConfigError> {
        let mut environment = Environment::defaults();
        rows.try_for_each(|row| sources.take(row, &mut environment))?;
        #[cfg(feature = "chip")]
        environment.chip.note_arguments(sources.flags);
        Ok(environment)
    }

    /// Returns the settings for a test: without reports and outputs, and with seed 0, because tests choose their seeds.
    pub(crate) fn of_test(self) -> Environment {
        Environment {
            reports: Vec::new(),
            exports: Vec::new(),
            seed: 0,
            record: None,
            #[cfg(feature = "chip")]
            chip: self.chip.of_test(),
            ..self
        }
    }

    /// Adds a requested output.
    pub(crate) fn want(&mut self, export: Export, source: &str, path: &str) -> Result<(), ConfigError> {
        self.exports.push(ExportRequest { export, source: source.to_owned(), path: path.to_owned() });
        Ok(())
    }
}

/// Returns the value of a variable of the process.
fn variable(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

/// Reads the settings of [`FlagGroup::Command`] from flags and variables, for a process that launches nothing.
/// [`Launch::from_environment`](crate::Launch::from_environment) reads them with all others.
///
/// # Errors
/// The first flag or variable with an invalid value.
pub fn read_command_settings(flags: &[Flag<'_>]) -> Result<(), ConfigError> {
    let is_of_commands = |row: &&SettingRow| row.flag.is_some_and(|flag| flag.group == FlagGroup::Command);
    let rows = SETTINGS.iter().filter(is_of_commands);
    let environment = Environment::read_rows(&SettingSources::new(flags, &variable), rows)?;
    color::choose(environment.color);
    Ok(())
}

#[cfg(test)]
mod tests;
