//! Checkpoints of commands by CRIU, if the system has it.
//!
//! A dump writes the processes of a command to a folder and ends them; a restore recreates them with the same process
//! ids, also at another place of the host. After a restore, CRIU executes [`wait_if_requested`], which waits for the
//! restored process and ends in the same way; so the place gets the exit code of the command. Invariant: either an
//! image or its processes exist, or both until the job server knows that the command runs.

use crate::job::{from_bytes, to_bytes};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, wait};
use serde::{Deserialize, Serialize};
use std::env::{args_os, current_exe};
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio, exit};
use std::sync::{OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Name of the program.
const CRIU: &str = "criu";

/// First argument of a process that waits for a restored one.
const WAIT: &str = "isles-wait-for-a-restored-command";

/// Offset of the exit codes that a shell uses for a process ended by a signal: 128 plus the signal.
const SIGNAL_CODES: i32 = 128;

/// Names of files in the folder of an image.
const DUMP_LOG: &str = "dump.log";
const RESTORE_LOG: &str = "restore.log";
const PROCESS_FILE: &str = "process";

/// File that exists until a restore has succeeded. Its removal needs no space on a full disk.
const RESTORING_FILE: &str = "restoring";

/// Time limit of `criu check`.
const CHECK_LIMIT: Duration = Duration::from_secs(5);

/// Polling interval of `criu check`.
const CHECK_POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Reason for which commands cannot be checkpointed here; `None` if they can.
static LACK: OnceLock<Option<String>> = OnceLock::new();

/// Begins `criu check` in a thread of its own, once per process.
pub(crate) fn begin_check() {
    thread::spawn(|| LACK.get_or_init(|| check(CRIU.as_ref(), CHECK_LIMIT).err()));
}

/// Returns `true` if `criu check` has ended or has exceeded its limit, after [`begin_check`].
pub(crate) fn is_checked() -> bool {
    LACK.get().is_some()
}

/// Returns the reason for which commands cannot be checkpointed here, or `None` if `criu check` has passed. Never
/// blocks.
pub(crate) fn lack() -> Option<&'static str> {
    LACK.get().map_or(Some("it has not been checked"), Option::as_deref)
}

/// Runs `criu check` for at most `limit`.
///
/// # Errors
/// The reason for which CRIU is not usable.
fn check(criu: &Path, limit: Duration) -> Result<(), String> {
    let deadline = Instant::now() + limit;
    let mut command = Command::new(criu);
    command.arg("check").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|fault| match fault.kind() {
        ErrorKind::NotFound => "CRIU is not installed".to_owned(),
        _ => format!("criu cannot be started: {fault}"),
    })?;
    // A descendant may keep the pipe open.
    let (sender, text) = mpsc::channel();
    let pipe = child.stderr.take();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes)); // what was read before a fault is enough
        sender.send(bytes)
    });
    let status = loop {
        match child.try_wait().map_err(|fault| format!("cannot wait for criu check: {fault}"))? {
            Some(status) => break status,
            None if Instant::now() < deadline => thread::sleep(CHECK_POLL_INTERVAL),
            None => {
                let _ = child.kill(); // it may have ended
                return Err(format!("criu check has not ended within {} s", limit.as_secs_f64()));
            }
        }
    };
    if status.success() {
        return Ok(());
    }
    let bytes = text.recv_timeout(deadline.saturating_duration_since(Instant::now())).unwrap_or_default();
    Err(format!("criu check fails: {}", last_error(&String::from_utf8_lossy(&bytes))))
}

/// Returns the last line of CRIU's output that reports an error.
fn last_error(text: &str) -> &str {
    let is_error = |line: &&str| line.contains("Error") || line.contains("error");
    let line = text.lines().rfind(is_error).or_else(|| text.lines().last());
    line.map_or("it gives no reason", str::trim)
}

/// The state of a command that was dumped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CommandImage {
    /// Process id of the command, and of its process group.
    pub(crate) process: u32,
    /// The mark of the first start of the command, which its environment keeps.
    pub(crate) mark: String,
    /// The folder.
    pub(crate) folder: PathBuf,
}

impl CommandImage {
    pub(crate) fn to_state(&self) -> Vec<u8> {
        to_bytes(self)
    }

    /// # Errors
    /// `state` is not that of a command.
    pub(crate) fn of_state(state: &[u8]) -> Result<CommandImage, String> {
        from_bytes(state)
    }

    /// Begins to dump the processes, which end if that succeeds and continue if it fails.
    ///
    /// # Errors
    /// The folder cannot be created, or CRIU cannot be started.
    pub(crate) fn begin_dump(&self) -> io::Result<Child> {
        self.remove();
        fs::create_dir(&self.folder)?;
        let mut command = Command::new(CRIU);
        command.args(["dump", "--shell-job", "--log-file", DUMP_LOG, "--tree", &self.process.to_string()]);
        command.arg("--images-dir").arg(&self.folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
    }

    /// Returns the words of the command that restores the processes and then waits for the first of them.
    ///
    /// # Errors
    /// This program has no path, or the folder cannot be written.
    pub(crate) fn restore_words(&self) -> io::Result<Vec<String>> {
        let _ = fs::remove_file(self.folder.join(PROCESS_FILE)); // it need not be there
        let restoring = self.folder.join(RESTORING_FILE);
        fs::write(&restoring, "")?;
        let text = |path: &Path| path.display().to_string();
        let words = ["criu", "restore", "--shell-job", "--restore-detached", "--log-file", RESTORE_LOG];
        let mut words: Vec<String> = words.map(str::to_owned).into();
        words.extend(["--images-dir".to_owned(), text(&self.folder)]);
        words.extend(["--pidfile".to_owned(), text(&self.folder.join(PROCESS_FILE))]);
        words.extend(["--exec-cmd", "--"].map(str::to_owned));
        words.extend([text(&current_exe()?), WAIT.to_owned(), text(&restoring)]);
        Ok(words)
    }

    /// Returns `true` if the processes exist again and CRIU has finished with them. CRIU writes its process file
    /// earlier, and can fail or send SIGSTOP after that.
    pub(crate) fn is_restored(&self) -> bool {
        let text = fs::read_to_string(self.folder.join(PROCESS_FILE)).unwrap_or_default();
        text.trim().parse() == Ok(self.process) && !self.folder.join(RESTORING_FILE).exists()
    }

    /// Removes the folder.
    pub(crate) fn remove(&self) {
        let _ = fs::remove_dir_all(&self.folder); // it need not be there
    }

    /// Returns the reason for which a dump has failed, from its log.
    pub(crate) fn dump_fault(&self) -> String {
        self.fault(DUMP_LOG)
    }

    /// Returns the reason for which a restore has failed, from its log.
    pub(crate) fn restore_fault(&self) -> String {
        self.fault(RESTORE_LOG)
    }

    fn fault(&self, log: &str) -> String {
        let text = fs::read_to_string(self.folder.join(log)).unwrap_or_default();
        last_error(&text).to_owned()
    }
}

/// If this process was started by CRIU to wait for a restored process: reports that CRIU has finished, waits for that
/// process and ends in the same way. Otherwise does nothing.
pub(crate) fn wait_if_requested() {
    let mut arguments = args_os().skip(1);
    if arguments.next().is_none_or(|first| first != WAIT) {
        return;
    }
    if let Some(restoring) = arguments.next() {
        let _ = fs::remove_file(restoring); // otherwise the job is not reported as running, and can be killed
    }
    let status = loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((_, status))) => break status,
            Ok(None) | Err(Errno::INTR) => {}
            Err(_) => exit(SIGNAL_CODES - 1),
        }
    };
    if let Some(code) = status.exit_status() {
        exit(code);
    }
    let number = status.terminating_signal().unwrap_or_default();
    if let Some(signal) = Signal::from_named_raw(number) {
        let _ = kill_process(getpid(), signal); // some are ignored
    }
    exit(SIGNAL_CODES + number);
}

/// Converts a process id to the type of system calls.
pub(crate) fn process_id(number: u32) -> Option<Pid> {
    i32::try_from(number).ok().and_then(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::{CommandImage, check, last_error};
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;
    use std::time::Duration;

    #[test]
    fn a_check_that_never_ends_is_given_up() {
        let path = std::env::temp_dir().join(format!("isles-criu-check-{}", std::process::id()));
        fs::write(&path, "#!/bin/sh\nexec sleep 1000000\n").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        let checked = check(&path, Duration::from_millis(50));
        fs::remove_file(&path).unwrap();
        assert_eq!(checked, Err("criu check has not ended within 0.05 s".to_owned()));
    }

    #[test]
    fn the_last_error_of_a_log_is_found() {
        let log = "(00.01) Warn  (a.c:1): slow\n(00.02) Error (criu/cr-dump.c:9): no tree\nbye\n";
        assert_eq!(last_error(log), "(00.02) Error (criu/cr-dump.c:9): no tree");
        assert_eq!(last_error("one\ntwo\n"), "two");
        assert_eq!(last_error(""), "it gives no reason");
    }

    #[test]
    fn an_image_is_read_as_it_was_written() {
        let image = CommandImage { process: 7, mark: "3.1".to_owned(), folder: PathBuf::from("/f/g") };
        assert_eq!(CommandImage::of_state(&image.to_state()), Ok(image));
        assert!(CommandImage::of_state(&[1]).is_err());
    }
}
