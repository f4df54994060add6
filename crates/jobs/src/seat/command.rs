//! Commands of the system as jobs, and what the system says of processors.
//!
//! A command is a process group of its own, with its words as they are: no shell reads them. Its output goes straight
//! into its file. It is paused by SIGSTOP and killed by SIGKILL; where its place dies the job server kills it, by its
//! number and the time when it began, so that no other process is meant.

use crate::command_queue::NumberedCommand;
use crate::seat::{Control, JobEvent, Seat, StartOrder, Told, tell};
use isles::prelude::*;
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// Time between two looks at a command.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Ticks of the system's accounts in a second, on every Linux.
const TICKS: u64 = 100;

/// Bytes of a page in the system's accounts of memory.
const PAGE_BYTES: u64 = 4096;

/// Runs a command to one of its ends.
///
/// # Errors
/// The job server is dead; the command is killed.
pub(crate) async fn run(
    seats: &PlaceLocal<Seat>,
    order: &StartOrder,
    words: &[String],
    wanted: &Monitor<NumberedCommand>,
    events: &Sender<JobEvent>,
) -> isles::Result<Told> {
    let mut command = match start(words, &order.output) {
        Ok(child) => RunningCommand(child),
        Err(fault) => return Ok(Told::Faulted(fault)),
    };
    let number = command.0.id();
    let began = account(number).map_or(0, |account| account.began);
    tell(events, order.id, Told::Started(Some((number, began)))).await?;
    let mut is_paused = false;
    loop {
        match command.0.try_wait() {
            Ok(Some(status)) => return Ok(ended(status)),
            Ok(None) => {}
            Err(fault) => return Ok(Told::Faulted(format!("it cannot be waited for: {fault}"))),
        }
        if let Some(account) = account(number) {
            seats.lock().note(order.id, account.busy, account.memory);
        }
        let control = wanted.atomic(|command| command.control);
        match control {
            Control::Kill => {
                command.signal(Signal::KILL);
                let _ = command.0.wait(); // it has been killed
                return Ok(Told::Killed);
            }
            Control::Pause | Control::Run | Control::Save | Control::Leave => {
                let pauses = control == Control::Pause;
                if pauses != is_paused {
                    command.signal(if pauses { Signal::STOP } else { Signal::CONT });
                    is_paused = pauses;
                }
            }
        }
        isles::sleep(LOOK_EVERY).await;
    }
}

/// A command that is killed if its job is dropped.
struct RunningCommand(Child);

impl RunningCommand {
    fn signal(&self, signal: Signal) {
        if let Some(group) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, signal); // it may have ended
        }
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            self.signal(Signal::KILL);
            let _ = self.0.wait(); // it has been killed
        }
    }
}

fn start(words: &[String], output: &Path) -> Result<Child, String> {
    let [program, arguments @ ..] = words else { return Err("there is no command".to_owned()) };
    let file = File::options().create(true).append(true).open(output);
    let opened = file.and_then(|file| Ok((file.try_clone()?, file)));
    let (out, errors) = opened.map_err(|fault| format!("{} cannot be written: {fault}", output.display()))?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(out).stderr(errors).process_group(0);
    command.spawn().map_err(|fault| format!("{program:?} cannot be started: {fault}"))
}

fn ended(status: ExitStatus) -> Told {
    match (status.code(), status.signal()) {
        (Some(0), _) => Told::Ended("exit code 0".to_owned()),
        (Some(code), _) => Told::Faulted(format!("exit code {code}")),
        (None, signal) => Told::Faulted(format!("ended by signal {}", signal.unwrap_or_default())),
    }
}

/// Kills a command whose place cannot do it any more, if the process is still the one that began at that time.
pub(crate) fn kill_orphan((number, began): (u32, u64)) {
    let is_same = began > 0 && account(number).is_some_and(|account| account.began == began);
    if let Some(group) = i32::try_from(number).ok().and_then(Pid::from_raw).filter(|_| is_same) {
        let _ = kill_process_group(group, Signal::KILL); // it may end meanwhile
    }
}

/// What the system says of a process.
struct Account {
    busy: Duration,
    /// Resident bytes.
    memory: u64,
    /// When it began, in ticks since the system did.
    began: u64,
}

fn account(number: u32) -> Option<Account> {
    read_account(&format!("/proc/{number}/stat"))
}

/// How long the thread of the calling place has computed, on a real machine.
pub(crate) fn thread_time() -> Option<Duration> {
    read_account("/proc/thread-self/stat").map(|account| account.busy)
}

fn read_account(path: &str) -> Option<Account> {
    let text = std::fs::read_to_string(path).ok()?;
    // The name of the program stands in parentheses, and may have any in it.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some(Account {
        busy: Duration::from_millis((field(14)? + field(15)?) * 1000 / TICKS),
        memory: field(24)? * PAGE_BYTES,
        began: field(22)?,
    })
}
