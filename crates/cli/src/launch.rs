//! `isles launch`: starts a program over places; and the door to the measurements.

use clap::Args;
use isles_apps::registry::{Failure, PlaceArguments};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The arguments of `isles launch`.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    places: PlaceArguments,

    /// The program and its own arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// The arguments of `isles bench`.
#[derive(Args)]
pub struct BenchArguments {
    /// What to measure, and how; see `isles bench --help`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Becomes the program, with the places in its environment.
pub fn launch(arguments: &Arguments) -> Result<(), Failure> {
    let launch = arguments.places.launch()?;
    let (program, own) =
        arguments.program.split_first().ok_or_else(|| Failure::Usage("which program?".to_owned()))?;
    let mut command = Command::new(program);
    command.args(own);
    command
        .env("ISLES_PLACES", launch.chosen_places().to_string())
        .env("ISLES_MACHINE", launch.chosen_machine().name());
    if let Some(report) = &arguments.places.report {
        command.env("ISLES_REPORT", report);
    }
    become_program(command)
}

/// Becomes the program `isles-bench` beside this one.
pub fn bench(arguments: &BenchArguments) -> Result<(), Failure> {
    let beside = std::env::current_exe().ok().and_then(|path| Some(path.parent()?.join("isles-bench")));
    let program = beside.filter(|path| path.exists()).ok_or_else(|| {
        Failure::Usage("isles-bench is not built; run `cargo build --release -p isles-bench`".to_owned())
    })?;
    let mut command = Command::new(program);
    command.args(&arguments.arguments);
    become_program(command)
}

fn become_program(mut command: Command) -> Result<(), Failure> {
    let cause = command.exec();
    Err(Failure::Usage(format!("cannot start {}: {cause}", command.get_program().display())))
}
