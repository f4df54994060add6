//! Positions with untried squares, as a bag balanced over places.
//!
//! Columns and diagonals are bits (M. Richards, "Backtracking algorithms in MCPL using bit patterns and recursion",
//! University of Cambridge, 1997). Invariant: each square of each row is tried once, in one bag.

use isles::Cycles;
use isles::glb::Bag;
use isles::prelude::*;
use isles_app::frame::add_done;
use serde::{Deserialize, Serialize};

/// Cycles per queen on a modelled core: about twenty instructions on bits and a stack in the cache. Our estimate.
const QUEEN: Cycles = Cycles(30);

/// A row with untried squares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct BoardRow {
    /// Columns of the queens above.
    columns: u32,
    /// Squares of this row on the rising diagonals of these queens.
    rising: u32,
    falling: u32,
    /// Squares that are neither attacked nor tried; at least one.
    untried: u32,
}

/// Counts of boards and queens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueensCount {
    /// Boards with all queens.
    pub solutions: u64,
    /// Queens placed.
    pub placed: u64,
}

/// The untried part of a board, and the counts so far.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct QueensBag {
    /// All columns.
    board: u32,
    /// The lowest rows are at the end.
    rows: Vec<BoardRow>,
    count: QueensCount,
}

impl QueensBag {
    /// Creates the empty board for `queens` queens, 1 to 31.
    pub fn new(queens: u32) -> QueensBag {
        let board = (1 << queens) - 1;
        let first = BoardRow { columns: 0, rising: 0, falling: 0, untried: board };
        QueensBag { board, rows: vec![first], count: QueensCount::default() }
    }
}

impl Bag for QueensBag {
    type Result = QueensCount;

    // The current row and the stack are local variables: through `self`, each queen would store them.
    fn process(&mut self, count: usize) -> usize {
        let (board, mut rows) = (self.board, std::mem::take(&mut self.rows));
        let mut placed = 0;
        let mut current = rows.pop();
        while placed < count
            && let Some(mut row) = current
        {
            let square = row.untried & row.untried.wrapping_neg();
            row.untried ^= square;
            let columns = row.columns | square;
            let (rising, falling) = ((row.rising | square) << 1, (row.falling | square) >> 1);
            let untried = board & !(columns | rising | falling);
            if untried != 0 {
                if row.untried != 0 {
                    rows.push(row);
                }
                current = Some(BoardRow { columns, rising, falling, untried });
            } else {
                self.count.solutions += u64::from(columns == board);
                current = if row.untried != 0 { Some(row) } else { rows.pop() };
            }
            placed += 1;
        }
        rows.extend(current);
        self.rows = rows;
        self.count.placed += placed as u64;
        add_done(placed as u64);
        work(Cycles(QUEEN.0 * placed as u64));
        placed
    }

    fn split(&mut self) -> Option<QueensBag> {
        let mut given = Vec::new();
        // Half of the squares of each row, so that a thief gets large and small tasks.
        for row in &mut self.rows {
            for index in 0..row.untried.count_ones() / 2 {
                let square = row.untried & row.untried.wrapping_neg();
                match given.last_mut() {
                    Some(BoardRow { untried, .. }) if index > 0 => *untried |= square,
                    _ => given.push(BoardRow { untried: square, ..*row }),
                }
                row.untried ^= square;
            }
        }
        if given.is_empty() {
            given = self.rows.drain(..self.rows.len() / 2).collect();
        }
        let has_any = !given.is_empty();
        has_any.then(|| QueensBag { board: self.board, rows: given, count: QueensCount::default() })
    }

    fn merge(&mut self, other: QueensBag) {
        self.count.solutions += other.count.solutions;
        self.count.placed += other.count.placed;
        self.rows.splice(..0, other.rows);
    }

    fn result(self) -> QueensCount {
        self.count
    }
}

/// Returns the count for `queens` queens by a plain recursion.
pub fn sequential(queens: u32) -> QueensCount {
    fn place(board: u32, columns: u32, rising: u32, falling: u32, count: &mut QueensCount) {
        let mut untried = board & !(columns | rising | falling);
        count.solutions += u64::from(columns == board);
        while untried != 0 {
            let square = untried & untried.wrapping_neg();
            untried ^= square;
            count.placed += 1;
            place(board, columns | square, (rising | square) << 1, (falling | square) >> 1, count);
        }
    }
    let mut count = QueensCount::default();
    place((1 << queens) - 1, 0, 0, 0, &mut count);
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_board_in_parts_has_the_count_of_the_whole(
            queens in 1_u32..8, moves in proptest::collection::vec((0_usize..3, 1_usize..30), 0..40),
        ) {
            let mut bags = vec![QueensBag::new(queens)];
            for (kind, count) in moves {
                let chosen = count % bags.len();
                match kind {
                    0 => _ = bags[chosen].process(count),
                    1 => {
                        let part = bags[chosen].split();
                        bags.extend(part);
                    }
                    _ if bags.len() > 1 => {
                        let other = bags.swap_remove(chosen);
                        bags[0].merge(other);
                    }
                    _ => {}
                }
            }
            let mut whole = QueensCount::default();
            for mut bag in bags {
                while bag.process(100) == 100 {}
                prop_assert!(bag.split().is_none());
                let QueensCount { solutions, placed } = bag.result();
                whole.solutions += solutions;
                whole.placed += placed;
            }
            prop_assert_eq!(whole, sequential(queens));
        }
    }
}
