//! System commands as jobs, and processor accounting.
//!
//! A command is a process group of its own, with its words as they are: no shell reads them. Its output goes straight
//! into its file. SIGSTOP pauses it and SIGKILL kills it, together with all processes that it has started; it ends with
//! its place.

use crate::command_queue::NumberedCommand;
use crate::runner::process::{kill_marked, spawn_command};
use crate::runner::{Control, JobEvent, JobEventKind, JobRunner, StartOrder, send_event};
use isles::prelude::*;
use rustix::process::{Pid, Signal, kill_process_group};
use std::fmt::Display;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::time::Duration;

/// Polling interval of a command.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Polling interval of a command that has not begun.
const START_POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Ticks of the system's accounts in a second, on every Linux.
const TICKS: u64 = 100;

/// Bytes of a page in the system's accounts of memory.
const PAGE_BYTES: u64 = 4096;

/// Runs a command to its end.
///
/// # Errors
/// The job server is dead; the command is killed.
pub(crate) async fn run(
    runners: &PlaceLocal<JobRunner>,
    order: &StartOrder,
    words: &[String],
    wanted: &Monitor<NumberedCommand>,
    events: &Sender<JobEvent>,
) -> isles::Result<JobEventKind> {
    if wanted.atomic(|command| command.control) == Control::Kill {
        return Ok(JobEventKind::Killed);
    }
    let mut command = match start(words, order).await {
        Ok(command) => command,
        Err(fault) => return Ok(JobEventKind::Faulted(fault)),
    };
    let number = command.child.id();
    send_event(events, order.id, JobEventKind::Started).await?;
    let mut is_paused = false;
    loop {
        match command.child.try_wait() {
            Ok(Some(status)) => return Ok(ended(status)),
            Ok(None) => {}
            Err(fault) => return Ok(JobEventKind::Faulted(format!("cannot wait for it: {fault}"))),
        }
        if let Some(usage) = usage(number) {
            runners.lock().record_usage(order.id, usage.busy, usage.memory);
        }
        let control = wanted.atomic(|command| command.control);
        match control {
            Control::Kill => {
                drop(command);
                return Ok(JobEventKind::Killed);
            }
            Control::Pause | Control::Run | Control::Save | Control::Leave => {
                let pauses = control == Control::Pause;
                if pauses != is_paused {
                    command.signal(if pauses { Signal::STOP } else { Signal::CONT });
                    is_paused = pauses;
                }
            }
        }
        isles::sleep(POLL_INTERVAL).await;
    }
}

/// A command that is killed if its job is dropped, with all that it has started.
struct RunningCommand {
    child: Child,
    mark: String,
}

impl RunningCommand {
    fn signal(&self, signal: Signal) {
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, signal); // it may have ended
        }
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.signal(Signal::KILL);
            let _ = self.child.wait(); // it has been killed
            kill_marked(&self.mark);
        }
    }
}

/// Starts a command, and waits until it has begun.
async fn start(words: &[String], order: &StartOrder) -> Result<RunningCommand, String> {
    let [program, ..] = words else { return Err("there is no command".to_owned()) };
    let output = File::options().create(true).append(true).open(&order.output);
    let output = output.map_err(|fault| format!("{} cannot be written: {fault}", order.output.display()))?;
    let unable = |fault: &dyn Display| format!("cannot start {program:?}: {fault}");
    let caller = order.caller.as_ref();
    if let Some(folder) = caller.map(|caller| &caller.folder).filter(|folder| !folder.is_dir()) {
        return Err(unable(&format!("the folder {}, where it was typed, does not exist", folder.display())));
    }
    let begun = spawn_command(words, caller, &order.mark, output);
    let (child, mut starting) = begun.map_err(|fault| unable(&fault))?;
    let command = RunningCommand { child, mark: order.mark.clone() };
    loop {
        match starting.outcome() {
            Some(Ok(())) => return Ok(command),
            Some(Err(fault)) => return Err(unable(&fault)),
            None => isles::sleep(START_POLL_INTERVAL).await,
        }
    }
}

fn ended(status: ExitStatus) -> JobEventKind {
    match (status.code(), status.signal()) {
        (Some(0), _) => JobEventKind::Ended("exit code 0".to_owned()),
        (Some(code), _) => JobEventKind::Faulted(format!("exit code {code}")),
        (None, signal) => JobEventKind::Faulted(format!("ended by signal {}", signal.unwrap_or_default())),
    }
}

/// Resource usage of a process.
struct ProcessUsage {
    busy: Duration,
    /// Resident bytes.
    memory: u64,
}

fn usage(number: u32) -> Option<ProcessUsage> {
    read_usage(&format!("/proc/{number}/stat"))
}

/// Returns the time the calling thread has computed, on a real machine.
pub(crate) fn thread_time() -> Option<Duration> {
    read_usage("/proc/thread-self/stat").map(|usage| usage.busy)
}

fn read_usage(path: &str) -> Option<ProcessUsage> {
    let text = std::fs::read_to_string(path).ok()?;
    // The name of the program is in parentheses, and may contain parentheses.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some(ProcessUsage {
        busy: Duration::from_millis((field(14)? + field(15)?) * 1000 / TICKS),
        memory: field(24)? * PAGE_BYTES,
    })
}
