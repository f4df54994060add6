//! Start of a process as a place.
//!
//! Reads the variable, attaches to the segment, checks the program image, and starts the watch on the first process.
//! Creates no endpoint.

use super::JOIN_VARIABLE;
use crate::endpoint::let_siblings_read;
use crate::lifecycle::Lifecycle;
use crate::segment::{Image, Segment, SegmentError};
use crate::words::SharedWords;
use isles_transport::PlaceId;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
use rustix::process::{Signal, getpid, kill_process};
use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::Ordering;

/// Error of a process that was started as a place and could not join.
#[derive(Debug)]
pub enum JoinError {
    /// The variable is not in the format of [`super::spawn`].
    BadVariable {
        /// Content of the variable.
        value: String,
    },
    /// The segment refused this process; a different program image was reported to the first process.
    Segment(SegmentError),
    /// There is no such place in the run.
    NoSuchPlace {
        /// The place asked for.
        place: PlaceId,
        /// Number of places of the run.
        places: u32,
    },
    /// The first process cannot be watched.
    NotWatched(io::Error),
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JoinError::BadVariable { value } => write!(
                f,
                "{JOIN_VARIABLE}={value}: it must hold open descriptors and a place as SEGMENT:LIFELINE:PLACE or \
                 SEGMENT:LIFELINE:PLACE:COUNTERS, and is not meant to be set by hand"
            ),
            JoinError::Segment(error) => error.fmt(f),
            JoinError::NoSuchPlace { place, places } => {
                write!(f, "{JOIN_VARIABLE} names {place} of {places} places")
            }
            JoinError::NotWatched(cause) => write!(f, "cannot watch the first process: {cause}"),
        }
    }
}

impl std::error::Error for JoinError {}

/// Attaches a process that [`super::spawn`] started; `None` in a process that was not started as a place.
///
/// Call it once, first in `main`. `image` identifies this program. From then on the process ends when the first process
/// ends. If no other thread runs yet, the variable is removed from the environment, so that programs started by this
/// one do not take it for theirs.
///
/// # Errors
/// The process cannot be a place; it should report the error and exit.
pub fn join(image: Image) -> Option<Result<(Segment, PlaceId), JoinError>> {
    let value = std::env::var_os(JOIN_VARIABLE)?;
    Some(join_by(&value, image))
}

pub(super) fn join_by(value: &OsStr, image: Image) -> Result<(Segment, PlaceId), JoinError> {
    let Inherited { segment: file, lifeline, place, counters } = parse(value)?;
    forget_variable();
    watch(lifeline).map_err(JoinError::NotWatched)?;
    let copy = file.try_clone().map_err(JoinError::NotWatched)?;
    let segment = Segment::attach(file, image).map_err(|error| {
        if let SegmentError::ImageMismatch { ours, .. } = error {
            tell_refused(copy, place, ours);
        }
        JoinError::Segment(error)
    })?;
    if place.0 >= segment.places() {
        return Err(JoinError::NoSuchPlace { place, places: segment.places() });
    }
    if let Some(file) = counters {
        segment.set_counters(SharedWords::attach(file).map_err(JoinError::Segment)?);
    }
    let_siblings_read();
    // Shown in the system's list of processes; a place works without the name.
    let _ = std::fs::write("/proc/self/comm", place.to_string());
    // Relaxed: for display; nothing is ordered by it.
    segment.block(place).process.store(getpid().as_raw_nonzero().get() as u32, Ordering::Relaxed);
    Ok((segment, place))
}

/// Values that the variable hands over.
struct Inherited {
    segment: OwnedFd,
    lifeline: OwnedFd,
    place: PlaceId,
    counters: Option<OwnedFd>,
}

/// Parses the variable and takes over the descriptors.
fn parse(value: &OsStr) -> Result<Inherited, JoinError> {
    let bad = || JoinError::BadVariable { value: value.to_string_lossy().into_owned() };
    let text = value.to_str().ok_or_else(bad)?;
    let numbers: Option<Vec<u32>> = text.split(':').map(|part| part.parse().ok()).collect();
    let (segment, lifeline, place, counters) = match *numbers.ok_or_else(bad)?.as_slice() {
        [segment, lifeline, place] => (segment, lifeline, place, None),
        [segment, lifeline, place, counters] => (segment, lifeline, place, Some(counters)),
        _ => return Err(bad()),
    };
    if segment == lifeline || counters.is_some_and(|number| number == segment || number == lifeline) {
        return Err(bad());
    }
    let own = |number: u32| RawFd::try_from(number).ok().and_then(own_descriptor).ok_or_else(bad);
    Ok(Inherited {
        segment: own(segment)?,
        lifeline: own(lifeline)?,
        place: PlaceId(place),
        counters: counters.map(own).transpose()?,
    })
}

/// Takes over an inherited descriptor, if it is open, and closes it for programs that this one starts.
fn own_descriptor(number: RawFd) -> Option<OwnedFd> {
    if number <= 2 {
        return None;
    }
    // NEED: an inherited descriptor is only a number.
    // SOUND: the borrow is used for two calls that fail on a number that is not open.
    let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
    // An open descriptor with this flag was not inherited: it belongs to other code.
    let flags = fcntl_getfd(descriptor).ok()?;
    if flags.contains(FdFlags::CLOEXEC) {
        return None;
    }
    fcntl_setfd(descriptor, FdFlags::CLOEXEC).ok()?;
    // NEED: as above.
    // SOUND: the starting process made this descriptor for this one and named it in the variable; the flag set
    // above keeps a second call from taking it again.
    Some(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Removes the variable from the environment, if no other thread can be reading it.
fn forget_variable() {
    let alone = std::fs::read_dir("/proc/self/task").is_ok_and(|tasks| tasks.count() == 1);
    if alone {
        // NEED: changing the environment has no safe form.
        // SOUND: this is the only thread of the process.
        unsafe { std::env::remove_var(JOIN_VARIABLE) };
    }
}

/// Reports to the first process that this one runs another program.
fn tell_refused(file: OwnedFd, place: PlaceId, ours: Image) {
    let Ok(segment) = Segment::attach_refused(file) else { return };
    if place.0 < segment.places() {
        let (first, last) = ours.split_at(8);
        for (word, half) in segment.block(place).image.iter().zip([first, last]) {
            // Relaxed: ordered by the life below.
            word.store(u64::from_le_bytes(std::array::from_fn(|byte| half[byte])), Ordering::Relaxed);
        }
        segment.change_life(place, Lifecycle::Refused, |life| life == Lifecycle::Absent);
    }
}

/// Kills this process as soon as the other end of the pipe is closed, that is, when the first process is gone.
fn watch(lifeline: OwnedFd) -> io::Result<()> {
    let end_with_first = move || {
        loop {
            let mut fds = [PollFd::new(&lifeline, PollFlags::empty())];
            if poll(&mut fds, None).is_ok() && !fds[0].revents().is_empty() {
                // By signal, because an orderly exit may wait for a place that is gone.
                let _ = kill_process(getpid(), Signal::KILL);
            }
        }
    };
    // The watch calls two functions; a small stack keeps 256 of them cheap.
    std::thread::Builder::new()
        .name("isles-watch".into())
        .stack_size(64 << 10)
        .spawn(end_with_first)
        .map(drop)
}
