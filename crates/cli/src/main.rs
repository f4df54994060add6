//! The `isles` command: runs applications, sweeps settings, launches programs, fetches data, shows chips, fits powers,
//! repeats published experiments.
//!
//! It reads arguments and prints; what it does is done by the façade, the applications and the chips. Every error is
//! one line on standard error that names the source, the value and what is allowed; exit code 2 for what cannot
//! be done, 1 for a run that failed.

#![forbid(unsafe_code)]

mod chip;
mod data_sets;
mod launch;
mod power;
mod repro;
mod run;
mod sweep;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory, FromArgMatches, Parser, Subcommand};
use isles_apps::console;
use isles_apps::registry::Failure;
use std::error::Error;
use std::process::ExitCode;

/// Exit code for arguments that cannot be carried out.
const EXIT_USAGE: u8 = 2;

/// The version, and the commit if it was built in a checkout; see `build.rs`.
const VERSION: &str = include_str!(concat!(env!("OUT_DIR"), "/version"));

/// One Rust program over many places.
#[derive(Parser)]
#[command(name = "isles", version = VERSION, about, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Starts a program of yours over places
    Launch(Box<launch::Arguments>),
    /// Shows and fetches the graphs that Isles knows
    #[command(subcommand)]
    Data(data_sets::Verb),
    /// Shows chips and checks the files that describe them
    #[command(subcommand)]
    Chip(chip::Verb),
    /// Fits power models to measured powers
    #[command(subcommand)]
    Power(power::Verb),
    /// Runs published experiments on the modelled chip and prints both figures
    Repro(repro::Arguments),
    /// Measures Isles and its peers (the program isles-bench)
    #[command(disable_help_flag = true)]
    Bench(launch::BenchArguments),
}

fn command() -> Command {
    Arguments::command().subcommand(run::command()).subcommand(sweep::command())
}

fn main() -> ExitCode {
    isles::serve_if_joined();
    let matches = match command().try_get_matches() {
        Ok(matches) => matches,
        Err(error) if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            console::notice(error.to_string().trim_end());
            return ExitCode::from(EXIT_USAGE);
        }
        Err(error) if !error.use_stderr() => return outcome(print_help(&error)),
        Err(error) => {
            console::notice(one_line(&error));
            return ExitCode::from(EXIT_USAGE);
        }
    };
    isles::warn_of_unknown_variables();
    outcome(match matches.subcommand() {
        Some(("run", matches)) => run::run(matches),
        Some(("sweep", matches)) => sweep::carry_out(matches),
        _ => match Arguments::from_arg_matches(&matches) {
            Ok(arguments) => carry_out(arguments.verb),
            Err(error) => Err(Failure::Usage(error.to_string())),
        },
    })
}

/// The exit code, and the line that goes with it.
fn outcome(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            console::notice(format_args!("error: {failure}"));
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Prints what was asked for: the help, or the version.
fn print_help(error: &clap::Error) -> Result<(), Failure> {
    console::write_to_stdout(|_| error.print()).map_err(Failure::stdout)
}

/// What is wrong with the arguments, without the general advice that follows it.
fn one_line(error: &clap::Error) -> String {
    bad_value(error).or_else(|| unknown_command(error)).unwrap_or_else(|| first_sentence(error))
}

/// A command that does not exist, with those that do at its place.
fn unknown_command(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(asked)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let whole = command();
    let (mut above, mut path) = (&whole, String::from("isles"));
    for word in std::env::args().skip(1).take_while(|word| word != asked) {
        if let Some(next) = above.find_subcommand(&word) {
            above = next;
            path = format!("{path} {word}");
        }
    }
    let names: Vec<&str> = above.get_subcommands().map(Command::get_name).collect();
    Some(format!("error: {path} has no command {asked:?}; allowed: {}", names.join(", ")))
}

/// A value that is not allowed, said as the façade says it of places and machines.
fn bad_value(error: &clap::Error) -> Option<String> {
    let text = |kind| match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::Strings(texts) => Some(texts.join(", ")),
        _ => None,
    };
    let allowed = match error.kind() {
        ErrorKind::InvalidValue => text(ContextKind::ValidValue)?,
        ErrorKind::ValueValidation => error.source()?.to_string(),
        _ => return None,
    };
    let (argument, value) = (text(ContextKind::InvalidArg)?, text(ContextKind::InvalidValue)?);
    let flag = argument.split(' ').next()?;
    Some(format!("error: {flag} is {value:?}; allowed: {allowed}"))
}

fn first_sentence(error: &clap::Error) -> String {
    let text = error.to_string();
    let advice = ["Usage:", "For more information"];
    let said =
        text.lines().map(str::trim).take_while(|line| !advice.iter().any(|start| line.starts_with(start)));
    let said: Vec<&str> = said.filter(|line| !line.is_empty()).collect();
    said.join(" ").replace(" tip: ", "; tip: ")
}

fn carry_out(verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::Launch(arguments) => launch::launch(&arguments),
        Verb::Data(verb) => data_sets::carry_out(&verb),
        Verb::Chip(verb) => chip::carry_out(&verb),
        Verb::Power(verb) => power::carry_out(&verb),
        Verb::Repro(arguments) => repro::carry_out(&arguments),
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
