//! What a line held when: its content by time, although who writes it does not come in the order of time.
//!
//! Each byte bears the number of the write that put it there, so that two contents can be compared by what they have
//! seen and not by what they happen to hold. Invariant: what is asked for is never before what was folded.

use super::LINE_BYTES;
use crate::quantity::Picoseconds;

/// The number of a write; nobody has written 0.
pub(super) type WriteId = u32;

/// The content of a line, each byte with the write that it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineVersion {
    pub(super) bytes: [u8; LINE_BYTES],
    pub(super) writes: [WriteId; LINE_BYTES],
}

impl LineVersion {
    pub(super) const EMPTY: LineVersion = LineVersion { bytes: [0; LINE_BYTES], writes: [0; LINE_BYTES] };

    /// Takes the bytes of `mask` from `other`.
    pub(super) fn take(&mut self, mask: u32, other: &LineVersion) {
        for at in (0..LINE_BYTES).filter(|at| mask >> at & 1 == 1) {
            (self.bytes[at], self.writes[at]) = (other.bytes[at], other.writes[at]);
        }
    }
}

/// Bytes of a line that change at one time.
#[derive(Clone, Debug)]
struct LineWrite {
    at: Picoseconds,
    mask: u32,
    image: LineVersion,
}

/// The contents of one line.
#[derive(Clone, Debug)]
pub(super) struct History {
    base: LineVersion,
    /// In order of time.
    later: Vec<LineWrite>,
}

impl Default for History {
    fn default() -> Self {
        History { base: LineVersion::EMPTY, later: Vec::new() }
    }
}

impl History {
    /// Bytes change at `at`; nobody asks for what was before `present` any more.
    pub(super) fn put(&mut self, present: Picoseconds, at: Picoseconds, mask: u32, image: &LineVersion) {
        let place = self.later.partition_point(|change| change.at <= at);
        self.later.insert(place, LineWrite { at, mask, image: *image });
        let past = self.later.partition_point(|change| change.at <= present);
        for change in self.later.drain(..past) {
            self.base.take(change.mask, &change.image);
        }
    }

    /// Returns the contents of the line at `time`.
    pub(super) fn at(&self, time: Picoseconds) -> LineVersion {
        let mut image = self.base;
        for change in self.later.iter().take_while(|change| change.at <= time) {
            image.take(change.mask, &change.image);
        }
        image
    }
}
