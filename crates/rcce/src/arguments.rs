//! The arguments of `isles rccerun`.

use crate::interface::RANKS_MAX;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use isles_app::companion::VERSION;
use isles_app::usage;
use isles_app::{CommandArguments, Failure};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "isles", bin_name = "isles", version = VERSION)]
struct WholeArguments {
    #[command(subcommand)]
    command: Command,

    #[command(flatten)]
    own: CommandArguments,
}

/// Commands of this program.
#[derive(Subcommand)]
pub enum Command {
    /// Runs an RCCE program built by isles cc, over processes or on a modelled chip
    Rccerun(RunArguments),
}

/// Machine on which ranks run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RankMachine {
    /// As processes of this host.
    Processes,
    /// On the modelled chip of this name.
    Chip(String),
}

/// Charge for the code between two calls, in addition to `isles_work`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MeasuredWork {
    /// Nothing.
    Nothing,
    /// The time on this host, times this factor.
    Host(f64),
}

/// Isolation of the ranks on a chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Isolation {
    /// In one process, each with a copy of the program
    Copy,
    /// In a process for each: for programs that use threads, signals or state of libc
    Process,
}

/// Arguments of a run.
#[derive(Args)]
pub struct RunArguments {
    /// Number of ranks
    #[arg(short = 'n', long = "ranks", visible_alias = "nue", value_name = "N", value_parser = ranks)]
    pub ranks: u32,
    /// Machine that runs the ranks: processes, chip:NAME or chip:FILE
    #[arg(long, default_value = "processes", value_parser = machine)]
    pub machine: RankMachine,
    /// On a chip: the preset of its clocks
    #[arg(long, value_name = "NAME")]
    pub preset: Option<String>,
    /// On a chip: cost of code between calls, in addition to isles_work: nothing, or host:RATIO
    #[arg(long, value_name = "HOW", default_value = "nothing", value_parser = work)]
    pub work: MeasuredWork,
    /// On a chip: isolation of ranks
    #[arg(long, value_enum, default_value = "copy")]
    pub isolate: Isolation,
    /// On a chip: end the run if a rank makes no call for this many seconds of the host; 0 for never
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub watchdog: u32,
    /// Write the figures of the model to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Program built by isles cc
    #[arg(value_name = "PROGRAM")]
    pub program: PathBuf,
    /// Arguments of the program
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    pub words: Vec<OsString>,
}

impl RunArguments {
    /// Refuses arguments that have no effect with ranks as processes.
    pub fn check_process_arguments(&self) -> Result<(), Failure> {
        let given = [
            ("--preset", self.preset.is_some()),
            ("--work", self.work != MeasuredWork::Nothing),
            ("--isolate", self.isolate != Isolation::Copy),
            ("--json", self.json.is_some()),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((flag, _)) => Err(Failure::Usage(format!(
                "{flag} cannot be combined with --machine processes; allowed: chip:NAME, chip:FILE"
            ))),
            None => Ok(()),
        }
    }
}

fn ranks(text: &str) -> Result<u32, String> {
    let ranks = text.parse().ok().filter(|ranks| (1..=RANKS_MAX as u32).contains(ranks));
    ranks.ok_or_else(|| format!("1 to {RANKS_MAX}, the limit of RCCE's tables"))
}

fn machine(text: &str) -> Result<RankMachine, String> {
    match text.strip_prefix("chip:") {
        Some("") => Err("processes, chip:NAME, chip:FILE".into()),
        Some(name) => Ok(RankMachine::Chip(name.into())),
        None if text == "processes" => Ok(RankMachine::Processes),
        None => Err("processes, chip:NAME, chip:FILE".into()),
    }
}

fn work(text: &str) -> Result<MeasuredWork, String> {
    if text == "nothing" {
        return Ok(MeasuredWork::Nothing);
    }
    let ratio = text.strip_prefix("host:").and_then(|ratio| ratio.parse().ok());
    let ratio = ratio.filter(|ratio: &f64| ratio.is_finite() && *ratio > 0.0);
    ratio.map(MeasuredWork::Host).ok_or_else(|| "nothing, or host:RATIO with a number above zero".into())
}

/// Reads the arguments.
///
/// # Errors
/// They are invalid, and the reason has been printed. The process must exit with this code.
pub fn read(words: Vec<OsString>) -> Result<Command, ExitCode> {
    let matches = usage::matches(&WholeArguments::command(), words)?;
    let arguments = WholeArguments::from_arg_matches(&matches)
        .map_err(|error| usage::outcome(Err(Failure::Usage(error.to_string()))))?;
    Ok(arguments.command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        WholeArguments::command().debug_assert();
    }

    #[test]
    fn values_are_read_or_refused_with_what_is_allowed() {
        assert_eq!(ranks("48"), Ok(48));
        assert!(ranks("49").unwrap_err().starts_with("1 to 48"));
        assert_eq!(machine("chip:scc"), Ok(RankMachine::Chip("scc".into())));
        assert!(machine("threads").unwrap_err().contains("processes"));
        assert_eq!(work("host:2.5"), Ok(MeasuredWork::Host(2.5)));
        for wrong in ["host:", "host:0", "host:-1", "host:inf", "some"] {
            assert!(work(wrong).is_err(), "{wrong}");
        }
    }
}
