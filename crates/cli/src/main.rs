//! The `isles` command: runs applications, sweeps settings, launches programs, fetches data, shows chips, fits powers,
//! repeats published experiments, draws results, reads traces.
//!
//! It reads arguments and prints; what it does is done by the façade, the applications and the chips. Every error is
//! one line on standard error that names the source, the value and what is allowed; exit code 2 for what cannot
//! be done, 1 for a run that failed.

#![forbid(unsafe_code)]

mod calibrate;
mod chip;
mod companion;
mod counters;
mod data_sets;
mod doctor;
mod hosts;
mod launch;
mod plot;
mod power;
mod repro;
mod run;
mod runs;
mod seeds;
mod sweep;
mod trace;
mod ui;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory, FromArgMatches, Parser, Subcommand};
use isles_apps::console;
use isles_apps::registry::{CommandArguments, Failure};
use std::error::Error;
use std::process::ExitCode;

/// Exit code for arguments that cannot be carried out.
const EXIT_USAGE: u8 = 2;

/// The version, and the commit if it was built in a checkout; see `build.rs`.
const VERSION: &str = include_str!(concat!(env!("OUT_DIR"), "/version"));

/// What the first help ends with.
const EXAMPLES: &str = "Examples:
  isles run bc --graph karate --places 4              an application of the suite, over 4 processes
  isles run bc --graph karate --machine chip:scc      the same on a modelled chip, with a predicted time
  isles launch -n 4 target/release/hello              a program of yours";

/// Runs one Rust program over many places: threads, processes, ranks of MPI, or cores of a modelled chip
#[derive(Parser)]
#[command(name = "isles", version = VERSION, after_help = EXAMPLES, arg_required_else_help = true)]
struct Arguments {
    #[command(flatten)]
    own: CommandArguments,

    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Lists the applications of the suite, with what each computes
    List,
    /// Starts a program of yours over places
    Launch(Box<launch::Arguments>),
    /// Lists what places count, with units: for --record and all that reads it
    Counters,
    /// Shows what this host offers to runs, and which way each pair of places talks
    Doctor(Box<doctor::Arguments>),
    /// Measures messages between the places at hand, and writes a chip file that predicts runs on more of them
    Calibrate(Box<calibrate::Arguments>),
    /// Shows a recorded run that runs in this terminal
    Top(ui::TopArguments),
    /// Shows a recorded run that has ended in a browser
    Replay(ui::ReplayArguments),
    /// Writes a recorded run and the page that shows it into one file
    Report(ui::ReportArguments),
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
    /// Draws results as SVG: curves, bars, published against ours, time against energy
    Plot(plot::Arguments),
    /// Shows what the trace of a run says
    #[command(subcommand)]
    Trace(trace::Verb),
    /// Measures Isles and its peers (the program isles-bench)
    #[command(disable_help_flag = true)]
    Bench(launch::BenchArguments),
}

fn command() -> Command {
    let whole = Arguments::command().subcommand(run::command()).subcommand(sweep::command());
    // What most people want first; the others by name.
    let first = ["run", "launch", "sweep"];
    let order = |name: &str| first.iter().position(|other| *other == name).unwrap_or(first.len());
    whole.mut_subcommands(|verb| {
        let order = order(verb.get_name());
        verb.display_order(order)
    })
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
    let read =
        CommandArguments::from_arg_matches(&matches).map_err(|error| Failure::Usage(error.to_string()));
    let read = read.and_then(|own| isles::read_command_settings(&own.flags()).map_err(Failure::from));
    if let Err(refused) = read {
        return outcome(Err(refused));
    }
    isles::warn_of_unknown_variables();
    outcome(match matches.subcommand() {
        Some(("run", matches)) => return run::run(matches),
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
    let told = not_text(error).or_else(|| bad_value(error));
    told.or_else(|| unknown_command(error)).unwrap_or_else(|| first_sentence(error))
}

/// The first argument that is no text, if the error is about such a one. Programs that are launched can read it.
fn not_text(error: &clap::Error) -> Option<String> {
    let kinds = [ContextKind::InvalidSubcommand, ContextKind::InvalidArg, ContextKind::InvalidValue];
    let shown = kinds.into_iter().filter_map(|kind| context(error, kind)).collect::<String>();
    if error.kind() != ErrorKind::InvalidUtf8 && !shown.contains(char::REPLACEMENT_CHARACTER) {
        return None;
    }
    let argument = std::env::args_os().find(|argument| argument.to_str().is_none())?;
    Some(format!("error: the argument {argument:?} is no text; allowed: UTF-8"))
}

/// What clap knows of an error.
fn context(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::Strings(texts) => Some(texts.join(", ")),
        _ => None,
    }
}

/// The innermost command that was named before the word `end`, and how it is called.
fn named<'a>(whole: &'a Command, end: &str) -> (&'a Command, String) {
    let (mut innermost, mut name) = (whole, String::from("isles"));
    for word in std::env::args_os().skip(1).take_while(|word| word != end) {
        if let Some(next) = innermost.find_subcommand(&word) {
            innermost = next;
            name = format!("{name} {}", word.display());
        }
    }
    (innermost, name)
}

/// A command that does not exist, or none, with those that there are at its place.
fn unknown_command(error: &clap::Error) -> Option<String> {
    let asked = context(error, ContextKind::InvalidSubcommand);
    let asked = asked.or_else(|| context(error, ContextKind::InvalidArg))?;
    let whole = command();
    let (above, name) = named(&whole, &asked);
    let known: Vec<&str> = above.get_subcommands().map(Command::get_name).collect();
    let fault = match error.kind() {
        ErrorKind::InvalidSubcommand => format!("has no command {asked:?}"),
        ErrorKind::UnknownArgument if known.is_empty() => return None,
        ErrorKind::UnknownArgument => format!("needs a command before {asked:?}"),
        ErrorKind::MissingSubcommand => "needs a command".to_owned(),
        _ => return None,
    };
    Some(format!("error: {name} {fault}; allowed: {}", known.join(", ")))
}

/// A value that is not allowed, said as the façade says it of places and machines; or none where there must be one.
fn bad_value(error: &clap::Error) -> Option<String> {
    let allowed = match error.kind() {
        ErrorKind::InvalidValue => context(error, ContextKind::ValidValue)?,
        ErrorKind::ValueValidation => error.source()?.to_string(),
        _ => return None,
    };
    let (argument, value) =
        (context(error, ContextKind::InvalidArg)?, context(error, ContextKind::InvalidValue)?);
    if allowed.is_empty() {
        return Some(format!("error: a value is missing: {argument}"));
    }
    let flag = argument.split(' ').next()?;
    Some(format!("error: {flag} is {value:?}; allowed: {allowed}"))
}

/// What clap says, with how the command is used if words are missing or too many.
fn first_sentence(error: &clap::Error) -> String {
    let text = error.to_string();
    let advice = ["Usage:", "For more information"];
    let said =
        text.lines().map(str::trim).take_while(|line| !advice.iter().any(|start| line.starts_with(start)));
    // A flag that is not known is hardly ever meant as a value.
    let is_of_use = |line: &&str| !line.is_empty() && !line.starts_with("tip: to pass ");
    let said: Vec<&str> = said.filter(is_of_use).collect();
    let is_word = |argument: String| !argument.starts_with('-');
    let is_about_words = match error.kind() {
        ErrorKind::MissingRequiredArgument => true,
        ErrorKind::UnknownArgument => context(error, ContextKind::InvalidArg).is_some_and(is_word),
        _ => false,
    };
    let usage = text.lines().find_map(|line| line.strip_prefix("Usage: ")).filter(|_| is_about_words);
    let usage = usage.map(|usage| format!("; usage: {usage}")).unwrap_or_default();
    said.join(" ").replace(" tip: ", "; tip: ") + &usage
}

fn carry_out(verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::List => run::list(),
        Verb::Counters => counters::print(),
        Verb::Doctor(arguments) => doctor::carry_out(&arguments),
        Verb::Calibrate(arguments) => calibrate::carry_out(&arguments),
        Verb::Launch(mut arguments) => launch::launch(&mut arguments),
        Verb::Top(arguments) => ui::top(&arguments),
        Verb::Replay(arguments) => ui::replay(&arguments),
        Verb::Report(arguments) => ui::report(&arguments),
        Verb::Data(verb) => data_sets::carry_out(&verb),
        Verb::Chip(verb) => chip::carry_out(&verb),
        Verb::Power(verb) => power::carry_out(&verb),
        Verb::Repro(arguments) => repro::carry_out(&arguments),
        Verb::Plot(arguments) => plot::carry_out(&arguments),
        Verb::Trace(verb) => trace::carry_out(&verb),
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
