//! Phasers: barriers that tasks of several places join and leave (X10's clocks).
//!
//! A pure state machine beside [`finish`](crate::finish), on the same idea: a phase is over when every registered task
//! has signalled and no registration is in transit, which is termination of the phase. Each place counts its own
//! parties and reports to the home once a phase, when all of them have signalled; the home answers with the next phase.
//! That is two messages a phase for each place with parties. A place without parties costs nothing and keeps nothing.
//!
//! A task is registered by [`Phasers::open`], or by a registered task that starts it ([`Phasers::register`],
//! [`Phasers::depart`]), while that one has not signalled. So no place that has reported sends a registration, and the
//! proof in docs/design/finish.md holds with "live" read as "has not signalled".
//!
//! The runtime promises the same as for finishes: control messages between live places arrive once and in order; a
//! registration departs before it can arrive; a place that `place_died` names sends nothing any more.
//! registration departs before it can arrive; what `place_died` names is silent for good.

mod coordinator;
mod id;
mod local_phaser;
mod message;
mod phasers;
#[cfg(test)]
mod tests;

pub use crate::place::Entry;
pub use id::{Party, PhaserId, RegistrationTransfer};
pub use message::{Advanced, Control, Output, PhaserError, PhaserReport, REPORT_ENTRIES_MAX, Violation};
pub use phasers::Phasers;
