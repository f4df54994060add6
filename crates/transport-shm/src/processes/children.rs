//! The processes that this one started, and the watch on them.
//!
//! One thread waits for all of them at once. A process that ends without having left is marked dead in the
//! segment, which wakes all places; one that broke the format is ended. It decides nothing about the run.

use super::LaunchError;
use crate::life::{End, Life};
use crate::segment::{Image, Segment};
use isles_transport::PlaceId;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fmt;
use std::io::{self, PipeWriter};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often the watch looks for places that broke the format; the end of a process is noticed at once.
const CORRUPT_LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// It had to be ended, because it was still there at the end of the time allowed.
    Overdue,
    /// It was gone, and the system could not say how.
    Unseen,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exit::Code(code) => write!(f, "ended with code {code}"),
            Exit::Signal(signal) => write!(f, "was ended by signal {signal}"),
            Exit::Overdue => write!(f, "did not end in time and was killed"),
            Exit::Unseen => write!(f, "is gone"),
        }
    }
}

/// One process.
struct Entry {
    place: PlaceId,
    pidfd: OwnedFd,
    exit: Option<Exit>,
    overdue: bool,
}

/// What the watch and the owner share.
struct Roster {
    segment: Segment,
    entries: Mutex<Vec<Entry>>,
    /// Notified at each exit.
    ended: Condvar,
}

impl Roster {
    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        // A panic while the lock was held cannot leave an entry half written.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The processes that one [`super::spawn`] started; dropping it ends those that are left.
pub struct Children {
    roster: Arc<Roster>,
    /// Until the watch runs.
    unwatched: Vec<Child>,
    watch: Option<JoinHandle<()>>,
    /// Closed when this process is gone: the end of the children.
    _lifeline: PipeWriter,
}

impl Children {
    pub(super) fn new(segment: Segment, lifeline: PipeWriter) -> Children {
        let roster = Roster { segment, entries: Mutex::new(Vec::new()), ended: Condvar::new() };
        Children { roster: Arc::new(roster), unwatched: Vec::new(), watch: None, _lifeline: lifeline }
    }

    /// Takes over a started process.
    pub(super) fn add(&mut self, place: PlaceId, mut child: Child) -> Result<(), LaunchError> {
        let pid = Pid::from_child(&child);
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => {
                self.roster.entries().push(Entry { place, pidfd, exit: None, overdue: false });
                self.unwatched.push(child);
                Ok(())
            }
            Err(cause) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(LaunchError::NotWatched(cause.into()))
            }
        }
    }

    /// Starts the watch, once all processes have been added.
    pub(super) fn watch(&mut self) -> Result<(), LaunchError> {
        let roster = Arc::clone(&self.roster);
        let pidfds =
            roster.entries().iter().map(|entry| entry.pidfd.try_clone()).collect::<io::Result<Vec<_>>>();
        let pidfds = pidfds.map_err(LaunchError::NotWatched)?;
        let thread = std::thread::Builder::new().name("isles-watch".into()).stack_size(256 << 10);
        let (sender, receiver) = std::sync::mpsc::channel::<Vec<Child>>();
        let body = move || {
            let children = receiver.recv().unwrap_or_default();
            Watch {
                roster,
                open: (0..)
                    .zip(children)
                    .zip(pidfds)
                    .map(|((index, child), pidfd)| Open { index, child, pidfd })
                    .collect(),
            }
            .run();
        };
        self.watch = Some(thread.spawn(body).map_err(LaunchError::NotWatched)?);
        // The watch cannot be gone: it waits for exactly this.
        let _ = sender.send(std::mem::take(&mut self.unwatched));
        Ok(())
    }

    /// Waits until every process has become its place.
    ///
    /// # Errors
    /// Some did not: one ended, was refused, or is late. The others still run; dropping `self` ends them.
    pub fn rendezvous(&self, limit: Duration) -> Result<(), LaunchError> {
        let deadline = Instant::now() + limit;
        loop {
            let seen = self.roster.segment.changes();
            let Some(missing) = self.missing()? else { return Ok(()) };
            if !self.roster.segment.await_change(seen, deadline) {
                return Err(LaunchError::Late(missing));
            }
        }
    }

    /// A place that nobody has joined as; an error if nobody will.
    fn missing(&self) -> Result<Option<PlaceId>, LaunchError> {
        let segment = &self.roster.segment;
        let mut missing = None;
        for entry in self.roster.entries().iter() {
            let place = entry.place;
            match (segment.life(place), entry.exit) {
                (Life::Refused, _) => {
                    let (ours, theirs) = (segment.image(), refused_image(segment, place));
                    return Err(LaunchError::ImageMismatch { place, ours, theirs });
                }
                (Life::Absent | Life::Ended(_), Some(exit)) => {
                    return Err(LaunchError::EndedEarly { place, exit });
                }
                (Life::Absent, None) => missing = Some(place),
                _ => {}
            }
        }
        Ok(missing)
    }

    /// Waits until all processes have ended, at most `limit`, then ends those that are left; says how each ended.
    pub fn finish(mut self, limit: Duration) -> Vec<(PlaceId, Exit)> {
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
        entries.iter().map(|entry| (entry.place, entry.exit.unwrap_or(Exit::Unseen))).collect()
    }

    /// How the process of `place` ended, if it has.
    pub fn exit(&self, place: PlaceId) -> Option<Exit> {
        self.roster.entries().iter().find(|entry| entry.place == place)?.exit
    }

    /// Ends the process of `place`; its death is told as any other.
    pub fn kill(&self, place: PlaceId) {
        if let Some(entry) =
            self.roster.entries().iter().find(|entry| entry.place == place && entry.exit.is_none())
        {
            // It may have ended by itself meanwhile.
            let _ = pidfd_send_signal(&entry.pidfd, Signal::KILL);
        }
    }

    /// Ends what is left and waits for the watch to have seen it.
    fn end_all(&mut self) {
        for entry in self.roster.entries().iter_mut().filter(|entry| entry.exit.is_none()) {
            entry.overdue = true;
            // It may have ended by itself meanwhile.
            let _ = pidfd_send_signal(&entry.pidfd, Signal::KILL);
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

/// The image that a refused process said it runs.
fn refused_image(segment: &Segment, place: PlaceId) -> Image {
    let mut image = Image::default();
    for (half, word) in image.chunks_exact_mut(8).zip(&segment.block(place).image) {
        // Relaxed: ordered by the life, which was read before.
        half.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
    }
    image
}

/// A process that has not been seen to end.
struct Open {
    index: usize,
    child: Child,
    pidfd: OwnedFd,
}

/// The watching thread.
struct Watch {
    roster: Arc<Roster>,
    open: Vec<Open>,
}

impl Watch {
    fn run(mut self) {
        while !self.open.is_empty() {
            let mut fds: Vec<_> =
                self.open.iter().map(|open| PollFd::new(&open.pidfd, PollFlags::IN)).collect();
            // An error (a signal) shows no descriptor as ready; the next turn looks again.
            let _ = poll(&mut fds, Some(&CORRUPT_LOOK));
            let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
            let (ended, open) = self.open.into_iter().zip(ready).partition::<Vec<_>, _>(|(_, ready)| *ready);
            self.open = open.into_iter().map(|(open, _)| open).collect();
            for (ended, _) in ended {
                note_end(&self.roster, ended);
            }
            self.end_corrupt();
        }
    }

    /// Ends processes that were declared dead while they run, so that the declaration is true.
    fn end_corrupt(&self) {
        let entries = self.roster.entries();
        for open in &self.open {
            if let Life::Corrupt(_) = self.roster.segment.life(entries[open.index].place) {
                // It may have ended by itself meanwhile.
                let _ = pidfd_send_signal(&open.pidfd, Signal::KILL);
            }
        }
    }
}

fn note_end(roster: &Roster, mut ended: Open) {
    let status = ended.child.wait();
    let mut entries = roster.entries();
    let entry = &mut entries[ended.index];
    let (end, place) = (end_of(&status), entry.place);
    entry.exit = Some(exit_of(status, entry.overdue));
    drop(entries);
    roster.segment.mark_reaped(place, end);
    roster.ended.notify_all();
}

/// What the other places are told.
fn end_of(status: &io::Result<ExitStatus>) -> End {
    let Ok(status) = status else { return End::Unseen };
    let code = status.code().map(End::Code);
    code.or(status.signal().map(End::Signal)).unwrap_or(End::Unseen)
}

fn exit_of(status: io::Result<ExitStatus>, overdue: bool) -> Exit {
    let Ok(status) = status else { return Exit::Unseen };
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(_)) if overdue => Exit::Overdue,
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Unseen,
    }
}
