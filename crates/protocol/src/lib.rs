//! Protocols between places, as pure state machines.
//!
//! In this crate the protocols of Isles can be tested without threads, clocks or machines: inputs go in, outputs come
//! out. It reads no clock, spawns nothing, blocks on nothing, and never panics on a peer's message. Its callers carry
//! out the outputs.

#![forbid(unsafe_code)]

pub mod aggregation;
pub mod balance;
pub mod channel;
pub mod credit;
pub mod finish;
pub mod hub;
pub mod job;
pub mod matching;
pub mod ordered;
pub mod phaser;
pub mod pipeline;
mod place;
pub mod shared;
pub mod sharing;
pub mod svm;
pub mod team;
#[cfg(test)]
mod tests;
pub mod window;

pub use place::PlaceId;
