//! The event kernel, on which models of time on a chip are built.
//!
//! It has integer picoseconds, a queue with a total order of events, a digest of events, and resources that are
//! reserved ahead instead of simulated hop by hop. It knows neither chips nor places: owners and links are numbers.
//! Everything here is a pure function of its calls: no clock, no thread, no hash map, no floating point. The design is
//! in `docs/design/chip-time.md`.

pub mod exact;
mod fair_share_server;
mod key;
mod max_min_server;
mod network;
mod queue;
#[cfg(test)]
mod tests;
mod timeline;

pub use fair_share_server::{FairShareServer, Job, JobId};
pub use key::{Digest, EventClass, Key, TieBreak};
pub use max_min_server::{JobTime, MaxMinServer};
pub use network::{LinkTiming, Network, Train};
pub use queue::Queue;
pub use timeline::Timeline;
