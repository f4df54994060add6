//! Cache misses of copying long messages, for a core that sends and receives them repeatedly.
//!
//! A message is in private memory, from which the sender loads its lines, and to which the receiver stores them. Their
//! cache hits depend on the earlier accesses of the core, which are unknown; so a message is assumed to be one of many
//! equal ones in the same memory, as in the measured ping-pongs (RCCE and iRCCE on the SCC). This file simulates a few
//! rounds of such a core's caches, line by line, and counts the misses of the last round. Invariant: only sizes matter,
//! so each size is simulated once.

use super::{Hierarchy, Level};
use crate::chip::Caches;
use crate::quantity::Bytes;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Method of storing received lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StorePolicy {
    /// A line is loaded before it is written, so that its words go to the first-level cache (iRCCE).
    Prefetching,
    /// Words are written to the level that holds their line (RCCE).
    Storing,
}

/// First-level misses of one side of a copy, per 65,536 copied lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MissCounts {
    /// Lines from the second-level cache.
    pub second: u32,
    /// Lines from memory.
    pub memory: u32,
    /// Lines written back to memory.
    pub back: u32,
}

/// Misses of both sides of copies of messages of one length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyMisses {
    /// Loads of the sender.
    pub loaded: MissCounts,
    /// Loads of the receiver with [`StorePolicy::Prefetching`], otherwise its stores.
    pub stored: MissCounts,
}

/// Warm-up rounds before the counted one.
const WARM: u32 = 2;

/// Cache of the results in this process, because every run needs the same few sizes.
static COUNTED: Mutex<BTreeMap<Sizes, CopyMisses>> = Mutex::new(BTreeMap::new());

/// Key of a result: bytes of a line and of both caches, lines of a message and of the buffer, and the store policy.
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
    /// Returns the misses for messages of `lines` lines that pass a buffer of up to `buffer` lines at a time.
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
        // 16 KiB and the lines of the buffer do not fit together.
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
        // Stored lines are written back once.
        let back = far.loaded.back + far.stored.back;
        assert!((ALL * 9 / 10..=ALL).contains(&back), "{far:?}");
    }

    #[test]
    fn stores_without_a_load_go_to_where_the_lines_are() {
        let CopyMisses { loaded, stored } = round(64, StorePolicy::Storing);
        assert_eq!((loaded.second, loaded.memory + stored.memory), (ALL, 0));
        // Except for those sent last.
        assert!((ALL * 3 / 4..ALL).contains(&stored.second), "{stored:?}");
        let far = round(1_024, StorePolicy::Storing).stored;
        assert!(far.memory > ALL / 2 && far.back == 0, "{far:?}");
    }
}
