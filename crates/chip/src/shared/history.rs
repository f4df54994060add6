//! The content of a line over time, with writes that are not in the order of time.
//!
//! Each byte has the number of the write that stored it, so that contents are compared by writes and not by values.
//! Invariant: queries are never before the merged part of the history.

use super::LINE_BYTES;
use crate::quantity::Picoseconds;

/// Number of a write; 0 is the initial content.
pub(super) type WriteId = u32;

/// The content of a line, with the write of each byte.
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

/// A change of some bytes of a line.
#[derive(Clone, Debug)]
struct LineWrite {
    at: Picoseconds,
    mask: u32,
    image: LineVersion,
}

/// The history of one line.
#[derive(Clone, Debug)]
pub(super) struct History {
    base: LineVersion,
    /// Later changes, in the order of time.
    later: Vec<LineWrite>,
}

impl Default for History {
    fn default() -> Self {
        History { base: LineVersion::EMPTY, later: Vec::new() }
    }
}

impl History {
    /// Adds a change at `at`; there will be no queries before `present` any more.
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
