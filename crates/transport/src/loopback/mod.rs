//! The deterministic transport: all places in one thread, in an invented world that a seed fixes.
//!
//! It exists so that whole runs can be tested: order, delay, full queues and the loss of places are drawn
//! from the seed, and the same seed gives the same run. Messages keep their order within one class of one
//! ordered pair of places and in no other way. There is no real clock and no thread here, and no place runs
//! by itself: a driver asks the [`World`] who is next.
//! Invariant: everything that happens is a function of the [`Plan`] and of what the places do.

mod endpoint;
pub(crate) mod memory;
mod plan;
mod state;
#[cfg(test)]
mod tests;
mod world;

pub use endpoint::LoopbackEndpoint;
pub use plan::{ClassDelivery, Plan, PlannedDeath, PlannedStop};
pub use world::World;
