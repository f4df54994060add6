//! The id and the local key of a finish, and the kind of finish that was needed.
//!
//! They are separate because the id must be unique in the run and comes from peers, while the key must be fast and is
//! never taken from a message. Neither keeps anything alive. X10 lets a compiler or a pragma choose among finish
//! protocols; here one protocol serves all kinds at the cost of the cheapest, and the kind is observed, for reports to
//! people only. Invariant: a [`FinishId`] is never used for two finishes of one run.

use crate::{PlaceId, ordered_keys};
use serde::{Deserialize, Serialize};

/// The id of a finish in the whole run; it travels with each task that the finish governs.
///
/// A value does not prove that the finish exists: it may be over, or invented by a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FinishId {
    /// The place where the finish was opened and where its end is decided.
    pub(super) home: PlaceId,
    /// Number of the finish among those opened at `home`; never reused.
    pub(super) serial: u64,
    /// Slot in which `home` keeps the finish; only a hint for `home`.
    pub(super) slot: u32,
}

impl FinishId {
    /// Length of [`FinishId::to_bytes`].
    pub const BYTES: usize = 16;

    /// The id that no finish has.
    pub(super) const NONE: FinishId = FinishId { home: PlaceId(u32::MAX), serial: u64::MAX, slot: u32::MAX };

    /// Returns the place where the finish was opened.
    #[inline]
    pub fn home(self) -> PlaceId {
        self.home
    }

    /// Returns the number of the finish among those opened at its home; for messages to people.
    pub fn serial(self) -> u64 {
        self.serial
    }

    /// Returns a fixed-width form for message headers, the same on all hosts.
    #[inline]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&self.home.0.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.slot.to_le_bytes());
        bytes[8..].copy_from_slice(&self.serial.to_le_bytes());
        bytes
    }

    /// Inverts [`FinishId::to_bytes`]; any bytes are accepted, and invalid ones refused on use.
    #[inline]
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> FinishId {
        let [a, b, c, d, e, f, g, h, serial @ ..] = bytes;
        FinishId {
            home: PlaceId(u32::from_le_bytes([a, b, c, d])),
            slot: u32::from_le_bytes([e, f, g, h]),
            serial: u64::from_le_bytes(serial),
        }
    }
}

impl std::fmt::Display for FinishId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "finish {} of {}", self.serial, self.home)
    }
}

/// The key of a finish at one place, for that place only.
///
/// Valid while the holder accounts for at least one live task of the finish (or, for the opener, until `Released`).
/// Later use is a programming error and panics; it never reaches another finish (until 2³² finishes have used the same
/// slot).
// One word, the slot above the generation: two fields would be written in two pieces and read in one, which a processor
// serves only once both have left its store buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(u64);

ordered_keys! { Key: 64, |key| u128::from(key.0), |number| Key(number as u64); }

impl Key {
    #[inline]
    pub(super) fn new(slot: usize, generation: u32) -> Key {
        Key((slot as u64) << 32 | u64::from(generation))
    }

    #[inline]
    pub(super) fn slot(self) -> usize {
        (self.0 >> 32) as usize
    }

    #[inline]
    pub(super) fn generation(self) -> u32 {
        self.0 as u32
    }

    /// Returns the key as a number, whose upper half is less than 2³² - 16.
    #[inline]
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// Inverts [`Key::to_bits`].
    #[inline]
    pub fn from_bits(bits: u64) -> Key {
        Key(bits)
    }
}

/// Kind of a finish by the messages it needed, from cheap to expensive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FinishKind {
    /// All tasks stayed at the home: no message.
    Local,
    /// The home sent one task away, which sent none: one report.
    Single,
    /// Only the home sent tasks away: one report for each place, and one question and answer for a place that was busy
    /// again after its report.
    Spmd,
    /// Tasks sent tasks.
    General,
}

impl FinishKind {
    /// All kinds, in order.
    pub const ALL: [FinishKind; 4] =
        [FinishKind::Local, FinishKind::Single, FinishKind::Spmd, FinishKind::General];
}
