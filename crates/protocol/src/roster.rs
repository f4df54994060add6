//! A place's view of the run: which place is here, and which are gone.
//!
//! Shared by the protocols, apart from their state so that one part of it can be changed while this is read.
//! The invariant: a place once dead stays dead.

use crate::PlaceId;

/// A place's view of the places of the run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Roster {
    pub(crate) here: PlaceId,
    dead: Vec<bool>,
}

impl Roster {
    pub(crate) fn new(here: PlaceId, places: u32) -> Roster {
        assert!(here.0 < places, "{here} is not one of {places} places");
        Roster { here, dead: vec![false; places as usize] }
    }

    /// Marks `place` as dead; false if it was dead before, is not of this run, or is this one.
    pub(crate) fn bury(&mut self, place: PlaceId) -> bool {
        place != self.here
            && self.dead.get_mut(place.index()).is_some_and(|dead| !std::mem::replace(dead, true))
    }

    /// Whether `place` is of this run.
    pub(crate) fn knows(&self, place: PlaceId) -> bool {
        place.index() < self.dead.len()
    }

    /// Whether `place` is of this run and not dead.
    #[inline]
    pub(crate) fn is_alive(&self, place: PlaceId) -> bool {
        self.dead.get(place.index()) == Some(&false)
    }

    /// The live places other than this one.
    pub(crate) fn others(&self) -> impl Iterator<Item = PlaceId> {
        let places = (0..self.dead.len() as u32).map(PlaceId);
        places.filter(|&place| place != self.here && self.is_alive(place))
    }
}
