//! The program `isles-bench`: reads its words, runs the chosen measurements, prints and writes the outcome.
//!
//! It starts itself as `isles-bench child NAME ...` for each timed contender; see `isles_bench::child`.

#![forbid(unsafe_code)]

use isles_app::console;
use isles_bench::options::{Options, Request, USAGE};
use isles_bench::report::{markdown, table};
use isles_bench::session::Session;
use isles_bench::{child, report};
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    isles::supervise_as_process_1();
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == "child") {
        return outcome(child::run(&words[1..]).map_err(Failed::Message));
    }
    match Options::read(&words) {
        Ok(Request::Help) => outcome(print(USAGE)),
        Ok(Request::List(suite)) => outcome(print(&table::list(suite))),
        Ok(Request::Measure(options)) => outcome(measure(&options)),
        Ok(Request::Table { files, documents }) => outcome(show(&files, &documents)),
        Err(refusal) => outcome(Err(Failed::Message(refusal))),
    }
}

/// Reason why the program failed.
enum Failed {
    /// A fault, described in one line.
    Message(String),
    /// Standard output is a closed pipe; nothing is reported.
    BrokenPipe,
}

/// Runs the session and prints it. Files are written even if standard output is closed.
fn measure(options: &Options) -> Result<(), Failed> {
    let session = Session::run(options).map_err(Failed::Message)?;
    let printed = print(&table::whole(&session));
    let written = options.json.as_ref().map_or(Ok(()), |path| report::write(&session, path));
    written.and(markdown::fill(&session, &options.documents)).map_err(Failed::Message).and(printed)
}

/// Prints earlier sessions as one.
fn show(files: &[PathBuf], documents: &[PathBuf]) -> Result<(), Failed> {
    let session = report::read(files).map_err(Failed::Message)?;
    let printed = print(&table::whole(&session));
    markdown::fill(&session, documents).map_err(Failed::Message).and(printed)
}

fn print(text: &str) -> Result<(), Failed> {
    console::print(text).map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Failed::BrokenPipe,
        _ => Failed::Message(format!("standard output: {error}")),
    })
}

/// Returns exit code 2, after one line, for errors that the user can fix.
fn outcome(result: Result<(), Failed>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failed::BrokenPipe) => ExitCode::from(isles::EXIT_CLOSED_PIPE),
        Err(Failed::Message(line)) => {
            console::notice(format_args!("isles-bench: {line}"));
            ExitCode::from(2)
        }
    }
}
