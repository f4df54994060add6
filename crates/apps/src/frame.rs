//! What all applications have in common: where results go, the head of each result, and the verification on it.
//!
//! An application computes and says what it found; the frame checks before the run that results can be written, tells
//! people on standard output, or on standard error where that carries a file, writes JSON and CSV, and says in one line
//! what the result was checked against. It computes nothing itself. Invariant: what fails keeps nothing else from being
//! written, and a result that is not confirmed ends with exit code 1.

use crate::console;
use crate::registry::Failure;
use clap::Args;
use isles::{Claim, Destination, Launch, RunReport};
use serde::Serialize;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Where the results of an application go.
#[derive(Args, Clone, Debug, Default)]
pub struct OutputArguments {
    /// Where the JSON goes; - is standard output [default: a file in out/, named after the run]
    #[arg(long, value_name = "FILE")]
    json: Option<String>,

    /// Where the CSV goes; - is standard output [default: a file in out/, named after the run]
    #[arg(long, value_name = "FILE")]
    csv: Option<String>,
}

/// The names of the arguments by which an application writes no files, each with the value for it.
pub const SILENT: [(&str, &str); 2] = [("json", "/dev/null"), ("csv", "/dev/null")];

/// What is known of every run; the beginning of the head of its JSON document.
#[derive(Clone, Debug, Serialize)]
pub struct RunFacts {
    version: &'static str,
    machine: &'static str,
    /// How many places.
    pub places: u32,
    /// Processors that this process may use; 0 if the system does not say.
    processors: usize,
    /// Seconds that the computation took: of this host, or on a modelled chip of the chip.
    pub seconds: f64,
    messages: u64,
    bytes_moved: u64,
}

impl RunFacts {
    /// What is known before the run.
    pub fn of(launch: &Launch) -> RunFacts {
        RunFacts {
            version: env!("CARGO_PKG_VERSION"),
            machine: launch.chosen_machine().name(),
            places: launch.chosen_places(),
            processors: std::thread::available_parallelism().map_or(0, usize::from),
            seconds: 0.0,
            messages: 0,
            bytes_moved: 0,
        }
    }

    /// The places and the machine, for a heading: `4 places (processes)`.
    pub fn where_it_runs(&self) -> String {
        format!("{} ({})", count(u64::from(self.places), "place", "places"), self.machine)
    }

    /// Adds what the run came to.
    pub fn complete(&mut self, seconds: f64, report: &RunReport) {
        (self.seconds, self.messages, self.bytes_moved) = (seconds, report.messages(), report.bytes());
    }

    /// What moved between places, for people.
    pub fn moved(&self) -> String {
        format!("{} bytes in {} messages", self.bytes_moved, self.messages)
    }
}

/// What a result was checked against, and whether it is confirmed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verification {
    /// Whether the result is what it must be.
    pub holds: bool,
    /// Against what it was checked, and what came of that, in one line.
    pub text: String,
}

/// The files of a run, which can be written.
pub struct Outputs {
    json: Destination,
    csv: Destination,
    /// Whether nothing else goes to standard output.
    is_free: bool,
}

impl Outputs {
    /// Checks that both files can be written, apart from each other and from all else that the run reads and writes.
    /// Where no file is named, they are `out/NAME.json` and `out/NAME.csv`.
    ///
    /// # Errors
    /// [`Failure::Usage`]: one cannot.
    pub fn check(name: &str, arguments: &OutputArguments, launch: &Launch) -> Result<Outputs, Failure> {
        let default = |ending| Path::new("out").join(format!("{}.{ending}", file_name(name)));
        let mut claims = launch.claims();
        let json = Destination::check("--json", arguments.json.as_deref(), &default("json"), &claims)?;
        claims.push(Claim::written(&json, "--json"));
        let csv = Destination::check("--csv", arguments.csv.as_deref(), &default("csv"), &claims)?;
        Ok(Outputs { json, csv, is_free: launch.leaves_standard_output_free() })
    }

    /// Tells people something: on standard error where standard output carries a file.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn tell(&self, text: &str) -> Result<(), Failure> {
        tell(self.leaves_standard_output_free(), text)
    }

    fn leaves_standard_output_free(&self) -> bool {
        self.is_free && !(self.json.is_standard() || self.csv.is_standard())
    }

    /// Tells the result, writes the files, and ends with the verification, if there is one.
    ///
    /// # Errors
    /// What could not be written; or the result is not confirmed.
    pub fn write(
        self,
        text: &str,
        json: impl FnOnce(&mut dyn Write) -> io::Result<()>,
        csv: impl FnOnce(&mut dyn Write) -> io::Result<()>,
        verification: Option<&Verification>,
    ) -> Result<(), Failure> {
        let is_free = self.leaves_standard_output_free();
        let told = tell(is_free, text);
        let checked = verification.map_or(Ok(()), |verification| match verification.holds {
            true => tell(is_free, &format!("checked  {}", verification.text)),
            false => Err(Failure::Refuted(verification.text.clone())),
        });
        let name = |path: &Option<PathBuf>| match path {
            Some(path) => tell(is_free, &format!("wrote  {}", path.display())),
            None => Ok(()),
        };
        let results = [self.json.write(json), self.csv.write(csv)];
        let results = results.map(|result| result.map_err(Failure::from).and_then(|path| name(&path)));
        results.into_iter().fold(told.and(checked), Result::and)
    }
}

fn tell(is_result: bool, text: &str) -> Result<(), Failure> {
    if is_result {
        return console::print(format_args!("{text}\n")).map_err(Failure::stdout);
    }
    console::notice(text);
    Ok(())
}

/// Writes `document` as one line of JSON.
///
/// # Errors
/// What `out` returns.
pub fn write_json(mut out: impl Write, document: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut out, document)?;
    writeln!(out)?;
    out.flush()
}

/// Seconds in a unit that shows at least three digits.
pub fn duration(seconds: f64) -> String {
    match seconds {
        1.0.. => format!("{seconds:.3} s"),
        1e-3.. => format!("{:.3} ms", seconds * 1e3),
        _ => format!("{:.3} µs", seconds * 1e6),
    }
}

/// A number with its noun.
pub fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// A text as part of a file's name.
fn file_name(text: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    text.chars().map(|letter| if plain(letter) { letter } else { '-' }).collect()
}
