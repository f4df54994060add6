//! The memory of a world: the bytes of messages in flight, and the regions of a place.
//!
//! Messages are ordinary vectors, a little longer than asked for, so that the bytes can start at an aligned address
//! without unsafe code. Invariant: the vector is never resized, so its bytes never move.

use crate::{BlockMemory, LendingError, Region, RegionTable};
use isles_protocol::ordered::OrderedMap;
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::atomic::AtomicU64;

/// Number of words that a place has for its regions: few, so that programs can run out of them.
const REGION_WORDS: u64 = 1 << 13;

/// Alignment of the first byte: that of [`BlockMemory`], and more than inline messages need.
const ALIGN: usize = 64;

/// Content of unwritten memory: not zero, so that no code relies on zeros.
const UNWRITTEN: u8 = 0xa5;

/// Bytes aligned to 64: the memory of a message in a world of one thread.
pub struct AlignedBytes {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl AlignedBytes {
    /// Creates `len` bytes whose content is unspecified.
    pub fn new(len: usize) -> AlignedBytes {
        let memory = vec![UNWRITTEN; len + ALIGN - 1];
        let start = memory.as_ptr().align_offset(ALIGN);
        AlignedBytes { memory, start, len }
    }

    /// Changes the length to `len` bytes, whose content is unspecified, without allocation. Returns `false` if the
    /// memory is too short.
    pub fn renew(&mut self, len: usize) -> bool {
        let is_long_enough = self.start + len <= self.memory.len();
        if is_long_enough {
            self.len = len;
        }
        is_long_enough
    }

    pub(crate) fn copy_of(bytes: &[u8]) -> AlignedBytes {
        let mut copy = AlignedBytes::new(bytes.len());
        copy.bytes_mut().copy_from_slice(bytes);
        copy
    }

    /// Returns the bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }

    /// Returns the bytes for writing.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }

    /// Keeps the first `len` bytes.
    ///
    /// # Panics
    /// If there are fewer.
    #[inline]
    pub fn shorten(&mut self, len: usize) {
        assert!(len <= self.len, "{len} bytes were written into room for {}", self.len);
        self.len = len;
    }
}

/// A large message; while it lives it counts against the blocks of its sender.
pub(super) struct LoopbackBlock {
    content: AlignedBytes,
    live: Rc<Cell<usize>>,
}

impl LoopbackBlock {
    pub(super) fn new(content: AlignedBytes, live: &Rc<Cell<usize>>) -> LoopbackBlock {
        live.set(live.get() + 1);
        LoopbackBlock { content, live: Rc::clone(live) }
    }
}

impl BlockMemory for LoopbackBlock {
    fn bytes(&self) -> &[u8] {
        self.content.bytes()
    }
}

impl Drop for LoopbackBlock {
    fn drop(&mut self) {
        self.live.set(self.live.get() - 1);
    }
}

/// The memory for the regions of one place, allocated when it is first used.
pub(super) struct RegionMemory {
    pub(super) table: RefCell<RegionTable>,
    words: OnceCell<Box<[AtomicU64]>>,
}

impl RegionMemory {
    pub(super) fn new() -> RegionMemory {
        RegionMemory { table: RefCell::new(RegionTable::new(REGION_WORDS, 1)), words: OnceCell::new() }
    }

    /// Returns the words of a region, if they exist here.
    pub(super) fn of(&self, region: Region) -> Option<&[AtomicU64]> {
        let end = region.start.checked_add(region.words).filter(|end| *end <= REGION_WORDS)?;
        let words = self.words.get_or_init(|| (0..REGION_WORDS).map(|_| AtomicU64::new(0)).collect());
        Some(&words[region.start as usize..end as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_as_far_as_it_reaches() {
        let mut bytes = AlignedBytes::new(100);
        bytes.shorten(3);
        assert!(bytes.renew(100) && bytes.bytes().len() == 100);
        bytes.bytes_mut().fill(7);
        assert_eq!(bytes.bytes().as_ptr().align_offset(ALIGN), 0);
        assert!(!bytes.renew(100 + ALIGN) && bytes.bytes() == [7; 100]);
    }
}

/// Copies of the slices that the places of a world lend, made when they were lent, by token.
#[derive(Default)]
pub(super) struct LentCopies {
    slices: OrderedMap<u64, Vec<u8>>,
    last_token: u64,
}

impl LentCopies {
    pub(super) fn lend(&mut self, bytes: &[u8]) -> u64 {
        self.last_token += 1;
        self.slices.insert(self.last_token, bytes.to_vec());
        self.last_token
    }

    pub(super) fn end(&mut self, token: u64) {
        self.slices.remove(token);
    }

    pub(super) fn read(&self, token: u64, offset: u64, into: &mut [u8]) -> Result<(), LendingError> {
        if token.is_multiple_of(3) {
            return Err(LendingError::NotAllowed);
        }
        let slice = self.slices.get(token).ok_or(LendingError::Ended)?;
        let lent = usize::try_from(offset).ok().and_then(|offset| slice.get(offset..)?.get(..into.len()));
        into.copy_from_slice(lent.ok_or(LendingError::Ended)?);
        Ok(())
    }
}
