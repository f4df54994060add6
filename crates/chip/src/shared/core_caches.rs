//! The caches of one core for shared memory: two levels, and a write buffer of one line.
//!
//! It counts transfers and has no costs. Accesses are divided into parts of one line each. Invariants: a line has a
//! copy as long as one of the caches holds it, and both caches share that copy; the parts of an access are consecutive
//! and complete.

use super::history::LineVersion;
use super::{AccessTraffic, LINE_BYTES, SharedMemory};
use crate::cache::Cache;
use crate::chip::Caches;
use crate::quantity::{Bytes, Picoseconds};
use crate::topology::CoreId;
use std::collections::BTreeMap;
use std::ops::Range;

/// A core's copy of a line.
#[derive(Clone, Debug)]
pub(super) struct CachedLine {
    pub(super) image: LineVersion,
    pub(super) dirty: bool,
}

/// Memory lines in one core's caches.
#[derive(Clone, Debug)]
pub(super) struct CoreCaches {
    pub(super) first: Cache,
    pub(super) second: Cache,
    /// Copies of the lines in either cache.
    pub(super) copies: BTreeMap<u64, CachedLine>,
    /// Tagged lines of the first-level cache.
    pub(super) tagged: Vec<u64>,
    /// The line in the write buffer, with a mask of its written bytes.
    pub(super) write_buffer: Option<(u64, u32, LineVersion)>,
}

impl CoreCaches {
    /// Makes empty caches.
    pub(super) fn new(caches: &Caches) -> CoreCaches {
        let lines = |size: Option<Bytes>| size.map_or(0, |size| size.0 as usize / LINE_BYTES);
        CoreCaches {
            first: Cache::new(lines(caches.first)),
            second: Cache::new(lines(caches.second)),
            copies: BTreeMap::new(),
            tagged: Vec::new(),
            write_buffer: None,
        }
    }
}

impl SharedMemory {
    /// Writes into a core's copy, if it has one.
    pub(super) fn change_copy(
        &mut self,
        core: CoreId,
        line: u64,
        mask: u32,
        image: &LineVersion,
        moved: &mut AccessTraffic,
    ) -> bool {
        let side = &mut self.sides[core.0 as usize];
        let Some(copy) = side.copies.get_mut(&line) else { return false };
        copy.image.take(mask, image);
        copy.dirty = true;
        if side.first.has(line) {
            moved.first += 1;
        } else if side.second.has(line) {
            moved.second += 1;
        }
        true
    }

    pub(super) fn gather(
        &mut self,
        core: CoreId,
        now: Picoseconds,
        line: u64,
        mask: u32,
        image: &LineVersion,
        moved: &mut AccessTraffic,
    ) {
        let is_other = |write_buffer: &(u64, u32, LineVersion)| write_buffer.0 != line;
        if self.sides[core.0 as usize].write_buffer.as_ref().is_some_and(is_other) {
            moved.drained += self.drain(core, now).drained;
        }
        let side = &mut self.sides[core.0 as usize];
        let write_buffer = side.write_buffer.get_or_insert((line, 0, LineVersion::EMPTY));
        write_buffer.1 |= mask;
        write_buffer.2.take(mask, image);
        if write_buffer.1 == u32::MAX {
            moved.drained += self.drain(core, now).drained;
        }
    }

    pub(super) fn read_cached(
        &mut self,
        core: CoreId,
        now: Picoseconds,
        line: u64,
        moved: &mut AccessTraffic,
    ) -> LineVersion {
        let memory = self.memory_at(line, now);
        let side = &mut self.sides[core.0 as usize];
        let mut gone = Vec::new();
        if side.first.has(line) {
            moved.first += 1;
        } else {
            if side.second.has(line) {
                moved.second += 1;
            } else {
                moved.fetched += 1;
                gone.extend(side.second.fill(line));
                side.copies.insert(line, CachedLine { image: memory, dirty: false });
            }
            gone.extend(side.first.fill(line));
        }
        let image = side.copies[&line].image;
        gone.into_iter().for_each(|way| self.drop_copy_if_evicted(core, now, way.line, moved));
        image
    }

    pub(super) fn read_through(
        &mut self,
        core: CoreId,
        now: Picoseconds,
        line: u64,
        moved: &mut AccessTraffic,
    ) -> LineVersion {
        let memory = self.memory_at(line, now);
        let side = &mut self.sides[core.0 as usize];
        if side.first.has(line) {
            moved.first += 1;
            return side.copies[&line].image;
        }
        moved.fetched += 1;
        let gone = side.first.fill(line);
        side.copies.insert(line, CachedLine { image: memory, dirty: false });
        side.tagged.push(line);
        if let Some(gone) = gone {
            self.drop_copy_if_evicted(core, now, gone.line, moved);
        }
        memory
    }

    /// Ends the copy of a line evicted from one cache, unless the other cache holds it.
    fn drop_copy_if_evicted(&mut self, core: CoreId, now: Picoseconds, line: u64, moved: &mut AccessTraffic) {
        let side = &self.sides[core.0 as usize];
        if !side.first.holds(line) && !side.second.holds(line) {
            self.leave(core, now, line, moved);
        }
    }

    /// Ends a copy. A dirty line is written to memory as a whole, including unchanged bytes.
    pub(super) fn leave(&mut self, core: CoreId, now: Picoseconds, line: u64, moved: &mut AccessTraffic) {
        let side = &mut self.sides[core.0 as usize];
        let is_tagged = side.tagged.iter().position(|tagged| *tagged == line);
        is_tagged.map(|at| side.tagged.swap_remove(at));
        let copy = side.copies.remove(&line);
        if let Some(copy) = copy.filter(|copy| copy.dirty && is_tagged.is_none()) {
            self.store(line, now, u32::MAX, &copy.image);
            moved.written_back += 1;
        }
    }
}

/// Divides a range of bytes into lines: returns each line, the range in the line, and the range in the whole.
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

/// Returns the number of four-byte words that cover `bytes`.
pub(super) fn words(bytes: &Range<usize>) -> u32 {
    (bytes.end.div_ceil(4) - bytes.start / 4) as u32
}

pub(super) fn mask(bytes: &Range<usize>) -> u32 {
    let below = |end: usize| if end == LINE_BYTES { u32::MAX } else { (1_u32 << end) - 1 };
    below(bytes.end) & !below(bytes.start)
}
