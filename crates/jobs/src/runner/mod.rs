//! The job runner of a place: runs the steps of its jobs in turn, and reports to the job server.
//!
//! Invariant: the job server receives one end of each job sent here, unless the place dies; a report names its start,
//! so a late report of an earlier one is recognised.

mod caller;
pub(crate) mod clocks;
pub(crate) mod command;
pub(crate) mod criu;
pub(crate) mod process;

pub use caller::{Caller, Environment};

use crate::command_queue::{CommandInbox, NumberedCommand};
use crate::job::{self, AnyJob, JobOutput, JobProgress};
use isles::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::OnceLock;
use std::time::Duration;

/// Number of lines that are buffered before they are sent.
const LINES: usize = 64;

/// Time after which even few lines are sent.
const LINES_FOR: Duration = Duration::from_millis(100);

/// `true` if places are cores of a modelled chip; the same at all places, as are the kinds of jobs.
static MODELLED: OnceLock<bool> = OnceLock::new();

/// Sets once whether places are cores of a modelled chip.
pub(crate) fn set_modelled(is_modelled: bool) {
    MODELLED.get_or_init(|| is_modelled);
}

/// Maximum time for which a job runs steps before its place does anything else.
const TURN: Duration = Duration::from_millis(2);

/// Command to a running job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Control {
    Run,
    Pause,
    /// Send the state, and wait for the next command.
    Save,
    /// Leave: the state is written.
    Leave,
    Kill,
}

/// A start of a job: the first, or one after a checkpoint or a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct StartId {
    pub(crate) job: u64,
    pub(crate) start: u64,
}

/// Task or command that a job runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Runnable {
    /// A job of the program, by the name of its kind.
    Task(String, Vec<String>),
    /// A command of the system and its arguments; no shell reads them.
    Command(Vec<String>),
}

/// Order to a place to start a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StartOrder {
    pub(crate) id: StartId,
    pub(crate) runnable: Runnable,
    /// Folder and environment of the shell in which a command was typed; without it, those of the place are used.
    pub(crate) caller: Option<Caller>,
    /// The state to continue from.
    pub(crate) state: Option<Vec<u8>>,
    /// File for the output of a command.
    pub(crate) output: PathBuf,
    /// Folder for the image of a command that is checkpointed.
    pub(crate) images: PathBuf,
    /// Mark that identifies the processes of a command.
    pub(crate) mark: String,
}

/// Report of a job's place to the job server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum JobEventKind {
    /// The job runs.
    Started,
    Output(Vec<String>),
    Saved(Vec<u8>),
    /// Its state could not be written; the job is unchanged.
    Unsaved(String),
    /// A command could not be restored from this state, which is unchanged.
    Unrestored {
        fault: String,
        state: Vec<u8>,
    },
    Killed,
    Ended(String),
    Faulted(String),
}

/// A report, with its start and the computing time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct JobEvent {
    pub(crate) start: StartId,
    pub(crate) busy: Duration,
    pub(crate) kind: JobEventKind,
}

/// The jobs of a place.
#[derive(Default)]
pub(crate) struct JobRunner {
    running: BTreeMap<StartId, RunningJob>,
    commands: CommandInbox,
    /// Time and processor time at the last sample.
    before: Option<(Duration, Duration)>,
}

/// A job as seen by others at its place.
pub(crate) struct RunningJob {
    pub(crate) command: Rc<Monitor<NumberedCommand>>,
    /// Computing time of the job, and bytes that it holds.
    pub(crate) busy: Duration,
    pub(crate) memory: u64,
}

/// Measurements of a place and its jobs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct UsageSample {
    /// The process of the place.
    pub(crate) process: u32,
    /// Time since the last sample, and the processor time in it, for jobs or anything else.
    pub(crate) passed: Duration,
    pub(crate) busy: Duration,
    /// Each job with its computing time so far and its memory.
    pub(crate) jobs: Vec<(StartId, Duration, u64)>,
    /// Divider of the core's clock, on a chip.
    pub(crate) divider: Option<u32>,
    /// The number of the supply of the core, its rate in hertz and its voltage, on a chip.
    pub(crate) supply: Option<(u32, u64, Option<f64>)>,
    /// Governor of that supply's clocks.
    pub(crate) governor: Option<String>,
}

impl JobRunner {
    /// Accepts commands for jobs that are here or in flight.
    pub(crate) fn receive(&mut self, commands: Vec<(StartId, NumberedCommand)>) {
        for (start, command) in commands {
            self.commands.receive(start, command);
            if let Some((running, newest)) = self.running.get(&start).zip(self.commands.newest(start)) {
                running.command.atomic(|now| *now = newest);
            }
        }
    }

    /// Records the arrival of a job.
    fn add(&mut self, id: StartId) -> Rc<Monitor<NumberedCommand>> {
        let command = Rc::new(Monitor::new(self.commands.begin(id)));
        let running = RunningJob { command: Rc::clone(&command), busy: Duration::ZERO, memory: 0 };
        self.running.insert(id, running);
        command
    }

    /// Records the end of a job; returns its computing time.
    fn remove(&mut self, id: StartId) -> Duration {
        self.commands.end(id);
        self.running.remove(&id).map_or(Duration::ZERO, |running| running.busy)
    }

    /// Records the resource usage of a command.
    pub(crate) fn record_usage(&mut self, id: StartId, busy: Duration, memory: u64) {
        if let Some(running) = self.running.get_mut(&id) {
            running.busy = busy;
            running.memory = memory;
        }
    }

    /// Measures the activity of the place since the last call.
    pub(crate) fn sample(&mut self) -> UsageSample {
        let jobs: Vec<_> = self.running.iter().map(|(id, job)| (*id, job.busy, job.memory)).collect();
        let of_jobs = jobs.iter().map(|(_, busy, _)| *busy).sum();
        let is_modelled = MODELLED.get() == Some(&true);
        let of_host = if is_modelled { None } else { command::thread_time() };
        let (time, busy) = (now(), of_host.unwrap_or(of_jobs));
        let (time_before, busy_before) = self.before.replace((time, busy)).unwrap_or((time, busy));
        UsageSample {
            process: std::process::id(),
            passed: time.saturating_sub(time_before),
            busy: busy.saturating_sub(busy_before),
            jobs,
            divider: isles::clocks::divider(),
            supply: isles::clocks::supply().map(|supply| (supply.number, supply.hertz, supply.volts)),
            governor: isles::clocks::supply_governor().map(|policy| policy.to_string()),
        }
    }
}

/// Runs a job to its end at the place of the calling task.
///
/// # Errors
/// The job server is dead.
pub(crate) async fn run(
    runners: PlaceLocal<JobRunner>,
    order: StartOrder,
    events: Sender<JobEvent>,
) -> isles::Result<()> {
    let id = order.id;
    let command = runners.lock().add(id);
    let kind = match &order.runnable {
        Runnable::Command(words) => command::run(&runners, &order, words, &command, &events).await?,
        Runnable::Task(name, words) => {
            match job::kind(name).and_then(|kind| (kind.open)(words, order.state.as_deref())) {
                Ok(job) => steps(&runners, id, job, &command, &events).await?,
                Err(fault) => Some(JobEventKind::Faulted(fault)),
            }
        }
    };
    let busy = runners.lock().remove(id);
    if let Some(kind) = kind {
        events.send(JobEvent { start: id, busy, kind }).await?;
    }
    Ok(())
}

/// Sends the job server a report that does not end a job.
pub(crate) async fn send_event(
    events: &Sender<JobEvent>,
    start: StartId,
    kind: JobEventKind,
) -> isles::Result<()> {
    events.send(JobEvent { start, busy: Duration::ZERO, kind }).await?;
    Ok(())
}

/// Runs the steps of a job until it ends. Returns the last report, or `None` if the job server has its state.
async fn steps(
    runners: &PlaceLocal<JobRunner>,
    id: StartId,
    mut job: Box<dyn AnyJob>,
    command: &Monitor<NumberedCommand>,
    events: &Sender<JobEvent>,
) -> isles::Result<Option<JobEventKind>> {
    send_event(events, id, JobEventKind::Started).await?;
    let mut output = JobOutput::default();
    let mut sent = now();
    loop {
        let NumberedCommand { number, control } =
            command.when(|command| command.control != Control::Pause, |command| *command).await;
        let last = match control {
            Control::Leave => return Ok(None),
            Control::Kill => Some(JobEventKind::Killed),
            Control::Save => None,
            Control::Run | Control::Pause => match step(runners, id, &mut *job, &mut output) {
                Ok(JobProgress::More) => None,
                Ok(JobProgress::Done(result)) => Some(JobEventKind::Ended(result)),
                Err(fault) => Some(JobEventKind::Faulted(fault)),
            },
        };
        let is_due = last.is_some()
            || control == Control::Save
            || now().saturating_sub(sent) >= LINES_FOR
            || output.len() >= LINES;
        if output.len() > 0 && is_due {
            send_event(events, id, JobEventKind::Output(output.take())).await?;
            sent = now();
        }
        if last.is_some() {
            return Ok(last);
        }
        if control == Control::Save {
            send_event(events, id, JobEventKind::Saved(job.save())).await?;
            // Only the job server knows whether the state is written, and sends the next command.
            command.when(|command| command.number > number, |_| ()).await;
        }
        yield_now().await;
    }
}

/// Runs steps for one turn, and records their time. A panic in a step fails the job.
fn step(
    runners: &PlaceLocal<JobRunner>,
    id: StartId,
    job: &mut dyn AnyJob,
    output: &mut JobOutput,
) -> Result<JobProgress, String> {
    let begun = now();
    let turn = || {
        loop {
            let done = job.step(output);
            let is_over = now().saturating_sub(begun) >= TURN || output.len() >= LINES;
            if is_over || done != Ok(JobProgress::More) {
                return done;
            }
        }
    };
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(turn));
    let took = now().saturating_sub(begun);
    if let Some(running) = runners.lock().running.get_mut(&id) {
        running.busy += took;
        running.memory = job.memory();
    }
    done.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        Err(format!("panicked: {}", text.or_else(|| panic.downcast_ref().cloned()).unwrap_or_default()))
    })
}
