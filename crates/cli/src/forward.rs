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
    target: Arc<Mutex<Option<Pid>>>,
}

impl SignalForwarder {
    /// Signals go to `child` from now on.
    ///
    /// # Errors
    /// The system refused it.
    pub fn to(child: &Child) -> io::Result<SignalForwarder> {
        let (mut wakeups, sender) = UnixStream::pair()?;
        let last = Arc::new(AtomicUsize::new(0));
        for (index, (number, _)) in FORWARDED.into_iter().enumerate() {
            // In this order: when the byte comes, the index is there.
            flag::register_usize(number, Arc::clone(&last), index)?;
            pipe::register(number, sender.try_clone()?)?;
        }
        let target = Arc::new(Mutex::new(pid_of(child)));
        let forwarder = SignalForwarder { target: Arc::clone(&target) };
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            while wakeups.read_exact(&mut [0]).is_ok() {
                // Relaxed: the byte orders it.
                let (_, signal) = FORWARDED[last.load(Ordering::Relaxed)];
                let target = target.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(pid) = *target {
                    let _ = kill_process(pid, signal); // it may have ended
                }
            }
        })?;
        Ok(forwarder)
    }

    /// Waits for `child`, to which signals have gone, and lets them go to `next` from then on.
    ///
    /// # Errors
    /// The system refused it.
    pub fn wait(&self, child: &mut Child, next: &Child) -> io::Result<ExitStatus> {
        if let Some(pid) = pid_of(child) {
            // It stays a process, if a dead one, until nothing can be sent to it any more.
            let ended = || waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
            while matches!(ended(), Err(Errno::INTR)) {}
        }
        *self.target.lock().unwrap_or_else(PoisonError::into_inner) = pid_of(next);
        child.wait()
    }
}

fn pid_of(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}
