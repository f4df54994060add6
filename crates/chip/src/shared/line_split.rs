//! Stretches of bytes, line by line.
//!
//! Arithmetic of addresses: it knows no memory and no core. Invariant: the parts of a stretch lie behind each other and
//! make it up, each within one line.

use super::LINE_BYTES;
use std::ops::Range;

/// The lines of a stretch of bytes: which, which bytes of it, and which of the stretch those are.
pub(super) fn parts(address: u64, len: usize) -> impl Iterator<Item = (u64, Range<usize>, Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == len {
            return None;
        }
        let at = address + done as u64;
        let first = (at % LINE_BYTES as u64) as usize;
        let count = (LINE_BYTES - first).min(len - done);
        let part = (at / LINE_BYTES as u64, first..first + count, done..done + count);
        done += count;
        Some(part)
    })
}

/// Words of four bytes that these bytes lie in.
pub(super) fn words(bytes: &Range<usize>) -> u32 {
    (bytes.end.div_ceil(4) - bytes.start / 4) as u32
}

pub(super) fn mask(bytes: &Range<usize>) -> u32 {
    let below = |end: usize| if end == LINE_BYTES { u32::MAX } else { (1_u32 << end) - 1 };
    below(bytes.end) & !below(bytes.start)
}
