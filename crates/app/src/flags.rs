//! The flags of settings: the arguments of every run about its places.
//!
//! The flags are listed in the table of the façade, [`SETTINGS`]. Invariant: an invalid setting is reported before
//! anything starts.

use crate::Failure;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use isles::{Claim, Flag, FlagGroup, Launch, Machine, MachineClass, SETTINGS, SettingFlag, SettingRow};

/// Values of the given flags of settings.
#[derive(Clone, Debug)]
struct GivenSettings(Vec<(&'static SettingRow, String)>);

impl GivenSettings {
    /// Adds the flags of `groups` to `command`, in the order of the table.
    fn augment(command: Command, groups: &[FlagGroup]) -> Command {
        let flags = SETTINGS.iter().filter_map(|row| Some((row, row.flag?)));
        flags.filter(|(_, flag)| groups.contains(&flag.group)).fold(command, |command, (row, flag)| {
            let argument = Arg::new(row.variable).long(flag.name.trim_start_matches('-'));
            let argument = argument.value_name(flag.value).help(row.help()).help_heading(heading(row, flag));
            let argument = argument.allow_negative_numbers(true).allow_hyphen_values(flag.takes_hyphen);
            let argument = argument.global(flag.group == FlagGroup::Command);
            let argument = if flag.repeats { argument.action(ArgAction::Append) } else { argument };
            command.arg(match flag.short {
                Some(letter) => argument.short(letter),
                None => argument,
            })
        })
    }

    /// Collects the flags of `groups` from `matches`.
    fn of_matches(matches: &ArgMatches, groups: &[FlagGroup]) -> GivenSettings {
        let rows = SETTINGS.iter().filter(|row| row.flag.is_some_and(|flag| groups.contains(&flag.group)));
        // The flags of all commands are absent if only an application's own arguments are parsed.
        let given = |row: &'static SettingRow| {
            let values: Vec<&str> =
                matches.try_get_many::<String>(row.variable).ok()??.map(String::as_str).collect();
            Some((row, values.join(";")))
        };
        GivenSettings(rows.filter_map(given).collect())
    }

    fn get(&self, row: &SettingRow) -> Option<&str> {
        let given = self.0.iter().find(|(other, _)| other.variable == row.variable);
        given.map(|(_, value)| value.as_str())
    }

    fn flags(&self) -> Vec<Flag<'_>> {
        let given = self.0.iter().filter_map(|(row, value)| Some((row, row.flag?, value)));
        given.map(|(row, flag, value)| Flag { variable: row.variable, name: flag.name, value }).collect()
    }
}

/// Returns the heading of `--help` under which a flag is listed; `None` for the common one.
fn heading(row: &SettingRow, flag: SettingFlag) -> Option<&'static str> {
    match flag.group {
        FlagGroup::Command | FlagGroup::Run => None,
        FlagGroup::Chip => Some("Settings of a modelled chip"),
        FlagGroup::Files if row.machines.on.contains(&MachineClass::Host) => Some("Files of a run"),
        FlagGroup::Files => Some("Files of a run on a modelled chip"),
    }
}

/// Implements clap's traits and accessors for a struct of [`GivenSettings`].
macro_rules! arguments_of_settings {
    ($name:ident, $groups:expr) => {
        impl Args for $name {
            fn augment_args(command: Command) -> Command {
                GivenSettings::augment(command, $groups)
            }

            fn augment_args_for_update(command: Command) -> Command {
                GivenSettings::augment(command, $groups)
            }
        }

        impl FromArgMatches for $name {
            fn from_arg_matches(matches: &ArgMatches) -> Result<$name, clap::Error> {
                Ok($name(GivenSettings::of_matches(matches, $groups)))
            }

            fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
                *self = $name::from_arg_matches(matches)?;
                Ok(())
            }
        }

        impl $name {
            /// The given flags.
            pub fn flags(&self) -> Vec<Flag<'_>> {
                self.0.flags()
            }

            /// Returns the value of a setting's flag, if it was given.
            pub fn value_of(&self, row: &SettingRow) -> Option<&str> {
                self.0.get(row)
            }

            /// Returns the source of a setting: its flag if that was given, else its variable.
            pub fn source(&self, row: &'static SettingRow) -> &'static str {
                let flag = row.flag.filter(|_| self.value_of(row).is_some());
                flag.map_or(row.variable, |flag| flag.name)
            }
        }
    };
}

/// Arguments of every run: all settings that have a flag.
#[derive(Clone, Debug)]
pub struct PlaceArguments(GivenSettings);

arguments_of_settings!(
    PlaceArguments,
    &[FlagGroup::Command, FlagGroup::Run, FlagGroup::Chip, FlagGroup::Files]
);

/// Arguments of every command, whether it runs something or not.
#[derive(Clone, Debug)]
pub struct CommandArguments(GivenSettings);

arguments_of_settings!(CommandArguments, &[FlagGroup::Command]);

/// Arguments of a run on a modelled chip; also of a sweep, whose runs all get the same.
#[derive(Clone, Debug)]
pub struct ChipArguments(GivenSettings);

arguments_of_settings!(ChipArguments, &[FlagGroup::Chip]);

impl PlaceArguments {
    /// Returns the launch that the flags describe; without a flag the environment counts, then the default, which is
    /// the machine `processes`. The program reads `reads`.
    ///
    /// # Errors
    /// A flag or a variable has an invalid value.
    pub fn launch(&self, reads: Vec<Claim>) -> Result<Launch, Failure> {
        let launch = Launch::from_environment_with(Machine::Processes, &self.flags())?.reading(reads);
        launch.check_outputs()?;
        Ok(launch)
    }

    /// Replaces the value of a setting.
    pub fn set(&mut self, row: &'static SettingRow, value: String) {
        let GivenSettings(given) = &mut self.0;
        given.retain(|(other, _)| other.variable != row.variable);
        given.push((row, value));
    }
}
