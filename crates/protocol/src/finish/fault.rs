//! Faults of a finish, and its outcome.
//!
//! Faults travel with reports, so their number and length are bounded here. Only the runtime knows what a fault *means*
//! to the program: its payload is bytes to this crate. Invariant: a dead place is named once and never displaced by
//! task faults.
//! named once and never crowded out by task faults.

use super::id::FinishKind;
use super::limits::{FAULTS_MAX, PAYLOAD_BYTES_MAX, TEXT_BYTES_MAX};
use crate::PlaceId;
use serde::{Deserialize, Serialize};

/// A text of at most [`TEXT_BYTES_MAX`] bytes; a longer one is cut, also on arrival from a peer.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String")]
pub struct Text(Box<str>);

impl Text {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        let mut end = text.len().min(TEXT_BYTES_MAX);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        Text(text[..end].into())
    }
}

impl From<String> for Text {
    fn from(text: String) -> Text {
        if text.len() > TEXT_BYTES_MAX { Text::from(text.as_str()) } else { Text(text.into_boxed_str()) }
    }
}

impl std::fmt::Display for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A runtime's description of a failed task: at most [`PAYLOAD_BYTES_MAX`] bytes, which mean nothing here.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<u8>")]
pub struct Payload(Box<[u8]>);

impl Payload {
    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Too many bytes for a [`Payload`]: only code that knows their meaning can shorten them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadTooLong {
    /// Length in bytes; [`PAYLOAD_BYTES_MAX`] are allowed.
    pub len: usize,
}

impl std::fmt::Display for PayloadTooLong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a fault of {} bytes; allowed: at most {PAYLOAD_BYTES_MAX}", self.len)
    }
}

impl std::error::Error for PayloadTooLong {}

impl TryFrom<Vec<u8>> for Payload {
    type Error = PayloadTooLong;

    fn try_from(bytes: Vec<u8>) -> Result<Payload, PayloadTooLong> {
        let len = bytes.len();
        if len <= PAYLOAD_BYTES_MAX { Ok(Payload(bytes.into())) } else { Err(PayloadTooLong { len }) }
    }
}

/// An error of a task or place under a finish.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Fault {
    /// A task at `place` failed.
    Failed {
        /// Place at which the task ran.
        place: PlaceId,
        /// Description by the runtime there.
        payload: Payload,
    },
    /// A place that the finish had reached, or that held tasks for it, is dead; those tasks are lost.
    DeadPlace {
        /// The dead place.
        place: PlaceId,
    },
}

impl Fault {
    /// Returns the place of the task that failed, or the dead place.
    pub fn place(&self) -> PlaceId {
        match self {
            Fault::Failed { place, .. } | Fault::DeadPlace { place } => *place,
        }
    }
}

/// Reason why a finish is cancelled.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Reason {
    /// A task or canceller requested it.
    Requested(Text),
    /// The home of the finish is dead, so nothing waits for its tasks any more.
    DeadHome(PlaceId),
}

/// Outcome of a finish.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Outcome {
    /// The first [`FAULTS_MAX`] task faults that reached the home, and each dead place once.
    pub faults: Vec<Fault>,
    /// Number of task faults beyond those kept.
    pub faults_lost: u64,
    /// Set if the finish was cancelled before it ended.
    pub cancelled: Option<Reason>,
    /// Kind of finish that was needed.
    pub kind: FinishKind,
}

impl Outcome {
    /// Returns `true` if every task ran to its end without a fault.
    pub fn is_clean(&self) -> bool {
        self.faults.is_empty() && self.faults_lost == 0 && self.cancelled.is_none()
    }
}

/// The faults collected so far, bounded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Faults {
    pub(super) kept: Vec<Fault>,
    pub(super) lost: u64,
}

impl Faults {
    /// Keeps `fault` if there is room, otherwise counts it.
    pub(super) fn push(&mut self, fault: Fault) {
        if let Fault::DeadPlace { .. } = fault {
            if !self.kept.contains(&fault) {
                self.kept.push(fault);
            }
            return;
        }
        let tasks = self.kept.iter().filter(|kept| !matches!(kept, Fault::DeadPlace { .. })).count();
        if tasks < FAULTS_MAX {
            self.kept.push(fault);
        } else {
            self.lost = self.lost.saturating_add(1);
        }
    }
}
