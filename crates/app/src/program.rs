//! The program of an application: `isles-NAME`, which `isles run NAME` becomes.

use crate::console;
use crate::frame::{App, Application, Framed};
use crate::seeds::{self, SeedsArguments};
use crate::ui::{UiArguments, UiPlan, UiServer};
use crate::{Failure, PlaceArguments, picture, usage};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use isles::{Claim, SWEEP_VARIABLE};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

/// The hidden flag by which a sweep has the arguments checked, and asks which files will be read.
pub(crate) const CHECK: &str = "check";

/// The `main` of an application's program.
pub fn main<A: Application>() -> ExitCode {
    run(Framed::<A>::APP)
}

/// Runs the application. A page that is kept is waited for when everything has been said of the run.
fn run(app: &'static dyn App) -> ExitCode {
    isles::serve_if_joined();
    let matches = match usage::matches(&command(app), std::env::args_os()) {
        Ok(matches) => matches,
        Err(code) => return code,
    };
    isles::warn_of_unknown_variables();
    let (ended, server) = carry_out(app, &matches).unwrap_or_else(|refused| (Err(refused), None));
    let code = usage::outcome(ended);
    if let Some(server) = server {
        server.end();
    }
    code
}

/// What the program can be told.
fn command(app: &dyn App) -> Command {
    let own =
        Command::new(app.name()).bin_name(typed(app)).version(env!("CARGO_PKG_VERSION")).about(app.about());
    // Last, because arguments bring what they say of themselves.
    let own = app.frame_arguments(app.own_arguments(own));
    let own = UiArguments::augment_args(PlaceArguments::augment_args(SeedsArguments::augment_args(own)));
    own.about(app.about()).arg(Arg::new(CHECK).long(CHECK).action(ArgAction::SetTrue).hide(true))
}

/// How a run of the application is typed.
fn typed(app: &dyn App) -> String {
    format!("isles run {}", app.name())
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

/// How the application ended, and the server that shows its run.
///
/// # Errors
/// It did not begin.
fn carry_out(
    app: &'static dyn App,
    matches: &ArgMatches,
) -> Result<(Result<(), Failure>, Option<UiServer>), Failure> {
    if matches.get_flag(CHECK) {
        return Ok((print_reads(app, matches), None));
    }
    end_with_sweep()?;
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
        picture::draw(&typed(app), summary.get().map_or(json, String::as_str), svg)
    });
    Ok((ended, server))
}

/// Prints the files that will be read, a line each.
fn print_reads(app: &dyn App, matches: &ArgMatches) -> Result<(), Failure> {
    let lines = app.reads(matches)?.into_iter().map(|claim| match claim {
        Claim::Read { path, what } => format!("{what}\t{}\n", path.display()),
        Claim::Written { .. } => String::new(),
    });
    console::print(lines.collect::<String>()).map_err(Failure::stdout)
}
