//! One place: its tasks, and everything a program does with them.
//!
//! The crate turns a transport's endpoint into a place of Isles: tasks, `finish`, `at`, handles, teams. It
//! does not know which transports exist, and nothing of machines; the façade `isles` brings both together.
//! Protocol logic that can be tested without threads is in `isles_protocol`.

mod aggregation;
mod anywhere;
mod attachment;
mod call;
pub mod capture;
pub mod channel;
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
mod phaser;
mod place;
pub mod run;
mod shared;
mod task;
mod team;
mod time;
mod window;
pub mod wire;

pub use aggregation::{Aggregator, AggregatorOptions, Gatherer};
pub use anywhere::{ChosenPlace, PlacedTask};
pub use call::site::{Site, SiteCell};
pub use call::span::LibrarySpan;
pub use call::{at, at_here, at_there, is_here, spawn, spawn_at, spawn_detached, spawn_with, try_here};
pub use channel::{
    Receiver, RecvError, RecvFuture, SendError, SendErrorKind, SendFuture, Sender, Values, channel,
    channel_at,
};
pub use error::foreign::{BodyError, StdError, body_error, body_result};
pub use error::{Error, ErrorKind, Result, catch_panic, of_library};
pub use finish::{Canceller, Finish, Outcome, cancel, finish};
pub use handle::{
    Counter, CounterNumber, Global, NotHome, Opened, PlaceGuard, PlaceLocal, PlaceRef, Replicated,
};
pub use isles_protocol::aggregation::{ItemRoute, RouteFault, Torus};
pub use isles_transport::{Table, Work};
pub use join::{everywhere, try_join_all};
pub use local::told::{eprint, print, progress, show};
pub use local::{Clock, CoreReading, Local, Step};
pub use monitor::Monitor;
pub use phaser::Phaser;
pub use place::{Place, here, place_count, place_of, places};
pub use run::process::watch_exits;
pub use run::region::{MeasuredRegion, measured};
pub use run::report::{HeldMemory, PlaceReport, RunReport, hold_memory, together};
pub use shared::{
    AcquireAll, CHUNK_BYTES, Composed, Controller, Exclusion, IncoherentMemory, IndexRange, IndexSpace,
    Mapping, MemoryKind, MemoryStretch, ObjectMemory, ReadFuture, ReadGuard, Shared, SharedOptions,
    SharedValue, WriteFuture, WriteGuard, acquire_all,
};
pub use task::Priority;
pub use task::coop::{sent, yield_now};
pub use team::{BroadcastAlgorithm, Collectives, Shape, Tagged, Team};
pub use time::{Cycles, Sleep, access_file, now, sleep, timeout, work};
pub use window::{
    ClosedWindow, Combine, NumberKind, OpenWindow, OwnPart, Window, WindowNumber, WindowOptions,
};
pub use wire::plain;
