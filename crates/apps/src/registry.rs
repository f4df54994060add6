//! The applications, by name, and what every run can be told of its places.
//!
//! An application is what `isles run NAME` runs. The list of them is in the crate's root. An application folder has no
//! `main` of its own. Which flags of settings there are says the table of the façade, [`SETTINGS`]. Invariant: a
//! setting that is not allowed is said before anything starts.

use crate::APPS;
use crate::frame::Draw;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use isles::{Claim, Flag, FlagGroup, Launch, Machine, MachineClass, SETTINGS, SettingFlag, SettingRow};
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

/// What was said with the flags of settings.
#[derive(Clone, Debug)]
struct SaidSettings(Vec<(&'static SettingRow, String)>);

impl SaidSettings {
    /// Adds the flags of `groups` to `command`, in the order of the table.
    fn augment(command: Command, groups: &[FlagGroup]) -> Command {
        let flags = SETTINGS.iter().filter_map(|row| Some((row, row.flag?)));
        flags.filter(|(_, flag)| groups.contains(&flag.group)).fold(command, |command, (row, flag)| {
            let argument = Arg::new(row.variable).long(flag.name.trim_start_matches('-'));
            let argument = argument.value_name(flag.value).help(row.help()).help_heading(heading(row, flag));
            let argument = argument.allow_negative_numbers(true).allow_hyphen_values(flag.takes_hyphen);
            let argument = argument.global(flag.group == FlagGroup::Command);
            command.arg(match flag.short {
                Some(letter) => argument.short(letter),
                None => argument,
            })
        })
    }

    /// What `matches` has of the flags of `groups`.
    fn of_matches(matches: &ArgMatches, groups: &[FlagGroup]) -> SaidSettings {
        let rows = SETTINGS.iter().filter(|row| row.flag.is_some_and(|flag| groups.contains(&flag.group)));
        // A flag of all commands is none of an application that is asked for its arguments alone.
        let said = |row: &'static SettingRow| {
            let value = matches.try_get_one::<String>(row.variable).ok().flatten();
            Some((row, value?.clone()))
        };
        SaidSettings(rows.filter_map(said).collect())
    }

    fn get(&self, row: &SettingRow) -> Option<&str> {
        let said = self.0.iter().find(|(other, _)| other.variable == row.variable);
        said.map(|(_, value)| value.as_str())
    }

    fn flags(&self) -> Vec<Flag<'_>> {
        let said = self.0.iter().filter_map(|(row, value)| Some((row, row.flag?, value)));
        said.map(|(row, flag, value)| Flag { variable: row.variable, name: flag.name, value }).collect()
    }
}

/// Under which heading of `--help` flags stand; none is that of all.
fn heading(row: &SettingRow, flag: SettingFlag) -> Option<&'static str> {
    match flag.group {
        FlagGroup::Command | FlagGroup::Run => None,
        FlagGroup::Chip => Some("Settings of a modelled chip"),
        FlagGroup::Files if row.machines.on.contains(&MachineClass::Host) => Some("Files of a run"),
        FlagGroup::Files => Some("Files of a run on a modelled chip"),
    }
}

/// Implements what clap wants of flags that a struct of [`SaidSettings`] keeps, and how they are asked for.
macro_rules! arguments_of_settings {
    ($name:ident, $groups:expr) => {
        impl Args for $name {
            fn augment_args(command: Command) -> Command {
                SaidSettings::augment(command, $groups)
            }

            fn augment_args_for_update(command: Command) -> Command {
                SaidSettings::augment(command, $groups)
            }
        }

        impl FromArgMatches for $name {
            fn from_arg_matches(matches: &ArgMatches) -> Result<$name, clap::Error> {
                Ok($name(SaidSettings::of_matches(matches, $groups)))
            }

            fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
                *self = $name::from_arg_matches(matches)?;
                Ok(())
            }
        }

        impl $name {
            /// The flags that were said.
            pub fn flags(&self) -> Vec<Flag<'_>> {
                self.0.flags()
            }

            /// What the flag of a setting says, if it was said.
            pub fn said(&self, row: &SettingRow) -> Option<&str> {
                self.0.get(row)
            }

            /// Where a setting is written: in its flag, if that was said, else in its variable.
            pub fn source(&self, row: &'static SettingRow) -> &'static str {
                let flag = row.flag.filter(|_| self.said(row).is_some());
                flag.map_or(row.variable, |flag| flag.name)
            }
        }
    };
}

/// What every run can be told: all settings that have a flag.
#[derive(Clone, Debug)]
pub struct PlaceArguments(SaidSettings);

arguments_of_settings!(
    PlaceArguments,
    &[FlagGroup::Command, FlagGroup::Run, FlagGroup::Chip, FlagGroup::Files]
);

/// What every command can be told, whether it runs something or not.
#[derive(Clone, Debug)]
pub struct CommandArguments(SaidSettings);

arguments_of_settings!(CommandArguments, &[FlagGroup::Command]);

/// What a run on a modelled chip can be told of it; also a sweep, all of whose runs are told the same.
#[derive(Clone, Debug)]
pub struct ChipArguments(SaidSettings);

arguments_of_settings!(ChipArguments, &[FlagGroup::Chip]);

impl PlaceArguments {
    /// The launch that the flags describe; the environment where there is no flag, then the default, which is the
    /// machine `processes`. The program reads `reads`.
    ///
    /// # Errors
    /// A flag or a variable has a value that is not allowed.
    pub fn launch(&self, reads: Vec<Claim>) -> Result<Launch, Failure> {
        let launch = Launch::from_environment_with(Machine::Processes, &self.flags())?.reading(reads);
        launch.check_outputs()?;
        Ok(launch)
    }

    /// Says a setting in the place of what was said of it.
    pub fn say(&mut self, row: &'static SettingRow, value: String) {
        let SaidSettings(said) = &mut self.0;
        said.retain(|(other, _)| other.variable != row.variable);
        said.push((row, value));
    }
}
