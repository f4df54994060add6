//! System commands as jobs, and processor accounting.
//!
//! A command is a process group of its own and gets its words unchanged: no shell reads them. Its output goes directly
//! to its file. SIGSTOP pauses it and SIGKILL kills it, together with all processes that it has started; it ends with
//! its place. CRIU checkpoints it, if it can.

use crate::command_queue::NumberedCommand;
use crate::runner::criu::{CommandImage, process_id};
use crate::runner::process::{kill_marked, spawn_command};
use crate::runner::{Caller, Control, JobEvent, JobEventKind, JobRunner, StartOrder, send_event};
use isles::prelude::*;
use rustix::process::{Signal, kill_process_group};
use std::fmt::Display;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::time::Duration;

/// Polling interval of a command.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Polling interval of a command that has not begun.
const START_POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Ticks per second of the system's accounting, on every Linux.
const TICKS: u64 = 100;

/// Bytes of a page in the system's accounting of memory.
const PAGE_BYTES: u64 = 4096;

/// Runs a command to its end; returns `None` if the job server has its state.
///
/// # Errors
/// The job server is dead; the command is killed.
pub(crate) async fn run(
    runners: &PlaceLocal<JobRunner>,
    order: &StartOrder,
    words: &[String],
    wanted: &Monitor<NumberedCommand>,
    events: &Sender<JobEvent>,
) -> isles::Result<Option<JobEventKind>> {
    if is_killed(wanted) {
        return Ok(Some(JobEventKind::Killed));
    }
    let begun = match &order.state {
        None => start(words, order, order.caller.as_ref()).await.map(Some).map_err(JobEventKind::Faulted),
        Some(state) => {
            let restored = match CommandImage::of_state(state) {
                Ok(image) => restore(&image, order, wanted).await,
                Err(fault) => Err(fault),
            };
            restored.map_err(|fault| JobEventKind::Unrestored { fault, state: state.clone() })
        }
    };
    let mut command = match begun {
        Ok(Some(command)) => command,
        Ok(None) => return Ok(Some(JobEventKind::Killed)),
        Err(report) => return Ok(Some(report)),
    };
    send_event(events, order.id, JobEventKind::Started).await?;
    loop {
        match command.child.try_wait() {
            Ok(Some(status)) => return Ok(Some(ended(status))),
            Ok(None) => {}
            Err(fault) => return Ok(Some(JobEventKind::Faulted(format!("cannot wait for it: {fault}")))),
        }
        if let Some(usage) = usage(command.process) {
            runners.lock().record_usage(order.id, usage.busy, usage.memory);
        }
        let NumberedCommand { number, control } = wanted.atomic(|command| *command);
        match control {
            Control::Kill => {
                drop(command);
                return Ok(Some(JobEventKind::Killed));
            }
            Control::Save => match save(command, number, order, wanted, events).await? {
                Ok(goes_on) => command = goes_on,
                Err(last) => return Ok(last),
            },
            Control::Pause | Control::Run | Control::Leave => command.pause(control == Control::Pause),
        }
        isles::sleep(POLL_INTERVAL).await;
    }
}

/// Dumps a command, sends its state and waits for the control after `number`. Returns the command if it continues here,
/// otherwise the last report as for [`run`].
///
/// # Errors
/// The job server is dead; the command is killed.
async fn save(
    mut command: RunningCommand,
    number: u64,
    order: &StartOrder,
    wanted: &Monitor<NumberedCommand>,
    events: &Sender<JobEvent>,
) -> isles::Result<Result<RunningCommand, Option<JobEventKind>>> {
    let next = || wanted.when(move |command| command.number > number, |command| command.control);
    let image = match dump(&mut command, order, wanted).await {
        Ok(Some(image)) => image,
        Ok(None) => {
            drop(command);
            return Ok(Err(Some(JobEventKind::Killed)));
        }
        Err(fault) => {
            send_event(events, order.id, JobEventKind::Unsaved(fault)).await?;
            next().await;
            return Ok(Ok(command));
        }
    };
    drop(command);
    send_event(events, order.id, JobEventKind::Saved(image.to_state())).await?;
    // Only the job server knows whether the state is written, and what the command must do then.
    let restored = match next().await {
        Control::Leave => return Ok(Err(None)),
        Control::Kill => Ok(None),
        Control::Run | Control::Pause | Control::Save => restore(&image, order, wanted).await,
    };
    match restored {
        Ok(restored) => {
            image.remove();
            Ok(restored.ok_or(Some(JobEventKind::Killed)))
        }
        Err(fault) => Ok(Err(Some(JobEventKind::Unrestored { fault, state: image.to_state() }))),
    }
}

fn is_killed(wanted: &Monitor<NumberedCommand>) -> bool {
    wanted.atomic(|command| command.control) == Control::Kill
}

/// Dumps a command, which ends it. Returns `None` if the job is killed meanwhile.
///
/// # Errors
/// The reason; the command continues, and no image is left.
async fn dump(
    command: &mut RunningCommand,
    order: &StartOrder,
    wanted: &Monitor<NumberedCommand>,
) -> Result<Option<CommandImage>, String> {
    let image =
        CommandImage { process: command.process, mark: command.mark.clone(), folder: order.images.clone() };
    let is_dumped = match image.begin_dump() {
        Ok(dumping) => finish_dump(dumping, &image, wanted).await,
        Err(fault) => Err(format!("criu dump: {fault}")),
    };
    if is_dumped != Ok(true) {
        image.remove(); // others need the room
        return is_dumped.map(|_| None);
    }
    // Its process id becomes free for the restored process once the command has been reaped.
    while !is_killed(wanted) && matches!(command.child.try_wait(), Ok(None)) {
        isles::sleep(START_POLL_INTERVAL).await;
    }
    Ok(Some(image))
}

/// Waits for the end of `criu dump`. Kills it and returns `false` if the job is killed meanwhile.
///
/// # Errors
/// The dump has failed: the reason.
async fn finish_dump(
    mut dumping: Child,
    image: &CommandImage,
    wanted: &Monitor<NumberedCommand>,
) -> Result<bool, String> {
    let mut is_ended = false;
    loop {
        match dumping.try_wait() {
            Ok(Some(_)) if is_ended => return Ok(false),
            Ok(Some(status)) if status.success() => return Ok(true),
            Ok(Some(_)) => return Err(format!("criu dump: {}", image.dump_fault())),
            Ok(None) => {}
            Err(fault) => return Err(format!("cannot wait for criu dump: {fault}")),
        }
        if !is_ended && is_killed(wanted) {
            let _ = dumping.kill(); // it may have ended
            is_ended = true;
        }
        isles::sleep(POLL_INTERVAL).await;
    }
}

/// Restores a command and resumes it. Returns `None` if the job is killed meanwhile.
///
/// # Errors
/// The reason; the image is unchanged, and no process of the command is left.
async fn restore(
    image: &CommandImage,
    order: &StartOrder,
    wanted: &Monitor<NumberedCommand>,
) -> Result<Option<RunningCommand>, String> {
    // CRIU runs in the environment of the place; the restored processes keep their own.
    let words = image.restore_words().map_err(|fault| format!("cannot restore it: {fault}"))?;
    let mut command = start(&words, order, None).await?;
    command.mark.clone_from(&image.mark);
    while !image.is_restored() {
        match command.child.try_wait() {
            Ok(None) if is_killed(wanted) => return Ok(None),
            Ok(None) => isles::sleep(START_POLL_INTERVAL).await,
            Ok(Some(_)) if image.is_restored() => break, // the command has ended at once
            Ok(Some(_)) => {
                kill_marked(&image.mark); // CRIU may have left some
                return Err(format!("criu restore: {}", image.restore_fault()));
            }
            Err(fault) => return Err(format!("cannot wait for criu restore: {fault}")),
        }
    }
    command.process = image.process;
    // If it was paused when it was dumped, CRIU has stopped it again.
    command.is_paused = true;
    command.pause(false);
    Ok(Some(command))
}

/// A command that is killed, with all processes that it has started, if its job is dropped.
struct RunningCommand {
    /// The command or, if it was restored, a process that waits for it.
    child: Child,
    /// Process id of the command, and of its process group.
    process: u32,
    mark: String,
    is_paused: bool,
}

impl RunningCommand {
    fn signal(&self, signal: Signal) {
        if let Some(group) = process_id(self.process) {
            let _ = kill_process_group(group, signal); // it may have ended
        }
    }

    /// Pauses or resumes the command.
    fn pause(&mut self, pauses: bool) {
        if pauses != self.is_paused {
            self.signal(if pauses { Signal::STOP } else { Signal::CONT });
            self.is_paused = pauses;
        }
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.signal(Signal::KILL);
            if self.process != self.child.id() {
                let _ = self.child.kill(); // its restore may not have begun
            }
            let _ = self.child.wait(); // it has been killed
            kill_marked(&self.mark);
        }
    }
}

/// Starts a command in the folder and environment of `caller`, and waits until it has begun.
async fn start(
    words: &[String],
    order: &StartOrder,
    caller: Option<&Caller>,
) -> Result<RunningCommand, String> {
    let [program, ..] = words else { return Err("there is no command".to_owned()) };
    let output = File::options().create(true).append(true).open(&order.output);
    let output = output.map_err(|fault| format!("{} cannot be written: {fault}", order.output.display()))?;
    let unable = |fault: &dyn Display| format!("cannot start {program:?}: {fault}");
    if let Some(folder) = caller.map(|caller| &caller.folder).filter(|folder| !folder.is_dir()) {
        return Err(unable(&format!("the folder {}, where it was typed, does not exist", folder.display())));
    }
    let begun = spawn_command(words, caller, &order.mark, output);
    let (child, mut starting) = begun.map_err(|fault| unable(&fault))?;
    let process = child.id();
    let command = RunningCommand { child, process, mark: order.mark.clone(), is_paused: false };
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

/// Returns the processor time of the calling thread, on a real machine.
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
