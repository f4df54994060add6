//! A section of an MPI program: a run over the processes of a communicator that the program has.
//!
//! All of them call it. The first one runs `main`, the others serve, and all return when the run is over. Invariant:
//! the communicator is copied and only the copy is used; MPI is begun and ended by the program alone.

use super::mpi::{run_place, startup};
use crate::launch::{Launch, LaunchError, Main};
use crate::machine::Machine;
use crate::machine::driver::LaunchResult;
use crate::settings::{ConfigError, Environment, MachineName, Setting};
use isles_runtime::{RunReport, run};
use isles_transport_mpi::Library;
use std::rc::Rc;

impl Launch {
    /// A run in the middle of an MPI program, over the processes of a communicator that it has: an integer as
    /// `MPI_Comm_c2f` gives it, in C as in rsmpi (feature `mpi`). A place a process, by rank.
    ///
    /// All processes of the communicator call this and then [`Launch::run`], at the same point of the program, from the
    /// thread that has called `MPI_Init_thread` with at least `MPI_THREAD_FUNNELED`. `main` runs at the first one; the
    /// others serve, and their result is empty. When the run is over all return, and the communicator is as it was: a
    /// copy was used, which is gone. Tasks may make calls of MPI on communicators of the program meanwhile, if all that
    /// such a call waits for can happen while the places that make it stand still.
    ///
    /// A process that panics or dies inside ends the whole MPI program, as MPI does.
    ///
    /// # Errors
    /// A variable is not allowed (`ISLES_PLACES` may only be the number of processes), or the library has not begun,
    /// has ended, does not offer that level, or knows no such communicator of one group.
    pub fn with_communicator(communicator: i32) -> std::result::Result<Launch, LaunchError> {
        let environment = Environment::read(&[])?;
        let size = Library::size_of(communicator)
            .map_err(|error| LaunchError::Machine(format!("machine mpi: {error}")))?;
        if let Some(Setting { value, source }) = &environment.machine
            && *value != MachineName::Known(Machine::Mpi)
        {
            let allowed = "mpi, because this is an MPI program";
            return Err(ConfigError::new(source, value.text(), allowed).into());
        }
        if let Some(Setting { value, source }) = environment.places.as_ref().filter(|said| said.value != size)
        {
            let allowed = format!("{size}, the number of processes of the communicator");
            return Err(ConfigError::new(source, &value.to_string(), allowed).into());
        }
        Ok(Launch { communicator: Some(communicator), ..Launch::of(environment, Machine::Mpi, size) })
    }
}

/// Runs `main` at the first process of the communicator, and serves at the others.
pub(super) fn run(launch: &Launch, communicator: i32, is_recorded: bool, main: Main<'_>) -> LaunchResult {
    let unable = |text: String| LaunchError::Machine(format!("machine mpi: {text}"));
    if is_recorded {
        return Err(unable("a section of an MPI program cannot be traced; unset ISLES_TRACE".to_owned()));
    }
    if let Some(Setting { value, source }) = &launch.record {
        let allowed = "nothing, because a section of an MPI program cannot be recorded";
        return Err(ConfigError::new(source, &value.to_string_lossy(), allowed.to_owned()).into());
    }
    let library = Rc::new(Library::using(communicator).map_err(|error| unable(error.to_string()))?);
    let connected = startup::connect(&library).map_err(|error| {
        library.end();
        unable(error.to_string())
    })?;
    let is_first = library.rank() == 0;
    let outcome = run_place(&library, connected, None, None, |local| {
        if is_first {
            return run::run_first_place(local, main(), launch.stall);
        }
        run::serve(local);
        (Ok(()), RunReport::default())
    });
    library.end();
    Ok(outcome)
}
