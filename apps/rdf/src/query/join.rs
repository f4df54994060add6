//! Joins of two tables at this place: inner and left joins, differences, distinct rows.
//!
//! Two solutions are compatible if they agree in each variable that both bind. Variables bound in all rows are the key
//! of a hash table; others are compared row by row. It knows no store and no other place. Invariant: rows of the left
//! table keep their order.

use super::table::{Table, VariableId};
use crate::store::dictionary::UNBOUND;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Matching rows of two tables.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RowPairs {
    /// Rows of the left table.
    pub left: Vec<u32>,
    /// The matching row of the right table for each of them.
    pub right: Vec<u32>,
}

/// End of a chain of rows.
const END: u32 = u32::MAX;

/// An index of the rows of a table by the numbers in some columns.
struct RowIndex<'a> {
    columns: Vec<&'a [u32]>,
    first: FxHashMap<u64, u32>,
    /// The next row with the same key, for each row.
    next: Vec<u32>,
}

/// Returns the key of a row: the numbers themselves if there are two or fewer.
fn key(columns: &[&[u32]], row: usize) -> u64 {
    match columns {
        [] => 0,
        [one] => u64::from(one[row]),
        [one, other] => u64::from(one[row]) << 32 | u64::from(other[row]),
        many => many.iter().fold(0, |state, column| {
            (state ^ u64::from(column[row])).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31)
        }),
    }
}

impl<'a> RowIndex<'a> {
    fn of(columns: Vec<&'a [u32]>, rows: usize) -> RowIndex<'a> {
        let mut first: FxHashMap<u64, u32> = FxHashMap::default();
        first.reserve(rows);
        let mut next = vec![END; rows];
        for row in (0..rows).rev() {
            if let Some(behind) = first.insert(key(&columns, row), row as u32) {
                next[row] = behind;
            }
        }
        RowIndex { columns, first, next }
    }

    /// Returns the rows with the same key as `row` of `other`.
    fn rows(&self, other: &[&[u32]], row: usize) -> impl Iterator<Item = usize> {
        let first = self.first.get(&key(other, row)).copied().unwrap_or(END);
        let chain = std::iter::successors((first != END).then_some(first), |at| {
            Some(self.next[*at as usize]).filter(|next| *next != END)
        });
        let is_exact = self.columns.len() <= 2;
        let agrees = move |at: &usize| {
            is_exact || self.columns.iter().zip(other).all(|(own, other)| own[*at] == other[row])
        };
        chain.map(|at| at as usize).filter(agrees)
    }
}

/// Returns the variables that both tables have: those bound in all rows of both, and the others.
pub fn shared(left: &Table, right: &Table) -> (Vec<VariableId>, Vec<VariableId>) {
    let both = left.variables.iter().copied().filter(|variable| right.variables.contains(variable));
    both.partition(|variable| left.always_binds(*variable) && right.always_binds(*variable))
}

fn columns<'a>(table: &'a Table, variables: &[VariableId]) -> Vec<&'a [u32]> {
    variables.iter().filter_map(|variable| table.column(*variable)).collect()
}

/// A search for the rows of a table that are compatible with those of another one.
pub struct Matcher<'a> {
    left: &'a Table,
    right: &'a Table,
    index: RowIndex<'a>,
    left_keys: Vec<&'a [u32]>,
    /// Columns of shared variables that are unbound in some rows.
    left_maybe: Vec<&'a [u32]>,
    right_maybe: Vec<&'a [u32]>,
}

impl<'a> Matcher<'a> {
    /// Prepares the search, in time proportional to the rows of `right`.
    pub fn new(left: &'a Table, right: &'a Table) -> Matcher<'a> {
        let (always_bound, maybe_unbound) = shared(left, right);
        Matcher {
            left,
            right,
            index: RowIndex::of(columns(right, &always_bound), right.rows),
            left_keys: columns(left, &always_bound),
            left_maybe: columns(left, &maybe_unbound),
            right_maybe: columns(right, &maybe_unbound),
        }
    }

    /// Returns the compatible pairs of the rows of the left table from `from` on, and the row at which the search
    /// stops: the first one before which at least `looks` rows of the right table were examined, or the number of
    /// rows.
    pub fn pairs(&self, from: usize, looks: usize) -> (RowPairs, usize) {
        let mut pairs = RowPairs::default();
        let end = self.visit(from, looks, |one, other, _| {
            pairs.left.push(one as u32);
            pairs.right.push(other as u32);
        });
        (pairs, end)
    }

    /// Sets `keep` to `false` for the rows of the left table from `from` on that share a variable with a compatible
    /// row of the right one; returns the row at which the search stops, as [`Matcher::pairs`].
    pub fn exclude(&self, from: usize, looks: usize, keep: &mut [bool]) -> usize {
        if self.left_keys.is_empty() && self.left_maybe.is_empty() {
            return self.left.rows;
        }
        self.visit(from, looks, |row, _, agree| keep[row] &= !agree)
    }

    /// Calls `found` with each compatible pair of rows; the last argument is `true` if both bind a common variable.
    fn visit(&self, from: usize, looks: usize, mut found: impl FnMut(usize, usize, bool)) -> usize {
        let mut looked = 0_usize;
        for row in from..self.left.rows {
            if looked >= looks {
                return row;
            }
            looked += 1;
            for other in self.index.rows(&self.left_keys, row) {
                looked += 1;
                let mut agree = !self.left_keys.is_empty();
                let is_compatible = self.left_maybe.iter().zip(&self.right_maybe).all(|(own, theirs)| {
                    let (own, theirs) = (own[row], theirs[other]);
                    agree |= own == theirs && own != UNBOUND;
                    own == theirs || own == UNBOUND || theirs == UNBOUND
                });
                if is_compatible {
                    found(row, other, agree);
                }
            }
        }
        self.left.rows
    }

    /// Returns the solutions of the pairs from `from` on, and the row at which the search stops, as
    /// [`Matcher::pairs`].
    pub fn join(&self, from: usize, looks: usize) -> (Table, usize) {
        let (pairs, end) = self.pairs(from, looks);
        (merged(self.left, self.right, &pairs), end)
    }
}

/// Returns the solutions of these pairs of rows.
pub fn merged(left: &Table, right: &Table, pairs: &RowPairs) -> Table {
    let mut all = left.pick(&pairs.left);
    let (_, maybe_unbound) = shared(left, right);
    for (variable, column) in all.variables.iter().zip(&mut all.columns) {
        let Some(other) = right.column(*variable).filter(|_| maybe_unbound.contains(variable)) else {
            continue;
        };
        for (value, row) in column.iter_mut().zip(&pairs.right) {
            if *value == UNBOUND {
                *value = other[*row as usize];
            }
        }
    }
    for (variable, column) in right.variables.iter().zip(&right.columns) {
        if left.position(*variable).is_none() {
            all.variables.push(*variable);
            all.columns.push(pairs.right.iter().map(|row| column[*row as usize]).collect());
        }
    }
    all.optional = optional(left, right);
    all
}

/// Returns the variables that a join may leave unbound.
fn optional(left: &Table, right: &Table) -> Vec<VariableId> {
    let mut optional: Vec<VariableId> =
        [left, right].into_iter().flat_map(|table| table.optional.clone()).collect();
    optional.retain(|variable| !left.always_binds(*variable) && !right.always_binds(*variable));
    optional.sort_unstable();
    optional.dedup();
    optional
}

/// Returns the joined solutions of both tables.
pub fn join(left: &Table, right: &Table) -> Table {
    Matcher::new(left, right).join(0, usize::MAX).0
}

/// Returns the solutions of these pairs of `rows` of the left table, and each of these rows that occurs in no pair.
pub fn left_joined(left: &Table, rows: Range<usize>, right: &Table, pairs: &RowPairs) -> Table {
    let mut is_lone = vec![true; rows.len()];
    pairs.left.iter().for_each(|row| is_lone[*row as usize - rows.start] = false);
    let lone: Vec<u32> = rows.clone().filter(|row| is_lone[row - rows.start]).map(|row| row as u32).collect();
    let mut all = merged(left, right, pairs);
    let (placed_by, width) = (all.placed_by, left.variables.len());
    let new: Vec<VariableId> = all.variables[width..].to_vec();
    all.append(&left.pick(&lone).project(&all.variables));
    all.optional.extend(new);
    all.optional.extend(left.optional.iter().copied());
    all.optional.sort_unstable();
    all.optional.dedup();
    Table { placed_by, ..all }
}

/// Rows grouped by equal values of some variables.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Groups {
    /// The first row of each group.
    pub firsts: Vec<u32>,
    /// The group of each row.
    pub of_row: Vec<u32>,
}

/// Groups the rows that agree in `keys`; an unbound variable agrees only with an unbound one.
pub fn groups(table: &Table, keys: &[VariableId]) -> Groups {
    let columns = columns(table, keys);
    let index = RowIndex::of(columns.clone(), table.rows);
    let mut groups = Groups { firsts: Vec::new(), of_row: vec![0; table.rows] };
    for row in 0..table.rows {
        // Rows of a chain are ascending, so the first that agrees is the first of all.
        let first = index.rows(&columns, row).next().unwrap_or(row);
        groups.of_row[row] = if first == row {
            groups.firsts.push(row as u32);
            groups.firsts.len() as u32 - 1
        } else {
            groups.of_row[first]
        };
    }
    groups
}

/// Returns the table with duplicate rows removed.
pub fn distinct(table: &Table) -> Table {
    let columns: Vec<&[u32]> = table.columns.iter().map(Vec::as_slice).collect();
    let index = RowIndex::of(columns.clone(), table.rows);
    // Rows of a chain are ascending, so the first that agrees is the first of all.
    let is_first = |row: usize| index.rows(&columns, row).next() == Some(row);
    let keep: Vec<bool> = (0..table.rows).map(is_first).collect();
    table.filter(&keep)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(variables: &[VariableId], optional: &[VariableId], rows: &[&[u32]]) -> Table {
        let column = |at: usize| rows.iter().map(|row| row[at]).collect();
        Table {
            columns: (0..variables.len()).map(column).collect(),
            rows: rows.len(),
            optional: optional.to_vec(),
            ..Table::empty(variables.to_vec())
        }
    }

    fn rows(table: &Table) -> Vec<Vec<u32>> {
        (0..table.rows).map(|row| table.row(row).collect()).collect()
    }

    #[test]
    fn a_join_has_each_pair_that_agrees_in_all_shared_variables() {
        let left = table(&[0, 1, 2, 3], &[], &[&[1, 2, 3, 9], &[1, 2, 4, 9], &[1, 2, 3, 8]]);
        let right = table(&[2, 1, 0, 4], &[], &[&[3, 2, 1, 7], &[3, 2, 1, 6], &[4, 2, 5, 5]]);
        let both = join(&left, &right);
        assert_eq!(both.variables, [0, 1, 2, 3, 4]);
        let expected = [[1, 2, 3, 9, 7], [1, 2, 3, 9, 6], [1, 2, 3, 8, 7], [1, 2, 3, 8, 6]];
        assert_eq!(rows(&both), expected);
        assert_eq!(rows(&join(&Table::unit(), &right)), rows(&right));
        assert_eq!(join(&table(&[0], &[], &[&[1], &[2]]), &table(&[1], &[], &[&[3], &[4]])).rows, 4);
    }

    #[test]
    fn an_unbound_variable_agrees_with_each_value_and_takes_it() {
        let left = table(&[0, 1], &[1], &[&[1, 0], &[1, 5], &[2, 6]]);
        let right = table(&[0, 1], &[1], &[&[1, 5], &[1, 0], &[2, 7]]);
        let both = join(&left, &right);
        assert_eq!(rows(&both), [[1, 5], [1, 0], [1, 5], [1, 5]]);
        assert_eq!(both.optional, [1]);
        let bound = table(&[1], &[], &[&[5]]);
        assert!(join(&left, &bound).optional.is_empty());
    }

    #[test]
    fn a_left_join_keeps_rows_that_match_nothing() {
        let (left, right) = (table(&[0], &[], &[&[1], &[2], &[1]]), table(&[0, 1], &[], &[&[1, 9], &[3, 8]]));
        let (pairs, end) = Matcher::new(&left, &right).pairs(0, usize::MAX);
        let all = left_joined(&left, 0..end, &right, &pairs);
        assert_eq!((rows(&all), all.optional), (vec![vec![1, 9], vec![1, 9], vec![2, 0]], vec![1]));
    }

    /// Returns the rows of the left table that share no bound variable with a compatible row of the right one.
    fn difference(left: &Table, right: &Table) -> Table {
        let mut keep = vec![true; left.rows];
        assert_eq!(Matcher::new(left, right).exclude(0, usize::MAX, &mut keep), left.rows);
        left.filter(&keep)
    }

    #[test]
    fn a_search_in_parts_finds_what_one_search_does() {
        let left = table(&[0, 1], &[1], &[&[1, 0], &[2, 5], &[1, 6], &[3, 6], &[1, 5]]);
        let right = table(&[0, 1, 2], &[1], &[&[1, 5, 7], &[1, 0, 8], &[2, 5, 9], &[1, 6, 9]]);
        let matcher = Matcher::new(&left, &right);
        let whole = join(&left, &right);
        for looks in 1..12 {
            let (mut from, mut parts) = (0, Vec::new());
            while from < left.rows {
                let (part, end) = matcher.join(from, looks);
                assert!(end > from && part.rows < looks + right.rows, "{looks}: {part:?}");
                parts.extend(rows(&part));
                from = end;
            }
            assert_eq!(parts, rows(&whole), "{looks}");
        }
    }

    /// The examples of SPARQL 1.1, section 8.3.
    #[test]
    fn a_difference_takes_rows_only_if_they_share_a_bound_variable() {
        let left = table(&[0, 1], &[], &[&[1, 2], &[3, 4]]);
        assert_eq!(rows(&difference(&left, &table(&[0], &[], &[&[3]]))), [[1, 2]]);
        assert_eq!(difference(&left, &table(&[5], &[], &[&[3]])).rows, 2);
        assert_eq!(difference(&left, &Table::unit()).rows, 2);
        assert_eq!(rows(&difference(&left, &table(&[0, 1], &[0, 1], &[&[0, 0], &[0, 4]]))), [[1, 2]]);
    }

    #[test]
    fn equal_rows_count_once() {
        let all = table(&[0, 1, 2], &[], &[&[1, 2, 3], &[1, 2, 4], &[1, 2, 3], &[1, 2, 4]]);
        assert_eq!(rows(&distinct(&all)), [[1, 2, 3], [1, 2, 4]]);
        assert_eq!(distinct(&Table::unit().pick(&[0, 0])).rows, 1);
    }
}
