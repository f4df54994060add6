//! The core of a place: its tasks, `finish`, `at`, and handles.
//!
//! The crate makes a place of Isles from the endpoint of a transport. It knows no concrete transports, nothing of
//! machines, and none of the services that build on it (`isles_services`; see [`service`]); the façade `isles` joins
//! them. Protocol logic that can be tested without threads is in `isles_protocol`.

mod attachment;
mod call;
pub mod capture;

mod error;
mod finish;
mod handle;
mod join;
pub mod limits;
mod local;
mod members;
pub mod memory;
mod message;
mod monitor;

mod part;
mod place;
pub mod run;
pub mod service;
mod task;
mod time;
pub mod wire;

pub use call::site::{Site, SiteCell};
pub use call::span::LibrarySpan;
pub use call::{at, at_here, at_there, is_here, spawn, spawn_at, spawn_detached, spawn_with, try_here};
pub use error::foreign::{BodyError, StdError, body_error, body_result};
pub use error::{Error, ErrorKind, Result, catch_panic, of_library};
pub use finish::{Canceller, Finish, Outcome, cancel, finish};
pub use handle::{
    Counter, CounterNumber, Global, NotHome, Opened, PlaceGuard, PlaceLocal, PlaceRef, Replicated,
};
pub use isles_transport::{Table, Work};
pub use join::{everywhere, try_join_all};
pub use local::output::{eprint, print, progress, show, show_stages};
pub use local::{Clock, CoreReading, Local, Step};
pub use monitor::Monitor;
pub use place::{Place, here, place_count, place_of, places};
pub use run::process::watch_exits;
pub use run::region::{MeasuredRegion, measured};
pub use run::report::{HeldMemory, PlaceReport, RunReport, hold_memory, together};
pub use task::Priority;
pub use task::coop::{flush_sends, yield_now};
pub use time::{Cycles, Sleep, access_file, now, sleep, timeout, work};
pub use wire::plain;
