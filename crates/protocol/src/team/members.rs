//! The places of a team, or of a part, by rank.
//!
//! The group of all places needs no list: with thousands of places, each would keep a list of thousands. Invariant: no
//! place is a member twice.

use crate::PlaceId;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::rc::Rc;

/// The members of a team, in the order of their ranks; cheap to clone.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Members {
    /// All of the first *n* places, each with its own number as its rank.
    All(u32),
    /// The listed places, by rank.
    Listed(#[serde(with = "list")] Rc<[PlaceId]>),
}

impl Members {
    /// Returns the number of members.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Members::All(places) => *places as usize,
            Members::Listed(list) => list.len(),
        }
    }

    /// Returns `true` if there are no members; a group that was made has some.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the member with `rank`.
    ///
    /// # Panics
    /// If there is no such member.
    #[inline]
    #[track_caller]
    pub fn member(&self, rank: usize) -> PlaceId {
        match self {
            Members::All(places) => {
                assert!(rank < *places as usize, "rank {rank} of a team of {places}");
                PlaceId(rank as u32)
            }
            Members::Listed(list) => list[rank],
        }
    }

    /// Returns the rank of `place`, or `None` if it is not a member.
    #[inline]
    pub fn rank_of(&self, place: PlaceId) -> Option<usize> {
        match self {
            Members::All(places) => (place.0 < *places).then(|| place.index()),
            Members::Listed(list) => list.iter().position(|member| *member == place),
        }
    }

    /// Returns all members, by rank.
    #[inline]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = PlaceId> + ExactSizeIterator + Clone + '_ {
        (0..self.len()).map(|rank| self.member(rank))
    }

    /// Returns `true` if there is a member, and all are among the `places` places of a run.
    #[inline]
    pub fn are_of(&self, places: u32) -> bool {
        !self.is_empty() && self.iter().all(|member| member.0 < places)
    }
}

/// Number of teams without a handle from which their makers are asked.
pub const UNCLAIMED_MIN: usize = 64;

/// Decides when a place asks the makers of the teams of which it has messages but no handle.
///
/// A step can overtake the handle to its team, and then waits for it. The rest of a team that was dropped waits for a
/// handle that never comes, which only its maker knows. So the makers are asked whenever the number of such teams has
/// doubled since the last time.
#[derive(Clone, Copy, Debug)]
pub struct UnclaimedTeams {
    asks_at: usize,
}

impl Default for UnclaimedTeams {
    fn default() -> UnclaimedTeams {
        UnclaimedTeams { asks_at: UNCLAIMED_MIN }
    }
}

impl UnclaimedTeams {
    /// Returns `true` if there may be enough of them among `teams` teams to ask; cheaper than counting them.
    #[inline]
    pub fn may_be_due(&self, teams: usize) -> bool {
        teams >= self.asks_at
    }

    /// Returns `true` if the makers of `unclaimed` teams must be asked now.
    pub fn ask(&mut self, unclaimed: usize) -> bool {
        let is_due = unclaimed >= self.asks_at;
        if is_due {
            self.asks_at = 2 * unclaimed;
        }
        is_due
    }

    /// Records that a team was dropped; `left` remain.
    pub fn given_up(&mut self, left: usize) {
        self.asks_at = (2 * left).max(UNCLAIMED_MIN);
    }
}

/// Wire form of a list.
mod list {
    use super::*;

    pub(super) fn serialize<S: Serializer>(
        list: &[PlaceId],
        serializer: S,
    ) -> std::result::Result<S::Ok, S::Error> {
        list.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> std::result::Result<Rc<[PlaceId]>, D::Error> {
        Vec::deserialize(deserializer).map(Rc::from)
    }
}
