//! The ids of phasers, and of the registrations with them.
//!
//! A [`PhaserId`] and a [`RegistrationTransfer`] travel, so they come from peers and prove nothing; a [`Party`] is for
//! one place only. Invariant: a [`PhaserId`] is never used for two phasers of one run.

use crate::PlaceId;
use serde::{Deserialize, Serialize};

/// The id of a phaser in the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PhaserId {
    /// The place where the phaser was opened and where its phases are ended.
    pub(super) home: PlaceId,
    /// Number of the phaser among those opened at `home`; never reused.
    pub(super) serial: u64,
    /// Slot in which `home` keeps the phaser; only a hint for `home`.
    pub(super) slot: u32,
}

impl PhaserId {
    /// The id that no phaser has.
    pub(super) const NONE: PhaserId = PhaserId { home: PlaceId(u32::MAX), serial: u64::MAX, slot: u32::MAX };

    /// Returns the place where the phaser was opened.
    pub fn home(self) -> PlaceId {
        self.home
    }
}

impl std::fmt::Display for PhaserId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "phaser {} of {}", self.serial, self.home)
    }
}

/// A registration on its way to another place, with its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RegistrationTransfer {
    /// The phaser.
    pub(super) phaser: PhaserId,
    /// The phase while the registration travels: it cannot end before the arrival.
    pub(super) phase: u64,
    /// A dead place, for the receiver to report if it learns of the phase from this registration.
    pub(super) dead: Option<PlaceId>,
}

impl RegistrationTransfer {
    /// Returns the phaser.
    pub fn phaser(self) -> PhaserId {
        self.phaser
    }
}

/// One task's registration with a phaser, for the place of the task only.
///
/// Valid from `open`, `register` or `arrive` until `leave`; later use fails with
/// [`PhaserError::NotRegistered`](super::PhaserError::NotRegistered).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Party {
    pub(super) record: u32,
    pub(super) generation: u32,
}
