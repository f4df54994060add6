//! `isles run`: becomes the program of an application; `isles list`: lists the applications.

use clap::{Arg, ArgMatches, Command, FromArgMatches};
use isles_app::companion::{Companion, applications};
use isles_app::{CommandArguments, Failure, console};
use std::ffi::OsString;

/// Name of the application's arguments.
const WORDS: &str = "words";

/// Returns the command with a subcommand for each application, which knows nothing of its arguments.
pub fn command() -> Command {
    let apps = applications().map(|(name, about)| {
        let words = Arg::new(WORDS).num_args(0..).trailing_var_arg(true).allow_hyphen_values(true);
        let words = words.value_parser(clap::value_parser!(OsString));
        Command::new(name).about(about).disable_help_flag(true).arg(words)
    });
    Command::new("run").about("Runs an application of the suite").subcommand_required(true).subcommands(apps)
}

/// Prints a line for each application.
pub fn list() -> Result<(), Failure> {
    let widest = applications().map(|(name, _)| name.len()).max().unwrap_or_default();
    let lines = applications().map(|(name, about)| format!("{name:<widest$}  {about}\n"));
    console::print(lines.collect::<String>() + "isles run NAME --help lists the options of each\n")
        .map_err(Failure::stdout)
}

/// Returns the application of this name.
///
/// # Errors
/// There is none; `source` is where the name comes from.
pub fn app(source: &str, name: &str) -> Result<&'static str, Failure> {
    let names = || applications().map(|(name, _)| name).collect::<Vec<_>>().join(", ");
    let found = applications().map(|(known, _)| known).find(|known| *known == name);
    found.ok_or_else(|| Failure::Usage(format!("{source} is {name:?}; allowed: {}", names())))
}

/// Becomes the program of the named application.
///
/// # Errors
/// There is none, or it cannot be started.
pub fn execute(matches: &ArgMatches) -> Result<(), Failure> {
    let Some((name, arguments)) = matches.subcommand() else {
        return Err(Failure::Usage("no application given; see `isles run --help`".to_owned()));
    };
    // Options of every command may come before the name.
    let own =
        CommandArguments::from_arg_matches(arguments).map_err(|error| Failure::Usage(error.to_string()))?;
    let own = own.flags().into_iter().flat_map(|flag| [flag.name.into(), flag.value.into()]);
    let words: Vec<OsString> = arguments.get_many(WORDS).into_iter().flatten().cloned().collect();
    let application = Companion::application(name).on_machine(&machine(&words));
    application.exec(own.chain(words))
}

/// Returns the machine that the application's arguments name, or else the environment; empty if neither does.
fn machine(words: &[OsString]) -> String {
    let named = words.iter().enumerate().find_map(|(index, word)| {
        match word.to_str()?.strip_prefix("--machine")? {
            "" => words.get(index + 1).map(|value| value.to_string_lossy().into_owned()),
            rest => rest.strip_prefix('=').map(str::to_owned),
        }
    });
    named.or_else(|| std::env::var("ISLES_MACHINE").ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_found_among_the_arguments() {
        let found = |line: &str| machine(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert_eq!(found("--places 4 --machine guests"), "guests");
        assert_eq!(found("--machine=guests --places 4"), "guests");
        assert_eq!(found("--machines 1 --machine threads"), "threads");
    }
}
