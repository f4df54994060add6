//! The deterministic transport: all places in one thread, in a simulated world that a seed determines.
//!
//! It exists so that whole runs can be tested: order, delay, full queues and deaths of places are drawn from the seed,
//! and the same seed gives the same run. Only messages of one class and one ordered pair of places keep their order.
//! There is no real clock and no thread, and no place runs by itself: a driver asks the [`World`] which place is next.
//! Invariant: every event is a function of the [`Plan`] and the actions of the places.

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
