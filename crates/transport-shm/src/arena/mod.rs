//! The arena, from which a place lends memory for its large messages.
//!
//! Only the sender allocates, with tables in its own memory, so a broken peer can disturb one block at most. A receiver
//! returns a block by one store to its header, which the sender notices when it next needs memory. This file handles
//! offsets and touches no block: [`BlockStore`] is the memory.
//!
//! Pages are expensive: getting one from the system takes longer than filling it. So returned memory keeps its pages,
//! whatever its size; neighbours are merged, and the next block is placed where there are pages. The kept pages are
//! bounded by [`CACHED_BYTES_MAX`] or by the recent use of long blocks, and an idle place keeps none ([`Arena::idle`]).
//!
//! Invariants: an offset is in exactly one of *free* and *lent*; all offsets and lengths are multiples of
//! [`PAGE_BYTES`]; lent memory has pages; *kept* is the part of *free* that has pages; at most `credit` bytes of each
//! class, or one block, are lent to receivers that have not taken them out of their rings.

#[cfg(not(loom))]
pub(crate) mod block;
#[cfg(test)]
mod tests;

use crate::layout::{BLOCK_HEADER_BYTES, PAGE_BYTES};
use isles_transport::{Class, PlaceId, Ranges};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Maximum number of returned bytes that keep their pages, if blocks are no longer than the credit; further pages go
/// back to the system.
///
/// Enough for several messages of 2 MiB in flight, and for one graph of some million edges.
pub(crate) const CACHED_BYTES_MAX: u64 = 32 << 20;

/// Period of the memory estimate. The arena keeps pages for the peak of long blocks in this period and the one before,
/// and releases all of them once no block was lent for a period and the place is idle.
pub(crate) const PERIOD: Duration = Duration::from_secs(1);

/// Number of loans checked for each new block.
const LOOK_MAX: usize = 4;

/// Operations that the arena needs on the memory of its blocks; offsets are within the arena.
pub(crate) trait BlockStore {
    /// Returns `true` if the receiver of the block at `offset` has returned it.
    fn is_returned(&self, offset: u64) -> bool;
    /// Returns `true` if the receiver of the block at `offset` has taken it out of its ring, or returned it.
    fn is_taken(&self, offset: u64) -> bool;
    /// Allocates the pages of a range. Returns `false` if the system has none.
    fn populate(&self, offset: u64, len: u64) -> bool;
    /// Releases the pages of a range to the system.
    fn release(&self, offset: u64, len: u64);
}

/// Reason why there is no block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AllocationError {
    /// Too much is lent; a later attempt may succeed.
    Lent,
    /// The system has no memory.
    NoMemory,
}

#[derive(Debug)]
struct Loan {
    offset: u64,
    bytes: u64,
    to: PlaceId,
    class: Class,
    /// True if the block counts as being in the receiver's ring.
    untaken: bool,
}

impl Loan {
    /// Restores the credit of the block, once.
    fn settle(&mut self, untaken: &mut [u64; 2]) {
        if std::mem::replace(&mut self.untaken, false) {
            untaken[self.class as usize] -= self.bytes;
        }
    }
}

/// The sender's tables.
#[derive(Debug)]
pub(crate) struct Arena {
    free: Ranges,
    /// The parts of `free` that have pages.
    kept: Ranges,
    lent: VecDeque<Loan>,
    /// Largest number of bytes of blocks of one class in receivers' rings.
    credit: u64,
    /// Number of bytes in receivers' rings, by class.
    untaken: [u64; 2],
    /// Bytes lent since all loans were last checked. At `credit` they are checked again, so that returned but unnoticed
    /// blocks never exceed this, besides those that were out at the last check.
    unlooked: u64,
    need: LargeBlockUse,
}

/// Memory lent in blocks that are longer than the credit; of each class only one at a time may be in the receivers'
/// rings.
#[derive(Debug)]
struct LargeBlockUse {
    /// Bytes lent now.
    lent: u64,
    /// Peak in this period, and in the one before.
    peaks: [u64; 2],
    since: Instant,
    /// Time at which a block was last lent.
    last: Instant,
}

impl LargeBlockUse {
    /// Notes a block that was lent, with its number of `long` bytes.
    fn lend(&mut self, long: u64, now: Instant) {
        self.last = now;
        let age = now.saturating_duration_since(self.since);
        if age >= PERIOD {
            let before = if age < 2 * PERIOD { self.peaks[0] } else { self.lent };
            (self.peaks, self.since) = ([self.lent, before], now);
        }
        self.lent += long;
        self.peaks[0] = self.peaks[0].max(self.lent);
    }

    fn cached_max(&self) -> u64 {
        CACHED_BYTES_MAX.max(self.peaks[0]).max(self.peaks[1])
    }
}

impl Arena {
    /// Creates an arena of `bytes` bytes, a multiple of [`PAGE_BYTES`], all free; see [`Geometry::credit_bytes`] for
    /// `credit`.
    ///
    /// [`Geometry::credit_bytes`]: crate::Geometry::credit_bytes
    pub fn new(bytes: u64, credit: u64, now: Instant) -> Arena {
        let mut free = Ranges::default();
        free.add(0, bytes);
        Arena {
            free,
            kept: Ranges::default(),
            lent: VecDeque::new(),
            credit,
            untaken: [0; 2],
            unlooked: 0,
            need: LargeBlockUse { lent: 0, peaks: [0; 2], since: now, last: now },
        }
    }

    /// Lends a block with room for `len` bytes, sent in `class`, to `to`. Returns the offset of its header.
    ///
    /// The header must be marked as lent before [`Arena::lend`] is called again.
    pub fn lend(
        &mut self,
        len: usize,
        to: PlaceId,
        class: Class,
        now: Instant,
        store: &impl BlockStore,
    ) -> Result<u64, AllocationError> {
        let bytes = (len as u64 + BLOCK_HEADER_BYTES).next_multiple_of(PAGE_BYTES);
        // A block that was just returned is not reused for the next one, unless it is long: its lines are in the cache
        // of its reader, which reads them 15 % slower if they are overwritten at once.
        let is_long = self.long(bytes) > 0;
        if is_long {
            self.collect(LOOK_MAX, store);
        }
        if self.unlooked > self.credit || !self.has_credit(bytes, class) {
            self.collect_all(store);
        }
        if !self.has_credit(bytes, class) {
            return Err(AllocationError::Lent);
        }
        let offset = self.place(bytes, store).or_else(|shortage| {
            if shortage == AllocationError::NoMemory && is_long {
                return Err(shortage);
            }
            self.collect_all(store);
            self.place(bytes, store)
        })?;
        if !is_long {
            self.collect(LOOK_MAX, store);
        }
        self.need.lend(self.long(bytes), now);
        self.trim(self.need.cached_max(), store);
        self.lent.push_back(Loan { offset, bytes, to, class, untaken: true });
        self.untaken[class as usize] += bytes;
        self.unlooked += bytes;
        Ok(offset)
    }

    /// Takes `bytes` free bytes and allocates their pages. Returns their offset.
    fn place(&mut self, bytes: u64, store: &impl BlockStore) -> Result<u64, AllocationError> {
        let offset = self.free.take(bytes).ok_or(AllocationError::Lent)?;
        if !self.populate(offset, bytes, store) {
            // Some of it may have pages, which are released too.
            store.release(offset, bytes);
            self.free.add(offset, bytes);
            return Err(AllocationError::NoMemory);
        }
        Ok(offset)
    }

    /// Allocates the missing pages of a range. Returns `false` if the system has none even after the kept ones are
    /// released.
    fn populate(&mut self, offset: u64, bytes: u64, store: &impl BlockStore) -> bool {
        let (mut start, end) = (offset, offset + bytes);
        let kept = self.kept.cut(offset, bytes);
        for (kept, len) in kept.into_iter().chain([(end, 0)]) {
            let has = |start| start == kept || store.populate(start, kept - start);
            if !has(start) {
                self.trim(0, store);
                if !has(start) {
                    return false;
                }
            }
            start = kept + len;
        }
        true
    }

    /// Returns `bytes` if a block of that length is long, and 0 otherwise.
    fn long(&self, bytes: u64) -> u64 {
        if bytes > self.credit { bytes } else { 0 }
    }

    /// Releases pages to the system, those of high offsets first, until at most `most` bytes are kept.
    fn trim(&mut self, most: u64, store: &impl BlockStore) {
        while self.kept.bytes() > most {
            let (offset, bytes) = self.kept.cut_last(self.kept.bytes() - most);
            store.release(offset, bytes);
        }
    }

    /// Releases all kept pages to the system if no block was lent for a [`PERIOD`].
    ///
    /// Returns the time until the next call is due; `None` if none is due before the next block.
    pub fn idle(&mut self, now: Instant, store: &impl BlockStore) -> Option<Duration> {
        if self.lent.is_empty() && self.kept.bytes() == 0 {
            return None;
        }
        let idle = now.saturating_duration_since(self.need.last);
        if let Some(left) = PERIOD.checked_sub(idle).filter(|left| !left.is_zero()) {
            return Some(left);
        }
        self.collect_all(store);
        self.trim(0, store);
        (!self.lent.is_empty()).then_some(PERIOD)
    }

    /// Returns `true` if a block of `bytes` fits the credit of `class`, or no other block of the class is untaken.
    fn has_credit(&self, bytes: u64, class: Class) -> bool {
        let untaken = self.untaken[class as usize];
        untaken == 0 || untaken + bytes <= self.credit
    }

    /// Takes back the block that was lent last and never sent.
    pub(crate) fn take_back_last(&mut self, store: &impl BlockStore) {
        if let Some(loan) = self.lent.pop_back() {
            self.end(loan, store);
        }
    }

    /// Takes back all blocks lent to a place whose process is gone.
    pub(crate) fn reclaim_from_dead(&mut self, place: PlaceId, store: &impl BlockStore) {
        let (gone, kept): (VecDeque<_>, VecDeque<_>) = self.lent.drain(..).partition(|loan| loan.to == place);
        self.lent = kept;
        for loan in gone {
            self.end(loan, store);
        }
    }

    /// Restores the credit of all blocks sent to `place`, which receives no more messages. The blocks may still be in
    /// use.
    pub(crate) fn write_off(&mut self, place: PlaceId) {
        for loan in self.lent.iter_mut().filter(|loan| loan.to == place) {
            loan.settle(&mut self.untaken);
        }
    }

    /// Returns `true` if any block has been taken or returned since the last check.
    pub(crate) fn has_returned(&self, store: &impl BlockStore) -> bool {
        self.lent
            .iter()
            .any(|loan| store.is_returned(loan.offset) || (loan.untaken && store.is_taken(loan.offset)))
    }

    /// Checks the `count` oldest loans; those still out go to the end, so that none hides the others.
    fn collect(&mut self, count: usize, store: &impl BlockStore) {
        for _ in 0..count.min(self.lent.len()) {
            let Some(mut loan) = self.lent.pop_front() else { return };
            if store.is_returned(loan.offset) {
                self.end(loan, store);
            } else {
                if store.is_taken(loan.offset) {
                    loan.settle(&mut self.untaken);
                }
                self.lent.push_back(loan);
            }
        }
    }

    fn collect_all(&mut self, store: &impl BlockStore) {
        self.collect(self.lent.len(), store);
        self.unlooked = 0;
    }

    /// Takes a block back, and keeps its pages within the limit.
    fn end(&mut self, mut loan: Loan, store: &impl BlockStore) {
        loan.settle(&mut self.untaken);
        self.need.lent -= self.long(loan.bytes);
        self.free.add(loan.offset, loan.bytes);
        self.kept.add(loan.offset, loan.bytes);
        self.trim(self.need.cached_max(), store);
    }
}
