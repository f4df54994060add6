//! Processes that wait for another and forward signals to it: a launcher with a live page, and process 1 of a
//! container.
//!
//! The kernel ignores the default action of a signal for process 1 of a pid namespace (pid_namespaces(7)), so a program
//! that has no handler for SIGTERM does not end there. Such a process starts its program again as a child, for which
//! signals act as usual, and waits for it. This module knows nothing of places. Invariant: no signal is sent to a
//! process after it has been waited for, because its id may have been reused; process 1 is exempt, since it ends with
//! its child.

use crate::print::notice;
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus, getpid, kill_process, wait, waitid,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::{flag, low_level::pipe};
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A signal, as a number for `signal_hook` and as a `rustix` value.
type ForwardedSignal = (i32, Signal);

/// The signals that a launcher forwards.
const OF_LAUNCHER: &[ForwardedSignal] =
    &[(SIGTERM, Signal::TERM), (SIGHUP, Signal::HUP), (SIGINT, Signal::INT)];

/// The signals that process 1 forwards: those that users send and that end a process by default.
const OF_PROCESS_1: &[ForwardedSignal] = &[
    (SIGTERM, Signal::TERM),
    (SIGHUP, Signal::HUP),
    (SIGINT, Signal::INT),
    (SIGQUIT, Signal::QUIT),
    (SIGUSR1, Signal::USR1),
    (SIGUSR2, Signal::USR2),
];

/// Exit code of a process that a signal has ended, less the number of the signal; as in shells.
pub const EXIT_BY_SIGNAL: i32 = 128;

/// Time that process 1 waits for other processes after its child has ended: a live page shows the end for a second.
const REST_LIMIT: Duration = Duration::from_secs(2);

/// Time between two checks whether these have ended.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Forwards signals of this process to another.
pub struct SignalForwarder {
    target: Arc<Mutex<Target>>,
}

/// The process that gets the signals, or the last signal that arrived before it was known.
enum Target {
    Awaited(Option<Signal>),
    Process(Pid),
}

impl Target {
    /// Directs signals to `process` from now on, and forwards the pending one.
    fn set(&mut self, process: Pid) {
        if let Target::Awaited(Some(signal)) = std::mem::replace(self, Target::Process(process)) {
            self.send(signal);
        }
    }

    fn send(&mut self, signal: Signal) {
        match self {
            Target::Awaited(last) => *last = Some(signal),
            Target::Process(pid) => _ = kill_process(*pid, signal), // it may have ended
        }
    }
}

impl SignalForwarder {
    /// Catches TERM, HUP and INT from now on; the last one is forwarded when the child is known.
    ///
    /// # Errors
    /// The system refused it.
    pub fn new() -> io::Result<SignalForwarder> {
        SignalForwarder::of(OF_LAUNCHER)
    }

    fn of(signals: &'static [ForwardedSignal]) -> io::Result<SignalForwarder> {
        let (mut wakeups, sender) = UnixStream::pair()?;
        let last = Arc::new(AtomicUsize::new(0));
        for (index, (number, _)) in signals.iter().enumerate() {
            // In this order, so that the index is stored when the byte arrives.
            flag::register_usize(*number, Arc::clone(&last), index)?;
            pipe::register(*number, sender.try_clone()?)?;
        }
        let target = Arc::new(Mutex::new(Target::Awaited(None)));
        let forwarder = SignalForwarder { target: Arc::clone(&target) };
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            while wakeups.read_exact(&mut [0]).is_ok() {
                // Relaxed is enough: the read of the byte orders it.
                let (_, signal) = signals[last.load(Ordering::Relaxed)];
                target.lock().unwrap_or_else(PoisonError::into_inner).send(signal);
            }
        })?;
        Ok(forwarder)
    }

    /// Waits for `child` and forwards signals to it meanwhile; afterwards to `next`.
    ///
    /// # Errors
    /// The system refused it.
    pub fn wait(&self, child: &mut Child, next: &Child) -> io::Result<ExitStatus> {
        let pid = Pid::from_child(child);
        self.send_to(pid);
        // It stays a zombie until no signal can be sent to it any more.
        let ended = || waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        while matches!(ended(), Err(Errno::INTR)) {}
        self.send_to(Pid::from_child(next));
        child.wait()
    }

    fn send_to(&self, process: Pid) {
        self.target.lock().unwrap_or_else(PoisonError::into_inner).set(process);
    }
}

/// If this process is process 1 of its pid namespace, starts the program again as a child, forwards signals to it, and
/// ends with its exit code, or with 128 and the number of the signal that ended it. Otherwise does nothing.
///
/// Call it first in a program that may be started in a container; [`serve_if_joined`](crate::serve_if_joined) does.
pub fn supervise_as_process_1() {
    if !getpid().is_init() {
        return;
    }
    match supervise() {
        Ok(code) => std::process::exit(code),
        Err(cause) => notice(format_args!(
            "warning: process 1 of a container cannot start its program as a child ({cause}), so signals do not end \
             it; start the container with --init"
        )),
    }
}

/// Runs this program as a child until it ends, and returns the exit code.
fn supervise() -> io::Result<i32> {
    let forwarder = SignalForwarder::of(OF_PROCESS_1)?;
    let mut arguments = std::env::args_os();
    let mut command = Command::new(std::env::current_exe()?);
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    let child = Pid::from_child(&command.args(arguments).spawn()?);
    forwarder.send_to(child);
    let status = loop {
        // Orphaned processes become children of this one and must be waited for as well.
        match wait(WaitOptions::empty()) {
            Ok(Some((ended, status))) if ended == child => break status,
            Ok(_) | Err(Errno::INTR) => {}
            Err(cause) => return Err(cause.into()),
        }
    };
    let until = Instant::now() + REST_LIMIT;
    while Instant::now() < until && !matches!(wait(WaitOptions::NOHANG), Err(Errno::CHILD)) {
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(exit_code(status))
}

fn exit_code(status: WaitStatus) -> i32 {
    let by_signal = || status.terminating_signal().map(|signal| EXIT_BY_SIGNAL + signal);
    status.exit_status().or_else(by_signal).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn a_signal_that_came_before_the_process_goes_there() {
        let mut target = Target::Awaited(None);
        target.send(Signal::HUP);
        target.send(Signal::TERM);
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        target.set(Pid::from_child(&child));
        assert_eq!(child.wait().unwrap().signal(), Some(SIGTERM));
    }
}
