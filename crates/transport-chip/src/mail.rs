//! What waits for one place, by class and by arrival: entries of rings, or messages of packets.
//!
//! What comes from one place arrives in the order in which it was sent; that of several mostly does, so a new letter
//! goes at the end or near to it. Invariant: the keys of a class ascend.

use crate::parcel::{Load, Parcel};
use isles_chip::kernel::Key;
use isles_chip::quantity::Picoseconds;
use isles_transport::{Class, HandlerId, PlaceId};
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
    /// The ring, or the class; odd if data.
    pub(crate) lane: u32,
    pub(crate) source: PlaceId,
    /// Lines to read in the ring, or packets to take.
    pub(crate) lines: u32,
    /// Lines to read in the sender's buffer.
    pub(crate) fetch: u32,
    pub(crate) piece: Piece,
}

impl Letter {
    /// The number of its class: control, then data.
    fn class_index(&self) -> usize {
        self.lane as usize % 2
    }

    /// The message that it brings; none of a part of a block.
    pub(crate) fn open(self) -> Option<Parcel> {
        let class = [Class::Control, Class::Data][self.class_index()];
        match self.piece {
            Piece::Part => None,
            Piece::Whole { handler, load } => {
                Some(Parcel { source: self.source, class, handler, load, arrival: self.key.time() })
            }
        }
    }
}

/// See the file header.
#[derive(Default)]
pub(crate) struct Mail {
    /// Control, then data.
    letters: [VecDeque<Letter>; 2],
}

impl Mail {
    pub(crate) fn put(&mut self, letter: Letter) {
        let letters = &mut self.letters[letter.class_index()];
        let mut index = letters.len();
        while index > 0 && letters[index - 1].key > letter.key {
            index -= 1;
        }
        if index == letters.len() {
            letters.push_back(letter);
        } else {
            letters.insert(index, letter);
        }
    }

    /// When the first letter arrives.
    pub(crate) fn first_arrival(&self) -> Option<Picoseconds> {
        self.letters.iter().filter_map(VecDeque::front).map(|letter| letter.key).min().map(Key::time)
    }

    /// The first letter, of both classes or of control only, if it had arrived at `until`.
    pub(crate) fn take(&mut self, until: Picoseconds, control_only: bool) -> Option<Letter> {
        let [control, data] = &mut self.letters;
        let (first, other) = (control.front(), data.front());
        let control_first = first.is_some_and(|first| other.is_none_or(|other| first.key < other.key));
        let letters = if control_only || control_first { control } else { data };
        letters.front().filter(|letter| letter.key.time() <= until)?;
        letters.pop_front()
    }

    /// Takes out all letters.
    pub(crate) fn clear(&mut self) -> impl Iterator<Item = Letter> + '_ {
        self.letters.iter_mut().flat_map(|letters| letters.drain(..))
    }
}
