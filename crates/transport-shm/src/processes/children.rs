//! The processes that this one started, and the watch on them.
//!
//! One thread waits for all of them at once. A process that ends without having left is marked dead in the segment,
//! which wakes all places; one that broke the format is killed. It decides nothing about the run.

use super::LaunchError;
use crate::lifecycle::{ExitCause, Lifecycle};
use crate::segment::{Image, Segment};
use isles_transport::PlaceId;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process, pidfd_open, waitid};
use std::fmt;
use std::io::{self, PipeWriter};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Interval of the check for places that broke the format; the end of a process is noticed at once.
const CORRUPT_LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Function that returns a descriptor that is readable, or hung up, once a child process has ended.
pub(super) type ExitDescriptor = fn(Pid) -> io::Result<OwnedFd>;

/// Returns the kernel's own descriptor or, if there is none (before 5.3, under valgrind, in some sandboxes), an
/// [`exit_pipe`].
pub(super) fn notice(process: Pid) -> io::Result<OwnedFd> {
    match pidfd_open(process, PidfdFlags::empty()) {
        Err(Errno::NOSYS | Errno::PERM) => exit_pipe(process),
        answer => Ok(answer?),
    }
}

/// Returns a pipe whose other end is closed by a thread that waits for the process and leaves it to be reaped.
pub(super) fn exit_pipe(process: Pid) -> io::Result<OwnedFd> {
    let (end, held) = io::pipe()?;
    let wait = move || {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while matches!(waitid(WaitId::Pid(process), options), Err(Errno::INTR)) {}
        drop(held);
    };
    std::thread::Builder::new().name("isles-watch".into()).stack_size(64 << 10).spawn(wait)?;
    Ok(end.into())
}

/// Cause of the end of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessExit {
    /// The process ended by itself, with this code.
    Code(i32),
    /// The process was ended by this signal.
    Signal(i32),
    /// The process was killed, because it still ran at the end of the time allowed.
    Overdue,
    /// The system could not report the cause.
    Unseen,
}

impl fmt::Display for ProcessExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProcessExit::Code(code) => write!(f, "ended with code {code}"),
            ProcessExit::Signal(signal) => write!(f, "was ended by signal {signal}"),
            ProcessExit::Overdue => write!(f, "did not end in time and was killed"),
            ProcessExit::Unseen => write!(f, "is gone"),
        }
    }
}

/// A started process.
struct ChildRecord {
    place: PlaceId,
    /// Its id, which is valid while `exit` is `None`: the process is reaped under the same lock.
    process: Pid,
    /// Readable, or hung up, once the process has ended.
    end: OwnedFd,
    exit: Option<ProcessExit>,
    overdue: bool,
}

/// State that the watch and the owner share.
struct ChildTable {
    segment: Segment,
    entries: Mutex<Vec<ChildRecord>>,
    /// Notified at each exit.
    ended: Condvar,
}

impl ChildRecord {
    /// Kills the process, unless it is known to have ended.
    fn kill(&self) {
        if self.exit.is_none() {
            // It may have ended by itself meanwhile.
            let _ = kill_process(self.process, Signal::KILL);
        }
    }
}

impl ChildTable {
    fn entries(&self) -> MutexGuard<'_, Vec<ChildRecord>> {
        // A panic while the lock was held cannot leave an entry half written.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The processes that one [`super::spawn`] started; dropping it kills those that are left.
pub struct Children {
    roster: Arc<ChildTable>,
    /// Children until the watch runs.
    unwatched: Vec<Child>,
    notice: ExitDescriptor,
    watch: Option<JoinHandle<()>>,
    /// Closed when this process is gone, which ends the children.
    _lifeline: PipeWriter,
}

impl Children {
    pub(super) fn new(segment: Segment, lifeline: PipeWriter, notice: ExitDescriptor) -> Children {
        let roster = ChildTable { segment, entries: Mutex::new(Vec::new()), ended: Condvar::new() };
        Children { roster: Arc::new(roster), unwatched: Vec::new(), notice, watch: None, _lifeline: lifeline }
    }

    /// Takes over a started process.
    pub(super) fn add(&mut self, place: PlaceId, mut child: Child) -> Result<(), LaunchError> {
        let process = Pid::from_child(&child);
        match (self.notice)(process) {
            Ok(end) => {
                self.roster.entries().push(ChildRecord { place, process, end, exit: None, overdue: false });
                self.unwatched.push(child);
                Ok(())
            }
            Err(cause) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(LaunchError::NotWatched(cause))
            }
        }
    }

    /// Starts the watch, once all processes have been added.
    pub(super) fn watch(&mut self) -> Result<(), LaunchError> {
        let roster = Arc::clone(&self.roster);
        let ends = roster.entries().iter().map(|entry| entry.end.try_clone()).collect::<io::Result<Vec<_>>>();
        let ends = ends.map_err(LaunchError::NotWatched)?;
        let thread = std::thread::Builder::new().name("isles-watch".into()).stack_size(256 << 10);
        let (sender, receiver) = std::sync::mpsc::channel::<Vec<Child>>();
        let body = move || {
            let children = receiver.recv().unwrap_or_default();
            Watcher {
                roster,
                open: (0..)
                    .zip(children)
                    .zip(ends)
                    .map(|((index, child), end)| RunningProcess { index, child, end })
                    .collect(),
            }
            .run();
        };
        self.watch = Some(thread.spawn(body).map_err(LaunchError::NotWatched)?);
        // The watch cannot be gone: it waits for this message.
        let _ = sender.send(std::mem::take(&mut self.unwatched));
        Ok(())
    }

    /// Waits until every process has become its place.
    ///
    /// # Errors
    /// A process ended, was refused, or is late. The others still run; dropping `self` kills them.
    pub fn wait_until_joined(&self, limit: Duration) -> Result<(), LaunchError> {
        let deadline = Instant::now() + limit;
        loop {
            let seen = self.roster.segment.changes();
            let Some(missing) = self.missing()? else { return Ok(()) };
            if !self.roster.segment.await_change(seen, deadline) {
                return Err(LaunchError::Late(missing));
            }
        }
    }

    /// Returns a place that no process has joined as yet; an error if none will.
    fn missing(&self) -> Result<Option<PlaceId>, LaunchError> {
        let segment = &self.roster.segment;
        let mut missing = None;
        for entry in self.roster.entries().iter() {
            let place = entry.place;
            match (segment.life(place), entry.exit) {
                (Lifecycle::Refused, _) => {
                    let (ours, theirs) = (segment.image(), refused_image(segment, place));
                    return Err(LaunchError::ImageMismatch { place, ours, theirs });
                }
                (Lifecycle::Absent | Lifecycle::Ended(_), Some(exit)) => {
                    return Err(LaunchError::EndedEarly { place, exit });
                }
                (Lifecycle::Absent, None) => missing = Some(place),
                _ => {}
            }
        }
        Ok(missing)
    }

    /// Waits for up to `limit` until all processes have ended, then kills those that are left. Returns the exit of
    /// each.
    pub fn finish(mut self, limit: Duration) -> Vec<(PlaceId, ProcessExit)> {
        let deadline = Instant::now() + limit;
        let mut entries = self.roster.entries();
        while entries.iter().any(|entry| entry.exit.is_none()) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            entries = self.roster.ended.wait_timeout(entries, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(entries);
        self.end_all();
        let entries = self.roster.entries();
        entries.iter().map(|entry| (entry.place, entry.exit.unwrap_or(ProcessExit::Unseen))).collect()
    }

    /// Returns the exit of the process of `place`, if it has ended.
    pub fn exit(&self, place: PlaceId) -> Option<ProcessExit> {
        self.roster.entries().iter().find(|entry| entry.place == place)?.exit
    }

    /// Kills the process of `place`; its death is reported like any other.
    pub fn kill(&self, place: PlaceId) {
        self.roster.entries().iter().filter(|entry| entry.place == place).for_each(ChildRecord::kill);
    }

    /// Kills the processes that are left and waits until the watch has seen their ends.
    fn end_all(&mut self) {
        for entry in self.roster.entries().iter_mut().filter(|entry| entry.exit.is_none()) {
            entry.overdue = true;
            entry.kill();
        }
        for child in &mut self.unwatched {
            let _ = child.wait();
        }
        if let Some(watch) = self.watch.take() {
            let _ = watch.join();
        }
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        self.end_all();
    }
}

/// Returns the image that a refused process reported.
fn refused_image(segment: &Segment, place: PlaceId) -> Image {
    let mut image = Image::default();
    for (half, word) in image.chunks_exact_mut(8).zip(&segment.block(place).image) {
        // Relaxed: ordered by the life, which was read before.
        half.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
    }
    image
}

/// A process whose end has not been seen.
struct RunningProcess {
    index: usize,
    child: Child,
    end: OwnedFd,
}

/// The watching thread.
struct Watcher {
    roster: Arc<ChildTable>,
    open: Vec<RunningProcess>,
}

impl Watcher {
    fn run(mut self) {
        while !self.open.is_empty() {
            let mut fds: Vec<_> =
                self.open.iter().map(|open| PollFd::new(&open.end, PollFlags::IN)).collect();
            // After an error (a signal) no descriptor is ready; the next turn polls again.
            let _ = poll(&mut fds, Some(&CORRUPT_LOOK));
            let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
            let (ended, open) = self.open.into_iter().zip(ready).partition::<Vec<_>, _>(|(_, ready)| *ready);
            self.open = open.into_iter().map(|(open, _)| open).collect();
            for (ended, _) in ended {
                record_end(&self.roster, ended);
            }
            self.end_corrupt();
        }
    }

    /// Kills processes that were declared dead while they ran, so that the declaration is true.
    fn end_corrupt(&self) {
        let entries = self.roster.entries();
        for open in &self.open {
            if let Lifecycle::Corrupt(_) = self.roster.segment.life(entries[open.index].place) {
                entries[open.index].kill();
            }
        }
    }
}

fn record_end(roster: &ChildTable, mut ended: RunningProcess) {
    let mut entries = roster.entries();
    // It has ended, so this does not block; from here on its id may belong to another process.
    let status = ended.child.wait();
    let entry = &mut entries[ended.index];
    let (end, place) = (end_of(&status), entry.place);
    entry.exit = Some(exit_of(status, entry.overdue));
    drop(entries);
    roster.segment.mark_reaped(place, end);
    roster.ended.notify_all();
}

/// Returns the cause of the end that is reported to the other places.
fn end_of(status: &io::Result<ExitStatus>) -> ExitCause {
    let Ok(status) = status else { return ExitCause::Unseen };
    let code = status.code().map(ExitCause::Code);
    code.or(status.signal().map(ExitCause::Signal)).unwrap_or(ExitCause::Unseen)
}

fn exit_of(status: io::Result<ExitStatus>, overdue: bool) -> ProcessExit {
    let Ok(status) = status else { return ProcessExit::Unseen };
    match (status.code(), status.signal()) {
        (Some(code), _) => ProcessExit::Code(code),
        (None, Some(_)) if overdue => ProcessExit::Overdue,
        (None, Some(signal)) => ProcessExit::Signal(signal),
        (None, None) => ProcessExit::Unseen,
    }
}
