//! A hash of all that happened in a run.
//!
//! Two runs that differ here differ in an event: its time, its kind, its owner or its size. It is no protection against
//! anybody who looks for two runs of one digest.

use super::Key;
use super::key::scramble;
use std::fmt;

/// 128 bits over the keys, kinds and sizes of all events so far, and how many there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest {
    lanes: [u64; 2],
    events: u64,
}

impl Digest {
    /// Takes in one event: one of eight kinds, and what there is to say of it in 61 bits.
    #[inline]
    pub fn record(&mut self, key: Key, kind: u32, size: u64) {
        debug_assert!(kind < 8 && size >> 61 == 0, "{kind} or {size} would hide the other");
        let [first, second] = [(key.bits() >> 64) as u64, key.bits() as u64];
        let what = scramble(size ^ u64::from(kind) << 61);
        self.lanes[0] = scramble(self.lanes[0] ^ first).wrapping_add(what);
        self.lanes[1] = scramble(self.lanes[1].rotate_left(23) ^ second ^ what).wrapping_add(self.lanes[0]);
        self.events += 1;
    }

    /// How many events there were.
    pub fn events(&self) -> u64 {
        self.events
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.lanes[0], self.lanes[1])
    }
}
