//! The bell: which places have sent something, one bit for each of them and each class.
//!
//! With many places a receiver cannot look into every ring; a sender rings after it has published a record.
//! The bell says nothing about what arrived, and a bit may be set with nothing behind it.

use crate::sync::{AtomicU64, Ordering, fence};

/// How many places a bell can tell apart, and so the most that can share a segment.
pub const PLACES_MAX: u32 = 256;

/// Words of one class.
const WORDS: usize = PLACES_MAX as usize / 64;

/// The bits of one receiver, in its shared memory: control first, then data.
#[repr(C, align(64))]
pub(crate) struct Doorbell {
    /// Bit `source % 64` of word `source / 64` of a class: senders set it, the owner clears it.
    pub bits: [[AtomicU64; WORDS]; 2],
}

/// Rings for `source`, whose record in a ring of `class` (0 or 1) was published before this call; a full fence.
#[inline]
pub(crate) fn ring(bell: &Doorbell, class: usize, source: u32) {
    let word = &bell.bits[class][source as usize / 64];
    let bit = 1u64 << (source % 64);
    // PAIR bell.bits: publish
    fence(Ordering::SeqCst);
    // Relaxed: with the fence, a bit seen set is cleared only by an owner that will then see the record.
    if word.load(Ordering::Relaxed) & bit == 0 {
        word.fetch_or(bit, Ordering::SeqCst);
    }
}

/// Takes the bits of one word of `class`; the rings of their places are to be looked into after this call.
#[inline]
pub(crate) fn take(bell: &Doorbell, class: usize, index: usize) -> u64 {
    let word = &bell.bits[class][index];
    // Relaxed: a hint that saves the exclusive access; the caller looks again before it sleeps.
    if word.load(Ordering::Relaxed) == 0 {
        return 0;
    }
    let bits = word.swap(0, Ordering::SeqCst);
    // PAIR bell.bits: observe
    fence(Ordering::SeqCst);
    bits
}

/// Whether any of the first `words` words of `class` has a bit.
#[inline]
pub(crate) fn rings(bell: &Doorbell, class: usize, words: usize) -> bool {
    // Relaxed: ordered by the fence of the parking place.
    bell.bits[class][..words].iter().any(|word| word.load(Ordering::Relaxed) != 0)
}
