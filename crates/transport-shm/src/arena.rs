//! The arena: from where a place lends memory for its large messages.
//!
//! Only the sender allocates, with tables in its own memory, so a broken peer can disturb one block at most.
//! A receiver gives a block back with one store in the block's header; the sender notices when it next needs
//! memory. This file deals in offsets and touches no block: [`Store`] stands for the memory.
//!
//! Invariants: an offset is in exactly one of *free*, *warm* (free, with pages) and *lent*; all lengths in
//! *free* are multiples of [`PAGE_BYTES`]; at most [`WARM_BYTES_MAX`] bytes are warm; of each class at most
//! `credit` bytes, or one block, are lent to receivers that have not taken them out of their rings.

use crate::layout::{BLOCK_HEADER_BYTES, PAGE_BYTES};
use isles_transport::{Class, PlaceId};
use std::collections::{BTreeMap, VecDeque};

/// How many bytes of blocks that came back keep their pages for the next ones; more goes back to the system.
///
/// It bounds what an idle place holds after large messages. Large enough for several messages of 2 MiB in
/// flight, and for one graph of some million edges.
pub(crate) const WARM_BYTES_MAX: u64 = 32 << 20;

/// How many loans are looked at for each new block.
const LOOK_MAX: usize = 4;

/// What the arena needs to know from, and do to, the memory of its blocks; offsets are within the arena.
pub(crate) trait Store {
    /// Whether the receiver of the block at `offset` has given it back.
    fn is_returned(&self, offset: u64) -> bool;
    /// Whether the receiver of the block at `offset` has taken it out of its ring, or given it back.
    fn is_taken(&self, offset: u64) -> bool;
    /// Makes sure that pages stand behind a range; `false` if the system has none.
    fn populate(&self, offset: u64, len: u64) -> bool;
    /// Gives the pages of a range back to the system.
    fn release(&self, offset: u64, len: u64);
}

/// Why there is no block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shortage {
    /// Too much is lent; it comes back.
    Lent,
    /// The system has no memory.
    NoMemory,
}

/// A range of the arena with pages behind its first `populated` bytes.
#[derive(Clone, Copy, Debug)]
struct Piece {
    offset: u64,
    bytes: u64,
    populated: u64,
}

#[derive(Debug)]
struct Loan {
    piece: Piece,
    to: PlaceId,
    class: Class,
    /// Whether it counts as lying in the receiver's ring.
    untaken: bool,
}

impl Loan {
    /// Gives the credit of a block back, once.
    fn settle(&mut self, untaken: &mut [u64; 2]) {
        if std::mem::replace(&mut self.untaken, false) {
            untaken[self.class as usize] -= self.piece.bytes;
        }
    }
}

/// The sender's tables.
#[derive(Debug)]
pub(crate) struct Arena {
    /// Free ranges without pages: length by offset; neighbours are merged.
    free: BTreeMap<u64, u64>,
    /// Free pieces with pages, by size; the last to come back is the first to go.
    warm: BTreeMap<u64, Vec<Piece>>,
    warm_bytes: u64,
    lent: VecDeque<Loan>,
    /// How many bytes of blocks of one class may lie in receivers' rings.
    credit: u64,
    /// How many do, by class.
    untaken: [u64; 2],
    /// Bytes lent since all loans were looked at. At `credit` they are looked at again: what came back unnoticed is
    /// never more than this, beside what was out at the look before.
    unlooked: u64,
}

impl Arena {
    /// An arena of `bytes` bytes, a multiple of [`PAGE_BYTES`], all free; see [`Geometry::credit_bytes`] for `credit`.
    ///
    /// [`Geometry::credit_bytes`]: crate::Geometry::credit_bytes
    pub fn new(bytes: u64, credit: u64) -> Arena {
        Arena {
            free: BTreeMap::from([(0, bytes)]),
            warm: BTreeMap::new(),
            warm_bytes: 0,
            lent: VecDeque::new(),
            credit,
            untaken: [0; 2],
            unlooked: 0,
        }
    }

    /// Lends a block with room for `len` bytes, sent in `class`, to `to`; answers the offset of its header.
    ///
    /// The word of that header must say that it is lent before [`Arena::lend`] is called again.
    pub fn lend(
        &mut self,
        len: usize,
        to: PlaceId,
        class: Class,
        store: &impl Store,
    ) -> Result<u64, Shortage> {
        let needed = len as u64 + BLOCK_HEADER_BYTES;
        let bytes = rounded(needed);
        self.collect(LOOK_MAX, store);
        if self.unlooked > self.credit || !self.has_credit(bytes, class) {
            self.collect_all(store);
        }
        if !self.has_credit(bytes, class) {
            return Err(Shortage::Lent);
        }
        let mut piece = match self.take_warm(bytes).or_else(|| self.take_free(bytes)) {
            Some(piece) => piece,
            None => self.take_after_collecting_all(bytes, store)?,
        };
        let touched = needed.next_multiple_of(PAGE_BYTES);
        if piece.populated < touched {
            if !store.populate(piece.offset + piece.populated, touched - piece.populated) {
                self.give_free(piece.offset, piece.bytes);
                return Err(Shortage::NoMemory);
            }
            piece.populated = touched;
        }
        self.lent.push_back(Loan { piece, to, class, untaken: true });
        self.untaken[class as usize] += bytes;
        self.unlooked += bytes;
        Ok(piece.offset)
    }

    /// Whether `bytes` more may lie in receivers' rings.
    fn has_credit(&self, bytes: u64, class: Class) -> bool {
        let untaken = self.untaken[class as usize];
        untaken == 0 || untaken + bytes <= self.credit
    }

    /// Takes back the block that was lent last and never sent.
    pub fn take_back_last(&mut self, store: &impl Store) {
        if let Some(loan) = self.lent.pop_back() {
            self.end(loan, store);
        }
    }

    /// Takes back all that was lent to a place whose process is gone.
    pub fn forfeit(&mut self, place: PlaceId, store: &impl Store) {
        let (gone, kept): (VecDeque<_>, VecDeque<_>) = self.lent.drain(..).partition(|loan| loan.to == place);
        self.lent = kept;
        for loan in gone {
            self.end(loan, store);
        }
    }

    /// Waits no more until a place takes what lies in its ring: it is over. Its blocks may still be in use.
    pub fn write_off(&mut self, place: PlaceId) {
        for loan in self.lent.iter_mut().filter(|loan| loan.to == place) {
            loan.settle(&mut self.untaken);
        }
    }

    /// Whether any block has been taken or given back since the last look.
    pub fn has_returned(&self, store: &impl Store) -> bool {
        self.lent.iter().any(|loan| {
            let offset = loan.piece.offset;
            store.is_returned(offset) || (loan.untaken && store.is_taken(offset))
        })
    }

    /// Looks at the `count` oldest loans; those still out go to the end, so that none hides the others.
    fn collect(&mut self, count: usize, store: &impl Store) {
        for _ in 0..count.min(self.lent.len()) {
            let Some(mut loan) = self.lent.pop_front() else { return };
            if store.is_returned(loan.piece.offset) {
                self.end(loan, store);
            } else {
                if store.is_taken(loan.piece.offset) {
                    loan.settle(&mut self.untaken);
                }
                self.lent.push_back(loan);
            }
        }
    }

    fn collect_all(&mut self, store: &impl Store) {
        self.collect(self.lent.len(), store);
        self.unlooked = 0;
    }

    fn end(&mut self, mut loan: Loan, store: &impl Store) {
        loan.settle(&mut self.untaken);
        self.keep(loan.piece, store);
    }

    fn take_after_collecting_all(&mut self, bytes: u64, store: &impl Store) -> Result<Piece, Shortage> {
        self.collect_all(store);
        if let Some(piece) = self.take_warm(bytes) {
            return Ok(piece);
        }
        for piece in std::mem::take(&mut self.warm).into_values().flatten() {
            store.release(piece.offset, piece.populated);
            self.give_free(piece.offset, piece.bytes);
        }
        self.warm_bytes = 0;
        self.take_free(bytes).ok_or(Shortage::Lent)
    }

    fn take_warm(&mut self, bytes: u64) -> Option<Piece> {
        let piece = self.warm.get_mut(&bytes)?.pop()?;
        self.warm_bytes -= piece.bytes;
        Some(piece)
    }

    /// First fit: low offsets are used again first, which keeps the touched part small.
    fn take_free(&mut self, bytes: u64) -> Option<Piece> {
        let (&offset, &len) = self.free.iter().find(|(_, len)| **len >= bytes)?;
        self.free.remove(&offset);
        if len > bytes {
            self.free.insert(offset + bytes, len - bytes);
        }
        Some(Piece { offset, bytes, populated: 0 })
    }

    /// Keeps a piece that came back warm, or gives its pages back if enough is warm.
    fn keep(&mut self, piece: Piece, store: &impl Store) {
        if self.warm_bytes + piece.bytes > WARM_BYTES_MAX {
            store.release(piece.offset, piece.populated);
            self.give_free(piece.offset, piece.bytes);
        } else {
            self.warm_bytes += piece.bytes;
            self.warm.entry(piece.bytes).or_default().push(piece);
        }
    }

    fn give_free(&mut self, mut offset: u64, mut bytes: u64) {
        let before = self.free.range(..offset).next_back().map(|(&before, &len)| (before, len));
        if let Some((before, len)) = before.filter(|(before, len)| before + len == offset) {
            self.free.remove(&before);
            (offset, bytes) = (before, bytes + len);
        }
        if let Some(len) = self.free.remove(&(offset + bytes)) {
            bytes += len;
        }
        self.free.insert(offset, bytes);
    }
}

/// The size that a block of `needed` bytes takes: four steps for each doubling, whole pages.
///
/// Few sizes, so that a piece that came back fits the next message; at most a quarter is address space only.
fn rounded(needed: u64) -> u64 {
    let step = (needed.next_power_of_two() / 8).max(PAGE_BYTES);
    needed.next_multiple_of(step)
}

#[cfg(test)]
mod tests;
