//! Counts of tasks sent to and received from each place.
//!
//! A small sorted table, because a finish usually touches few places, and the same one many times in a row:
//! a remembered position makes the repeated case a compare and an increment. It knows nothing of finishes.
//! The invariant: places ascend strictly.

use crate::PlaceId;
use serde::{Deserialize, Serialize};
use std::hash::{Hash, Hasher};

/// Tasks exchanged with one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Entry {
    /// The other place.
    pub place: PlaceId,
    /// Tasks sent to `place`.
    pub sent: u64,
    /// Tasks received from `place`.
    pub received: u64,
}

impl Entry {
    fn is_zero(&self) -> bool {
        self.sent == 0 && self.received == 0
    }
}

/// A remembered position; no part of a state's identity.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hint(pub(super) usize);

impl PartialEq for Hint {
    fn eq(&self, _: &Hint) -> bool {
        true
    }
}
impl Eq for Hint {}
impl Hash for Hint {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// A table of [`Entry`], sorted by place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Tally {
    entries: Vec<Entry>,
    /// Sum of `received` over the entries.
    received: u64,
    recent: Hint,
}

impl Tally {
    /// Counts a task sent to `place`.
    #[inline]
    pub(super) fn send(&mut self, place: PlaceId) {
        self.entry(place).sent += 1;
    }

    /// Takes back a [`Tally::send`] that is still counted here.
    pub(super) fn unsend(&mut self, place: PlaceId) {
        let entry = self.entry(place);
        assert!(entry.sent > 0, "no departure to {place} to undo");
        entry.sent -= 1;
    }

    /// Counts a task received from `place`.
    #[inline]
    pub(super) fn receive(&mut self, place: PlaceId) {
        self.entry(place).received += 1;
        self.received += 1;
    }

    /// The entry of `place`, made if there is none.
    #[inline]
    fn entry(&mut self, place: PlaceId) -> &mut Entry {
        let recent = self.recent.0;
        if self.entries.get(recent).is_none_or(|entry| entry.place != place) {
            self.seek(place);
        }
        &mut self.entries[self.recent.0]
    }

    /// Points `recent` at the entry of `place`. A walk over ascending places needs no search.
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

    /// What was exchanged, places ascending; no zeros.
    pub(super) fn entries(&self) -> impl Iterator<Item = Entry> {
        self.entries.iter().copied().filter(|entry| !entry.is_zero())
    }

    /// Whether nothing is counted.
    pub(super) fn is_zero(&self) -> bool {
        self.entries().next().is_none()
    }

    /// All tasks received.
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    /// Forgets all counts; keeps room for at most `spare` entries.
    pub(super) fn clear(&mut self, spare: usize) {
        self.entries.clear();
        self.entries.shrink_to(spare);
        self.received = 0;
        self.recent = Hint::default();
    }
}
