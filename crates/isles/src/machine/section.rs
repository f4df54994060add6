//! A section of an MPI program: a run over the processes of a communicator of the program.
//!
//! All of these processes call it. The first one runs `main`, the others serve, and all return when the run is over.
//! Invariants: only a duplicate of the communicator is used; the program alone initializes and finalizes MPI.

use super::mpi::{run_place, startup};
use crate::launch::{Launch, LaunchError, Main};
use crate::machine::Machine;
use crate::machine::driver::LaunchResult;
use crate::settings::{ConfigError, Environment, MachineName, Setting};
use isles_runtime::{RunReport, run};
use isles_transport_mpi::Library;
use std::rc::Rc;

impl Launch {
    /// Makes a run within an MPI program, over the processes of one of its communicators, with one place per rank
    /// (feature `mpi`). `communicator` is the integer that `MPI_Comm_c2f` returns.
    ///
    /// All processes of the communicator call this and then [`Launch::run`], at the same point of the program, from the
    /// thread that has called `MPI_Init_thread` with at least `MPI_THREAD_FUNNELED`. `main` runs at the first one; the
    /// others serve, and return an empty report. All return when the run is over. The run uses a duplicate of the
    /// communicator and frees it. Tasks may call MPI on communicators of the program, provided that such a call can
    /// complete while the calling places are blocked in it.
    ///
    /// A process that panics or dies in the run ends the whole MPI program, as usual in MPI.
    ///
    /// # Errors
    /// A variable has an invalid value (`ISLES_PLACES` must be the number of processes); MPI is not initialized, is
    /// finalized, or lacks that thread level; or `communicator` is not a valid intracommunicator.
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
