//! The program `isles-top`, which `isles top` becomes: a run in a terminal, as in a browser.
//!
//! It polls the run twice a second, also while the picture is paused, and draws the snapshots of `isles_view`. `screen`
//! holds the state and handles keys, `draw` draws, `terminal` sets up and restores the terminal. Invariant: however it
//! ends, the terminal is restored.

#![forbid(unsafe_code)]

mod draw;
mod jobs;
mod screen;
mod terminal;

#[cfg(test)]
mod tests;

use clap::Parser;
use isles_telemetry::{DirectoryError, shown};
use isles_view::{LiveRun, RunView, WatchError, stages_of};
use jobs::JobSource;
use ratatui::crossterm::event::{self, Event};
use screen::{KeyOutcome, Pane, Screen};
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use terminal::OwnTerminal;

/// Exit code for what cannot be done.
const EXIT_USAGE: u8 = 2;

/// Exit code when the output pipe is closed, as a shell reports a program that SIGPIPE ended.
const EXIT_CLOSED_PIPE: u8 = 141;

/// Interval at which the run is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Longest wait for a key, so that a signal is seen soon.
const KEY_WAIT: Duration = Duration::from_millis(100);

/// Shows a recorded run in this terminal while it runs
#[derive(Parser)]
#[command(name = "isles-top", version)]
struct TopArguments {
    /// Run directory, written by --record
    directory: PathBuf,

    /// Print the table of places once, as text, and exit
    #[arg(long)]
    once: bool,

    /// Directory of the jobs that the run manages, for the jobs pane (g j)
    #[arg(long, value_name = "DIR")]
    jobs: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = TopArguments::parse();
    let mut run = match LiveRun::connect(&arguments.directory) {
        Ok(run) => run,
        Err(error) => {
            let directory = shown(&arguments.directory);
            return match error {
                // It may go on.
                WatchError::Directory(DirectoryError::NoAnswer(_) | DirectoryError::Rejected(_)) => {
                    fail(&error)
                }
                _ => fail(&format_args!(
                    "{error}; to show a run that has ended, use: isles replay \
                         {directory}"
                )),
            };
        }
    };
    if arguments.once {
        return once(&mut run);
    }
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return fail(&"isles top needs a terminal; --once prints one table");
    }
    match watch(&mut run, arguments.jobs.as_deref().map(JobSource::of).as_ref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(cause) => fail(&format_args!("cannot use the terminal: {cause}")),
    }
}

/// Prints the places once, with shares over half a second.
fn once(run: &mut LiveRun) -> ExitCode {
    std::thread::sleep(POLL_INTERVAL);
    if let Err(error) = run.refresh() {
        return fail(&error);
    }
    let mut screen = Screen::new(run.description());
    screen.take(run.latest().clone());
    match io::stdout().lock().write_all(draw::text(&screen).as_bytes()) {
        Err(cause) if cause.kind() == io::ErrorKind::BrokenPipe => ExitCode::from(EXIT_CLOSED_PIPE),
        Err(cause) => fail(&cause),
        Ok(()) => ExitCode::SUCCESS,
    }
}

/// Draws until the user quits or a signal arrives.
fn watch(run: &mut LiveRun, jobs: Option<&JobSource>) -> io::Result<()> {
    let mut terminal = OwnTerminal::take()?;
    let mut screen = Screen::new(run.description());
    screen.has_jobs = jobs.is_some();
    screen.take(run.latest().clone());
    let mut last_poll = Instant::now();
    let mut is_new = true;
    while !terminal.is_over() {
        if last_poll.elapsed() >= POLL_INTERVAL {
            last_poll = Instant::now();
            // If the counters become unreadable, the last picture stays.
            if run.refresh().is_ok() {
                screen.take(run.latest().clone());
            }
            if screen.pane == Pane::Stages && !screen.is_paused {
                screen.stages = stages_of(run, u64::MAX).stages;
            }
            if let Some(jobs) = jobs.filter(|_| screen.shows_jobs() && !screen.is_paused) {
                let chosen = screen.chosen_job().filter(|_| screen.pane == Pane::Job);
                jobs.refresh(&mut screen.jobs, chosen);
            }
            is_new = true;
        }
        if std::mem::take(&mut is_new) {
            terminal.draw(|frame| draw::screen(frame, &screen))?;
        }
        if event::poll(KEY_WAIT)? {
            match event::read()? {
                Event::Key(key) if screen.key(key) == KeyOutcome::End => return Ok(()),
                // The output of a newly chosen job is requested at once.
                Event::Key(_) if screen.shows_jobs() || screen.pane == Pane::Stages => {
                    (is_new, last_poll) = (true, last_poll - POLL_INTERVAL)
                }
                Event::Key(_) | Event::Resize(..) => is_new = true,
                _ => {}
            }
        }
    }
    Ok(())
}

fn fail(error: &dyn std::fmt::Display) -> ExitCode {
    let _ = writeln!(io::stderr(), "error: {error}"); // there is nobody else to tell
    ExitCode::from(EXIT_USAGE)
}
