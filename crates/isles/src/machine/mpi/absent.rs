//! What stands in the place of MPI in a program that was built without the feature `mpi`.
//!
//! The names are those of the module `mpi` that others use. Invariant: a program that is one of several ranks ends with
//! a line that says how to build it, instead of doing everything once for each.

use crate::init;
use crate::launch::{Launch, LaunchError, Main};
use crate::machine::launcher::{Launcher, tell_of_lone_tasks};
use crate::notice::notice;
use crate::trace::Collector;
use isles_runtime::{Result, RunReport};
use isles_transport_shm::processes;

/// Exit code of ranks that were not started as asked.
const EXIT_USAGE: i32 = 2;

const ABSENT: &str = "this program was built without MPI; build it with the feature `mpi` \
     (`cargo build --release --features mpi`), or choose another machine by ISLES_MACHINE, and each rank runs it alone";

/// None: nobody gets ready for a run of ranks.
pub(crate) fn ranks() -> Option<u32> {
    None
}

/// The name and version of the MPI library that this program was built with, if it was with one.
pub fn mpi_library() -> Option<String> {
    None
}

/// No run is one in the middle of an MPI program.
pub(crate) fn is_section(_: &Launch) -> bool {
    false
}

/// Ends the process if it is one of several ranks.
pub(crate) fn serve_if_rank() {
    let is_place = std::env::var_os(processes::JOIN_VARIABLE).is_some();
    if is_place || init::is_running() {
        return;
    }
    if let Some(launcher) = Launcher::of_environment().filter(Launcher::has_several) {
        if launcher.is_first() {
            notice(format_args!("error: machine mpi: {ABSENT}"));
        }
        std::process::exit(EXIT_USAGE);
    }
    tell_of_lone_tasks();
}

/// Refuses.
pub(crate) fn run(
    _launch: &Launch,
    _collector: Option<Collector>,
    _main: Main<'_>,
) -> std::result::Result<(Result<()>, RunReport), LaunchError> {
    Err(LaunchError::Machine(format!("machine mpi: {ABSENT}")))
}
