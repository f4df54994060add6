//! The program `isles-dashboard`, which `isles` starts for `--ui`, `replay`, `report` and `serve-sparql`.
//!
//! It reads arguments and prints; the library does the rest. Errors are one line; exit code 2 for what cannot be done.

#![forbid(unsafe_code)]

use clap::{Parser, Subcommand, value_parser};
use isles_dashboard::{END_SHOWN, RunSource, ServeOptions, SparqlOptions, report, serve, serve_sparql};
use isles_telemetry::shown;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Duration;

/// Exit code for what cannot be done.
const EXIT_USAGE: u8 = 2;

/// Time that an announced run may take to begin.
const BEGIN_LIMIT: Duration = Duration::from_secs(60);

/// Default interval between two polls of a run, in milliseconds.
const POLL_MS: u64 = 500;

/// Shows a run of Isles in a browser, while it runs or afterwards
#[derive(Parser)]
#[command(name = "isles-dashboard", version)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Shows a run that is running or about to start
    Live {
        /// The run directory
        directory: PathBuf,
        /// Port on the loopback address [default: any free port]
        #[arg(long, default_value_t = 0, hide_default_value = true)]
        port: u16,
        /// Keep serving after the run has ended
        #[arg(long)]
        keep: bool,
        /// Milliseconds between two pictures of the run
        #[arg(long, value_name = "MS", default_value_t = POLL_MS, value_parser = value_parser!(u64).range(1..))]
        every: u64,
        /// Wait for the run to start; exit when standard input closes, as when the starter of both exits
        #[arg(long)]
        owned: bool,
        /// Remove the run directory on exit
        #[arg(long, requires = "owned")]
        scratch: bool,
        /// Directory of the jobs that the run manages
        #[arg(long)]
        jobs: Option<PathBuf>,
    },
    /// Shows a run that has ended, from its event log
    Replay {
        /// The run directory
        directory: PathBuf,
        /// Port on the loopback address [default: any free port]
        #[arg(long, default_value_t = 0, hide_default_value = true)]
        port: u16,
    },
    /// Prints a run and the page as one file
    Report {
        /// The run directory
        directory: PathBuf,
    },
    /// Answers SPARQL queries over HTTP
    Sparql {
        /// The program that answers: isles-rdf
        program: PathBuf,
        /// Port on the loopback address [default: any free port]
        #[arg(long, default_value_t = 0, hide_default_value = true)]
        port: u16,
        /// Arguments of the program
        #[arg(last = true)]
        arguments: Vec<String>,
    },
}

fn main() -> ExitCode {
    let mut folder = None;
    let (source, options) = match Arguments::parse().verb {
        Verb::Live { directory, port, keep, every, owned, scratch, jobs } => {
            let wait = if owned { BEGIN_LIMIT } else { Duration::ZERO };
            folder = scratch.then(|| directory.clone());
            if owned {
                exit_with_owner(folder.clone());
            }
            let poll_interval = Duration::from_millis(every);
            (RunSource::Live(directory, wait), ServeOptions { port, is_kept: keep, poll_interval, jobs })
        }
        Verb::Replay { directory, port } => (
            RunSource::Replay(directory),
            ServeOptions { port, is_kept: true, poll_interval: Duration::from_millis(POLL_MS), jobs: None },
        ),
        Verb::Report { directory } => return print_report(&directory),
        Verb::Sparql { program, port, arguments } => {
            return answer_queries(&SparqlOptions { program, arguments, port });
        }
    };
    let announce = |[name, number]: &[String; 2], view: Option<&[String; 2]>, cut: Option<&str>| {
        cut.into_iter().for_each(warn);
        notice(&match view {
            None => format!("watch the run at {name}\n              or {number}"),
            Some([look, _]) => {
                format!("manage the run at {name}\n               or {number}\nwatch it only at  {look}")
            }
        });
    };
    match serve(&source, &options, announce) {
        Ok(()) => {
            // The run is over, and the parent process may have exited.
            remove(folder);
            ExitCode::SUCCESS
        }
        Err(error) => fail(&error),
    }
}

fn answer_queries(options: &SparqlOptions) -> ExitCode {
    let announce = |address: &str, token: &str| {
        notice(&format!(
            "answering SPARQL queries at {address}\ncurl -H 'Authorization: Bearer {token}' {address} \\\n     \
             --data-urlencode 'query=SELECT * {{ ?s ?p ?o }} LIMIT 5'"
        ));
    };
    match serve_sparql(options, announce) {
        // The program has printed the reason.
        Ok(status) => {
            status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
        }
        Err(error) => fail(&error),
    }
}

/// Ends this process shortly after the end of standard input, so that the last snapshot is shown; removes `scratch`.
fn exit_with_owner(scratch: Option<PathBuf>) {
    std::thread::spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink()); // one that cannot be read has ended as well
        std::thread::sleep(END_SHOWN);
        remove(scratch);
        std::process::exit(0);
    });
}

/// Removes a folder that the user has not requested. The end of the run and of its owner may coincide, and the first of
/// two removals must not end this process before the other is done.
fn remove(scratch: Option<PathBuf>) {
    static REMOVING: Mutex<()> = Mutex::new(());
    let _one = REMOVING.lock();
    if let Some(directory) = scratch {
        let _ = std::fs::remove_dir_all(directory); // the owner may have done so
    }
}

fn print_report(directory: &Path) -> ExitCode {
    let (text, cut) = match report(directory) {
        Ok(done) => done,
        Err(error) => {
            let directory = shown(directory);
            return fail(&format_args!("the event log of {directory} cannot be replayed: {error}"));
        }
    };
    cut.iter().for_each(|cut| warn(cut));
    let printed = io::stdout().lock().write_all(text.as_bytes());
    printed.map_or_else(
        |cause| {
            fail(&format_args!("cannot write standard output: {cause}"));
            ExitCode::FAILURE
        },
        |()| ExitCode::SUCCESS,
    )
}

/// Warns that a log is truncated.
fn warn(cut: &str) {
    notice(&format!("{cut}; what came after is unknown"));
}

fn fail(error: &dyn std::fmt::Display) -> ExitCode {
    notice(&format!("error: {error}"));
    ExitCode::from(EXIT_USAGE)
}

/// Writes to standard error in one call, because the run writes there at the same time.
fn notice(text: &str) {
    // Standard error may be closed; the server runs anyway.
    let _ = io::stderr().write_all(format!("{text}\n").as_bytes());
}
