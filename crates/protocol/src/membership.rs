//! A place's view of the run: which place is here, and which are gone.
//!
//! Shared by the protocols, apart from their state so that one part of it can be changed while this is read. It holds
//! the dead and not the living, because a place of a run of thousands has heard of few of either.
//! The invariant: a place once dead stays dead.

use crate::PlaceId;

/// A place's view of the places of the run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MembershipView {
    pub(crate) here: PlaceId,
    places: u32,
    /// Ascending.
    dead: Vec<PlaceId>,
}

impl MembershipView {
    pub(crate) fn new(here: PlaceId, places: u32) -> MembershipView {
        assert!(here.0 < places, "{here} is not one of {places} places");
        MembershipView { here, places, dead: Vec::new() }
    }

    /// Marks `place` as dead; false if it was dead before, is not of this run, or is this one.
    pub(crate) fn mark_dead(&mut self, place: PlaceId) -> bool {
        if place == self.here || !self.knows(place) {
            return false;
        }
        match self.dead.binary_search(&place) {
            Ok(_) => false,
            Err(position) => {
                self.dead.insert(position, place);
                true
            }
        }
    }

    /// Whether `place` is of this run.
    #[inline]
    pub(crate) fn knows(&self, place: PlaceId) -> bool {
        place.0 < self.places
    }

    /// Whether `place` is of this run and not dead.
    #[inline]
    pub(crate) fn is_alive(&self, place: PlaceId) -> bool {
        self.knows(place) && (self.dead.is_empty() || self.dead.binary_search(&place).is_err())
    }

    /// The live places other than this one.
    pub(crate) fn others(&self) -> impl Iterator<Item = PlaceId> {
        (0..self.places).map(PlaceId).filter(|&place| place != self.here && self.is_alive(place))
    }
}
