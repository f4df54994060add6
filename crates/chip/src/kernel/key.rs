//! The order of events, and the digest of all events of a run.
//!
//! A key is (time, class, owner, the owner's sequence number), packed into one 128-bit number so that one comparison
//! decides. The sequence number belongs to the owner and not to the queue, so unrelated owners cannot change the order.
//! Runs with different digests differ in an event: its time, kind, owner or size. The digest is not cryptographic.
//! Invariant: no two keys of one run are equal, so the order is total.

use crate::quantity::Picoseconds;
use std::fmt;

/// Class of an event, which orders simultaneous events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum EventClass {
    /// A message or packet arrives.
    Arrival,
    /// A deadline expires.
    Timer,
    /// A place continues.
    Ready,
}

/// Bits of an owner's number in a key.
const OWNER_BITS: u32 = 24;

/// The position of an event in the order of all events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(u128);

impl Key {
    /// A key after all events. [`TieBreak::key`] never returns it.
    pub(super) const NEVER: Key = Key(u128::MAX);

    /// Returns the time of the event.
    #[inline]
    pub fn time(self) -> Picoseconds {
        Picoseconds((self.0 >> 64) as u64)
    }

    /// Returns the key as a number, for digests.
    pub fn bits(self) -> u128 {
        self.0
    }
}

/// Order of simultaneous events of one class: by owner, or permuted by a seed.
///
/// A result that changes with the seed depends on an order that the chip does not define.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TieBreak {
    seed: u64,
}

impl TieBreak {
    /// Makes the order of `seed`; 0 is the natural one.
    pub fn new(seed: u64) -> TieBreak {
        TieBreak { seed }
    }

    /// Returns the key of event number `sequence` of `owner`.
    ///
    /// # Panics
    /// If `owner` has more than 24 bits.
    #[inline]
    pub fn key(self, time: Picoseconds, class: EventClass, owner: u32, sequence: u32) -> Key {
        assert!(owner < 1 << OWNER_BITS, "owner {owner} does not fit a key");
        let rank = if self.seed == 0 { owner } else { permute(owner, scramble(self.seed ^ time.0)) };
        let low = u64::from(class as u8) << 56 | u64::from(rank) << 32 | u64::from(sequence);
        Key(u128::from(time.0) << 64 | u128::from(low))
    }
}

/// Returns the image of `number` under a permutation of the numbers below 2^24 chosen by `key`; each step is
/// invertible.
#[inline(never)]
fn permute(number: u32, key: u64) -> u32 {
    const MASK: u32 = (1 << OWNER_BITS) - 1;
    let (first, second) = (key as u32, (key >> 32) as u32);
    let mixed = ((number ^ first) & MASK).wrapping_mul(second | 1) & MASK;
    (mixed ^ (mixed >> 12)).wrapping_mul(0x9e_3779) & MASK
}

/// The output function of SplitMix64: each input bit affects all output bits.
#[inline]
fn scramble(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Initial values of the lanes: digits of pi. If a lane were zero, the first event would have no effect.
const LANES: [u64; 2] = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344];

/// Salt for the size, digits of pi as well; the three bits of the kind are zero.
const SALT: u64 = 0x0409_3822_299f_31d0;

/// A 128-bit digest of the keys, kinds and sizes of all events so far, with their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest {
    lanes: [u64; 2],
    events: u64,
}

impl Default for Digest {
    fn default() -> Digest {
        Digest { lanes: LANES, events: 0 }
    }
}

impl Digest {
    /// Adds an event of kind 1 to 7, with a size of 61 bits.
    #[inline]
    pub fn record(&mut self, key: Key, kind: u32, size: u64) {
        debug_assert!((1..8).contains(&kind) && size >> 61 == 0, "{kind} or {size} would hide the other");
        let [time, rest] = [(key.bits() >> 64) as u64, key.bits() as u64];
        // The factors of an event are never zero: the first includes the kind, and the second is odd.
        self.lanes[0] = fold(self.lanes[0] ^ time, size ^ u64::from(kind) << 61 ^ SALT);
        self.lanes[1] = fold(self.lanes[1] ^ rest, self.lanes[0] | 1);
        self.events += 1;
    }

    /// Returns the number of events.
    pub fn events(&self) -> u64 {
        self.events
    }
}

/// Returns the exclusive or of both halves of the product, so that each bit of a factor affects all others. After
/// wyhash's `mum` (Wang Yi 2019, <https://github.com/wangyi-fudan/wyhash>).
#[inline]
fn fold(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    (product >> 64) as u64 ^ product as u64
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.lanes[0], self.lanes[1])
    }
}
