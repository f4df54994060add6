//! The program of an application: `isles-NAME`, which `isles run NAME` becomes.

use crate::companion::{Companion, VERSION};
use crate::console;
use crate::frame::{self, Application, RunResult, frame_arguments, parsed};
use crate::seeds::{self, SeedsArguments};
use crate::ui::{UiArguments, UiPlan, UiServer};
use crate::{Failure, PlaceArguments, usage};
use clap::{Arg, ArgAction, ArgMatches, Args, Command};
use isles::{Claim, SWEEP_VARIABLE};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use std::process::ExitCode;

/// The hidden flag with which a sweep checks the arguments and asks which files will be read.
pub(crate) const CHECK: &str = "check";

/// The `main` of an application's program.
pub fn main<A: RunResult>() -> ExitCode {
    isles::name_package(Companion::application(A::INFO.name).package());
    isles::serve_if_joined();
    let matches = match usage::matches(&command(own_command::<A>(), A::INFO.about), std::env::args_os()) {
        Ok(matches) => matches,
        Err(code) => return code,
    };
    isles::warn_of_unknown_variables();
    let (ended, server) = execute::<A>(&matches).unwrap_or_else(|refused| (Err(refused), None));
    let code = usage::outcome(ended);
    // A kept page is waited for after all output of the run.
    if let Some(server) = server {
        server.end();
    }
    code
}

/// Returns the command with the arguments of the application alone.
fn own_command<A: Application>() -> Command {
    A::augment_args(Command::new(A::INFO.name)).after_help(A::INFO.note)
}

/// Returns the command of the program: the arguments of `own`, and those of all programs.
fn command(own: Command, about: &'static str) -> Command {
    let typed = typed(own.get_name());
    let own = frame_arguments(own.bin_name(typed).version(VERSION));
    let own = UiArguments::augment_args(PlaceArguments::augment_args(SeedsArguments::augment_args(own)));
    // Last, because argument groups set help texts of their own.
    own.about(about).arg(Arg::new(CHECK).long(CHECK).action(ArgAction::SetTrue).hide(true))
}

/// Returns the command line of a run of the application `name`.
fn typed(name: &str) -> String {
    format!("isles run {name}")
}

/// Ends this process with the sweep or the comparison of seeds that started it, if any.
///
/// # Errors
/// The sweep has ended already.
fn exit_with_parent() -> Result<(), Failure> {
    let Ok(sweep) = std::env::var(SWEEP_VARIABLE) else { return Ok(()) };
    // If the system does not support it, the run continues to its end.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    // The thread that starts a run waits for it, so another parent means that the sweep has ended.
    match getppid().map(Pid::as_raw_pid) {
        Some(parent) if parent.to_string() == sweep => Ok(()),
        _ => Err(Failure::Ended(format!("the sweep {sweep} has ended"))),
    }
}

/// Runs the application; returns its end, and the server that shows its run.
///
/// # Errors
/// It could not be started.
fn execute<A: RunResult>(matches: &ArgMatches) -> Result<(Result<(), Failure>, Option<UiServer>), Failure> {
    if matches.get_flag(CHECK) {
        return Ok((print_reads(parsed::<A>(matches)?.reads()), None));
    }
    exit_with_parent()?;
    let mut places: PlaceArguments = parsed(matches)?;
    let several: SeedsArguments = parsed(matches)?;
    let ui: UiArguments = parsed(matches)?;
    let ui = ui.plan(&mut places)?;
    let launch = places.launch(parsed::<A>(matches)?.reads())?;
    if let Some(number) = several.seeds {
        let own = own_command::<A>();
        return Ok((seeds::compare(&number, &own, matches, &places, &launch), None));
    }
    launch.check_tape()?;
    let server = ui.map(UiPlan::start).transpose()?;
    Ok((frame::run::<A>(matches, launch, &typed(A::INFO.name)), server))
}

/// Prints the files that will be read, a line each.
fn print_reads(reads: Vec<Claim>) -> Result<(), Failure> {
    let lines = reads.into_iter().map(|claim| match claim {
        Claim::Read { path, what: role } => format!("{role}\t{}\n", path.display()),
        Claim::Written { .. } => String::new(),
    });
    console::print(lines.collect::<String>()).map_err(Failure::stdout)
}
