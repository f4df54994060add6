//! The program `isles-bench`: reads its words, runs the chosen measurements, prints and writes the outcome.
//!
//! `isles-bench child NAME ...` is how it starts itself for one timed contender; see `isles_bench::child`.

#![forbid(unsafe_code)]

use isles_app::console;
use isles_bench::options::{Options, Request, USAGE};
use isles_bench::report::{markdown, table};
use isles_bench::session::Session;
use isles_bench::{child, report};
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == "child") {
        return outcome(child::run(&words[1..]));
    }
    match Options::read(&words) {
        Ok(Request::Help) => outcome(print(USAGE)),
        Ok(Request::List(suite)) => outcome(print(&table::list(suite))),
        Ok(Request::Measure(options)) => outcome(measure(&options)),
        Ok(Request::Table { files, documents }) => outcome(show(&files, &documents)),
        Err(refusal) => outcome(Err(refusal)),
    }
}

/// Runs the session and shows it; the text of an error is one line for the person.
fn measure(options: &Options) -> Result<(), String> {
    let session = Session::run(options)?;
    let printed = print(&table::whole(&session));
    let written = options.json.as_ref().map_or(Ok(()), |path| report::write(&session, path));
    printed.and(written).and(markdown::fill(&session, &options.documents))
}

/// Shows sessions of before as one.
fn show(files: &[PathBuf], documents: &[PathBuf]) -> Result<(), String> {
    let session = report::read(files)?;
    print(&table::whole(&session)).and(markdown::fill(&session, documents))
}

fn print(text: &str) -> Result<(), String> {
    console::print(text).map_err(|error| format!("standard output: {error}"))
}

/// Exit code 2 and one line for what the person can put right.
fn outcome(result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(line) => {
            console::notice(format_args!("isles-bench: {line}"));
            ExitCode::from(2)
        }
    }
}
