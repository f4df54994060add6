//! `isles top`, `isles replay`, `isles report`: programs that show a recorded run; and `isles serve-sparql`, which
//! answers queries.

use clap::Args;
use isles::{Claim, Destination};
use isles_app::Failure;
use isles_app::companion::{Companion, DASHBOARD, TOP, spawn_failure};
use isles_app::ui::free_port;
use isles_telemetry::RunDirectory;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// The arguments of `isles top`.
#[derive(Args)]
pub struct TopArguments {
    /// Run directory, written by --record
    directory: PathBuf,

    /// Print the table of places once, as text, and exit
    #[arg(long)]
    once: bool,

    /// Directory of the jobs that the run manages, for the jobs pane (g j)
    #[arg(long, value_name = "DIR")]
    jobs: Option<PathBuf>,
}

/// Becomes the terminal view of a run.
pub fn top(arguments: &TopArguments) -> Result<(), Failure> {
    let once = arguments.once.then(|| OsString::from("--once"));
    let jobs = arguments.jobs.iter().flat_map(|jobs| ["--jobs".into(), jobs.clone().into_os_string()]);
    TOP.exec([arguments.directory.clone().into_os_string()].into_iter().chain(once).chain(jobs))
}

/// The arguments of `isles replay`.
#[derive(Args)]
pub struct ReplayArguments {
    /// Run directory, written by --record
    directory: PathBuf,

    /// Port of the page [default: any free port]
    #[arg(long, value_name = "PORT", allow_negative_numbers = true)]
    port: Option<String>,
}

/// Becomes the server of a run that has ended.
pub fn replay(arguments: &ReplayArguments) -> Result<(), Failure> {
    let port = free_port("--port", arguments.port.as_deref().unwrap_or("0"))?.to_string();
    let words = ["replay".into(), arguments.directory.clone().into_os_string(), "--port".into(), port.into()];
    DASHBOARD.exec::<OsString>(words)
}

/// The arguments of `isles serve-sparql`.
#[derive(Args)]
pub struct SparqlArguments {
    /// Port [default: any free port]
    #[arg(long, value_name = "PORT", allow_negative_numbers = true)]
    port: Option<String>,

    /// Arguments for isles run rdf: --data, --places, --machine, --partition, --memory, --timeout
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    words: Vec<OsString>,
}

/// Becomes the SPARQL server, which starts the application that answers.
pub fn serve_sparql(arguments: &SparqlArguments) -> Result<(), Failure> {
    let port = free_port("--port", arguments.port.as_deref().unwrap_or("0"))?.to_string();
    let program = Companion::application("rdf").command()?.get_program().to_owned();
    let own = ["sparql".into(), program, "--port".into(), port.into(), "--".into()];
    DASHBOARD.exec::<OsString>(own.into_iter().chain(arguments.words.iter().cloned()))
}

/// The arguments of `isles report`.
#[derive(Args)]
pub struct ReportArguments {
    /// Run directory, written by --record
    directory: PathBuf,

    /// File for the page with the run in it; - is standard output
    #[arg(long, value_name = "FILE")]
    html: String,
}

/// Writes a run and the page that shows it into one file, which the server makes.
pub fn report(arguments: &ReportArguments) -> Result<(), Failure> {
    let ReportArguments { directory, html } = arguments;
    let log = Claim::read(RunDirectory::log_path(directory), "the event log");
    let html = Destination::check("--html", Some(html), Path::new(html), &[log])?;
    let mut command = DASHBOARD.command()?;
    command.arg("report").arg(directory).stdin(Stdio::null()).stderr(Stdio::inherit());
    let made = command.output().map_err(|cause| spawn_failure(&command, &cause))?;
    if !made.status.success() {
        // The server has printed its error.
        std::process::exit(made.status.code().unwrap_or(1));
    }
    Ok(html.write(|out| out.write_all(&made.stdout)).map(drop)?)
}
