//! The event kernel: what any model of time on a chip is built from.
//!
//! Integer picoseconds, a queue with one total order of events, a digest of what happened, and resources that are
//! reserved ahead instead of being simulated hop by hop. It knows neither chips nor places: owners and links are
//! numbers. Everything here is a pure function of its calls: no clock, no thread, no hash map, no floating point.
//! Read on in `docs/twin.md`.

mod allotment;
mod digest;
pub mod exact;
mod key;
mod network;
mod queue;
mod sharing;
mod timeline;

#[cfg(test)]
mod tests;

pub use allotment::Allotment;
pub use digest::Digest;
pub use key::{EventClass, Key, Ties};
pub use network::{Network, Pace, Train};
pub use queue::Queue;
pub use sharing::{Job, JobId, Sharing};
pub use timeline::Timeline;
