//! Joint work of tasks of several places: collectives, messages, channels, windows, shared objects, aggregation,
//! phasers, tasks whose place is chosen, hubs.
//!
//! Each is a service: it has messages of its own, state at each place, and waits that end when a place dies. `table`
//! lists them. They build on the core of a place, `isles_runtime`, which knows none of them and serves them through
//! [`isles_runtime::service`]. The façade `isles` gives each place the table of [`services`].

mod aggregation;
pub mod channel;
mod hubs;
mod phaser;
mod placed;
mod shared;
mod table;
mod team;
mod window;

pub use aggregation::{Aggregator, AggregatorOptions, Gatherer};
pub use channel::{
    Receiver, RecvError, RecvFuture, SendError, SendErrorKind, SendFuture, Sender, Values, channel,
    channel_at,
};
pub use hubs::{
    HubDescription, HubMap, HubRequest, HubSystem, HubTask, KernelCosts, KernelCounts, MemoryBlock, Wait,
};
pub use isles_protocol::aggregation::{ItemRoute, RouteFault, Torus};
pub use phaser::Phaser;
pub use placed::{ChosenPlace, PlacedTask};
pub use shared::{
    AcquireAll, CHUNK_BYTES, Composed, Controller, Exclusion, IncoherentMemory, IndexRange, IndexSpace,
    Mapping, MemoryKind, MemoryRange, ObjectMemory, ReadFuture, ReadGuard, Shared, SharedOptions,
    SharedValue, WriteFuture, WriteGuard, acquire_all, set_incoherent_memory,
};
pub use table::services;
pub use team::{
    BroadcastAlgorithm, Collectives, Shape, Tagged, Team, broken_teams, compare_waits_soon, set_collectives,
    teams_may_be_apart,
};
pub use window::{
    ClosedWindow, Combine, NumberKind, OpenWindow, OwnPart, ServedMemory, Strided, Window, WindowNumber,
    WindowOptions,
};
