//! How far a program says it is, for those who observe its run.
//!
//! A program counts steps: so many there are, so many are done. Both are sums over all places, each of which counts for
//! itself; observers read the sums. Without an observer a call looks at one empty cell. Invariant: nothing here sends a
//! message, waits, takes modelled time, or can be read by the program, so a run with it is the same run.

use super::Local;

/// Says that the program has `steps` more to do, called `unit` in the plural: "sources".
///
/// Any place may say so, as often as there is more to do; the sum of all is the whole. A program has one unit: of
/// several names the last one is shown, and of a long one the first 48 bytes.
///
/// # Panics
/// On a thread that is no place.
pub fn add_total(steps: u64, unit: &str) {
    Local::with(|local| local.note_total(steps, unit));
}

/// Says that `steps` of them are done, by this place. It is cheap enough to be said of each task.
///
/// # Panics
/// On a thread that is no place.
#[inline]
pub fn add_done(steps: u64) {
    Local::with(|local| local.note_done(steps));
}
