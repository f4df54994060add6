//! The parking protocol: a place that finds nothing to do sleeps, and whoever gives it something wakes it.
//!
//! Each place has one word in the shared memory. The sleeper announces its sleep and then checks once more for work;
//! the giver publishes work and then checks for a sleeper. The other side must see each side's store before its load,
//! or both check too early and the wake-up is lost. [`Fencing`] says which side pays for that order. Every change of
//! the word is an exchange, never a plain store: all changes have one order that each side knows, and a giver cannot
//! mistake its own earlier wake for an answer to a later sleep.
//!
//! The [`Doorbell`] has one bit for each sender and class. With many places a receiver cannot poll every ring, so a
//! sender rings after it has published a record. A bit says nothing about the records, and may be set although there is
//! none. This file knows no rings and no clock.
//!
//! A giver that is killed between its exchange and the wake would leave the sleeper asleep with a word that says awake;
//! therefore the death of a place wakes all others without a check of their words ([`wake_parked`]).

use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};
use crate::{futex, membarrier};
use std::time::Duration;

/// The word of a place that runs.
const AWAKE: u32 = 0;
/// The word of a place that sleeps or is about to.
const ASLEEP: u32 = 1;

/// The side that pays for the order of store and load in the parking protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fencing {
    /// Both sides run a full fence; the giver at each message.
    Both,
    /// The sleeper makes the kernel run a full fence on every core where a place runs (`membarrier`), and the
    /// giver runs none. Right where places rarely sleep and every nanosecond of a message counts.
    Sleeper,
}

/// Wakes the place of `word` if it sleeps. The caller has published the work before.
#[inline]
pub(crate) fn signal(word: &AtomicU32, fencing: Fencing) {
    match fencing {
        // PAIR parking.word: observe
        Fencing::Both => fence(Ordering::SeqCst),
        // The sleeper's membarrier acts as a fence at this point or at another one of this thread's program order.
        Fencing::Sleeper => membarrier::point(),
    }
    // Relaxed: ordered after the published work by the line above.
    if word.load(Ordering::Relaxed) == ASLEEP {
        wake(word);
    }
}

#[cold]
fn wake(word: &AtomicU32) {
    // PAIR parking.turns: observe
    if word.swap(AWAKE, Ordering::AcqRel) == ASLEEP {
        futex::wake(word);
    }
}

/// Does the first half of a wake, as a waker that is killed in the middle.
#[cfg(all(test, loom))]
pub(crate) fn take_word(word: &AtomicU32) -> bool {
    word.swap(AWAKE, Ordering::AcqRel) == ASLEEP
}

/// Wakes the place of `word`, whatever its value.
///
/// The caller has published the reason before. A giver may have died between its swap and its wake, so the sleeper is
/// woken even if the word says awake.
pub(crate) fn wake_parked(word: &AtomicU32) {
    // PAIR parking.word: observe
    fence(Ordering::SeqCst);
    // Either this swap sees the announced sleep, or the sleeper's check sees the reason.
    // PAIR parking.turns: observe
    word.swap(AWAKE, Ordering::AcqRel);
    futex::wake(word);
}

/// Sleeps until a [`signal`], unless `ready` finds work after the sleep has been announced.
pub(crate) fn park(
    word: &AtomicU32,
    fencing: Fencing,
    timeout: Option<Duration>,
    ready: impl FnOnce() -> bool,
) {
    // PAIR parking.turns: publish
    word.swap(ASLEEP, Ordering::AcqRel);
    // PAIR parking.word: publish
    let ordered = fence_all(fencing);
    if !ready() {
        futex::sleep(
            word,
            ASLEEP,
            if ordered { timeout } else { Some(timeout.map_or(BLIND, |t| t.min(BLIND))) },
        );
    }
    // A giver that still sees the old value wakes nobody, which is harmless.
    // PAIR parking.turns: publish
    word.swap(AWAKE, Ordering::AcqRel);
}

/// Longest sleep if the kernel refused the barrier, so that a lost wake-up costs only this.
const BLIND: Duration = Duration::from_millis(1);

/// Runs the sleeper's fence. Returns `false` if the kernel refused it.
fn fence_all(fencing: Fencing) -> bool {
    fence(Ordering::SeqCst);
    match fencing {
        Fencing::Both => true,
        Fencing::Sleeper => membarrier::barrier(),
    }
}

/// Number of places that a bell can distinguish, and thus the maximum that can share a segment.
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

/// Takes the bits of one word of `class`. The caller must poll the rings of their places afterwards.
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

/// Returns `true` if any of the first `words` words of `class` has a bit.
#[inline]
pub(crate) fn rings(bell: &Doorbell, class: usize, words: usize) -> bool {
    // Relaxed: ordered by the fence of the parking protocol.
    bell.bits[class][..words].iter().any(|word| word.load(Ordering::Relaxed) != 0)
}
