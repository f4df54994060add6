//! A message buffer as a first-in, first-out queue of entries from any core: the device of the Xipx operating system.
//!
//! After M. Ziwisky and D. Brylow, "BareMichael: A Minimalistic Bare-metal Framework for the Intel SCC" (MARC 2012),
//! section IV A. An entry has its source core and channel, its target channel and its length, so any number of
//! programs can share a buffer, and none depends on the order of another's calls. Writers take a test-and-set lock,
//! which the SCC has for each core; the reader takes none.
//!
//! Invariant: the words from `read` to `written` are complete entries. Both count words, modulo twice the capacity, so
//! that full and empty differ.

#![no_std]
#![forbid(unsafe_code)]

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// 64-bit words of the header of an entry.
pub const HEADER_WORDS: usize = 2;
/// Words before the entries of a buffer: a line of 32 bytes for each of the two counts.
pub const COUNT_WORDS: usize = 8;
const READ: usize = 4;
const WORD_BYTES: usize = 8;

/// Header of an entry: its source, its target and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Core that sent it.
    pub source_core: u16,
    /// Channel from which it was sent.
    pub source_channel: u16,
    /// Channel to which it is addressed.
    pub target_channel: u16,
    /// Bytes of the payload.
    pub length: u32,
}

/// Channels of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channels {
    /// Channel from which it is sent.
    pub source: u16,
    /// Channel to which it is addressed.
    pub target: u16,
}

/// Reason why an entry was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotSent {
    /// Another writer, the core with this number, holds the lock.
    Locked(u32),
    /// There is no room until the reader takes entries out.
    Full,
    /// The payload can never fit; the longest allowed one has this many bytes.
    TooLong(usize),
}

/// Reason why an entry was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotReceived {
    /// There is no entry.
    Empty,
    /// The payload is longer than the reader's memory; the entry stays.
    NoRoom(Header),
}

/// A message buffer and the lock of its core.
///
/// A zeroed buffer is empty. There may be any number of writers and one reader at a time.
#[derive(Clone, Copy, Debug)]
pub struct Ring<'a> {
    lock: &'a AtomicU32,
    words: &'a [AtomicU64],
}

impl<'a> Ring<'a> {
    /// Creates the ring in `words`, which writers lock with `lock`.
    ///
    /// # Panics
    /// If there are not enough words for an entry without payload.
    pub fn new(lock: &'a AtomicU32, words: &'a [AtomicU64]) -> Ring<'a> {
        assert!(words.len() >= COUNT_WORDS + HEADER_WORDS, "a ring of {} words", words.len());
        Ring { lock, words }
    }

    /// Returns the longest payload in bytes.
    pub fn longest(&self) -> usize {
        (self.capacity() as usize - HEADER_WORDS) * WORD_BYTES
    }

    /// Writes an entry of `core`.
    ///
    /// # Errors
    /// The lock is held, or there is no room now or ever. Nothing has been written.
    pub fn send(&self, core: u16, channels: Channels, payload: &[u8]) -> Result<(), NotSent> {
        if payload.len() > self.longest() {
            return Err(NotSent::TooLong(self.longest()));
        }
        // PAIR mpb.lock: observe
        let free = self.lock.compare_exchange(0, u32::from(core) + 1, Ordering::Acquire, Ordering::Relaxed);
        if let Err(owner) = free {
            return Err(NotSent::Locked(owner.wrapping_sub(1)));
        }
        let sent = self.send_locked(core, channels, payload);
        // PAIR mpb.lock: publish
        self.lock.store(0, Ordering::Release);
        sent
    }

    fn send_locked(&self, core: u16, channels: Channels, payload: &[u8]) -> Result<(), NotSent> {
        let written = self.words[0].load(Ordering::Relaxed);
        // PAIR mpb.read: observe
        let read = self.words[READ].load(Ordering::Acquire);
        let needed = entry_words(payload.len() as u64);
        if self.distance(read, written) + needed > self.capacity() {
            return Err(NotSent::Full);
        }
        let header = [
            u64::from(core) | u64::from(channels.source) << 16 | u64::from(channels.target) << 32,
            payload.len() as u64,
        ];
        for (at, word) in (0..).zip(header) {
            self.slot(self.after(written, at)).store(word, Ordering::Relaxed);
        }
        let (words, rest) = payload.as_chunks::<WORD_BYTES>();
        let start = self.after(written, HEADER_WORDS as u64);
        let (before_end, from_begin) = self.runs(start, words.len());
        let (first, second) = words.split_at(before_end.len());
        store_words(before_end, first);
        store_words(from_begin, second);
        if !rest.is_empty() {
            let mut word = [0; WORD_BYTES];
            word[..rest.len()].copy_from_slice(rest);
            self.slot(self.after(start, words.len() as u64))
                .store(u64::from_le_bytes(word), Ordering::Relaxed);
        }
        // PAIR mpb.written: publish
        self.words[0].store(self.after(written, needed), Ordering::Release);
        Ok(())
    }

    /// Returns the header of the oldest entry without removing it.
    pub fn peek(&self) -> Option<Header> {
        let read = self.words[READ].load(Ordering::Relaxed);
        // PAIR mpb.written: observe
        if self.words[0].load(Ordering::Acquire) == read {
            return None;
        }
        let first = self.slot(read).load(Ordering::Relaxed);
        Some(Header {
            source_core: first as u16,
            source_channel: (first >> 16) as u16,
            target_channel: (first >> 32) as u16,
            length: self.slot(self.after(read, 1)).load(Ordering::Relaxed) as u32,
        })
    }

    /// Removes the oldest entry, and copies its payload to the front of `into`.
    ///
    /// # Errors
    /// There is no entry, or it does not fit.
    pub fn receive(&self, into: &mut [u8]) -> Result<Header, NotReceived> {
        let header = self.peek().ok_or(NotReceived::Empty)?;
        let Some(payload) = into.get_mut(..header.length as usize) else {
            return Err(NotReceived::NoRoom(header));
        };
        let read = self.words[READ].load(Ordering::Relaxed);
        let (words, rest) = payload.as_chunks_mut::<WORD_BYTES>();
        let start = self.after(read, HEADER_WORDS as u64);
        let (before_end, from_begin) = self.runs(start, words.len());
        let (first, second) = words.split_at_mut(before_end.len());
        load_words(before_end, first);
        load_words(from_begin, second);
        if !rest.is_empty() {
            let word = self.slot(self.after(start, words.len() as u64)).load(Ordering::Relaxed);
            rest.copy_from_slice(&word.to_le_bytes()[..rest.len()]);
        }
        // PAIR mpb.read: publish
        self.words[READ].store(self.after(read, entry_words(header.length.into())), Ordering::Release);
        Ok(header)
    }

    /// Returns the number of words for entries.
    fn capacity(&self) -> u64 {
        (self.words.len() - COUNT_WORDS) as u64
    }

    /// Returns the count that is `words` after the count `at`.
    fn after(&self, at: u64, words: u64) -> u64 {
        // Neither exceeds twice the capacity. A division would take as long as everything else for a word.
        let (sum, end) = (at + words, 2 * self.capacity());
        if sum < end { sum } else { sum - end }
    }

    /// Returns the number of words from one count to a later one.
    fn distance(&self, from: u64, to: u64) -> u64 {
        self.after(to, 2 * self.capacity() - from)
    }

    /// Returns the index of the word with count `at` among those for entries.
    fn index(&self, at: u64) -> usize {
        let capacity = self.capacity();
        (if at < capacity { at } else { at - capacity }) as usize
    }

    fn slot(&self, at: u64) -> &AtomicU64 {
        &self.words[COUNT_WORDS + self.index(at)]
    }

    /// Returns the slots of `count` words from `at` on: those before the end of the ring, and those from its
    /// beginning.
    fn runs(&self, at: u64, count: usize) -> (&'a [AtomicU64], &'a [AtomicU64]) {
        let entries = &self.words[COUNT_WORDS..];
        let behind = &entries[self.index(at)..];
        let first = count.min(behind.len());
        (&behind[..first], &entries[..count - first])
    }
}

/// Words copied between two checks for the end: an emulated branch takes as long as several words.
const UNROLLED: usize = 8;

/// Copies `words` into `slots`, of equal length.
fn store_words(slots: &[AtomicU64], words: &[[u8; WORD_BYTES]]) {
    let (slot_blocks, last_slots) = slots.as_chunks::<UNROLLED>();
    let (word_blocks, last_words) = words.as_chunks::<UNROLLED>();
    for (slots, words) in slot_blocks.iter().zip(word_blocks) {
        for (slot, word) in slots.iter().zip(words) {
            slot.store(u64::from_le_bytes(*word), Ordering::Relaxed);
        }
    }
    for (slot, word) in last_slots.iter().zip(last_words) {
        slot.store(u64::from_le_bytes(*word), Ordering::Relaxed);
    }
}

/// Copies `slots` into `words`, of equal length.
fn load_words(slots: &[AtomicU64], words: &mut [[u8; WORD_BYTES]]) {
    let (slot_blocks, last_slots) = slots.as_chunks::<UNROLLED>();
    let (word_blocks, last_words) = words.as_chunks_mut::<UNROLLED>();
    for (slots, words) in slot_blocks.iter().zip(word_blocks) {
        for (slot, word) in slots.iter().zip(words) {
            *word = slot.load(Ordering::Relaxed).to_le_bytes();
        }
    }
    for (slot, word) in last_slots.iter().zip(last_words) {
        *word = slot.load(Ordering::Relaxed).to_le_bytes();
    }
}

/// Returns the words of an entry with a payload of `bytes`.
fn entry_words(bytes: u64) -> u64 {
    HEADER_WORDS as u64 + bytes.div_ceil(WORD_BYTES as u64)
}
