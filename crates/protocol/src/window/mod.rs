//! Windows: memory of each member of a team that others read and write (`docs/design/windows.md`).
//!
//! Decisions without memory and messages: whether an access belongs to the open epoch ([`epoch`]), which places hold
//! the lock of a part ([`lock`]), and which accesses of one epoch conflict ([`conflict`]). The caller chooses the type
//! of a line of the program.

pub mod conflict;
pub mod epoch;
pub mod lock;
#[cfg(test)]
mod tests;

pub use conflict::{AccessKind, AccessLog, Conflict, EpochTag, WindowAccess};
pub use epoch::{AccessEpoch, EpochFault, EpochKind, Exposure, NotClosed};
pub use lock::{LockMode, LockQueue, NotHeld};
