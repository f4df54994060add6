//! Teams: their members, the order of their collectives, and the schedules of their messages.
//!
//! [`Members`] are the places by rank, [`UnclaimedTeams`] the teams of which only messages have arrived.
//! [`CollectiveOrder`] is one member's count of collectives, and detects that another member is in a different one.
//! [`schedule`] has rounds and trees as functions of ranks. None knows values, tasks or messages beyond their
//! [`CollectiveTag`].

mod members;
mod order;
pub mod schedule;
mod tag;
#[cfg(test)]
mod tests;

pub use members::{Members, UNCLAIMED_MIN, UnclaimedTeams};
pub use order::{AHEAD_MAX, CollectiveOrder, MemberReport, Mismatch};
pub use tag::{CollectiveKind, CollectiveTag, ElementType, ROOTS, STEPS, SpecialKind, TeamId};
