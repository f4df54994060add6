//! What waits for one place, in one class, by arrival: entries of rings, or messages of packets.
//!
//! What comes from one place arrives in the order in which it was sent; that of several mostly does, so a new letter
//! goes at the end or near to it. Invariant: the keys ascend.

use crate::parcel::Load;
use isles_chip::kernel::Key;
use isles_chip::quantity::Picoseconds;
use isles_transport::{HandlerId, PlaceId};
use std::collections::VecDeque;

/// What a letter brings.
pub(crate) enum Piece {
    /// A part of a block, not the last one.
    Part,
    /// A message, or the last part of a block with all of it.
    Whole { handler: HandlerId, load: Load },
}

/// An entry or a message as the receiver finds it.
pub(crate) struct Letter {
    /// By its arrival.
    pub(crate) key: Key,
    /// The ring, or the class.
    pub(crate) lane: u32,
    pub(crate) source: PlaceId,
    /// Lines to read in the ring, or packets to take.
    pub(crate) lines: u32,
    /// Lines to read in the sender's buffer.
    pub(crate) fetch: u32,
    pub(crate) piece: Piece,
}

#[derive(Default)]
pub(crate) struct Mail {
    letters: VecDeque<Letter>,
}

impl Mail {
    pub(crate) fn put(&mut self, letter: Letter) {
        let mut index = self.letters.len();
        while index > 0 && self.letters[index - 1].key > letter.key {
            index -= 1;
        }
        self.letters.insert(index, letter);
    }

    /// The key of the first letter.
    pub(crate) fn first(&self) -> Option<Key> {
        self.letters.front().map(|letter| letter.key)
    }

    /// The first letter, if it had arrived at `until`.
    pub(crate) fn take(&mut self, until: Picoseconds) -> Option<Letter> {
        self.first().filter(|key| key.time() <= until)?;
        self.letters.pop_front()
    }

    /// Takes out all letters.
    pub(crate) fn clear(&mut self) -> impl Iterator<Item = Letter> + '_ {
        self.letters.drain(..)
    }
}
