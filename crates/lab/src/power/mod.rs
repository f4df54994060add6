//! `isles power`: power models from measured powers.
//!
//! It reads the file, chooses the forms to fit and their measurements, and passes the result to `report`; the
//! mathematics is in `crate::fit`. Invariant: a fit that fails is reported beside those that succeed, and is an error
//! if none succeeds.

mod report;

use crate::fit::{EXPONENTS, Form, Measurement, fit, table};
use clap::{Subcommand, ValueEnum};
use isles::{Claim, Destination};
use isles_app::Failure;
use isles_app::console;
use isles_app::runs::refusal;
use isles_chip::energy::Load;
use report::Attempt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Name of the built-in table of powers that were measured on an SCC; `./scc-power` is a file with that name.
const BUILT_IN: &str = "scc-power";
pub const MEASURED: &str = include_str!("../../../../chips/scc-power.csv");

/// Commands on measured powers
#[derive(Subcommand)]
pub enum PowerVerb {
    /// Fits power models to a table of measured powers, with errors
    ///
    /// The forms are b·f^a + s·f + c, for each load by itself, and constant + leakage·V³ + dynamic·V²·f with a
    /// factor for each load. No coefficient is below zero; each measurement counts by its relative difference.
    Fit {
        /// CSV with the columns frequency_mhz, power_w and, where known, voltage_v and load; - is standard input,
        /// scc-power the measurements of the SCC that are part of the command
        #[arg(value_name = "FILE|NAME")]
        file: String,
        /// Forms to fit [default: all that the columns allow]
        #[arg(long)]
        form: Option<FormName>,
        /// Keep the exponent a at this value, such as 3, instead of fitting it
        #[arg(long, value_name = "A", allow_negative_numbers = true, value_parser = exponent)]
        exponent: Option<f64>,
        /// Write all figures to this file, as JSON; - is standard output
        #[arg(long, value_name = "FILE")]
        json: Option<String>,
    },
}

/// The forms by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormName {
    /// b·f^a + s·f + c, for each load by itself
    Rate,
    /// constant + leakage·V³ + dynamic·V²·f·factor
    Voltage,
}

/// Executes the command.
pub fn execute(verb: &PowerVerb) -> Result<(), Failure> {
    let PowerVerb::Fit { file, form, exponent, json } = verb;
    let reads = (file != BUILT_IN).then(|| Claim::read(file, "the file to fit"));
    let reads = Vec::from_iter(reads);
    let json = json.as_deref().map(|path| Destination::check("--json", Some(path), Path::new(path), &reads));
    let json = json.transpose()?;
    if let (Some(FormName::Voltage), Some(exponent)) = (form, exponent) {
        let allowed = "nothing with --form voltage, because it has no exponent";
        return Err(refusal("--exponent", &exponent.to_string(), allowed));
    }
    let measurements = read(file)?;
    let attempts = attempts(*form, *exponent, &measurements);
    if attempts.iter().all(|attempt| attempt.result.is_err()) {
        let reasons: Vec<String> = attempts.iter().map(Attempt::line).collect();
        return Err(Failure::Usage(format!("{}: {}", shown(file), reasons.join("; "))));
    }
    let text = report::text(shown(file), measurements.len(), &attempts);
    let is_free = !json.as_ref().is_some_and(Destination::is_standard);
    let printed = console::print_report(is_free, &text).map_err(Failure::stdout);
    let write = |json: Destination| {
        Ok(json.write(|out| report::write_json(out, shown(file), &attempts)).map(drop)?)
    };
    Failure::first_of([printed, json.map_or(Ok(()), write)])
}

/// Parses an exponent from the command line.
fn exponent(text: &str) -> Result<f64, String> {
    let [low, high] = EXPONENTS;
    let allowed = || format!("a number from {low} to {high}");
    text.parse().ok().filter(|number| (low..=high).contains(number)).ok_or_else(allowed)
}

/// Returns the name of a file as shown to people.
fn shown(file: &str) -> &str {
    if file == "-" { "standard input" } else { file }
}

/// Reads the measurements. Prints every fault of the file as a line and returns their number as the error.
fn read(file: &str) -> Result<Vec<Measurement>, Failure> {
    let text = match file {
        BUILT_IN => Ok(MEASURED.to_owned()),
        "-" => text(io::stdin()),
        _ => File::open(file).and_then(text),
    };
    let text = text.map_err(|cause| {
        let advice = match cause.kind() {
            io::ErrorKind::NotFound => {
                format!("; `{BUILT_IN}` names the measurements that are part of isles")
            }
            _ => String::new(),
        };
        Failure::Usage(format!("cannot read {}: {cause}{advice}", shown(file)))
    })?;
    table::read(shown(file), &text).map_err(|faults| {
        faults.iter().for_each(console::notice);
        let count = faults.len();
        let plural = if count == 1 { "fault" } else { "faults" };
        Failure::Usage(format!("{} has {count} {plural}; nothing was fitted", shown(file)))
    })
}

/// Reads the text, at most one byte more than is allowed.
fn text(from: impl Read) -> io::Result<String> {
    let mut text = String::new();
    from.take(table::TEXT_BYTES_MAX as u64 + 1).read_to_string(&mut text)?;
    Ok(text)
}

/// Returns all fits that are attempted: the rate form for each load, the voltage form for all.
fn attempts(which: Option<FormName>, exponent: Option<f64>, measurements: &[Measurement]) -> Vec<Attempt> {
    let mut attempts = Vec::new();
    if which != Some(FormName::Voltage) {
        for load in Load::ALL {
            let of_load = measurements.iter().filter(|point| point.load == load);
            let of_load: Vec<Measurement> = of_load.copied().collect();
            if !of_load.is_empty() {
                let form = Form::Rate { exponent };
                attempts.push(Attempt { form, load: Some(load), result: fit(form, &of_load) });
            }
        }
    }
    let voltages = measurements.iter().any(|point| point.volts.is_some());
    if which == Some(FormName::Voltage) || which.is_none() && voltages {
        attempts.push(Attempt { form: Form::Voltage, load: None, result: fit(Form::Voltage, measurements) });
    }
    attempts
}
