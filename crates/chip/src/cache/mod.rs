//! The tags of a cache.
//!
//! The contents of lines are kept elsewhere, or not at all for memory of one user. Sets have four ways with tree
//! pseudo-LRU replacement (three bits), as in the P54C. `hierarchy` has both caches of a core, and `copy_misses` the
//! misses of long messages. Invariant: a line is in at most one way.

mod copy_misses;
mod hierarchy;

pub use copy_misses::{CopyMisses, MissCounts, StorePolicy};
pub use hierarchy::{Access, Hierarchy, Level};

/// Ways of a set.
const WAYS: usize = 4;

/// A line in a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// Number of the line.
    pub line: u64,
    /// `true` if the line has been written since it was loaded.
    pub dirty: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Set {
    ways: [Option<Way>; WAYS],
    /// The less recently used half, and in each half the less recently used way.
    tree: [bool; 3],
}

impl Set {
    fn find(&mut self, line: u64) -> Option<(usize, &mut Way)> {
        let ways = self.ways.iter_mut().enumerate();
        ways.filter_map(|(at, way)| way.as_mut().map(|way| (at, way))).find(|(_, way)| way.line == line)
    }

    fn touch(&mut self, way: usize) {
        self.tree[0] = way < 2;
        self.tree[1 + way / 2] = way.is_multiple_of(2);
    }

    fn victim(&self) -> usize {
        let half = usize::from(self.tree[0]);
        self.ways.iter().position(Option::is_none).unwrap_or(half * 2 + usize::from(self.tree[1 + half]))
    }
}

/// A cache of one core.
#[derive(Clone, Debug)]
pub struct Cache {
    sets: Vec<Set>,
}

impl Cache {
    /// Returns an empty cache of `lines` lines.
    pub fn new(lines: usize) -> Cache {
        Cache { sets: vec![Set::default(); (lines / WAYS).max(1)] }
    }

    fn set(&mut self, line: u64) -> &mut Set {
        let sets = self.sets.len() as u64;
        &mut self.sets[(line % sets) as usize]
    }

    /// Returns `true` if the cache holds the line; counts as a use of it.
    pub fn has(&mut self, line: u64) -> bool {
        let set = self.set(line);
        let at = set.find(line).map(|(at, _)| at);
        at.inspect(|&at| set.touch(at)).is_some()
    }

    /// Marks a line as dirty; returns `false` if the cache does not hold it.
    pub fn write(&mut self, line: u64) -> bool {
        let found = self.set(line).find(line).map(|(_, way)| way.dirty = true);
        found.is_some() && self.has(line)
    }

    /// Returns `true` if the cache holds the line; does not count as a use of it.
    pub fn holds(&self, line: u64) -> bool {
        let set = &self.sets[(line % self.sets.len() as u64) as usize];
        set.ways.iter().flatten().any(|way| way.line == line)
    }

    /// Allocates the line; returns the evicted line, if any.
    pub fn fill(&mut self, line: u64) -> Option<Way> {
        if self.has(line) {
            return None;
        }
        let set = self.set(line);
        let victim = set.victim();
        let gone = set.ways[victim].replace(Way { line, dirty: false });
        set.touch(victim);
        gone
    }

    /// Drops a line, dirty or not.
    pub fn forget(&mut self, line: u64) {
        let set = self.set(line);
        set.ways.iter_mut().filter(|way| way.is_some_and(|way| way.line == line)).for_each(|way| *way = None);
    }

    /// Drops all lines from `first` on, dirty or not.
    pub(crate) fn discard_from(&mut self, first: u64) {
        for way in self.sets.iter_mut().flat_map(|set| &mut set.ways) {
            if way.is_some_and(|way| way.line >= first) {
                *way = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_stays_and_what_does_not_goes_round() {
        let hits = |lines: u64| {
            let mut cache = Cache::new(512);
            (0..3 * lines)
                .filter(|at| cache.has(at % lines) || cache.fill(at % lines).is_some_and(|gone| gone.dirty))
                .count()
        };
        assert_eq!(hits(512), 2 * 512);
        assert_eq!(hits(1_024), 0);
    }

    #[test]
    fn a_written_line_is_written_back_when_it_goes_and_a_read_one_is_not() {
        let mut cache = Cache::new(4);
        for line in 0..4 {
            assert_eq!(cache.fill(line), None);
        }
        assert!(cache.write(0) && !cache.write(9));
        let gone: Vec<Way> = (4..8).filter_map(|line| cache.fill(line)).collect();
        let dirty: Vec<u64> = gone.iter().filter(|way| way.dirty).map(|way| way.line).collect();
        assert_eq!((gone.len(), dirty), (4, vec![0]));
        assert!(cache.holds(5) && !cache.holds(0));
        cache.forget(5);
        assert!(!cache.holds(5) && cache.holds(6));
    }

    #[test]
    fn lines_of_buffers_are_forgotten_and_private_ones_kept() {
        let mut cache = Cache::new(16);
        [1, 2, 1 << 40, 2 << 40].into_iter().for_each(|line| _ = cache.fill(line));
        cache.discard_from(1 << 40);
        assert_eq!([1, 2, 1 << 40, 2 << 40].map(|line| cache.has(line)), [true, true, false, false]);
    }
}
