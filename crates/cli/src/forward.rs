//! Signals to a launcher that waits for its program: they go to the program, so that it ends as if it was alone.
//!
//! TERM, HUP and INT are forwarded from a thread of their own. Invariant: a process that has been waited for is sent
//! nothing, because its number may be another's by then.

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level::pipe};
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The signals, by the names that both libraries have for them.
const FORWARDED: [(i32, Signal); 3] = [(SIGTERM, Signal::TERM), (SIGHUP, Signal::HUP), (SIGINT, Signal::INT)];

/// Who gets the signals of this process.
pub struct SignalForwarder {
    target: Arc<Mutex<Target>>,
}

/// The process that gets signals, or the last one that came before there was any.
enum Target {
    Awaited(Option<Signal>),
    Process(Pid),
}

impl Target {
    /// Signals go to `process` from now on; the one that came before goes there now.
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
    /// Signals are kept from now on, for the process that this one is about to start.
    ///
    /// # Errors
    /// The system refused it.
    pub fn new() -> io::Result<SignalForwarder> {
        let (mut wakeups, sender) = UnixStream::pair()?;
        let last = Arc::new(AtomicUsize::new(0));
        for (index, (number, _)) in FORWARDED.into_iter().enumerate() {
            // In this order: when the byte comes, the index is there.
            flag::register_usize(number, Arc::clone(&last), index)?;
            pipe::register(number, sender.try_clone()?)?;
        }
        let target = Arc::new(Mutex::new(Target::Awaited(None)));
        let forwarder = SignalForwarder { target: Arc::clone(&target) };
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            while wakeups.read_exact(&mut [0]).is_ok() {
                // Relaxed: the byte orders it.
                let (_, signal) = FORWARDED[last.load(Ordering::Relaxed)];
                target.lock().unwrap_or_else(PoisonError::into_inner).send(signal);
            }
        })?;
        Ok(forwarder)
    }

    /// Waits for `child`, to which signals go meanwhile, and lets them go to `next` from then on.
    ///
    /// # Errors
    /// The system refused it.
    pub fn wait(&self, child: &mut Child, next: &Child) -> io::Result<ExitStatus> {
        let pid = Pid::from_child(child);
        self.send_to(pid);
        // It stays a process, if a dead one, until nothing can be sent to it any more.
        let ended = || waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        while matches!(ended(), Err(Errno::INTR)) {}
        self.send_to(Pid::from_child(next));
        child.wait()
    }

    fn send_to(&self, process: Pid) {
        self.target.lock().unwrap_or_else(PoisonError::into_inner).set(process);
    }
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
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        target.set(Pid::from_child(&child));
        assert_eq!(child.wait().unwrap().signal(), Some(SIGTERM));
    }
}
