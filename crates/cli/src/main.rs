//! The `isles` command: runs applications, launches programs, fetches data.
//!
//! It reads arguments and prints; what it does is done by the façade and the applications. Every error is one
//! line on standard error that names the source, the value and what is allowed; exit code 2 for what cannot
//! be done, 1 for a run that failed.

#![forbid(unsafe_code)]

mod data_sets;
mod launch;
mod run;

use clap::{Command, CommandFactory, FromArgMatches, Parser, Subcommand};
use isles_apps::registry::Failure;
use std::process::ExitCode;

/// One Rust program over many places.
#[derive(Parser)]
#[command(name = "isles", version, about, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Starts a program of yours over places
    Launch(launch::Arguments),
    /// Shows and fetches the graphs that Isles knows
    #[command(subcommand)]
    Data(data_sets::Verb),
    /// Measures Isles and its peers (the program isles-bench)
    #[command(disable_help_flag = true)]
    Bench(launch::BenchArguments),
}

fn command() -> Command {
    Arguments::command().subcommand(run::command())
}

fn main() -> ExitCode {
    isles::serve_if_joined();
    let matches = command().get_matches();
    let result = match matches.subcommand() {
        Some(("run", matches)) => run::run(matches),
        _ => match Arguments::from_arg_matches(&matches) {
            Ok(arguments) => carry_out(arguments.verb),
            Err(error) => error.exit(),
        },
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}

fn carry_out(verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::Launch(arguments) => launch::launch(&arguments),
        Verb::Data(verb) => data_sets::carry_out(&verb),
        Verb::Bench(arguments) => launch::bench(&arguments),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_arguments_are_consistent() {
        super::command().debug_assert();
    }
}
