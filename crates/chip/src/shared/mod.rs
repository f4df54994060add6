//! The memory that all cores share and nothing keeps coherent: who reads an old copy gets the old bytes.
//!
//! A core has its two caches and one line of a write buffer, and sees the memory through them by the kind of the
//! memory: see [`CachePolicy`]. So a read can miss a write, as on the chip, when the reader still has a copy, when the
//! writer's core has not let go of it, or when a third core has written an older copy back over it. Such a read returns
//! what it found, and is noted with the write that it missed. What an access costs is the caller's business: each says
//! what it moved.
//!
//! Accesses of one core come in the order of its time. Those of different cores need not, because a driver may let a
//! core run ahead: a write is seen from its time on, whoever asks first. Invariant: no read returns a byte that is
//! written after it.

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

/// Cache policy of a stretch of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CachePolicy {
    /// Past all caches: every access goes to memory, word by word. Never stale.
    Uncached,
    /// Reads take lines into both caches. A write to a line that the core holds stays there until the line goes or is
    /// flushed; one to another line goes to memory, and takes nothing in.
    Cached,
    /// Reads take lines into the first cache, with a tag by which [`SharedMemory::invalidate`] forgets all of them.
    /// Writes change such a copy, and gather in the write buffer: it lets its line go after the access with which all
    /// of it is written, or when another line is.
    Through,
}

/// Lines and words that an access moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessTraffic {
    /// Lines that the first cache had.
    pub first: u32,
    /// Lines that the second cache had.
    pub second: u32,
    /// Lines fetched from memory.
    pub fetched: u32,
    /// Lines that caches wrote back.
    pub written_back: u32,
    /// Lines that the write buffer let go.
    pub drained: u32,
    /// Words that were read from memory.
    pub words_read: u32,
    /// Words that were written to memory.
    pub words_written: u32,
}

#[derive(Clone, Debug, Default)]
struct Line {
    /// Contents of memory.
    memory: History,
    /// Contents that memory would have if every write reached it at once.
    newest: History,
}

/// Memory that all cores share and nothing keeps coherent.
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
    /// Returns memory of zeros, under `cores` cores with empty caches.
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

    /// Says that no access comes before `present` any more.
    pub fn set_present(&mut self, present: Picoseconds) {
        self.present = present;
    }

    /// Reads from `address` on, as `core` sees it at `now`.
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

    /// Writes from `address` on, as `core` does at `now`.
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
                    // What it counts of caches is free here: the line goes to memory as well.
                    self.change_copy(core, line, mask, &image, &mut AccessTraffic::default());
                    self.gather(core, now, line, mask, &image, &mut moved);
                }
            }
        }
        moved
    }

    /// `core` forgets what its first cache has of [`CachePolicy::Through`] memory; CL1INVMB on the SCC.
    pub fn invalidate(&mut self, core: CoreId) {
        let side = &mut self.sides[core.0 as usize];
        for line in std::mem::take(&mut side.tagged) {
            side.first.forget(line);
            side.copies.remove(&line);
        }
    }

    /// The write buffer of `core` lets its line go.
    pub fn drain(&mut self, core: CoreId, now: Picoseconds) -> AccessTraffic {
        let mut moved = AccessTraffic::default();
        if let Some((line, mask, image)) = self.sides[core.0 as usize].write_buffer.take() {
            self.store(line, now, mask, &image);
            moved.drained = 1;
        }
        moved
    }

    /// Writes back everything that `core` has changed of these bytes' lines in its caches, and forgets the lines.
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

    /// The first stale reads, in the order in which they were made.
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
