//! Cost of a step of a program, in terms that do not depend on a core.
//!
//! A program counts what it does: operations by class, and what it touches of its memory. What that takes is the matter
//! of a modelled chip, whose file knows its core and its caches; on a real machine nobody reads it. Invariant: counts
//! only grow, and end at the largest number instead of beginning anew.

/// Cost of a step on a core: cycles, operations by class, and memory that it touches.
///
/// Every part may be left out, and each method adds to what was said before:
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
/// An operation is one whose operands are in the first cache; what they cost if they are not is the matter of the
/// memory that the step touches. Caches are taken to be as the same step left them when it was done before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Cycles of the core, whatever they are spent on.
    pub cycles: u64,
    /// Operations on integers and addresses; also loads and stores.
    pub integers: u64,
    /// Additions, multiplications and comparisons of floating-point numbers.
    pub floats: u64,
    /// Divisions and square roots.
    pub divisions: u64,
    /// Jumps that depend on a comparison.
    pub branches: u64,
    /// Bytes that are walked through in order, once each.
    pub streamed_bytes: u64,
    /// Through how many bytes the walk goes, of which these are a part; 0 if nobody has said.
    pub streamed_region: u64,
    /// Number of pieces, each somewhere else.
    pub streamed_pieces: u64,
    /// Tables with accesses in no order.
    pub tables: [Table; TABLES_MAX],
}

/// Most tables of one step. Of more, the last and the next count as one.
pub const TABLES_MAX: usize = 4;

/// Memory with accesses in no order, each place as likely as any other.
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

    /// Adds `bytes` bytes that are walked through in order, once each.
    ///
    /// They are found in a cache only as far as that holds all the memory of the step. A list that is walked through
    /// again and again is that many steps. If a step is one of several that walk through a longer list together, say
    /// how long that is, by [`Work::of`].
    #[must_use]
    pub const fn streamed(self, bytes: u64) -> Work {
        Work { streamed_bytes: self.streamed_bytes.saturating_add(bytes), ..self }
    }

    /// Makes what is streamed a part of a walk through `region` more bytes, whose next part is that of the next step:
    /// the same byte comes again after `region` bytes. Tables are met in all these steps alike.
    ///
    /// So work that is cut into any number of steps asks for the same lines. A list that each step walks through from
    /// its beginning is `streamed(bytes).of(bytes)`, which is also what a step counts as that says no region; but of
    /// steps that say none, follow each other and fit a cache, a run on a modelled chip warns.
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

    /// Adds `number` pieces: the walk begins somewhere else this many more times, as with the rows of a graph, and
    /// costs one more line each time.
    #[must_use]
    pub const fn pieces(self, number: u64) -> Work {
        Work { streamed_pieces: self.streamed_pieces.saturating_add(number), ..self }
    }

    /// Adds `accesses` accesses to anywhere in another table of `bytes` bytes, each place as likely as any other.
    ///
    /// Tables and streams of one step compete for the caches, and what is used more often is found more often.
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

    /// Returns `true` if it touches memory that may be in no cache.
    #[inline]
    pub const fn touches_memory(&self) -> bool {
        self.streamed_bytes > 0 || self.tables[0].bytes > 0
    }

    /// Returns `true` if nothing was stated.
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
        let work = (1..=6).fold(Work::new(), |work, number| work.scattered(number, 10 * number));
        let tables = work.tables.map(|Table { accesses, bytes }| (accesses, bytes));
        assert_eq!(tables, [(1, 10), (2, 20), (3, 30), (4 + 5 + 6, 40 + 50 + 60)]);
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
