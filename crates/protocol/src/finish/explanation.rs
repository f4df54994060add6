//! Why a finish has not ended yet, in words for people.
//!
//! Built on demand from what this place knows; it asks nobody, so it may be behind the truth.

use super::id::FinishId;
use crate::PlaceId;

/// What a place knows about who still has tasks of a finish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The finish.
    pub finish: FinishId,
    /// The place that gives the explanation; only the home of the finish knows of other places.
    pub here: PlaceId,
    /// Tasks of the finish here, and requests under way.
    pub live: u64,
    /// Whether the finish is cancelled, as far as this place knows.
    pub cancelled: bool,
    /// Other places that are waited for, ascending.
    pub waiting: Vec<Waiting>,
}

/// What is known about one place that is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The place.
    pub place: PlaceId,
    /// Tasks known to be sent there, and not known to have ended.
    pub tasks: u64,
    /// Reports heard from there so far; what is known is as old as the last of them.
    pub reports: u32,
    /// A question to it is unanswered: it is busy, far, or gone.
    pub asked: bool,
}

impl std::fmt::Display for Explanation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}: ", self.finish, if self.cancelled { " (cancelled)" } else { "" })?;
        write!(f, "{} live at {}", self.live, self.here)?;
        for waiting in &self.waiting {
            write!(f, ", {} at {}", waiting.tasks, waiting.place)?;
            write!(f, " ({} reports heard{})", waiting.reports, if waiting.asked { ", asked" } else { "" })?;
        }
        Ok(())
    }
}
