//! The event kernel: what any model of time on a chip is built from.
//!
//! Integer picoseconds, a queue with one total order of events, a digest of what happened, and resources that are
//! reserved ahead instead of being simulated hop by hop. It knows neither chips nor places: owners and links are
//! numbers. Everything here is a pure function of its calls: no clock, no thread, no hash map, no floating point.
//! Read on in `docs/design/chip-time.md`.

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
