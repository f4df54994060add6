//! Incoherent shared memory: a core that reads an old copy gets the old bytes.
//!
//! A core has two caches and a write buffer of one line, and sees the memory through them according to its
//! [`CachePolicy`]. As on the chip, a read misses a write if the reader has an old copy, if the write is still in the
//! writer's core, or if a third core has written an older copy back over it. Such a stale read returns the old bytes,
//! and is recorded with the missed write. Each access returns its transfers, from which the caller computes the cost.
//!
//! Accesses of one core are in the order of time. Those of different cores need not be, because a core may run ahead: a
//! write is visible from its time on, in any order of calls. Invariant: no read returns a byte that is written after
//! it.

mod core_caches;
mod history;
mod stale;
#[cfg(test)]
mod tests;

pub use stale::{STALE_LISTED_MAX, StaleCause, StaleRead, Write};

use crate::chip::Caches;
use crate::quantity::Picoseconds;
use crate::topology::CoreId;
use core_caches::{CoreCaches, mask, parts, words};
use history::{History, LineVersion, WriteId};
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes of a line.
pub const LINE_BYTES: usize = 32;

/// Cache policy of a region of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CachePolicy {
    /// Uncached: every access goes to memory, word by word. Never stale.
    Uncached,
    /// Write-back: reads allocate lines in both caches. A write to a cached line stays there until the line is evicted
    /// or flushed; another write goes to memory without allocating a line.
    Cached,
    /// Write-through: reads allocate lines in the first-level cache, tagged so that [`SharedMemory::invalidate`]
    /// drops all of them. Writes update such a copy and are combined in the write buffer, which drains its line once
    /// all of it is written, or when another line is written.
    Through,
}

/// Lines and words that an access moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessTraffic {
    /// Lines that hit the first-level cache.
    pub first: u32,
    /// Lines that hit the second-level cache.
    pub second: u32,
    /// Lines fetched from memory.
    pub fetched: u32,
    /// Lines written back by caches.
    pub written_back: u32,
    /// Lines drained from the write buffer.
    pub drained: u32,
    /// Words read from memory.
    pub words_read: u32,
    /// Words written to memory.
    pub words_written: u32,
}

#[derive(Clone, Debug, Default)]
struct Line {
    /// Content of memory.
    memory: History,
    /// Content that memory would have if every write reached it at once.
    newest: History,
}

/// Incoherent shared memory of all cores.
#[derive(Clone, Debug)]
pub struct SharedMemory {
    sides: Vec<CoreCaches>,
    lines: BTreeMap<u64, Line>,
    /// All writes, by their numbers.
    writes: Vec<Write>,
    present: Picoseconds,
    stale: Vec<StaleRead>,
    stale_count: u64,
}

impl SharedMemory {
    /// Makes zeroed memory for `cores` cores with empty caches.
    pub fn new(caches: &Caches, cores: u32) -> SharedMemory {
        let nobody = Write { core: CoreId(0), at: Picoseconds::ZERO };
        SharedMemory {
            sides: vec![CoreCaches::new(caches); cores as usize],
            lines: BTreeMap::new(),
            writes: vec![nobody],
            present: Picoseconds::ZERO,
            stale: Vec::new(),
            stale_count: 0,
        }
    }

    /// Declares that no access will be before `present` any more.
    pub fn set_present(&mut self, present: Picoseconds) {
        self.present = present;
    }

    /// Reads from `address` on as `core` sees it at `now`.
    pub fn read(
        &mut self,
        core: CoreId,
        now: Picoseconds,
        kind: CachePolicy,
        address: u64,
        into: &mut [u8],
    ) -> AccessTraffic {
        let mut moved = AccessTraffic::default();
        for (line, bytes, part) in parts(address, into.len()) {
            let image = match kind {
                CachePolicy::Uncached => {
                    moved.words_read += words(&bytes);
                    self.memory_at(line, now)
                }
                CachePolicy::Cached => self.read_cached(core, now, line, &mut moved),
                CachePolicy::Through => self.read_through(core, now, line, &mut moved),
            };
            into[part].copy_from_slice(&image.bytes[bytes.clone()]);
            self.compare(core, now, line, bytes, &image);
        }
        moved
    }

    /// Writes from `address` on as `core` at `now`.
    pub fn write(
        &mut self,
        core: CoreId,
        now: Picoseconds,
        kind: CachePolicy,
        address: u64,
        from: &[u8],
    ) -> AccessTraffic {
        let mut moved = AccessTraffic::default();
        for (line, bytes, part) in parts(address, from.len()) {
            self.writes.push(Write { core, at: now });
            let id = (self.writes.len() - 1) as WriteId;
            let mut image = LineVersion::EMPTY;
            image.bytes[bytes.clone()].copy_from_slice(&from[part]);
            image.writes = [id; LINE_BYTES];
            let mask = mask(&bytes);
            self.lines.entry(line).or_default().newest.put(self.present, now, mask, &image);
            match kind {
                CachePolicy::Uncached => {
                    moved.words_written += words(&bytes);
                    self.store(line, now, mask, &image);
                }
                CachePolicy::Cached if self.change_copy(core, line, mask, &image, &mut moved) => {}
                CachePolicy::Cached => {
                    moved.words_written += words(&bytes);
                    self.store(line, now, mask, &image);
                }
                CachePolicy::Through => {
                    // The update of the copy is not counted, because the line goes to memory as well.
                    self.change_copy(core, line, mask, &image, &mut AccessTraffic::default());
                    self.gather(core, now, line, mask, &image, &mut moved);
                }
            }
        }
        moved
    }

    /// Invalidates the [`CachePolicy::Through`] lines in the first-level cache of `core`; CL1INVMB on the SCC.
    pub fn invalidate(&mut self, core: CoreId) {
        let side = &mut self.sides[core.0 as usize];
        for line in std::mem::take(&mut side.tagged) {
            side.first.forget(line);
            side.copies.remove(&line);
        }
    }

    /// Drains the write buffer of `core`.
    pub fn drain(&mut self, core: CoreId, now: Picoseconds) -> AccessTraffic {
        let mut moved = AccessTraffic::default();
        if let Some((line, mask, image)) = self.sides[core.0 as usize].write_buffer.take() {
            self.store(line, now, mask, &image);
            moved.drained = 1;
        }
        moved
    }

    /// Writes back the dirty lines of these bytes in the caches of `core`, and invalidates all their lines.
    pub fn flush(&mut self, core: CoreId, now: Picoseconds, address: Range<u64>) -> AccessTraffic {
        let mut moved = AccessTraffic::default();
        if address.is_empty() {
            return moved;
        }
        let lines = address.start / LINE_BYTES as u64..=(address.end - 1) / LINE_BYTES as u64;
        let side = &mut self.sides[core.0 as usize];
        let held: Vec<u64> = side.copies.range(lines).map(|(line, _)| *line).collect();
        for line in held {
            let side = &mut self.sides[core.0 as usize];
            side.first.forget(line);
            side.second.forget(line);
            self.leave(core, now, line, &mut moved);
        }
        moved
    }

    /// Returns the first stale reads, in the order of the calls.
    pub fn stale_reads(&self) -> &[StaleRead] {
        &self.stale
    }

    /// Returns the number of stale reads.
    pub fn stale_count(&self) -> u64 {
        self.stale_count
    }

    fn memory_at(&self, line: u64, now: Picoseconds) -> LineVersion {
        self.lines.get(&line).map_or(LineVersion::EMPTY, |line| line.memory.at(now))
    }

    fn store(&mut self, line: u64, now: Picoseconds, mask: u32, image: &LineVersion) {
        self.lines.entry(line).or_default().memory.put(self.present, now, mask, image);
    }
}
