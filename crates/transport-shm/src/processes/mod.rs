//! Places that are processes: starting them, joining, and noticing their end.
//!
//! The first process creates a segment and calls [`spawn`]; each process it starts calls [`join`] before anything else.
//! A process finds its segment by an inherited descriptor that the variable [`JOIN_VARIABLE`] names; nothing has a name
//! that could be left behind. If another program starts the processes, one creates the segment and the others open it
//! through `/proc` (`Segment::join_sibling`). Nothing here moves a message.
//!
//! No process waits in vain for a dead one: the first process watches the others ([`Children`]) and marks them dead;
//! each other process watches the first one and ends with it, by its parent-death signal where that can be trusted, and
//! always by a pipe whose other end closes when the first process is gone.

mod children;
mod join;
mod siblings;

pub use children::{Children, ProcessExit};
pub use join::{JoinError, join};

use crate::endpoint::let_children_read;
use crate::segment::{Image, Segment};
use isles_transport::PlaceId;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, getpid, getppid, kill_process, set_parent_process_death_signal};
use rustix::stdio::{dup2_stdin, dup2_stdout, stdin, stdout};
use rustix::thread::gettid;
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;

/// Environment variable that tells a process that it is a place: `SEGMENT:LIFELINE:PLACE`, two descriptor numbers and
/// the number of the place, in decimal; then `:COUNTERS`, a third descriptor, if the run is observed.
pub const JOIN_VARIABLE: &str = "ISLES_JOIN";

/// Error of starting the places or of waiting until they have joined.
#[derive(Debug)]
pub enum LaunchError {
    /// The system did not start the program.
    NotStarted {
        /// The place that it was to become.
        place: PlaceId,
        /// The program.
        program: OsString,
        /// Error of the system.
        cause: io::Error,
    },
    /// The system refused what is needed to watch a process.
    NotWatched(io::Error),
    /// A process ended before it joined.
    EndedEarly {
        /// The place that it was to become.
        place: PlaceId,
        /// Exit of the process.
        exit: ProcessExit,
    },
    /// A process was refused, because it runs another program image.
    ImageMismatch {
        /// The place that it was to become.
        place: PlaceId,
        /// The image of the run.
        ours: Image,
        /// The image of the refused process.
        theirs: Image,
    },
    /// A process did not join in time.
    Late(PlaceId),
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LaunchError::NotStarted { place, program, cause } => {
                write!(f, "{} could not be started as {place}: {cause}", program.display())
            }
            LaunchError::NotWatched(cause) => write!(f, "cannot watch a started process: {cause}"),
            LaunchError::EndedEarly { place, exit } => {
                write!(f, "the process of {place} {exit} before it joined")
            }
            LaunchError::ImageMismatch { place, ours, theirs } => {
                let (ours, theirs) = (u128::from_be_bytes(*ours), u128::from_be_bytes(*theirs));
                write!(f, "{place} runs program image {theirs:032x}; this run is image {ours:032x}")
            }
            LaunchError::Late(place) => write!(f, "{place} did not join in time"),
        }
    }
}

impl std::error::Error for LaunchError {}

/// Program to start as a place.
#[derive(Clone, Debug)]
pub struct Program {
    /// The file to execute.
    pub file: OsString,
    /// The program's own name (`argv[0]`); `None`: `file`.
    pub name: Option<OsString>,
    /// Its arguments, without the name.
    pub arguments: Vec<OsString>,
    /// Variables that are set in addition to the inherited ones.
    pub environment: Vec<(OsString, OsString)>,
    /// True if its standard output is discarded until it calls [`unmute`].
    pub muted: bool,
}

impl Program {
    /// Returns the running program with its own arguments: the same image even if its file has been replaced.
    pub fn current() -> Program {
        let mut arguments = std::env::args_os();
        let name = arguments.next();
        Program {
            file: "/proc/self/exe".into(),
            name,
            arguments: arguments.collect(),
            environment: Vec::new(),
            muted: false,
        }
    }
}

/// Gives this process, which was started muted, the standard output of the first one, and no standard input.
///
/// # Errors
/// The error of the system.
pub fn unmute() -> io::Result<()> {
    dup2_stdout(stdin())?;
    Ok(dup2_stdin(File::open("/dev/null")?)?)
}

/// Starts `program` once for each of `places`, which join the run of `segment`.
///
/// Place 0 inherits the standard input, the others have none; output and errors are inherited. If this is
/// called from the first thread of the process, the system itself ends the children should this process die;
/// from another thread their own watch does.
///
/// # Errors
/// Places that had been started are killed again.
pub fn spawn(
    segment: &Segment,
    program: &Program,
    places: impl IntoIterator<Item = PlaceId>,
) -> Result<Children, LaunchError> {
    spawn_noticing(children::notice, segment, program, places)
}

/// As [`spawn`], with the function that notices the end of a process.
fn spawn_noticing(
    notice: children::ExitDescriptor,
    segment: &Segment,
    program: &Program,
    places: impl IntoIterator<Item = PlaceId>,
) -> Result<Children, LaunchError> {
    let_children_read();
    let (lifeline, held) = io::pipe().map_err(LaunchError::NotWatched)?;
    let lifeline = Arc::new(lifeline);
    let mut children = Children::new(segment.clone(), held, notice);
    for place in places {
        assert!(place.0 < segment.places(), "{place} of {} places", segment.places());
        let not_started = |cause| LaunchError::NotStarted { place, program: program.file.clone(), cause };
        let child = command(segment, program, place, &lifeline).spawn().map_err(not_started)?;
        children.add(place, child)?;
    }
    children.watch()?;
    Ok(children)
}

fn command(segment: &Segment, program: &Program, place: PlaceId, lifeline: &Arc<io::PipeReader>) -> Command {
    let mut command = Command::new(&program.file);
    if let Some(name) = &program.name {
        command.arg0(name);
    }
    command.args(&program.arguments).envs(program.environment.iter().map(|(name, value)| (name, value)));
    let counters =
        segment.counters().map(|words| format!(":{}", words.file().as_raw_fd())).unwrap_or_default();
    let join = format!("{}:{}:{}{counters}", segment.file().as_raw_fd(), lifeline.as_raw_fd(), place.0);
    command.env(JOIN_VARIABLE, join);
    command.stdin(if place.0 == 0 { Stdio::inherit() } else { Stdio::null() });
    if program.muted {
        // Standard input is the one descriptor that a muted place does not need; without an output, nothing is lost.
        let output = stdout().try_clone_to_owned().map_or_else(|_| Stdio::null(), Stdio::from);
        command.stdout(Stdio::null()).stdin(output);
    }
    let (segment, lifeline) = (segment.clone(), Arc::clone(lifeline));
    let parent = getpid();
    let follows_parent = gettid() == parent;
    // NEED: these descriptors are passed to this child only, and the parent-death signal is set by the child.
    // SOUND: the closure runs between fork and exec: it only makes system calls, and allocates nothing.
    unsafe {
        command.pre_exec(move || {
            fcntl_setfd(segment.file(), FdFlags::empty())?;
            fcntl_setfd(&*lifeline, FdFlags::empty())?;
            if let Some(words) = segment.counters() {
                fcntl_setfd(words.file(), FdFlags::empty())?;
            }
            if follows_parent { follow(parent) } else { Ok(()) }
        });
    }
    command
}

/// Makes the system end this process when `parent` ends, which it may have done already.
fn follow(parent: Pid) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() != Some(parent) {
        // An error would go to the parent, which is gone, and the standard library would abort with a message of its
        // own.
        kill_process(getpid(), Signal::KILL)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
