//! What every finish at a place needs to know about the run: who is here, and who is gone.
//!
//! Apart from the finishes so that one of them can be changed while this is read.
//! The invariant: a place once dead stays dead.

use super::control::{Refusal, Violation};
use crate::PlaceId;

/// A place's view of the places of the run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Site {
    pub(super) here: PlaceId,
    dead: Vec<bool>,
}

impl Site {
    pub(super) fn new(here: PlaceId, places: u32) -> Site {
        assert!(here.0 < places, "{here} is not one of {places} places");
        Site { here, dead: vec![false; places as usize] }
    }

    /// Marks `place` as dead; false if it was dead before, is not of this run, or is this one.
    pub(super) fn bury(&mut self, place: PlaceId) -> bool {
        place != self.here
            && self.dead.get_mut(place.index()).is_some_and(|dead| !std::mem::replace(dead, true))
    }

    /// Whether `place` is of this run.
    pub(super) fn knows(&self, place: PlaceId) -> bool {
        place.index() < self.dead.len()
    }

    /// Whether `place` is of this run and not dead.
    #[inline]
    pub(super) fn is_alive(&self, place: PlaceId) -> bool {
        self.dead.get(place.index()) == Some(&false)
    }

    /// The live places other than this one.
    pub(super) fn others(&self) -> impl Iterator<Item = PlaceId> {
        let places = (0..self.dead.len() as u32).map(PlaceId);
        places.filter(|&place| place != self.here && self.is_alive(place))
    }

    /// Passes if tasks may be exchanged with `place`.
    #[inline]
    pub(super) fn admit(&self, place: PlaceId) -> Result<(), Refusal> {
        if self.is_alive(place) { Ok(()) } else { Err(self.refuse(place)) }
    }

    #[cold]
    fn refuse(&self, place: PlaceId) -> Refusal {
        if self.knows(place) { Refusal::DeadPlace(place) } else { Refusal::UnknownPlace(place) }
    }

    /// Passes if `place` is of this run and not this one.
    pub(super) fn admit_peer(&self, place: PlaceId) -> Result<(), Violation> {
        if self.knows(place) && place != self.here { Ok(()) } else { Err(Violation::UnknownPlace(place)) }
    }
}
