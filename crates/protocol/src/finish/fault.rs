//! What can go wrong in a finish, and how a finish ends.
//!
//! Faults travel with reports, so number and length are bounded here. What a fault *means* to the program
//! is the runtime's affair. The invariant: a dead place is named once and never crowded out by task faults.

use super::kind::Kind;
use super::limits::{FAULTS_MAX, TEXT_BYTES_MAX};
use crate::PlaceId;
use serde::{Deserialize, Serialize};

/// A text of at most [`TEXT_BYTES_MAX`] bytes; what is longer is cut, also on arrival from a peer.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String")]
pub struct Text(Box<str>);

impl Text {
    /// The text itself.
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

/// One thing that went wrong under a finish.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Fault {
    /// A task at `place` ended with an error.
    Error {
        /// Where the task ran.
        place: PlaceId,
        /// The error, as text.
        text: Text,
    },
    /// A task at `place` panicked.
    Panic {
        /// Where the task ran.
        place: PlaceId,
        /// The panic's message.
        text: Text,
    },
    /// A place that the finish had reached, or that held tasks for it, is gone; those tasks are lost.
    DeadPlace {
        /// The place that is gone.
        place: PlaceId,
    },
}

/// Why a finish is cancelled.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Reason {
    /// Somebody asked for it.
    Requested(Text),
    /// The home of the finish is gone, so nobody waits for its tasks any more.
    DeadHome(PlaceId),
}

/// How a finish ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Outcome {
    /// The first [`FAULTS_MAX`] task faults that reached the home, and each dead place once.
    pub faults: Vec<Fault>,
    /// Task faults beyond those kept.
    pub faults_lost: u64,
    /// Set if the finish was cancelled before it ended.
    pub cancelled: Option<Reason>,
    /// What the finish turned out to need.
    pub kind: Kind,
}

impl Outcome {
    /// Whether every task ran to its end without a fault.
    pub fn is_clean(&self) -> bool {
        self.faults.is_empty() && self.faults_lost == 0 && self.cancelled.is_none()
    }
}

/// The faults gathered so far, bounded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Faults {
    pub(super) kept: Vec<Fault>,
    pub(super) lost: u64,
}

impl Faults {
    /// Keeps `fault` if there is room, else counts it.
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
