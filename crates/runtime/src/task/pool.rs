//! Memory for tasks: cells of a few sizes, cut from chunks.
//!
//! A place makes and ends tasks by the million, nearly always on its own thread and in order; a general allocator costs
//! several times what running an empty task does. Cells of one size fill a chunk in order and leave it in the same
//! order, so memory is walked in order, and an empty chunk goes back to the system.
//!
//! It does not know tasks. Invariant: a chunk lives as long as one of its cells, wherever the last reference is
//! dropped: a pool that ends frees the empty chunks and leaks the others.

use super::sync::{alloc, dealloc};
use std::alloc::{Layout, handle_alloc_error};
use std::cell::Cell;
use std::ptr::{NonNull, null_mut};

/// Size of a chunk, and its alignment, so that a cell finds its chunk.
const CHUNK_BYTES: usize = 16 << 10;

/// Cells come in multiples of this many bytes, a cache line.
const CELL_UNIT: usize = 64;

/// Largest size of a cell; larger tasks come from the general allocator.
const CELL_BYTES_MAX: usize = 512;

const CLASSES: usize = CELL_BYTES_MAX / CELL_UNIT;

/// Number of empty chunks of one size that are kept for reuse.
const SPARE_MAX: u32 = 4;

const CHUNK_LAYOUT: Layout = match Layout::from_size_align(CHUNK_BYTES, CHUNK_BYTES) {
    Ok(layout) => layout,
    Err(_) => panic!("a chunk's size is a power of two"),
};

/// The first bytes of a chunk. All fields belong to the thread of the pool.
struct PoolChunk {
    class: u32,
    /// Number of cells handed out.
    live: Cell<u32>,
    /// Free list of cells that were returned: each holds the address of the next.
    free: Cell<*mut u8>,
    /// Offset of the first byte never handed out.
    fresh: Cell<usize>,
    /// The next chunk with room, in the pool's list.
    next: Cell<*mut PoolChunk>,
    /// True if the chunk is in that list.
    listed: Cell<bool>,
}

const _: () = assert!(size_of::<PoolChunk>() <= CELL_UNIT);

/// The cells of one place.
#[derive(Default)]
pub(crate) struct Pool {
    classes: [Class; CLASSES],
    /// Number of cells handed out, including those from the general allocator.
    live: Cell<usize>,
}

struct Class {
    /// Chunks with room; cells are taken from the first.
    open: Cell<*mut PoolChunk>,
    /// Number of chunks in that list without a live cell.
    spare: Cell<u32>,
}

impl Default for Class {
    fn default() -> Self {
        Class { open: Cell::new(null_mut()), spare: Cell::new(0) }
    }
}

/// Returns `true` if a value of this layout fits into a cell.
pub(super) const fn fits(layout: Layout) -> bool {
    layout.size() <= CELL_BYTES_MAX && layout.align() <= CELL_UNIT
}

impl Pool {
    /// Returns the memory for `count` tasks of `task_bytes` bytes, including the spare chunks.
    pub(crate) const fn bytes_for(count: usize, task_bytes: usize) -> usize {
        if task_bytes > CELL_BYTES_MAX {
            return count * task_bytes;
        }
        let cells = (CHUNK_BYTES - CELL_UNIT) / task_bytes.next_multiple_of(CELL_UNIT);
        (count.div_ceil(cells) + SPARE_MAX as usize) * CHUNK_BYTES
    }

    /// Returns uninitialised memory for a value of `layout`, which is not empty: a cell, if it fits into one.
    #[inline]
    pub(crate) fn take(&self, layout: Layout) -> NonNull<u8> {
        self.live.set(self.live.get() + 1);
        if fits(layout) {
            return self.take_cell(layout);
        }
        // NEED: a large value is allocated by its layout.
        // SOUND: by the contract its size is not zero.
        NonNull::new(unsafe { alloc(layout) }).unwrap_or_else(|| handle_alloc_error(layout))
    }

    #[inline]
    fn take_cell(&self, layout: Layout) -> NonNull<u8> {
        let index = layout.size().div_ceil(CELL_UNIT).max(1) - 1;
        let class = &self.classes[index];
        let Some(chunk) = NonNull::new(class.open.get()) else { return self.grow(index) };
        // NEED: chunks are raw memory, linked by their first bytes.
        // SOUND: a chunk in the list is alive, belongs to this thread and has room.
        let (head, cell) = unsafe { (chunk.as_ref(), PoolChunk::take(chunk)) };
        if !head.has_room() {
            class.open.set(head.next.get());
            head.listed.set(false);
        }
        if head.live.get() == 1 {
            class.spare.set(class.spare.get().saturating_sub(1));
        }
        cell
    }

    /// Makes a chunk and takes its first cell.
    #[cold]
    fn grow(&self, index: usize) -> NonNull<u8> {
        let class = &self.classes[index];
        let chunk = PoolChunk::make(index as u32);
        class.open.set(chunk.as_ptr());
        class.spare.set(1);
        self.take_cell(
            Layout::from_size_align((index + 1) * CELL_UNIT, CELL_UNIT).expect("a multiple of a line"),
        )
    }

    /// Takes memory back.
    ///
    /// # Safety
    /// As for [`Pool::give_back`]; and it was taken for `layout`.
    #[inline]
    pub(super) unsafe fn free(&self, memory: NonNull<u8>, layout: Layout) {
        if fits(layout) {
            // NEED: cells are raw memory.
            // SOUND: by the contract; what fits into a cell came as one.
            return unsafe { self.give_back(memory) };
        }
        // NEED: memory that was allocated by hand.
        // SOUND: by the contract; what fits into no cell comes from the general allocator.
        unsafe { dealloc(memory.as_ptr(), layout) };
        self.note_freed(1);
    }

    /// Records that others have freed `count` values that fit into no cell.
    pub(super) fn note_freed(&self, count: usize) {
        self.live.set(self.live.get() - count);
    }

    /// Returns the number of values handed out.
    pub(crate) fn live(&self) -> usize {
        self.live.get()
    }

    /// Takes a cell back.
    ///
    /// # Safety
    /// 1. The cell came from [`Pool::take`] of this pool, and nothing uses it any more.
    /// 2. The caller is the thread of the pool.
    #[inline]
    pub(super) unsafe fn give_back(&self, cell: NonNull<u8>) {
        self.live.set(self.live.get() - 1);
        let chunk = PoolChunk::of(cell);
        // NEED: chunks are raw memory; free cells are linked through theirs.
        // SOUND: by the contract the chunk is alive, for this cell was, and the cell is unused.
        let head = unsafe { chunk.as_ref() };
        let class = &self.classes[head.class as usize];
        // NEED: as above.
        // SOUND: as above.
        unsafe { head.give_back(cell) };
        if !head.listed.replace(true) {
            head.next.set(class.open.get());
            class.open.set(chunk.as_ptr());
        }
        if head.live.get() == 0 {
            class.spare.set(class.spare.get() + 1);
            if class.spare.get() > SPARE_MAX {
                self.trim(class);
            }
        }
    }

    /// Returns all spare chunks but one to the system.
    #[cold]
    fn trim(&self, class: &Class) {
        let (mut kept, mut at) = (null_mut(), class.open.replace(null_mut()));
        let mut spare = 0;
        // NEED: chunks are raw memory, linked by their first bytes.
        // SOUND: chunks in the list are alive; a spare one has no live cell, so nothing refers to it.
        while let Some(chunk) = unsafe { at.as_ref() } {
            let next = chunk.next.get();
            if chunk.live.get() == 0 && spare > 0 {
                // NEED: as above.
                // SOUND: as above.
                unsafe { dealloc(at.cast(), CHUNK_LAYOUT) };
            } else {
                spare += u32::from(chunk.live.get() == 0);
                chunk.next.set(kept);
                kept = at;
            }
            at = next;
        }
        class.open.set(kept);
        class.spare.set(spare);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for class in &self.classes {
            let mut at = class.open.get();
            // NEED: as in `trim`.
            // SOUND: as in `trim`; chunks with live cells stay for their wakers.
            while let Some(chunk) = unsafe { at.as_ref() } {
                let next = chunk.next.get();
                if chunk.live.get() == 0 {
                    // NEED: as in `trim`.
                    // SOUND: as in `trim`.
                    unsafe { dealloc(at.cast(), CHUNK_LAYOUT) };
                }
                at = next;
            }
        }
    }
}

impl PoolChunk {
    fn make(class: u32) -> NonNull<PoolChunk> {
        // NEED: chunks are aligned to their size, which no collection offers.
        // SOUND: the layout is not empty.
        let memory = unsafe { alloc(CHUNK_LAYOUT) };
        let Some(chunk) = NonNull::new(memory.cast::<PoolChunk>()) else { handle_alloc_error(CHUNK_LAYOUT) };
        let head = PoolChunk {
            class,
            live: Cell::new(0),
            free: Cell::new(null_mut()),
            fresh: Cell::new(CELL_UNIT),
            next: Cell::new(null_mut()),
            listed: Cell::new(true),
        };
        // NEED: raw memory becomes a chunk.
        // SOUND: the memory is large enough, aligned and ours.
        unsafe { chunk.write(head) };
        chunk
    }

    /// Returns the chunk of a cell.
    fn of(cell: NonNull<u8>) -> NonNull<PoolChunk> {
        let chunk = cell.as_ptr().map_addr(|address| address & !(CHUNK_BYTES - 1));
        // NEED: the address of a chunk follows from that of its cells.
        // SOUND: chunks are aligned to their size, and never at address zero.
        unsafe { NonNull::new_unchecked(chunk.cast()) }
    }

    fn cell_bytes(&self) -> usize {
        (self.class as usize + 1) * CELL_UNIT
    }

    #[inline]
    fn has_room(&self) -> bool {
        !self.free.get().is_null() || self.fresh.get() + self.cell_bytes() <= CHUNK_BYTES
    }

    /// Takes a cell of a chunk. Takes the pointer that the allocator returned, because one made from a reference to the
    /// header would be valid only for the header.
    ///
    /// # Safety
    /// The chunk is alive, belongs to this thread, and has room.
    #[inline]
    unsafe fn take(chunk: NonNull<PoolChunk>) -> NonNull<u8> {
        // NEED: chunks are raw memory; free cells are linked through theirs.
        // SOUND: by the contract; a cell in the free list holds the address of the next, and a fresh one lies inside
        // the chunk.
        unsafe {
            let head = chunk.as_ref();
            debug_assert!(head.has_room());
            head.live.set(head.live.get() + 1);
            if let Some(cell) = NonNull::new(head.free.get()) {
                head.free.set(cell.cast::<*mut u8>().read());
                return cell;
            }
            let offset = head.fresh.replace(head.fresh.get() + head.cell_bytes());
            chunk.cast::<u8>().add(offset)
        }
    }

    /// # Safety
    /// The cell is one of this chunk's, and nothing uses it any more.
    #[inline]
    unsafe fn give_back(&self, cell: NonNull<u8>) {
        self.live.set(self.live.get() - 1);
        // NEED: free cells are linked through their own memory.
        // SOUND: by the contract; a cell holds at least a pointer and is aligned for it.
        unsafe { cell.cast::<*mut u8>().write(self.free.replace(cell.as_ptr())) };
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn layout(bytes: usize) -> Layout {
        Layout::from_size_align(bytes, 8).unwrap()
    }

    #[test]
    fn cells_do_not_overlap_and_come_back() {
        let pool = Pool::default();
        for bytes in [1, 64, 65, 200, 512] {
            let cells: Vec<_> = (0..2000).map(|_| pool.take(layout(bytes))).collect();
            let mut starts: Vec<usize> = cells.iter().map(|cell| cell.addr().get()).collect();
            starts.sort_unstable();
            assert!(starts.windows(2).all(|pair| pair[1] - pair[0] >= bytes.next_multiple_of(CELL_UNIT)));
            // NEED: the pool takes raw memory.
            // SOUND: the cells are ours and unused.
            cells.into_iter().for_each(|cell| unsafe { pool.give_back(cell) });
        }
    }

    #[test]
    fn memory_of_a_flood_goes_back() {
        let pool = Pool::default();
        let cells: Vec<_> = (0..100_000).map(|_| pool.take(layout(64))).collect();
        // NEED: the pool takes raw memory.
        // SOUND: the cells are ours and unused.
        cells.into_iter().for_each(|cell| unsafe { pool.give_back(cell) });
        assert!(pool.classes[0].spare.get() <= SPARE_MAX);
    }
}
