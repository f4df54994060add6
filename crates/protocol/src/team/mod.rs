//! Teams: who their members are, in which order they do collectives, and who sends what to whom.
//!
//! [`Members`] are the places by rank, [`UnclaimedTeams`] those of which only messages have come. [`CollectiveOrder`]
//! is one member's count of collectives, and finds out that another member is in a different one. [`schedule`] has the
//! rounds and trees as functions of ranks. None knows values, tasks or messages beyond their [`CollectiveTag`].

mod members;
mod order;
pub mod schedule;
mod tag;
#[cfg(test)]
mod tests;

pub use members::{Members, UNCLAIMED_MIN, UnclaimedTeams};
pub use order::{AHEAD_MAX, CollectiveOrder, MemberReport, Mismatch};
pub use tag::{CollectiveKind, CollectiveTag, ElementType, ROOTS, STEPS, SpecialKind, TeamId};
