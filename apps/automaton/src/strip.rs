//! The rows of one place, with a row of each neighbour around them, and the steps over them.
//!
//! Columns wrap around within a row; the halos make the rows wrap around. Invariant: the sums of a field are the sums
//! over its rows, so they do not depend on how it is divided.

use crate::pattern::Pattern;
use crate::rule::Rule;
use isles::{Random, Work};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A cell of eight random ones lives at first, in three of eight.
const RANDOM_OF_8: u64 = 3;

/// Initial contents of a field.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Start {
    /// A pattern, in its middle.
    Pattern(Pattern),
    /// Random cells of this seed.
    Random(u64),
}

/// A field: its size, its rule, and its initial contents.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Field {
    /// Number of columns, a multiple of 8.
    pub columns: usize,
    /// Number of rows.
    pub rows: usize,
    /// Rule of the cells.
    pub rule: Rule,
    /// Initial contents.
    pub start: Start,
}

/// Sums over cells of one generation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sums {
    /// Number of living cells.
    pub population: u64,
    /// The sum of the hashes of rows.
    pub hash: u64,
}

impl Sums {
    /// Returns the sum of both.
    pub fn plus(self, other: Sums) -> Sums {
        Sums { population: self.population + other.population, hash: self.hash.wrapping_add(other.hash) }
    }
}

/// Cells summed at a time: they stay in the first-level cache.
const BLOCK: usize = 1024;

/// The rows of one place. Own rows count from 1; row 0 and the last one belong to the neighbours.
pub struct Strip {
    columns: usize,
    /// The first row in the field.
    first: usize,
    rows: usize,
    by_sum: Vec<(u8, u8, u8)>,
    cells: Vec<u8>,
    next: Vec<u8>,
    /// Column sums, with the last one before the first and the first one after the last.
    sums: Vec<u8>,
    /// Two hash keys for each word of a row.
    keys: Vec<[u32; 2]>,
}

impl Strip {
    /// Creates the initial rows `rows` of `field`.
    pub fn new(field: &Field, rows: Range<usize>) -> Strip {
        let columns = field.columns;
        let mut keys = Random::stream(0x6175_746f_6d61_746f, 0);
        let mut strip = Strip {
            columns,
            first: rows.start,
            rows: rows.len(),
            by_sum: field.rule.by_sum(),
            cells: vec![0; columns * (rows.len() + 2)],
            next: vec![0; columns * (rows.len() + 2)],
            sums: vec![0; columns + 2],
            keys: (0..columns / 4)
                .map(|_| [keys.below(1 << 32) as u32 | 1, keys.below(1 << 32) as u32 | 1])
                .collect(),
        };
        match &field.start {
            Start::Pattern(pattern) => strip.place(pattern, field),
            Start::Random(seed) => {
                for row in 0..strip.rows {
                    let mut random = Random::stream(*seed, (strip.first + row) as u64);
                    strip.row_mut(row + 1).fill_with(|| u8::from(random.below(8) < RANDOM_OF_8));
                }
            }
        }
        strip
    }

    fn place(&mut self, pattern: &Pattern, field: &Field) {
        let top = (field.rows - pattern.rows as usize) / 2;
        let left = (field.columns - pattern.columns as usize) / 2;
        for (row, column, len) in &pattern.runs {
            let (row, first) = (top + *row as usize, left + *column as usize);
            if (self.first..self.first + self.rows).contains(&row) {
                let row = row - self.first + 1;
                self.row_mut(row)[first..first + *len as usize].fill(1);
            }
        }
    }

    /// Returns the number of own rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns row `row`, one byte per cell.
    pub fn row(&self, row: usize) -> &[u8] {
        &self.cells[row * self.columns..(row + 1) * self.columns]
    }

    /// Returns row `row`, mutable.
    pub fn row_mut(&mut self, row: usize) -> &mut [u8] {
        &mut self.cells[row * self.columns..(row + 1) * self.columns]
    }

    /// Returns the first and the last own row, and the rows between for computing, which changes neither.
    pub fn split(&mut self) -> (&[u8], &[u8], Inner<'_>) {
        let Strip { columns, rows, by_sum, cells, next, sums, .. } = self;
        let row = |row: usize| &cells[row * *columns..(row + 1) * *columns];
        let inner = Inner { columns: *columns, rows: *rows, by_sum, cells, next, sums };
        (row(1), row(*rows), inner)
    }

    /// Ends a step: computes the first and the last row, once the halos have arrived.
    pub fn finish(&mut self) {
        let last = self.rows;
        let (_, _, mut inner) = self.split();
        inner.compute(1);
        if last > 1 {
            inner.compute(last);
        }
        std::mem::swap(&mut self.cells, &mut self.next);
    }

    /// Returns the sums over the own rows.
    pub fn sums(&self) -> Sums {
        let rows = (1..=self.rows).map(|row| self.row_sums(row));
        rows.fold(Sums::default(), Sums::plus)
    }

    fn row_sums(&self, row: usize) -> Sums {
        let cells = self.row(row);
        let population = cells.chunks(255).map(|some| u64::from(some.iter().sum::<u8>())).sum();
        let (mut low, mut high) = (0_u32, 0_u32);
        for (word, [one, other]) in cells.as_chunks::<4>().0.iter().zip(&self.keys) {
            let word = u32::from_le_bytes(*word);
            low = low.wrapping_add(word.wrapping_mul(*one));
            high = high.wrapping_add((word ^ word >> 7).wrapping_mul(*other));
        }
        let number = (self.first + row) as u64;
        let hash =
            mixed((u64::from(high) << 32 | u64::from(low)) ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Sums { population, hash }
    }

    /// Returns the own rows packed eight cells per byte, the first cell in the highest bit.
    pub fn packed(&self) -> Vec<u8> {
        let own = &self.cells[self.columns..self.columns * (self.rows + 1)];
        own.chunks(8).map(|cells| cells.iter().fold(0, |byte, cell| byte << 1 | cell)).collect()
    }

    /// Returns the work of a core for `rows` rows: per cell nine loads, nine additions, two comparisons with their
    /// selections, and a store; two bytes per cell are streamed, out of all its rows.
    pub fn work(&self, rows: usize) -> Work {
        let [cells, all] = [rows, self.rows].map(|rows| (rows * self.columns) as u64);
        Work::new().integers(24 * cells).branches(cells).streamed(2 * cells).of(2 * all)
    }
}

/// Mixes the bits of a number (Steele, Lea and Flood, SplitMix64).
fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

/// The rows of a strip between its first and last one, ready to be computed.
pub struct Inner<'a> {
    columns: usize,
    rows: usize,
    by_sum: &'a [(u8, u8, u8)],
    cells: &'a [u8],
    next: &'a mut [u8],
    sums: &'a mut [u8],
}

impl Inner<'_> {
    /// Computes the inner rows.
    pub fn advance(&mut self) {
        (2..self.rows).for_each(|row| self.compute(row));
    }

    /// Computes row `row` of the next generation.
    fn compute(&mut self, row: usize) {
        let columns = self.columns;
        let three = &self.cells[(row - 1) * columns..(row + 2) * columns];
        let (above, rest) = three.split_at(columns);
        let (here, below) = rest.split_at(columns);
        let pairs = above.iter().zip(here).zip(below);
        for (sum, ((above, here), below)) in self.sums[1..].iter_mut().zip(pairs) {
            *sum = above + here + below;
        }
        self.sums[0] = self.sums[columns];
        self.sums[columns + 1] = self.sums[1];
        let next = &mut self.next[row * columns..(row + 1) * columns];
        let mut nine = [0_u8; BLOCK];
        for (block, (next, here)) in next.chunks_mut(BLOCK).zip(here.chunks(BLOCK)).enumerate() {
            let (start, nine) = (block * BLOCK, &mut nine[..next.len()]);
            let (left, middle) = (&self.sums[start..], &self.sums[start + 1..]);
            let right = &self.sums[start + 2..];
            for (nine, ((left, middle), right)) in nine.iter_mut().zip(left.iter().zip(middle).zip(right)) {
                *nine = left + middle + right;
            }
            next.fill(0);
            for (sum, birth, survival) in self.by_sum {
                let differs = birth ^ survival;
                for ((next, nine), here) in next.iter_mut().zip(&*nine).zip(here) {
                    *next |= u8::from(nine == sum) & (birth ^ differs & here);
                }
            }
        }
    }
}
