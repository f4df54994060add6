//! Cost of a step of a program, in terms that do not depend on a core.
//!
//! A program counts its operations by class and the memory that it touches. A modelled chip, whose file describes its
//! core and caches, converts these counts to time; a real machine ignores them. Invariant: counts only grow, and
//! saturate at the largest number.

/// Cost of a step on a core: cycles, operations by class, and memory that it touches.
///
/// Every part may be omitted, and each method adds to the previous counts:
///
/// ```
/// use isles_transport::Work;
/// let edges = 1_000;
/// // For each edge: six operations on integers, one on floats, a branch; the list of edges from front to back, and one
/// // entry somewhere in a table of 64 KiB.
/// let step = Work::new().integers(6 * edges).floats(edges).branches(edges);
/// let step = step.streamed(8 * edges).scattered(edges, 64 << 10);
/// assert_eq!(step.integers, 6_000);
/// ```
///
/// Operations are counted as if their operands were in the first-level cache; the memory that the step touches
/// determines the additional cost if they are not. Caches are assumed to be in the state that the same step left when
/// it was done before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Cycles of the core for any purpose.
    pub cycles: u64,
    /// Operations on integers and addresses; also loads and stores.
    pub integers: u64,
    /// Additions, multiplications and comparisons of floating-point numbers.
    pub floats: u64,
    /// Divisions and square roots.
    pub divisions: u64,
    /// Jumps that depend on a comparison.
    pub branches: u64,
    /// Bytes that are accessed in order, once each.
    pub streamed_bytes: u64,
    /// Length in bytes of the whole walk of which the streamed bytes are a part; 0 if it was not given.
    pub streamed_region: u64,
    /// Number of pieces at separate positions.
    pub streamed_pieces: u64,
    /// Tables that are accessed at random.
    pub tables: [Table; TABLES_MAX],
}

/// Maximum number of tables of one step. With more, the last and the next one are merged.
pub const TABLES_MAX: usize = 8;

/// Memory that is accessed at random, all positions being equally likely.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Number of accesses; one reads, or reads and writes.
    pub accesses: u64,
    /// Length in bytes; 0 for a table that is not there.
    pub bytes: u64,
}

impl Work {
    /// Returns no work.
    pub const fn new() -> Work {
        Work {
            cycles: 0,
            integers: 0,
            floats: 0,
            divisions: 0,
            branches: 0,
            streamed_bytes: 0,
            streamed_region: 0,
            streamed_pieces: 0,
            tables: [Table { accesses: 0, bytes: 0 }; TABLES_MAX],
        }
    }

    /// Adds `number` cycles of the core.
    #[must_use]
    pub const fn cycles(self, number: u64) -> Work {
        Work { cycles: self.cycles.saturating_add(number), ..self }
    }

    /// Adds `number` operations on integers and addresses, loads and stores among them.
    #[must_use]
    pub const fn integers(self, number: u64) -> Work {
        Work { integers: self.integers.saturating_add(number), ..self }
    }

    /// Adds `number` additions, multiplications and comparisons of floating-point numbers.
    #[must_use]
    pub const fn floats(self, number: u64) -> Work {
        Work { floats: self.floats.saturating_add(number), ..self }
    }

    /// Adds `number` divisions and square roots.
    #[must_use]
    pub const fn divisions(self, number: u64) -> Work {
        Work { divisions: self.divisions.saturating_add(number), ..self }
    }

    /// Adds `number` jumps that depend on a comparison.
    #[must_use]
    pub const fn branches(self, number: u64) -> Work {
        Work { branches: self.branches.saturating_add(number), ..self }
    }

    /// Adds `bytes` bytes that are accessed in order, once each.
    ///
    /// They are found in a cache only if it holds all the memory of the step. Repeated walks through a list are
    /// separate steps. If a step is one of several that walk through a longer list together, state the length of the
    /// list by [`Work::of`].
    #[must_use]
    pub const fn streamed(self, bytes: u64) -> Work {
        Work { streamed_bytes: self.streamed_bytes.saturating_add(bytes), ..self }
    }

    /// Makes the streamed bytes a part of a walk through `region` bytes; the next step walks through the next part, so
    /// the same byte is accessed again after `region` bytes. Tables are assumed to be used in all these steps.
    ///
    /// Work that is divided into any number of steps therefore accesses the same lines. For a list that each step walks
    /// through from its beginning, use `streamed(bytes).of(bytes)`. This is also the default without a region; but if
    /// consecutive steps without a region fit in a cache, a run on a modelled chip prints a warning.
    ///
    /// ```
    /// use isles_transport::Work;
    /// // A quarter of the rows of a grid of 4 MiB; the other three quarters follow.
    /// let quarter = Work::new().streamed(1 << 20).of(4 << 20);
    /// assert_eq!((quarter.streamed_bytes, quarter.streamed_region), (1 << 20, 4 << 20));
    /// ```
    #[must_use]
    pub const fn of(self, region: u64) -> Work {
        Work { streamed_region: self.streamed_region.saturating_add(region), ..self }
    }

    /// Adds `number` pieces: the walk starts at another position this many more times, as with the rows of a graph, and
    /// costs one more line each time.
    #[must_use]
    pub const fn pieces(self, number: u64) -> Work {
        Work { streamed_pieces: self.streamed_pieces.saturating_add(number), ..self }
    }

    /// Adds `accesses` random accesses to another table of `bytes` bytes, all positions being equally likely.
    ///
    /// Tables and streams of one step compete for the caches, and frequently used memory is found more often. Split a
    /// table whose entries are used unevenly into several: the few that are used most, and the others.
    #[must_use]
    pub const fn scattered(mut self, accesses: u64, bytes: u64) -> Work {
        let mut index = 0;
        while index < TABLES_MAX - 1 && self.tables[index].bytes > 0 {
            index += 1;
        }
        let Table { accesses: others, bytes: before } = self.tables[index];
        let accesses = others.saturating_add(accesses);
        self.tables[index] = Table { accesses, bytes: before.saturating_add(bytes) };
        self
    }

    /// Returns `true` if it touches memory that may not be in a cache.
    #[inline]
    pub const fn touches_memory(&self) -> bool {
        self.streamed_bytes > 0 || self.tables[0].bytes > 0
    }

    /// Returns `true` if all counts are zero.
    pub const fn is_nothing(&self) -> bool {
        let Work { cycles, integers, floats, divisions, branches, .. } = *self;
        cycles | integers | floats | divisions | branches == 0 && !self.touches_memory()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up_and_end_at_the_largest() {
        let work = Work::new().cycles(1).integers(2).floats(3).divisions(4).branches(5);
        let work = work.streamed(6).of(8).of(4).pieces(7).pieces(70).integers(20).cycles(u64::MAX);
        let expected = Work {
            cycles: u64::MAX,
            integers: 22,
            floats: 3,
            divisions: 4,
            branches: 5,
            streamed_bytes: 6,
            streamed_region: 12,
            streamed_pieces: 77,
            ..Work::new()
        };
        assert_eq!(work, expected);
    }

    #[test]
    fn tables_stand_side_by_side_and_what_is_too_much_joins_the_last() {
        let work = (1..=10).fold(Work::new(), |work, number| work.scattered(number, 10 * number));
        let tables = work.tables.map(|Table { accesses, bytes }| (accesses, bytes));
        let alone = [(1, 10), (2, 20), (3, 30), (4, 40), (5, 50), (6, 60), (7, 70)];
        assert_eq!(tables[..7], alone);
        assert_eq!(tables[7], (8 + 9 + 10, 80 + 90 + 100));
    }

    #[test]
    fn any_part_makes_it_something() {
        assert!(Work::new().is_nothing());
        let parts: [fn(Work) -> Work; 7] = [
            |work| work.cycles(1),
            |work| work.integers(1),
            |work| work.floats(1),
            |work| work.divisions(1),
            |work| work.branches(1),
            |work| work.streamed(1),
            |work| work.scattered(1, 1),
        ];
        for part in parts {
            assert!(!part(Work::new()).is_nothing());
        }
    }
}
