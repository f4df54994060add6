//! The program `isles-lab`: repeats published experiments, fits power models, calibrates chips and bounds worst cases.
//!
//! It is separate from the command because it needs linear algebra, which few users need. The command replaces itself
//! by it for `isles repro`, `isles power`, `isles calibrate` and `isles bound`. Applications are run as their programs,
//! as users run them.

#![forbid(unsafe_code)]

mod bound;
mod calibrate;
pub mod fit;
mod power;
mod repro;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use isles_app::companion::{LAB, VERSION};
use isles_app::usage::{self, outcome};
use isles_app::{CommandArguments, Failure};
use std::process::ExitCode;

/// Repeats published experiments, fits power models, calibrates chips and bounds worst cases
#[derive(Parser)]
#[command(name = "isles-lab", bin_name = "isles", version = VERSION)]
struct LabArguments {
    #[command(flatten)]
    own: CommandArguments,

    #[command(subcommand)]
    verb: LabVerb,
}

#[derive(Subcommand)]
enum LabVerb {
    /// Bounds the time that a message or a pattern of messages can take on a chip
    Bound(Box<bound::BoundArguments>),
    /// Measures messages between the available places, and writes a chip file that predicts runs on more of them
    Calibrate(Box<calibrate::CalibrateArguments>),
    /// Fits power models to measured powers
    #[command(subcommand)]
    Power(power::PowerVerb),
    /// Repeats published experiments on the modelled chip and compares the figures
    Repro(repro::ReproArguments),
}

/// The `main` of the program.
pub fn main() -> ExitCode {
    isles::name_package(LAB.package());
    isles::serve_if_joined();
    let matches = match usage::matches(&LabArguments::command(), std::env::args_os()) {
        Ok(matches) => matches,
        Err(code) => return code,
    };
    isles::warn_of_unknown_variables();
    let read = LabArguments::from_arg_matches(&matches).map_err(|error| Failure::Usage(error.to_string()));
    outcome(read.and_then(|arguments| match arguments.verb {
        LabVerb::Bound(arguments) => bound::execute(&arguments),
        LabVerb::Calibrate(arguments) => calibrate::execute(&arguments),
        LabVerb::Power(verb) => power::execute(&verb),
        LabVerb::Repro(arguments) => repro::execute(&arguments),
    }))
}
