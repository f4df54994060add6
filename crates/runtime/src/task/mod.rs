//! Tasks: their memory, their state, and their way back to their place when they are woken.

mod cell;
pub(crate) mod coop;
mod injector;
#[cfg(all(test, loom))]
mod model;
mod pool;
mod state;
mod sync;
#[cfg(all(test, not(loom)))]
mod tests;

pub use cell::Priority;
pub(crate) use cell::{PollOutcome, TaskRef};
pub(crate) use injector::{Injector, TaskMemory};
pub(crate) use pool::Pool;
