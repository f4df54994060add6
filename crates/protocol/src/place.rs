//! The number of a place on the wire.

use serde::{Deserialize, Serialize};

/// The number of one place of a run: `0 .. places`, the same at every place.
///
/// Holding one proves neither that the place exists in this run nor that it is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PlaceId(pub u32);

impl PlaceId {
    /// The number as an index into a table with one entry a place.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl std::fmt::Display for PlaceId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "place {}", self.0)
    }
}
