//! The entries that wait for one place, in one class, by arrival.
//!
//! Entries of one ring arrive in the order in which they were written; those of several rings mostly do, so a new one
//! goes at the end or near to it. Invariant: the keys ascend.

use crate::parcel::Load;
use isles_chip::kernel::Key;
use isles_chip::quantity::Picoseconds;
use isles_transport::{HandlerId, PlaceId};
use std::collections::VecDeque;

/// What an entry brings.
pub(super) enum Piece {
    /// A part of a block, not the last one.
    Part,
    /// A message, or the last part of a block with all of it.
    Whole { handler: HandlerId, load: Load },
}

/// An entry as the receiver finds it.
pub(super) struct Letter {
    /// By its arrival.
    pub(super) key: Key,
    pub(super) lane: u32,
    pub(super) source: PlaceId,
    /// Lines to read in the ring.
    pub(super) lines: u32,
    /// Lines to read in the sender's buffer.
    pub(super) fetch: u32,
    pub(super) piece: Piece,
}

#[derive(Default)]
pub(super) struct Mail {
    letters: VecDeque<Letter>,
}

impl Mail {
    pub(super) fn put(&mut self, letter: Letter) {
        let mut index = self.letters.len();
        while index > 0 && self.letters[index - 1].key > letter.key {
            index -= 1;
        }
        self.letters.insert(index, letter);
    }

    /// The key of the first entry.
    pub(super) fn first(&self) -> Option<Key> {
        self.letters.front().map(|letter| letter.key)
    }

    /// The first entry, if it had arrived at `until`.
    pub(super) fn take(&mut self, until: Picoseconds) -> Option<Letter> {
        self.first().filter(|key| key.time() <= until)?;
        self.letters.pop_front()
    }

    /// Takes out all entries.
    pub(super) fn clear(&mut self) -> impl Iterator<Item = Letter> + '_ {
        self.letters.drain(..)
    }
}
