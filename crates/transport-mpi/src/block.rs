//! Reused memory for large messages.
//!
//! The system provides zeroed memory; mapping and zeroing its pages takes as long as copying a message. So a place
//! keeps the memory of a large message for the next one, up to [`SPARE_BYTES_MAX`]. Invariant: memory is lent to one
//! message at a time; before that is written, it has its previous content.

use std::cell::RefCell;
use std::rc::Rc;

/// The largest number of bytes that the pool holds unused: that of the arena of shared memory.
const SPARE_BYTES_MAX: usize = 32 << 20;

/// The largest ratio of the length of reused memory to that of its message.
const SLACK_MAX: usize = 2;

#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct BlockLine([u64; 8]);

// NEED: memory that is aligned to 64 bytes, and comes zeroed from the system without being touched.
// SOUND: a line is eight numbers without padding, and any bits are one.
unsafe impl bytemuck::Zeroable for BlockLine {}
// NEED: as above.
// SOUND: as above.
unsafe impl bytemuck::Pod for BlockLine {}

/// Memory a place keeps for its large messages.
#[derive(Debug, Default)]
pub(crate) struct BlockPool(RefCell<Vec<Vec<BlockLine>>>);

impl BlockPool {
    /// Returns memory for a message of `len` bytes.
    pub(crate) fn take(self: &Rc<Self>, len: usize) -> BlockBytes {
        let wanted = len.div_ceil(size_of::<BlockLine>());
        let mut spare = self.0.borrow_mut();
        // The latest is the warmest; if all have the same length, it is always the one.
        let latest = spare.pop_if(|lines| lines.len() == wanted);
        let lines = latest.or_else(|| {
            let fits = |lines: &&Vec<BlockLine>| (wanted..=SLACK_MAX * wanted).contains(&lines.len());
            let best = spare.iter().filter(fits).map(Vec::len).min()?;
            spare.iter().position(|lines| lines.len() == best).map(|index| spare.swap_remove(index))
        });
        let lines = lines.unwrap_or_else(|| bytemuck::allocation::zeroed_vec(wanted));
        BlockBytes { lines, start: 0, len, pool: Rc::clone(self) }
    }

    /// Keeps memory for reuse, and drops older memory if all together is too much.
    fn give_back(&self, lines: Vec<BlockLine>) {
        let bytes = |lines: &Vec<BlockLine>| size_of_val(&lines[..]);
        if lines.is_empty() || bytes(&lines) > SPARE_BYTES_MAX {
            return;
        }
        let mut spare = self.0.borrow_mut();
        spare.push(lines);
        while spare.iter().map(bytes).sum::<usize>() > SPARE_BYTES_MAX {
            spare.remove(0);
        }
    }
}

/// Memory of a large message; its first byte is aligned to 64.
#[derive(Debug)]
pub(crate) struct BlockBytes {
    lines: Vec<BlockLine>,
    /// Start and length of the visible bytes.
    start: usize,
    len: usize,
    pool: Rc<BlockPool>,
}

impl BlockBytes {
    pub(crate) fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.lines)[self.start..self.start + self.len]
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.lines)[self.start..self.start + self.len]
    }

    /// Returns the same memory, with only `len` bytes from `start` on visible.
    ///
    /// # Panics
    /// If there are fewer bytes.
    pub(crate) fn part(mut self, start: usize, len: usize) -> BlockBytes {
        assert!(start + len <= self.len, "{len} bytes from {start} on, of {}", self.len);
        (self.start, self.len) = (self.start + start, len);
        self
    }
}

impl Drop for BlockBytes {
    fn drop(&mut self) {
        self.pool.give_back(std::mem::take(&mut self.lines));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spare(pool: &BlockPool) -> Vec<usize> {
        pool.0.borrow().iter().map(|lines| size_of_val(&lines[..])).collect()
    }

    #[test]
    fn memory_is_used_again_where_it_fits() {
        let pool = Rc::new(BlockPool::default());
        let mut first = pool.take(100_000);
        first.bytes_mut().fill(7);
        let address = first.bytes().as_ptr();
        assert!(address.align_offset(64) == 0 && first.bytes().len() == 100_000);
        drop(first);
        let again = pool.take(60_000);
        assert_eq!((again.bytes().as_ptr(), again.bytes().len()), (address, 60_000));
        assert_ne!(pool.take(60_000).bytes().as_ptr(), address, "it is lent to one message at a time");
        drop(again);
        assert!(pool.take(40_000).bytes().as_ptr() != address, "it would be more than twice as long");
        assert_eq!(pool.take(0).bytes(), [0; 0]);
    }

    #[test]
    fn a_part_is_shown_alone_and_gives_all_back() {
        let pool = Rc::new(BlockPool::default());
        let mut whole = pool.take(1_000);
        whole.bytes_mut()[64..74].copy_from_slice(b"in between");
        let mut part = whole.part(64, 10);
        assert_eq!(part.bytes_mut(), b"in between");
        drop(part.part(3, 7));
        assert_eq!(spare(&pool), [1_024]);
    }

    #[test]
    fn what_is_kept_is_bounded_and_the_latest() {
        let pool = Rc::new(BlockPool::default());
        let most = SPARE_BYTES_MAX / (1 << 20);
        let lent: Vec<BlockBytes> = (0..most + 3).map(|_| pool.take(1 << 20)).collect();
        drop(lent);
        assert_eq!(spare(&pool), vec![1 << 20; most]);
        drop(pool.take(SPARE_BYTES_MAX + 1));
        drop(pool.take(2 << 20));
        assert_eq!(spare(&pool).len(), most - 1, "two that were older made room");
        assert_eq!(spare(&pool).last(), Some(&(2 << 20)), "and what is longer than all together is not here");
    }
}
