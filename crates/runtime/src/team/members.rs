//! Who is in a team, by rank.
//!
//! Its own file because the team of all places has no list: thousands of places would keep one each, as long as they
//! are many. It knows nothing of seats and messages. Invariant: no place is a member twice.

use crate::local::Local;
use isles_protocol::PlaceId;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The members of a team, in the order of their ranks.
pub(super) enum Members {
    /// So many places, each with its own number as its rank.
    All(u32),
    /// These.
    Listed(Box<[PlaceId]>),
}

impl Members {
    /// How many there are.
    #[inline]
    pub(super) fn len(&self) -> usize {
        match self {
            Members::All(places) => *places as usize,
            Members::Listed(list) => list.len(),
        }
    }

    /// The member with `rank`.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    #[track_caller]
    pub(super) fn member(&self, rank: usize) -> PlaceId {
        match self {
            Members::All(places) => {
                assert!(rank < *places as usize, "rank {rank} of a team of {places}");
                PlaceId(rank as u32)
            }
            Members::Listed(list) => list[rank],
        }
    }

    /// The rank of `place`; none if it is not a member.
    pub(super) fn rank_of(&self, place: PlaceId) -> Option<usize> {
        match self {
            Members::All(places) => (place.0 < *places).then(|| place.index()),
            Members::Listed(list) => list.iter().position(|member| *member == place),
        }
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = PlaceId> + ExactSizeIterator + Clone + '_ {
        (0..self.len()).map(|rank| self.member(rank))
    }

    /// Whether there is one, and all are places of the run.
    pub(super) fn are_of(&self, local: &Local) -> bool {
        self.len() > 0 && self.iter().all(|member| member.0 < local.places())
    }
}

impl Serialize for Members {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::deserialize(deserializer).map(Members::Listed)
    }
}
