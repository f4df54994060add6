//! Places as a state machine knows them: their numbers, the dead ones, and counts by place.
//!
//! The protocols share [`MembershipView`], which is separate from their state so that a part of that can change while
//! the view is read. It holds the dead and not the living, because a place of a run of thousands has heard of few
//! others. [`ExchangeCounts`] is a small sorted table, because a finish or a phaser usually touches few places, and the
//! same one many times in a row: a remembered position makes the repeated case a compare and an increment. Invariants:
//! a dead place stays dead; places in a table ascend strictly.

use serde::{Deserialize, Serialize};
use std::hash::{Hash, Hasher};

/// The number of one place of a run: `0 .. places`, the same at every place.
///
/// A value proves neither that the place exists in this run nor that it is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PlaceId(pub u32);

impl PlaceId {
    /// Returns the number as an index into a table with one entry for each place.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl std::fmt::Display for PlaceId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "place {}", self.0)
    }
}

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

    /// Marks `place` as dead; returns `false` if it was dead before, does not exist in this run, or is this one.
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

    /// Returns `true` if `place` exists in this run.
    #[inline]
    pub(crate) fn knows(&self, place: PlaceId) -> bool {
        place.0 < self.places
    }

    /// Returns `true` if `place` exists in this run and is not dead.
    #[inline]
    pub(crate) fn is_alive(&self, place: PlaceId) -> bool {
        self.knows(place) && (self.dead.is_empty() || self.dead.binary_search(&place).is_err())
    }

    /// Returns the live places other than this one.
    pub(crate) fn others(&self) -> impl Iterator<Item = PlaceId> {
        (0..self.places).map(PlaceId).filter(|&place| place != self.here && self.is_alive(place))
    }
}

/// Counts of the exchange with one place: tasks of a finish, or registrations of a phaser.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Entry {
    /// The other place.
    pub place: PlaceId,
    /// Number sent to `place`.
    pub sent: u64,
    /// Number received from `place`.
    pub received: u64,
}

impl Entry {
    fn is_zero(&self) -> bool {
        self.sent == 0 && self.received == 0
    }
}

/// A remembered position; not part of a state's identity.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hint(pub(crate) usize);

impl PartialEq for Hint {
    fn eq(&self, _: &Hint) -> bool {
        true
    }
}
impl Eq for Hint {}
impl Hash for Hint {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// A table of [`Entry`] values, sorted by place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ExchangeCounts {
    entries: Vec<Entry>,
    /// Sum of `received` over the entries.
    received: u64,
    recent: Hint,
}

impl ExchangeCounts {
    /// Counts one sent to `place`.
    #[inline]
    pub(crate) fn send(&mut self, place: PlaceId) {
        self.entry(place).sent += 1;
    }

    /// Undoes a [`ExchangeCounts::send`] that is still counted here.
    pub(crate) fn undo_send(&mut self, place: PlaceId) {
        let entry = self.entry(place);
        assert!(entry.sent > 0, "no departure to {place} to undo");
        entry.sent -= 1;
    }

    /// Counts one received from `place`.
    #[inline]
    pub(crate) fn receive(&mut self, place: PlaceId) {
        self.entry(place).received += 1;
        self.received += 1;
    }

    /// Returns the entry of `place`, which it makes if there is none.
    #[inline]
    fn entry(&mut self, place: PlaceId) -> &mut Entry {
        let recent = self.recent.0;
        if self.entries.get(recent).is_none_or(|entry| entry.place != place) {
            self.seek(place);
        }
        &mut self.entries[self.recent.0]
    }

    /// Sets `recent` to the entry of `place`. A walk over ascending places needs no search.
    #[inline(never)]
    fn seek(&mut self, place: PlaceId) {
        let next = self.recent.0 + 1;
        if self.entries.get(next).is_some_and(|entry| entry.place == place) {
            self.recent.0 = next;
            return;
        }
        let fresh = Entry { place, sent: 0, received: 0 };
        if self.entries.last().is_none_or(|last| last.place < place) {
            self.recent.0 = self.entries.len();
            self.entries.push(fresh);
            return;
        }
        self.recent.0 = self.entries.partition_point(|entry| entry.place < place);
        if self.entries[self.recent.0].place != place {
            self.entries.insert(self.recent.0, fresh);
        }
    }

    /// Returns the non-zero counts, by ascending place.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry> {
        self.entries.iter().copied().filter(|entry| !entry.is_zero())
    }

    /// Returns `true` if nothing is counted.
    pub(crate) fn is_zero(&self) -> bool {
        self.entries().next().is_none()
    }

    /// Returns the total number received.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// Clears all counts; keeps room for at most `spare` entries.
    pub(crate) fn clear(&mut self, spare: usize) {
        self.entries.clear();
        self.entries.shrink_to(spare);
        self.received = 0;
        self.recent = Hint::default();
    }
}
