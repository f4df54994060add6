//! Bindings as a table of term numbers: a column for each variable, a row for each solution of this place.
//!
//! It knows no store and no other place. Invariant: all columns have the same length, the number of rows; a table
//! without columns still has rows, which are solutions that bind nothing.

use crate::store::dictionary::UNBOUND;

/// A variable of a query, by its position among the query's variables.
pub type VariableId = usize;

/// Bindings of some variables at this place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The variable of each column.
    pub variables: Vec<VariableId>,
    /// The numbers of each column.
    pub columns: Vec<Vec<u32>>,
    /// The number of solutions.
    pub rows: usize,
    /// Variables that may be unbound in a solution at any place.
    pub optional: Vec<VariableId>,
    /// The variable whose owner holds each row, if there is one; the same at all places.
    pub placed_by: Option<VariableId>,
}

impl Table {
    /// Creates a table without rows.
    pub fn empty(variables: Vec<VariableId>) -> Table {
        let columns = vec![Vec::new(); variables.len()];
        Table { variables, columns, ..Table::default() }
    }

    /// Creates a table of one solution that binds nothing.
    pub fn unit() -> Table {
        Table { rows: 1, ..Table::default() }
    }

    /// Returns the column of a variable, if it has one.
    pub fn position(&self, variable: VariableId) -> Option<usize> {
        self.variables.iter().position(|own| *own == variable)
    }

    /// Returns the numbers of a variable, if it has a column.
    pub fn column(&self, variable: VariableId) -> Option<&[u32]> {
        self.position(variable).map(|position| self.columns[position].as_slice())
    }

    /// Returns `true` if each solution binds this variable.
    pub fn always_binds(&self, variable: VariableId) -> bool {
        self.variables.contains(&variable) && !self.optional.contains(&variable)
    }

    /// Returns the rows at these positions, in that order.
    pub fn pick(&self, rows: &[u32]) -> Table {
        let pick = |column: &Vec<u32>| rows.iter().map(|row| column[*row as usize]).collect();
        Table { columns: self.columns.iter().map(pick).collect(), rows: rows.len(), ..self.head() }
    }

    /// Returns the rows for which `keep` is `true`.
    pub fn filter(&self, keep: &[bool]) -> Table {
        let rows: Vec<u32> = (0..self.rows as u32).filter(|row| keep[*row as usize]).collect();
        self.pick(&rows)
    }

    /// Removes the rows at these ascending positions. If they are few, the last rows fill the gaps; otherwise the rest
    /// keep their order.
    pub fn remove(&mut self, rows: impl DoubleEndedIterator<Item = u32> + ExactSizeIterator) {
        let left = self.rows - rows.len();
        if rows.len() * 8 < self.rows {
            for row in rows.rev() {
                for column in &mut self.columns {
                    column.swap_remove(row as usize); // what comes behind it stays
                }
            }
        } else if rows.len() > 0 {
            let mut keep = vec![true; self.rows];
            rows.for_each(|row| keep[row as usize] = false);
            *self = self.filter(&keep);
        }
        self.rows = left;
    }

    /// Returns the columns of `variables`, which must be distinct, in that order; missing ones are unbound in each
    /// row.
    pub fn project(mut self, variables: &[VariableId]) -> Table {
        let rows = self.rows;
        debug_assert!((1..variables.len()).all(|at| !variables[..at].contains(&variables[at])), "each once");
        let mut columns = Vec::with_capacity(variables.len());
        for variable in variables {
            match self.position(*variable) {
                Some(position) => columns.push(std::mem::take(&mut self.columns[position])),
                None => {
                    columns.push(vec![UNBOUND; rows]);
                    self.optional.push(*variable);
                }
            }
        }
        self.optional.retain(|variable| variables.contains(variable));
        self.placed_by = self.placed_by.filter(|variable| variables.contains(variable));
        Table { variables: variables.to_vec(), columns, ..self }
    }

    /// Appends the rows of `other`, which has the same columns.
    pub fn append(&mut self, other: &Table) {
        for (column, more) in self.columns.iter_mut().zip(&other.columns) {
            column.extend_from_slice(more);
        }
        self.rows += other.rows;
    }

    /// Returns the rows of both tables, over the variables of both.
    pub fn union(self, other: Table) -> Table {
        let mut variables = self.variables.clone();
        variables.extend(other.variables.iter().filter(|variable| !self.variables.contains(variable)));
        let placed_by = self.placed_by.filter(|_| self.placed_by == other.placed_by);
        let (mut all, other) = (self.project(&variables), other.project(&variables));
        all.append(&other);
        all.optional.extend(
            other
                .optional
                .iter()
                .filter(|variable| !all.optional.contains(variable))
                .copied()
                .collect::<Vec<_>>(),
        );
        Table { placed_by, ..all }
    }

    /// Returns the numbers of one row.
    pub fn row(&self, row: usize) -> impl Iterator<Item = u32> + '_ {
        self.columns.iter().map(move |column| column[row])
    }

    /// Returns a table with the same properties, without columns and rows.
    fn head(&self) -> Table {
        Table {
            variables: self.variables.clone(),
            columns: Vec::new(),
            rows: 0,
            optional: self.optional.clone(),
            placed_by: self.placed_by,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(variables: &[VariableId], rows: &[&[u32]]) -> Table {
        let column = |at: usize| rows.iter().map(|row| row[at]).collect();
        Table {
            variables: variables.to_vec(),
            columns: (0..variables.len()).map(column).collect(),
            rows: rows.len(),
            ..Table::default()
        }
    }

    #[test]
    fn a_union_has_the_columns_of_both_and_says_what_may_be_unbound() {
        let both = table(&[0, 1], &[&[5, 6]]).union(table(&[1, 2], &[&[7, 8], &[7, 9]]));
        let rows: Vec<Vec<u32>> = (0..both.rows).map(|row| both.row(row).collect()).collect();
        assert_eq!(rows, [vec![5, 6, 0], vec![0, 7, 8], vec![0, 7, 9]]);
        assert_eq!((both.always_binds(0), both.always_binds(1), both.always_binds(2)), (false, true, false));
    }

    #[test]
    fn rows_are_removed_whether_few_or_many() {
        let numbers: Vec<[u32; 2]> = (0..100).map(|row| [row, 1_000 + row]).collect();
        let rows: Vec<&[u32]> = numbers.iter().map(<[u32; 2]>::as_slice).collect();
        for removed in
            [vec![], vec![0], vec![99], vec![3, 97, 98, 99], (0..100).collect(), (20..90).collect()]
        {
            let mut all = table(&[7, 8], &rows);
            all.remove(removed.iter().copied());
            let mut left: Vec<u32> = all.columns[0].clone();
            assert!(all.columns[1].iter().zip(&left).all(|(other, number)| *other == 1_000 + number));
            left.sort_unstable();
            let expected: Vec<u32> = (0..100).filter(|row| !removed.contains(row)).collect();
            assert_eq!((left.len(), &left), (all.rows, &expected), "{removed:?}");
        }
        let mut unit = Table::unit();
        unit.remove(std::iter::once(0));
        assert_eq!(unit.rows, 0);
    }

    #[test]
    fn rows_are_picked_and_columns_projected() {
        let all = table(&[3, 4], &[&[1, 2], &[3, 4], &[5, 6]]);
        assert_eq!(all.filter(&[true, false, true]), table(&[3, 4], &[&[1, 2], &[5, 6]]));
        let other = all.pick(&[2, 0]).project(&[4, 9]);
        assert_eq!(other.columns, [vec![6, 2], vec![0, 0]]);
        assert_eq!(other.optional, [9]);
        assert_eq!(Table::unit().pick(&[0, 0]).rows, 2);
    }
}
