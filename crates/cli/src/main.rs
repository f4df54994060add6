//! The `isles` command: runs applications, sweeps settings, launches programs, fetches data, shows chips, fits powers,
//! repeats published experiments, draws results, reads traces.
//!
//! It reads arguments and prints; the façade, the applications and the chips do the work. Every error is one line on
//! standard error that names the source, the value and what is allowed; the exit code is 2 for what cannot be done, 1
//! for a run that failed.

#![forbid(unsafe_code)]

mod chip;
mod counters;
mod data_sets;
mod doctor;
mod hosts;
mod launch;
mod live;
mod plot;
mod run;
mod sweep;
mod trace;
mod words;

use clap::{Command, CommandFactory, FromArgMatches, Parser, Subcommand};
use isles_app::companion::{BARE, Companion, JOBS, LAB, RCCE};
use isles_app::usage::{self, outcome};
use isles_app::{CommandArguments, Failure};
use std::ffi::OsString;
use std::process::ExitCode;

/// The version, and the commit if it was built in a checkout; see `build.rs`.
const VERSION: &str = include_str!(concat!(env!("OUT_DIR"), "/version"));

/// End of the short help.
const EXAMPLES: &str = "Examples:
  isles run bc --graph karate --places 4              an application of the suite, over 4 processes
  isles run bc --graph karate --machine chip:scc      the same on a modelled chip, with a predicted time
  isles launch -n 4 target/release/hello              your own program";

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
    /// Starts your own program over places
    Launch(Box<launch::Arguments>),
    /// Lists the counters of places with their units, as --record writes them
    Counters,
    /// Shows what this host offers to runs, and how each pair of places communicates
    Doctor(Box<doctor::Arguments>),
    /// Measures messages between the available places, and writes a chip file that predicts runs on more of them
    #[command(disable_help_flag = true)]
    Calibrate(ForwardedArguments),
    /// Shows a recorded run in this terminal while it runs
    Top(live::TopArguments),
    /// Shows a recorded run in a browser after it has ended
    Replay(live::ReplayArguments),
    /// Writes a recorded run and the page that shows it into one file
    Report(live::ReportArguments),
    /// Shows and fetches the graphs that Isles knows
    #[command(subcommand)]
    Data(data_sets::Verb),
    /// Shows chips and checks the files that describe them
    #[command(subcommand)]
    Chip(chip::Verb),
    /// Bounds the time that a message or a pattern of messages can take on a chip
    #[command(disable_help_flag = true)]
    Bound(ForwardedArguments),
    /// Fits power models to measured powers
    #[command(disable_help_flag = true)]
    Power(ForwardedArguments),
    /// Runs a job server over places: start, pause, move and checkpoint jobs by hand
    #[command(disable_help_flag = true)]
    Serve(ForwardedArguments),
    /// Answers SPARQL queries over HTTP from RDF data that is distributed over all places
    ServeSparql(live::SparqlArguments),
    /// Starts, pauses, moves, checkpoints and ends the jobs of isles serve
    #[command(disable_help_flag = true)]
    Job(ForwardedArguments),
    /// Compiles a C program that uses RCCE or iRCCE
    #[command(disable_help_flag = true)]
    Cc(ForwardedArguments),
    /// Runs an RCCE program over processes or on a modelled chip
    #[command(disable_help_flag = true)]
    Rccerun(ForwardedArguments),
    /// Repeats published experiments on the modelled chip and compares the figures
    #[command(disable_help_flag = true)]
    Repro(ForwardedArguments),
    /// Builds and runs programs for cores without an operating system, each core a virtual machine
    #[command(disable_help_flag = true)]
    Bare(ForwardedArguments),
    /// Draws results as SVG: curves, bars, published against ours, time against energy
    Plot(plot::Arguments),
    /// Summarizes the trace of a run
    #[command(subcommand)]
    Trace(trace::Verb),
    /// Measures Isles and its peers (the program isles-bench)
    #[command(disable_help_flag = true)]
    Bench(launch::BenchArguments),
}

/// Arguments passed on to another program.
#[derive(clap::Args)]
struct ForwardedArguments {
    /// Arguments of the program that the command starts; see --help after the command
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

impl ForwardedArguments {
    fn exec(self, program: &Companion, verb: &str) -> Result<(), Failure> {
        program.exec([OsString::from(verb)].into_iter().chain(self.words))
    }
}

fn command() -> Command {
    let whole = Arguments::command().subcommand(run::command()).subcommand(sweep::command());
    // The most common commands first; the others by name.
    let first = ["run", "launch", "sweep"];
    let order = |name: &str| first.iter().position(|other| *other == name).unwrap_or(first.len());
    whole.mut_subcommands(|verb| {
        let order = order(verb.get_name());
        verb.display_order(order)
    })
}

fn main() -> ExitCode {
    isles::supervise_as_process_1();
    isles::name_package("isles-cli");
    let (whole, words) = (command(), std::env::args_os().collect::<Vec<_>>());
    // A program that this one becomes is itself a place, or a rank of MPI.
    if !words::are_forwarded(&whole, &words) {
        isles::serve_if_joined();
    }
    let matches = match usage::matches(&whole, words::for_clap(&whole, words)) {
        Ok(matches) => matches,
        Err(code) => return code,
    };
    // A program that this one becomes reports it itself.
    if !matches.subcommand_name().is_some_and(|verb| words::PASSED_ON.contains(&verb)) {
        isles::warn_of_unknown_variables();
    }
    outcome(match matches.subcommand() {
        Some(("run", matches)) => run::execute(matches),
        Some(("sweep", matches)) => sweep::execute(matches),
        _ => match Arguments::from_arg_matches(&matches) {
            Ok(arguments) => execute(arguments.verb),
            Err(error) => Err(Failure::Usage(error.to_string())),
        },
    })
}

fn execute(verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::List => run::list(),
        Verb::Counters => counters::print(),
        Verb::Doctor(arguments) => doctor::execute(&arguments),
        Verb::Calibrate(arguments) => arguments.exec(&LAB, "calibrate"),
        Verb::Launch(mut arguments) => launch::launch(&mut arguments),
        Verb::Top(arguments) => live::top(&arguments),
        Verb::Replay(arguments) => live::replay(&arguments),
        Verb::Report(arguments) => live::report(&arguments),
        Verb::ServeSparql(arguments) => live::serve_sparql(&arguments),
        Verb::Data(verb) => data_sets::execute(&verb),
        Verb::Chip(verb) => chip::execute(&verb),
        Verb::Bound(arguments) => arguments.exec(&LAB, "bound"),
        Verb::Power(arguments) => arguments.exec(&LAB, "power"),
        Verb::Serve(arguments) => arguments.exec(&JOBS, "serve"),
        Verb::Job(arguments) => arguments.exec(&JOBS, "job"),
        Verb::Cc(arguments) => arguments.exec(&RCCE, "cc"),
        Verb::Rccerun(arguments) => arguments.exec(&RCCE, "rccerun"),
        Verb::Repro(arguments) => arguments.exec(&LAB, "repro"),
        Verb::Bare(arguments) => arguments.exec(&BARE, "bare"),
        Verb::Plot(arguments) => plot::execute(&arguments),
        Verb::Trace(verb) => trace::execute(&verb),
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
