//! The places of a team, or of a part, by rank.
//!
//! All places have no list: thousands of them would keep one each, as long as they are many. It knows nothing of seats
//! and messages. Invariant: no place is a member twice.

use crate::error::Result;
use isles_protocol::PlaceId;
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
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The member with `rank`.
    ///
    /// # Panics
    /// If there is none.
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

    /// The rank of `place`; none if it is not a member.
    pub fn rank_of(&self, place: PlaceId) -> Option<usize> {
        match self {
            Members::All(places) => (place.0 < *places).then(|| place.index()),
            Members::Listed(list) => list.iter().position(|member| *member == place),
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = PlaceId> + ExactSizeIterator + Clone + '_ {
        (0..self.len()).map(|rank| self.member(rank))
    }

    /// Returns `true` if there is a member, and all are of the `places` places of a run.
    pub fn are_of(&self, places: u32) -> bool {
        !self.is_empty() && self.iter().all(|member| member.0 < places)
    }
}

/// A group of places that an instance can be made for, as a team is.
pub trait PlaceGroup {
    /// Returns its places, in the order of their ranks.
    ///
    /// # Errors
    /// [`Misused`](crate::ErrorKind::Misused): the group is one of another run.
    fn members(&self) -> Result<Members>;
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
