//! Isles runs one Rust program over many places.
//!
//! A *place* is an address space with tasks: a thread of this process, a process of this host, a rank of an MPI job,
//! or a core of a modelled chip. [`at!`] runs code at a place and brings its value back, [`spawn_at!`] starts a task
//! there, [`finish`] waits for everything started inside, at any place. The machine is chosen when the program starts,
//! not when it is written.
//!
//! ```
//! use isles::prelude::*;
//!
//! #[isles::main]
//! async fn main() -> isles::Result<()> {
//!     finish(async {
//!         for place in places() {
//!             spawn_at!(place, println!("hello from {}", here()));
//!         }
//!     })
//!     .await
//! }
//! ```
//!
//! This is the only crate that a program imports, and the only one that knows all machines. Features: `chip` (modelled
//! chips, on by default), `mpi`, `guests` (places as guests of a hypervisor), `svm` (shared virtual memory), `ndarray`,
//! and `anyhow`.

#![forbid(unsafe_code)]

// The macros expand to paths that begin with `::isles`, in this crate as in programs.
extern crate self as isles;

pub mod array;
#[cfg(feature = "chip")]
mod chip;
pub mod glb;
pub mod hub;
pub mod io;
pub mod pipeline;
#[cfg(feature = "svm")]
pub mod svm;

mod init;
mod launch;
mod machine;
mod observe;
mod output;
mod print;
mod random;
mod settings;
mod test;
mod trace;

#[cfg(feature = "chip")]
pub use chip::{
    Broadcast, ChipReport, CodeTime, CoreList, CoreListError, Energy, GovernorPolicy, IdlePolicy, Ledger,
    ModelEnergy, ModelledChip, Placement, PlacementError, Protocol, ProtocolRoom, Reduce, Shape,
    TimeCategory, clocks, interrupts, shared_memory,
};
pub use isles_macros::{at, everywhere, main, select, spawn_anywhere, spawn_at, test};
pub use isles_runtime::capture::{CanReturn, CanSend, CanTravel};
/// The table of counters that each place keeps, for [`PlaceReport::count`] and [`RunReport::count`].
pub mod counters {
    pub use isles_telemetry::{COUNTERS, CounterGroup, CounterId, CounterInfo, CounterKind};
}
pub use isles_runtime::memory;
pub use isles_runtime::{
    Canceller, Counter, CounterNumber, Cycles, Error, ErrorKind, Finish, Global, HeldMemory, MeasuredRegion,
    Monitor, NotHome, Opened, Outcome, Place, PlaceGuard, PlaceLocal, PlaceRef, PlaceReport, Priority,
    Replicated, Result, RunReport, Sleep, StdError, Table, Work, cancel, finish, flush_sends, here,
    hold_memory, measured, now, place_count, places, plain, progress, show, sleep, spawn, spawn_detached,
    spawn_with, timeout, work, yield_now,
};
pub use isles_services::{
    AcquireAll, Aggregator, AggregatorOptions, Combine, Composed, Controller, Exclusion, Gatherer,
    IndexRange, IndexSpace, ItemRoute, Mapping, MemoryKind, Phaser, ReadGuard, Receiver, RecvError,
    RecvFuture, RouteFault, SendError, SendErrorKind, SendFuture, Sender, ServedMemory, Shared,
    SharedOptions, SharedValue, Strided, Tagged, Team, Torus, Values, Window, WindowNumber, WindowOptions,
    WriteGuard, acquire_all, channel, channel_at,
};
pub use isles_transport_shm::Pinning;
#[doc(hidden)]
pub use isles_transport_shm::reads_others;
pub use launch::{Launch, LaunchError};
pub use machine::Machine;
#[cfg(not(feature = "chip"))]
pub use machine::ModelledChip;
pub use machine::SMALL_TASK_BYTES;
pub use machine::driver::{mpi_library, name_package};
pub use machine::loopback::{Plan, PlannedDeath, PlannedStop, simulate};
pub use machine::processes::{is_isles_program, serve_if_joined};
pub use machine::supervisor::{EXIT_BY_SIGNAL, SignalForwarder, supervise_as_process_1};
pub use output::{Claim, Destination, EXIT_CLOSED_PIPE, WriteError, write_to_standard};
pub use print::{StandardStream, notice, print_text};
pub use random::{Random, random_here};
pub use settings::table::{
    FlagGroup, MachineClass, Machines, OnOtherMachines, SETTINGS, SettingDefault, SettingFlag, SettingRow,
    setting,
};
pub use settings::unknown_variables::warn_of_unknown_variables;
pub use settings::{
    ConfigError, FLAGS_VARIABLE, Flag, Report, SWEEP_VARIABLE, VERSION_VARIABLE, read_command_settings,
};

/// The items that most programs need.
pub mod prelude {
    pub use crate::{
        Aggregator, Counter, Cycles, Gatherer, Global, Monitor, Phaser, Place, PlaceLocal, Receiver,
        RecvError, Replicated, SendError, SendErrorKind, Sender, Shared, Team, Window, Work, at, channel,
        channel_at, everywhere, finish, here, now, place_count, places, select, spawn, spawn_anywhere,
        spawn_at, spawn_detached, work, yield_now,
    };
}

/// Decodes bytes as a tape; for fuzzing.
#[cfg(all(fuzzing, feature = "chip"))]
#[doc(hidden)]
pub fn fuzz_tape(bytes: &[u8]) {
    chip::work::tape::fuzz(bytes);
}

/// Items used by the expansion of the macros; not part of the interface.
#[doc(hidden)]
pub mod __private {
    pub use crate::init::run as init;
    pub use crate::launch::main;
    pub use crate::machine::Machine;
    pub use crate::test::test;
    pub use isles_runtime::capture::*;
    pub use isles_runtime::wire::{DecodeError, EncodeError, Reader, Writer};
    pub use isles_runtime::{
        BodyError, Error, Place, Result, Site, SiteCell, at, at_here, at_there, body_error, body_result,
        eprint, everywhere, is_here, place_of, print, spawn_at, try_here,
    };
    pub use isles_services::ChosenPlace;
    pub use isles_services::channel::select;
    pub use std::format_args;
}
