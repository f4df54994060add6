//! What the copies of a long message meet in the caches of a core that sends and receives such again and again.
//!
//! A message lies in private memory: who sends it loads its lines there, who receives it stores them there. Which of
//! them are in a cache depends on all that the core did before, and nobody says that; so a message is taken as one of
//! many that are alike and lie in one stretch of memory, as in the ping-pongs that were measured (RCCE and iRCCE on the
//! SCC). Here such a core plays a few rounds with its caches, line by line, and what it meets in the last one is
//! counted. Invariant: nothing but sizes decides, so it is counted once for each size.

use super::{Hierarchy, Level};
use crate::chip::Caches;
use crate::quantity::Bytes;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Way in which received lines are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StorePolicy {
    /// A line is loaded before it is written, so that the first cache takes its words (iRCCE).
    Prefetching,
    /// Words are written to where their line is (RCCE).
    Storing,
}

/// Accesses of one side of a copy that go beyond the first cache, for each 65,536 lines copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MissCounts {
    /// Lines of the second cache.
    pub second: u32,
    /// Lines of memory.
    pub memory: u32,
    /// Lines that are written back to memory.
    pub back: u32,
}

/// Both sides of the copies of messages of one length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyMisses {
    /// Loads of who sends.
    pub loaded: MissCounts,
    /// Loads of who receives, with [`StorePolicy::Prefetching`]; else stores.
    pub stored: MissCounts,
}

/// Rounds before the one that counts: then it goes on as it goes.
const WARM: u32 = 2;

/// Counts made in this process: every run asks for the same few sizes.
static COUNTED: Mutex<BTreeMap<Sizes, CopyMisses>> = Mutex::new(BTreeMap::new());

/// All that decides: bytes of a line and of both caches, lines of a message and of the buffer, and the copy.
type Sizes = ([u64; 5], StorePolicy);

impl MissCounts {
    fn note(&mut self, level: Level, back: u32) {
        match level {
            Level::First => {}
            Level::Second => self.second += 1,
            Level::Memory => self.memory += 1,
        }
        self.back += back;
    }

    fn of_lines(self, lines: u64) -> MissCounts {
        let share = |count: u32| ((u64::from(count) << 16) / lines.max(1)) as u32;
        MissCounts { second: share(self.second), memory: share(self.memory), back: share(self.back) }
    }
}

impl CopyMisses {
    /// Counts for messages of `lines` lines that go through a buffer of up to `buffer` lines at a time.
    pub fn of(caches: &Caches, lines: u64, buffer: u64, copy: StorePolicy) -> CopyMisses {
        let size = |cache: Option<Bytes>| cache.map_or(0, |cache| cache.0);
        let sizes = ([caches.line.0, size(caches.first), size(caches.second), lines, buffer], copy);
        let mut counted = COUNTED.lock().unwrap_or_else(PoisonError::into_inner);
        *counted.entry(sizes).or_insert_with(|| CopyMisses::count(caches, lines, buffer, copy))
    }

    fn count(caches: &Caches, lines: u64, buffer: u64, copy: StorePolicy) -> CopyMisses {
        let mut caches = Hierarchy::new(caches, 0);
        let mut round = CopyMisses::default();
        for _ in 0..=WARM {
            round = CopyMisses::default();
            (0..lines).for_each(|line| round.receive(&mut caches, line, buffer.max(1), copy));
            (0..lines).for_each(|line| round.load(&mut caches, line));
        }
        CopyMisses { loaded: round.loaded.of_lines(lines), stored: round.stored.of_lines(lines) }
    }

    fn receive(&mut self, caches: &mut Hierarchy, line: u64, buffer: u64, copy: StorePolicy) {
        if line.is_multiple_of(buffer) {
            caches.invalidate_buffers();
        }
        if copy == StorePolicy::Prefetching {
            let access = caches.read(line);
            self.stored.note(access.level, access.written_back);
        }
        self.stored.back += caches.pass(0, (line % buffer) as u32);
        let level = caches.write(line).level;
        self.stored.note(level, 0);
    }

    fn load(&mut self, caches: &mut Hierarchy, line: u64) {
        let access = caches.read(line);
        self.loaded.note(access.level, access.written_back);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Model of the SCC, with messages of `kibibytes` KiB.
    fn round(kibibytes: u64, copy: StorePolicy) -> CopyMisses {
        let caches = Caches {
            line: Bytes(32),
            first: Some(Bytes(16 << 10)),
            instructions: None,
            second: Some(Bytes(256 << 10)),
        };
        CopyMisses::of(&caches, kibibytes << 5, 254, copy)
    }

    const ALL: u32 = 1 << 16;

    #[test]
    fn a_message_that_fits_the_first_cache_beside_its_buffer_is_found_there() {
        for copy in [StorePolicy::Prefetching, StorePolicy::Storing] {
            assert_eq!(round(1, copy).loaded, MissCounts::default());
            assert_eq!(round(1, StorePolicy::Prefetching).stored, MissCounts::default());
        }
        // 16 KiB and lines of the buffer do not fit together.
        let CopyMisses { loaded, stored } = round(16, StorePolicy::Prefetching);
        assert!(loaded.second + stored.second > ALL / 4, "{loaded:?} {stored:?}");
        assert_eq!(loaded.memory + stored.memory, 0);
    }

    #[test]
    fn longer_ones_come_out_of_the_second_cache_and_the_longest_out_of_memory() {
        let near = round(64, StorePolicy::Prefetching);
        assert_eq!((near.loaded.second, near.stored.second), (ALL, ALL));
        assert_eq!(near.loaded.memory + near.loaded.back, 0);
        let far = round(1_024, StorePolicy::Prefetching);
        assert!(far.loaded.memory > ALL * 9 / 10 && far.stored.memory > ALL * 9 / 10, "{far:?}");
        // What was stored goes back once.
        let back = far.loaded.back + far.stored.back;
        assert!((ALL * 9 / 10..=ALL).contains(&back), "{far:?}");
    }

    #[test]
    fn stores_without_a_load_go_to_where_the_lines_are() {
        let CopyMisses { loaded, stored } = round(64, StorePolicy::Storing);
        assert_eq!((loaded.second, loaded.memory + stored.memory), (ALL, 0));
        // But for those that were sent last.
        assert!((ALL * 3 / 4..ALL).contains(&stored.second), "{stored:?}");
        let far = round(1_024, StorePolicy::Storing).stored;
        assert!(far.memory > ALL / 2 && far.back == 0, "{far:?}");
    }
}
