//! `isles run`: the applications.

use crate::plot::Picture;
use crate::seeds::{self, SeedsArguments};
use crate::ui::{UiArguments, UiPlan, UiServer};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use isles::SWEEP_VARIABLE;
use isles_apps::registry::{self, Failure, PlaceArguments};
use isles_apps::{APPS, console};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

/// The command with one subcommand an application.
pub fn command() -> Command {
    let apps = APPS.iter().map(|app| {
        // Last, because arguments bring what they say of themselves.
        let own = app.frame_arguments(app.own_arguments(Command::new(app.name())));
        let own = UiArguments::augment_args(PlaceArguments::augment_args(SeedsArguments::augment_args(own)));
        own.about(app.about())
    });
    Command::new("run").about("Runs an application of the suite").subcommand_required(true).subcommands(apps)
}

/// Prints a line for each application.
pub fn list() -> Result<(), Failure> {
    let lines = APPS.iter().map(|app| format!("{:<9}{}\n", app.name(), app.about()));
    console::print(lines.collect::<String>() + "isles run NAME --help says what each can be told\n")
        .map_err(Failure::stdout)
}

/// Lets this process end with the sweep, or the comparison of seeds, that started it, if one did: nobody else waits for
/// its figures.
///
/// # Errors
/// The sweep has ended already.
fn end_with_sweep() -> Result<(), Failure> {
    let Ok(sweep) = std::env::var(SWEEP_VARIABLE) else { return Ok(()) };
    // Where the system cannot do that, the run goes on to its end.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    // The thread that starts a run waits for it, so a parent that is another one is a sweep that has ended.
    match getppid().map(Pid::as_raw_pid) {
        Some(parent) if parent.to_string() == sweep => Ok(()),
        _ => Err(Failure::Ended(format!("the sweep {sweep} has ended"))),
    }
}

/// Runs the application that was named. A page that is kept is waited for when everything has been said of the run.
pub fn run(matches: &ArgMatches) -> ExitCode {
    let (ended, server) = carry_out(matches).unwrap_or_else(|refused| (Err(refused), None));
    let code = crate::outcome(ended);
    if let Some(server) = server {
        server.end();
    }
    code
}

/// How the application ended, and the server that shows its run.
///
/// # Errors
/// It did not begin.
fn carry_out(matches: &ArgMatches) -> Result<(Result<(), Failure>, Option<UiServer>), Failure> {
    end_with_sweep()?;
    let Some((name, matches)) = matches.subcommand() else {
        return Err(Failure::Usage("which application? see `isles run --help`".to_owned()));
    };
    let app = registry::app("the application", name)?;
    let mut places =
        PlaceArguments::from_arg_matches(matches).map_err(|error| Failure::Usage(error.to_string()))?;
    let several =
        SeedsArguments::from_arg_matches(matches).map_err(|error| Failure::Usage(error.to_string()))?;
    let ui = UiArguments::from_arg_matches(matches).map_err(|error| Failure::Usage(error.to_string()))?;
    let ui = ui.plan(&mut places)?;
    let launch = places.launch(app.reads(matches)?)?;
    if let Some(number) = several.seeds {
        return Ok((seeds::compare(&number, (app, matches), (&places, &launch)), None));
    }
    launch.check_tape()?;
    let summary = Arc::new(OnceLock::new());
    let server = ui.map(UiPlan::start).transpose()?;
    let ended = app.run(matches, launch.keeping_summary(&summary), &|json, svg| {
        // What places did on a chip its summary knows.
        let text = summary.get().map_or(json, String::as_str);
        Picture::of_text("the run", text)?.write(svg)
    });
    Ok((ended, server))
}
