//! The memory of a part: words that several places read and write at once.
//!
//! All accesses go through atomic words, so a race of a program yields some value and nothing worse. An access that
//! covers a word in part keeps its other bytes, even if others write them meanwhile. The file knows bytes only.

use super::number::{Combine, NumberKind, combine};
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a word.
pub(super) const WORD_BYTES: usize = size_of::<AtomicU64>();

/// Returns the number of words that hold `bytes` bytes.
pub(super) fn words_of(bytes: u64) -> u64 {
    bytes.div_ceil(WORD_BYTES as u64)
}

/// Pieces of equal length at equal distances, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pieces {
    /// The first byte of the first piece.
    pub(super) offset: usize,
    /// Length of each piece.
    pub(super) block: usize,
    /// Distance from the first byte of a piece to that of the next.
    pub(super) stride: usize,
    /// Number of pieces.
    pub(super) count: usize,
}

impl Pieces {
    /// Returns a layout of one piece.
    #[inline]
    pub(super) fn contiguous(offset: usize, bytes: usize) -> Pieces {
        Pieces { offset, block: bytes, stride: bytes, count: 1 }
    }

    /// Returns the number of bytes of all pieces; `None` if no memory has that many.
    #[inline]
    pub(super) fn bytes(&self) -> Option<usize> {
        self.block.checked_mul(self.count)
    }

    /// Returns the byte after the last one; `None` if no memory has it.
    #[inline]
    pub(super) fn end(&self) -> Option<usize> {
        if self.count == 0 || self.block == 0 {
            return Some(self.offset);
        }
        (self.count - 1).checked_mul(self.stride)?.checked_add(self.block)?.checked_add(self.offset)
    }

    /// Returns `true` if all pieces lie within `bytes` bytes.
    #[inline]
    pub(super) fn is_within(&self, bytes: usize) -> bool {
        if self.count == 1 {
            return self.offset.checked_add(self.block).is_some_and(|end| end <= bytes);
        }
        self.bytes().is_some() && self.end().is_some_and(|end| end <= bytes)
    }

    /// Returns the first byte of each piece.
    pub(super) fn offsets(self) -> impl Iterator<Item = usize> {
        (0..self.count).map(move |index| self.offset + index * self.stride)
    }
}

/// Writes the pieces of `layout`, which lies within `words`, from `source`, which has the same number of bytes.
#[inline]
pub(super) fn store(words: &[AtomicU64], layout: Pieces, source: &[u8]) {
    if layout.block == 0 {
        return;
    }
    if layout.count == 1 {
        // Cutting a single piece would take a division.
        return store_piece(words, layout.offset, source);
    }
    for (offset, piece) in layout.offsets().zip(source.chunks_exact(layout.block)) {
        store_piece(words, offset, piece);
    }
}

/// Reads the pieces of `layout`, which lies within `words`, into `into`, which has the same number of bytes.
#[inline]
pub(super) fn load(words: &[AtomicU64], layout: Pieces, into: &mut [u8]) {
    if layout.block == 0 {
        return;
    }
    if layout.count == 1 {
        return load_piece(words, layout.offset, into);
    }
    for (offset, piece) in layout.offsets().zip(into.chunks_exact_mut(layout.block)) {
        load_piece(words, offset, piece);
    }
}

#[inline]
fn store_piece(words: &[AtomicU64], offset: usize, piece: &[u8]) {
    let (first, within) = (offset / WORD_BYTES, offset % WORD_BYTES);
    let mut words = words[first..].iter();
    let mut piece = piece;
    if within > 0 {
        let (head, rest) = piece.split_at(piece.len().min(WORD_BYTES - within));
        if let Some(word) = words.next() {
            store_part(word, within, head);
        }
        piece = rest;
    }
    let (whole, tail) = piece.as_chunks::<WORD_BYTES>();
    store_whole(words.as_slice(), whole);
    let mut words = words.as_slice()[whole.len().min(words.len())..].iter();
    if let (false, Some(word)) = (tail.is_empty(), words.next()) {
        store_part(word, 0, tail);
    }
}

/// Length from which the processor's string instruction copies faster than a loop of words, in bytes.
const STRING_BYTES_MIN: usize = 512;

/// Writes whole words, up to the end of the shorter slice.
#[inline]
fn store_whole(words: &[AtomicU64], source: &[[u8; WORD_BYTES]]) {
    let len = source.len().min(words.len());
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if len * WORD_BYTES >= STRING_BYTES_MIN {
        // NEED: a loop of atomic stores of words takes a third longer than this instruction.
        // SOUND: both slices have `len` words and live; the words may be changed through a shared reference, are lent
        // to nobody as elements while they are seen as words (`own`), and so are apart from `source`. The instruction
        // stores each byte once, as relaxed atomic stores of bytes would.
        unsafe {
            std::arch::asm!(
                "rep movsb",
                inout("rcx") len * WORD_BYTES => _,
                inout("rsi") source.as_ptr() => _,
                inout("rdi") words.as_ptr() => _,
                options(nostack, preserves_flags)
            );
        }
        return;
    }
    for (word, bytes) in words.iter().zip(source).take(len) {
        // Relaxed is enough: the message that announces the write carries the order.
        word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
    }
}

/// Reads whole words, up to the end of the shorter slice.
#[inline]
fn load_whole(words: &[AtomicU64], into: &mut [[u8; WORD_BYTES]]) {
    let len = into.len().min(words.len());
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if len * WORD_BYTES >= STRING_BYTES_MIN {
        // NEED: as for `store_whole`.
        // SOUND: both slices have `len` words and live; the words are lent to nobody as elements while they are seen as
        // words (`own`), so they are apart from `into`. The instruction loads each byte once, as relaxed atomic loads
        // of bytes would, and loads of this processor are not done before earlier ones.
        unsafe {
            std::arch::asm!(
                "rep movsb",
                inout("rcx") len * WORD_BYTES => _,
                inout("rsi") words.as_ptr() => _,
                inout("rdi") into.as_mut_ptr() => _,
                options(nostack, preserves_flags)
            );
        }
        return;
    }
    for (word, bytes) in words.iter().zip(into).take(len) {
        *bytes = word.load(Ordering::Acquire).to_ne_bytes(); // PAIR window: observe
    }
}

/// Writes some bytes of a word, and keeps the others as they are at that moment.
#[inline]
fn store_part(word: &AtomicU64, at: usize, bytes: &[u8]) {
    let (mut value, mut mask) = ([0; WORD_BYTES], [0; WORD_BYTES]);
    value[at..at + bytes.len()].copy_from_slice(bytes);
    mask[at..at + bytes.len()].fill(0xff);
    let (value, mask) = (u64::from_ne_bytes(value), u64::from_ne_bytes(mask));
    update_word(word, |before| before & !mask | value);
}

/// Replaces a word by the result of `next`, atomically; returns the previous value.
#[inline]
fn update_word(word: &AtomicU64, next: impl Fn(u64) -> u64) -> u64 {
    let mut before = word.load(Ordering::Relaxed);
    loop {
        // PAIR window: publish, observe
        match word.compare_exchange_weak(before, next(before), Ordering::AcqRel, Ordering::Relaxed) {
            Ok(before) => return before,
            Err(now) => before = now,
        }
    }
}

#[inline]
fn load_piece(words: &[AtomicU64], offset: usize, piece: &mut [u8]) {
    let (first, within) = (offset / WORD_BYTES, offset % WORD_BYTES);
    let mut words = words[first..].iter();
    let mut piece = piece;
    if within > 0 {
        let len = piece.len().min(WORD_BYTES - within);
        let (head, rest) = std::mem::take(&mut piece).split_at_mut(len);
        if let Some(word) = words.next() {
            let word = word.load(Ordering::Acquire).to_ne_bytes(); // PAIR window: observe
            head.copy_from_slice(&word[within..within + len]);
        }
        piece = rest;
    }
    let (whole, tail) = piece.as_chunks_mut::<WORD_BYTES>();
    load_whole(words.as_slice(), whole);
    let mut words = words.as_slice()[whole.len().min(words.len())..].iter();
    let len = tail.len();
    if let (1.., Some(word)) = (len, words.next()) {
        tail.copy_from_slice(&word.load(Ordering::Acquire).to_ne_bytes()[..len]); // PAIR window: observe
    }
}

/// Returns the lowest bit, within its word, of a number of `bytes` bytes at byte `offset`.
#[inline]
fn shift(offset: usize, bytes: usize) -> u32 {
    let within = offset % WORD_BYTES;
    let from_low = if cfg!(target_endian = "little") { within } else { WORD_BYTES - within - bytes };
    from_low as u32 * u8::BITS
}

/// Replaces the number at byte `offset`, a multiple of its size, by the result of `next`, atomically; returns the
/// previous value.
#[inline]
fn update(words: &[AtomicU64], offset: usize, kind: NumberKind, next: impl Fn(u64) -> u64) -> u64 {
    let (shift, mask) = (shift(offset, kind.bytes()), kind.mask());
    let word = &words[offset / WORD_BYTES];
    let before = update_word(word, |before| {
        before & !(mask << shift) | (next(before >> shift & mask) & mask) << shift
    });
    before >> shift & mask
}

/// Combines the number at byte `offset` with `operand`; returns the previous value.
#[inline]
pub(super) fn accumulate(
    words: &[AtomicU64],
    offset: usize,
    kind: NumberKind,
    how: Combine,
    operand: u64,
) -> u64 {
    if matches!((kind, how), (NumberKind::U64 | NumberKind::I64, Combine::Sum)) {
        // PAIR window: publish, observe
        return words[offset / WORD_BYTES].fetch_add(operand, Ordering::AcqRel);
    }
    update(words, offset, kind, |before| combine(kind, how, before, operand))
}

/// Replaces the number at byte `offset` by `new` if it has the bits `expected`; returns the previous value.
#[inline]
pub(super) fn compare_exchange(
    words: &[AtomicU64],
    offset: usize,
    kind: NumberKind,
    expected: u64,
    new: u64,
) -> u64 {
    update(words, offset, kind, |before| if before == expected { new } else { before })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes_of(words: &[AtomicU64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect()
    }

    proptest! {
        /// Pieces at any offset, of any length, behave as those of a slice of bytes; all other bytes stay.
        #[test]
        fn pieces_are_written_and_read_as_in_a_slice_of_bytes(
            offset in 0_usize..20,
            block in 0_usize..20,
            gap in 0_usize..10,
            count in 0_usize..4,
        ) {
            let layout = Pieces { offset, block, stride: block + gap, count };
            let words: Vec<AtomicU64> = (0..16).map(|i| AtomicU64::new(0x0101_0101_0101_0101 * i)).collect();
            let mut expected = bytes_of(&words);
            prop_assert!(layout.is_within(expected.len()));
            let source: Vec<u8> = (0..layout.bytes().unwrap()).map(|i| 0x80 | i as u8).collect();
            store(&words, layout, &source);
            for (index, byte) in source.iter().enumerate() {
                expected[offset + index / block * layout.stride + index % block] = *byte;
            }
            prop_assert_eq!(bytes_of(&words), expected);
            let mut read = vec![0; source.len()];
            load(&words, layout, &mut read);
            prop_assert_eq!(read, source);
        }

        /// A number of any kind is combined in place; its neighbours in the word stay.
        #[test]
        fn a_number_is_combined_where_it_lies(value in any::<u64>(), operand in any::<u64>(), at in 0_usize..2) {
            let words = [AtomicU64::new(value), AtomicU64::new(value)];
            let (low, high) = (value as u32, (value >> 32) as u32);
            let offset = 8 + 4 * at;
            let before = accumulate(&words, offset, NumberKind::U32, Combine::Sum, operand & 0xffff_ffff);
            let parts = if cfg!(target_endian = "little") { [low, high] } else { [high, low] };
            prop_assert_eq!(before, u64::from(parts[at]));
            let mut expected = parts;
            expected[at] = parts[at].wrapping_add(operand as u32);
            prop_assert_eq!(&bytes_of(&words)[8..], bytemuck::cast_slice::<u32, u8>(&expected));
            prop_assert_eq!(words[0].load(Ordering::Relaxed), value);
        }
    }

    #[test]
    fn a_layout_that_no_memory_has_is_within_none() {
        for (block, stride, count) in [(usize::MAX, usize::MAX, 2), (2, usize::MAX, 3), (8, 8, 2)] {
            assert!(!Pieces { offset: 4, block, stride, count }.is_within(16));
        }
        assert!(Pieces { offset: 16, block: 0, stride: 9, count: 100 }.is_within(16));
        assert!(!Pieces { offset: 17, block: 0, stride: 9, count: 100 }.is_within(16));
    }
}
