//! Messages between places about phasers, and the actions that a place must take next.
//!
//! Control messages travel in their own class, in order between each pair of places. Registrations travel with tasks.
//! Invariant: a report of more than [`REPORT_ENTRIES_MAX`] entries goes in parts, so each message is small.

use super::id::{Party, PhaserId};
use crate::PlaceId;
use crate::place::Entry;
use serde::{Deserialize, Serialize};

/// Largest number of table entries in one part of a report.
pub const REPORT_ENTRIES_MAX: usize = 32;

/// A message between two places about phasers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Control {
    /// To the home: all parties here have signalled.
    Report(PhaserReport),
    /// From the home: the phase before `phase` is over.
    Advance {
        /// The phaser.
        phaser: PhaserId,
        /// The phase that begins.
        phase: u64,
        /// A dead place that had parties in the phase that is over.
        dead: Option<PlaceId>,
    },
    /// From the home: `dead` is dead. Forget what it sent, and report when all parties here have signalled.
    Ask {
        /// The phaser.
        phaser: PhaserId,
        /// The dead place.
        dead: PlaceId,
    },
}

/// Report of a place to the home when all its parties have signalled, or one part of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PhaserReport {
    /// The phaser.
    pub phaser: PhaserId,
    /// The phase in which they have signalled.
    pub phase: u64,
    /// Number of parties registered here.
    pub parties: u64,
    /// Number of questions of the home that this answers; set in the last part.
    pub answers: u32,
    /// Registrations exchanged since the last report; at most [`REPORT_ENTRIES_MAX`].
    pub entries: Vec<Entry>,
    /// True if the report continues in the next message about this phaser from this place.
    pub more: bool,
}

/// A new phase, as a party sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Advanced {
    /// The present phase of the party.
    pub phase: u64,
    /// A place whose parties did not signal because it is dead. If it is the home, this is no new phase, and it is
    /// unknown whether the old one ended elsewhere.
    pub dead: Option<PlaceId>,
}

/// Action that a place must take next, in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Output {
    /// Send `control` to `to`.
    Send {
        /// The receiver.
        to: PlaceId,
        /// The message.
        control: Control,
    },
    /// Wake the task that waits as `party`.
    Wake {
        /// Party that waited.
        party: Party,
        /// Result of its wait.
        advanced: Advanced,
    },
}

/// Reason why a call was refused; nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PhaserError {
    /// The task is not registered (any more).
    NotRegistered,
    /// The task has signalled and not waited: it may not register others until it has advanced.
    Resumed,
    /// The task waits for the next phase.
    Waiting,
    /// The other place, or the home of the phaser, is dead.
    DeadPlace(PlaceId),
    /// There is no such place in this run: the peer is at fault.
    UnknownPlace(PlaceId),
    /// There is no such phaser (any more): the peer is at fault.
    UnknownPhaser(PhaserId),
    /// The registration is for an impossible phase: the peer is at fault.
    WrongPhase {
        /// The phase of the registration.
        ticket: u64,
        /// The phase here.
        here: u64,
    },
}

impl std::fmt::Display for PhaserError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PhaserError::NotRegistered => write!(f, "the task is not registered with the phaser"),
            PhaserError::Resumed => write!(f, "the task has resumed the phaser; it must advance first"),
            PhaserError::Waiting => write!(f, "the task waits for the phaser"),
            PhaserError::DeadPlace(place) => write!(f, "{place} is dead"),
            PhaserError::UnknownPlace(place) => write!(f, "no such place: {place}"),
            PhaserError::UnknownPhaser(phaser) => write!(f, "no such phaser: {phaser}"),
            PhaserError::WrongPhase { ticket, here } => {
                write!(f, "a registration for phase {ticket} arrived in phase {here}")
            }
        }
    }
}

impl std::error::Error for PhaserError {}

/// A control message that breaks the protocol. It changed nothing; the peer runs other code, or is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Violation {
    /// The sender, or a place in the message, does not exist in this run.
    UnknownPlace(PlaceId),
    /// The sender may not say this about that phaser.
    NotItsHome(PhaserId),
    /// A report that no correct place sends.
    FalseReport(PhaserId),
    /// A phase begins while parties here have not signalled, or a phase was skipped.
    FalseAdvance(PhaserId),
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Violation::UnknownPlace(place) => write!(f, "{place} is not of this run"),
            Violation::NotItsHome(phaser) => write!(f, "control message about {phaser} from a wrong place"),
            Violation::FalseReport(phaser) => write!(f, "impossible report about {phaser}"),
            Violation::FalseAdvance(phaser) => write!(f, "impossible phase of {phaser}"),
        }
    }
}

impl std::error::Error for Violation {}
