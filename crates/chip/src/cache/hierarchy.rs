//! The two caches of one core, and the hits and misses of accesses to its private memory.
//!
//! It returns the level of each hit and the number of write-backs, without costs. Pages are scattered over memory, as
//! an operating system allocates them, so they map to random sets of the second-level cache. Reads allocate lines,
//! writes do not. Lines of message buffers pass through the first-level cache too, and occupy it until they are
//! invalidated.

use super::Cache;
use crate::chip::Caches;
use crate::quantity::Bytes;

/// Bytes of a page.
const PAGE_BYTES: u64 = 4_096;

/// Number of pages of a memory: 320 MiB.
const PAGES: u64 = 81_920;

/// Lines of message buffers count from here on.
const BUFFERS: u64 = 1 << 40;

/// Maximum number of lines that are invalidated one by one; with more, a scan of the cache is faster.
const PASSED_MAX: usize = 64;

/// Level at which an access finds its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The first-level cache.
    First,
    /// The second-level cache.
    Second,
    /// Memory.
    Memory,
}

/// Result of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Level at which the line was found.
    pub level: Level,
    /// Number of lines written back to memory for it.
    pub written_back: u32,
}

/// The caches of one core.
#[derive(Clone, Debug)]
pub struct Hierarchy {
    first: Cache,
    second: Cache,
    page_lines: u64,
    /// Lines of message buffers that the first-level cache may hold, unless there are too many to list.
    passed: Vec<u64>,
    /// Seed of the locations of the core's pages.
    seed: u64,
}

impl Hierarchy {
    /// Makes the empty caches of a core; `seed` determines the locations of its pages.
    pub fn new(caches: &Caches, seed: u64) -> Hierarchy {
        let lines = |size: Option<Bytes>| size.map_or(0, |size| size.0 / caches.line.0) as usize;
        Hierarchy {
            first: Cache::new(lines(caches.first)),
            second: Cache::new(lines(caches.second)),
            passed: Vec::new(),
            page_lines: (PAGE_BYTES / caches.line.0).max(1),
            seed,
        }
    }

    /// Returns the physical line of a line.
    fn place(&self, line: u64) -> u64 {
        let page = (line / self.page_lines).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ self.seed.wrapping_mul(0xd6e8_feb8_6659_fd93);
        let page = (page ^ (page >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        (page ^ (page >> 32)) % PAGES * self.page_lines + line % self.page_lines
    }

    /// Reads a line, which both caches then hold.
    pub fn read(&mut self, line: u64) -> Access {
        let line = self.place(line);
        if self.first.has(line) {
            return Access { level: Level::First, written_back: 0 };
        }
        let mut written_back = self.make_room(line);
        if self.second.has(line) {
            return Access { level: Level::Second, written_back };
        }
        written_back += u32::from(self.second.fill(line).is_some_and(|gone| gone.dirty));
        Access { level: Level::Memory, written_back }
    }

    /// Allocates a line in the first-level cache; returns the number of lines written back to memory.
    fn make_room(&mut self, line: u64) -> u32 {
        let gone = self.first.fill(line);
        let gone = gone.filter(|gone| gone.dirty && gone.line < BUFFERS);
        gone.map_or(0, |gone| u32::from(!self.second.write(gone.line)))
    }

    /// Writes a line at the level that holds it, without allocating.
    pub fn write(&mut self, line: u64) -> Access {
        let line = self.place(line);
        let level = if self.first.write(line) {
            Level::First
        } else if self.second.write(line) {
            Level::Second
        } else {
            Level::Memory
        };
        Access { level, written_back: 0 }
    }

    /// Passes a line of a message buffer through the first-level cache; returns the number of lines written back to
    /// memory.
    pub fn pass(&mut self, buffer: u32, line: u32) -> u32 {
        let line = BUFFERS + (u64::from(buffer) << 16) + u64::from(line);
        if self.passed.len() < PASSED_MAX && self.passed.last() != Some(&line) {
            self.passed.push(line);
        }
        self.make_room(line)
    }

    /// Invalidates all lines of message buffers.
    pub fn invalidate_buffers(&mut self) {
        if self.passed.len() < PASSED_MAX {
            self.passed.drain(..).for_each(|line| self.first.forget(line));
        } else {
            self.first.discard_from(BUFFERS);
            self.passed.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caches() -> Hierarchy {
        let caches = Caches {
            line: Bytes(32),
            first: Some(Bytes(16 << 10)),
            instructions: None,
            second: Some(Bytes(256 << 10)),
        };
        Hierarchy::new(&caches, 0)
    }

    /// Returns the number of hits at each level in a second pass over `lines` lines.
    fn second_pass(lines: u64) -> [usize; 3] {
        let mut caches = caches();
        (0..lines).for_each(|line| _ = caches.read(line));
        let levels: Vec<Level> = (0..lines).map(|line| caches.read(line).level).collect();
        [Level::First, Level::Second, Level::Memory]
            .map(|level| levels.iter().filter(|it| **it == level).count())
    }

    #[test]
    fn a_pass_finds_its_lines_where_they_fit() {
        assert_eq!(second_pass(512), [512, 0, 0]);
        assert_eq!(second_pass(1_024), [0, 1_024, 0]);
        let [first, second, memory] = second_pass(64 << 10);
        assert!(first == 0 && memory > 60_000, "{second} in the second cache, {memory} in memory");
    }

    #[test]
    fn a_write_takes_no_line_in_and_a_written_line_goes_back() {
        let mut caches = caches();
        assert_eq!([caches.write(0).level, caches.write(0).level], [Level::Memory; 2]);
        caches.read(0);
        assert_eq!(caches.write(0).level, Level::First);
        let back: u32 = (1..64 << 10).map(|line| caches.read(line).written_back).sum();
        assert_eq!(back, 1);
    }

    #[test]
    fn lines_of_buffers_push_private_ones_out_until_they_are_invalidated() {
        let mut caches = caches();
        (0..512).for_each(|line| _ = caches.read(line));
        (0..512).for_each(|line| _ = caches.pass(3, line));
        assert_eq!(caches.read(0).level, Level::Second);
        caches.invalidate_buffers();
        (0..511).for_each(|line| _ = caches.read(line));
        assert_eq!(caches.read(7).level, Level::First);
    }
}
