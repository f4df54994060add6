//! Messages between places about finishes, and the actions that a place must take next.
//!
//! Control messages travel in their own class, in order between each pair of places, and are never dropped between live
//! places. Tasks are not control messages: they carry a [`FinishId`] in the runtime's own header. Invariant: every
//! message is at most [`CONTROL_BYTES_MAX`](super::CONTROL_BYTES_MAX) bytes in postcard.

use super::fault::{Fault, Outcome, Reason};
use super::id::{FinishId, Key};
use crate::PlaceId;
use crate::place::{Entry, MembershipView};
use serde::{Deserialize, Serialize};

/// A message between two places about finishes; fields are what the sender knew when it sent it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Control {
    /// To the home: no task of the finish is live here, and these are the counts since the last report.
    Report(FinishReport),
    /// From the home: report when no task is live here and `missing` more tasks than last reported have arrived.
    Ask {
        /// The finish.
        finish: FinishId,
        /// Number of tasks that the home knows were sent there and that are not yet reported as received.
        missing: u64,
        /// A dead place: forget what was exchanged with it before answering.
        dead: Option<PlaceId>,
    },
    /// To the home: a request to cancel. From the home: the finish is cancelled.
    Cancel {
        /// The finish.
        finish: FinishId,
        /// Reason of the cancellation.
        reason: Reason,
    },
    /// From the home: these finishes are over, and no message will name them again.
    Forget {
        /// The numbers of finishes of the sender; at most [`FORGET_BATCH`](super::FORGET_BATCH).
        serials: Vec<u64>,
    },
}

/// Report of a quiet place to the home of a finish, or one part of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FinishReport {
    /// The finish.
    pub finish: FinishId,
    /// Number of questions of the home that this answers; set in the last part.
    pub answers: u32,
    /// Tasks exchanged since the last report; at most [`REPORT_ENTRIES_MAX`](super::REPORT_ENTRIES_MAX).
    pub entries: Vec<Entry>,
    /// A new fault.
    pub fault: Option<Fault>,
    /// Number of new faults that were not kept.
    pub faults_lost: u64,
    /// True if the report continues in the next control message about this finish from this place.
    pub more: bool,
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
    /// The finish opened here is over; `key` is no longer valid.
    Released {
        /// The finish.
        key: Key,
        /// Outcome of the finish.
        outcome: Outcome,
    },
    /// Drop the tasks of the finish that are here (each still needs its `end`).
    Cancelled {
        /// The finish.
        key: Key,
        /// Reason of the cancellation.
        reason: Reason,
    },
}

/// Reason why a task may not travel, or is not accepted. Nothing was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TaskRefusal {
    /// The other place, or the home of the finish, is dead.
    DeadPlace(PlaceId),
    /// The finish is cancelled; drop the new task.
    Cancelled,
    /// There is no such finish (any more); drop the task, the peer is at fault.
    UnknownFinish,
    /// There is no such place in this run; drop the message, the peer is at fault.
    UnknownPlace(PlaceId),
}

impl std::fmt::Display for TaskRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TaskRefusal::DeadPlace(place) => write!(f, "{place} is dead"),
            TaskRefusal::Cancelled => write!(f, "the enclosing finish is cancelled"),
            TaskRefusal::UnknownFinish => write!(f, "no such finish"),
            TaskRefusal::UnknownPlace(place) => write!(f, "no such place: {place}"),
        }
    }
}

impl std::error::Error for TaskRefusal {}

/// A control message that breaks the protocol. It changed nothing; the peer runs other code, or is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Violation {
    /// The sender, or a place in the message, does not exist in this run.
    UnknownPlace(PlaceId),
    /// The sender may not say this about that finish.
    NotItsHome(FinishId),
    /// A report counts tasks between a place and itself, or answers questions never asked.
    FalseReport(FinishId),
    /// The home forgets a finish that has live tasks here.
    EarlyForget(PlaceId),
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Violation::UnknownPlace(place) => {
                write!(f, "control message names {place}, but this run does not have it")
            }
            Violation::NotItsHome(finish) => write!(f, "control message about {finish} from a wrong place"),
            Violation::FalseReport(finish) => write!(f, "impossible report about {finish}"),
            Violation::EarlyForget(place) => write!(f, "{place} forgets a finish that has live tasks"),
        }
    }
}

impl std::error::Error for Violation {}

impl MembershipView {
    /// Returns `Ok` if tasks may be exchanged with `place`.
    #[inline]
    pub(super) fn admit(&self, place: PlaceId) -> Result<(), TaskRefusal> {
        if self.is_alive(place) { Ok(()) } else { Err(self.refuse(place)) }
    }

    #[cold]
    fn refuse(&self, place: PlaceId) -> TaskRefusal {
        if self.knows(place) { TaskRefusal::DeadPlace(place) } else { TaskRefusal::UnknownPlace(place) }
    }

    /// Returns `Ok` if `place` exists in this run and is not this one.
    pub(super) fn admit_peer(&self, place: PlaceId) -> Result<(), Violation> {
        if self.knows(place) && place != self.here { Ok(()) } else { Err(Violation::UnknownPlace(place)) }
    }
}
