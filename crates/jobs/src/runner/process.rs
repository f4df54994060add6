//! The processes of commands: start, end with their place, and identification.
//!
//! A place starts its own program, which requests SIGKILL for the end of the place and only then becomes the command:
//! so a command never outlives its place unnoticed. Processes that a command starts inherit a variable that names the
//! start of the job, so that a survivor can find and kill them. Invariant: a process is killed only if its environment
//! names that start.

use crate::runner::Caller;
use rustix::process::{
    Pid, PidfdFlags, Signal, getppid, pidfd_open, pidfd_send_signal, set_parent_process_death_signal,
};
use std::env::args_os;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write, stdin};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio, exit, id};

/// First argument of a process that will become a command, followed by the process id of its place and the words.
const BECOME: &str = "isles-become-a-command-of-process";

/// Variable that names the start of a job, in the environment of its command. It does not have the prefix of settings.
const VARIABLE: &str = "JOB_OF_ISLES";

/// Maximum number of searches for processes, because processes may have started others since the last search.
const SWEEPS: usize = 16;

/// Starts the process that becomes the command `words`, in the folder and environment of `caller` and in a process
/// group of its own.
///
/// # Errors
/// The system refuses to start a process.
pub(crate) fn spawn_command(
    words: &[String],
    caller: Option<&Caller>,
    mark: &str,
    output: File,
) -> io::Result<(Child, StartingCommand)> {
    let (fault, theirs) = UnixStream::pair()?;
    fault.set_nonblocking(true)?;
    let mut command = Command::new("/proc/self/exe");
    command.arg0(args_os().next().unwrap_or_default()).arg(BECOME).arg(id().to_string()).args(words);
    if let Some(caller) = caller {
        caller.apply(&mut command);
    }
    command.env(VARIABLE, mark).process_group(0);
    command.stdin(OwnedFd::from(theirs)).stdout(output.try_clone()?).stderr(output);
    Ok((command.spawn()?, StartingCommand { fault, text: Vec::new() }))
}

/// A starting command, which reports an error if it cannot begin.
pub(crate) struct StartingCommand {
    fault: UnixStream,
    text: Vec<u8>,
}

impl StartingCommand {
    /// Returns `Ok` if the command has begun, an error with the reason if it cannot begin, or `None` if that is not
    /// known yet.
    pub(crate) fn outcome(&mut self) -> Option<Result<(), String>> {
        match self.fault.read_to_end(&mut self.text) {
            Err(fault) if fault.kind() == io::ErrorKind::WouldBlock => None,
            Err(fault) => Some(Err(fault.to_string())),
            // The system has closed the other end when the process became the command, or ended.
            Ok(_) if self.text.is_empty() => Some(Ok(())),
            Ok(_) => Some(Err(String::from_utf8_lossy(&self.text).into_owned())),
        }
    }
}

/// Becomes a command, if this process was started as one; otherwise does nothing.
pub(crate) fn exec_if_requested() {
    let mut arguments = args_os().skip(1);
    if arguments.next().is_none_or(|first| first != BECOME) {
        return;
    }
    // `exec` closes this one of the two descriptors, and replaces the other.
    let report = stdin().as_fd().try_clone_to_owned();
    let fault = exec_command(arguments.collect());
    let _ = report.and_then(|report| File::from(report).write_all(fault.to_string().as_bytes())); // nobody may listen
    exit(127);
}

/// Executes the command. Returns only if that fails.
fn exec_command(words: Vec<OsString>) -> io::Error {
    let [parent, program, arguments @ ..] = &words[..] else { return io::ErrorKind::InvalidInput.into() };
    if let Err(fault) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return fault.into();
    }
    // The place may have died before the request for the signal.
    if getppid().map(|ours| OsString::from(ours.as_raw_nonzero().to_string())).as_ref() != Some(parent) {
        exit(127);
    }
    Command::new(program).args(arguments).stdin(Stdio::null()).exec()
}

/// Kills a process of this host if this process has started it.
pub(crate) fn kill_child(number: u32) {
    let number = i32::try_from(number).ok().and_then(Pid::from_raw);
    // The descriptor refers to the process whose parent is checked.
    let process = number.and_then(|number| pidfd_open(number, PidfdFlags::empty()).ok().zip(Some(number)));
    let Some((process, number)) = process else { return };
    let text = fs::read_to_string(format!("/proc/{}/stat", number.as_raw_nonzero())).unwrap_or_default();
    let after = text.rsplit_once(')').map_or("", |(_, after)| after);
    if after.split_whitespace().nth(1) == Some(&id().to_string()) {
        let _ = pidfd_send_signal(&process, Signal::KILL); // it may have ended
    }
}

/// Kills all processes whose environment has `mark`.
pub(crate) fn kill_marked(mark: &str) {
    let line = format!("{VARIABLE}={mark}").into_bytes();
    let _ = (0..SWEEPS).find(|_| kill_matching(&line) == 0);
}

/// Kills the present processes with `line` in their environment. Returns their number.
fn kill_matching(line: &[u8]) -> usize {
    let Ok(processes) = fs::read_dir("/proc") else { return 0 };
    let numbers = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let kill = |number: i32| {
        // The descriptor refers to the process whose environment is read.
        let process = pidfd_open(Pid::from_raw(number)?, PidfdFlags::empty()).ok()?;
        let environment = fs::read(format!("/proc/{number}/environ")).ok()?;
        let is_marked = environment.split(|byte| *byte == 0).any(|found| found == line);
        (is_marked && pidfd_send_signal(&process, Signal::KILL).is_ok()).then_some(())
    };
    numbers.filter_map(kill).count()
}
