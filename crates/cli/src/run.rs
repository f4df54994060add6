//! `isles run`: the applications.

use clap::{ArgMatches, Args, Command, FromArgMatches};
use isles_apps::registry::{APPS, Failure, PlaceArguments};

/// The command with one subcommand an application.
pub fn command() -> Command {
    let apps = APPS.iter().map(|app| {
        // Last, because arguments bring what they say of themselves.
        PlaceArguments::augment_args(app.arguments(Command::new(app.name()))).about(app.about())
    });
    Command::new("run").about("Runs an application of the suite").subcommand_required(true).subcommands(apps)
}

/// Runs the application that was named.
pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let Some((name, matches)) = matches.subcommand() else {
        return Err(Failure::Usage("which application? see `isles run --help`".to_owned()));
    };
    let app = APPS.iter().find(|app| app.name() == name);
    let app = app.ok_or_else(|| Failure::Usage(format!("there is no application {name:?}")))?;
    let places =
        PlaceArguments::from_arg_matches(matches).map_err(|error| Failure::Usage(error.to_string()))?;
    let launch = places.launch(app.reads(matches))?;
    launch.check_tape()?;
    app.run(matches, launch)
}
