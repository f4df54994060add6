//! Convergence acceleration: direct inversion in the iterative subspace.
//!
//! P. Pulay, J. Comput. Chem. 3, 556 (1982): the next Fock matrix is the combination of earlier ones that minimises
//! the combined error, where the error is the commutator of Fock and density matrix. Invariant: at most [`MEMORY`]
//! matrices are kept; if the equations are singular, the oldest are dropped until they are not.

use super::super::matrix::Matrix;

/// Number of earlier matrices combined.
pub(super) const MEMORY: usize = 8;

/// Smallest pivot of the equations relative to their largest element; a smaller one counts as singular.
const PIVOT_MIN: f64 = 1e-14;

/// Earlier Fock matrices with their errors, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Diis {
    earlier: Vec<(Matrix, Matrix)>,
}

impl Diis {
    /// Adds a Fock matrix with its error, and returns the combination to use next.
    pub(super) fn next(&mut self, fock: Matrix, error: Matrix) -> Matrix {
        if self.earlier.len() == MEMORY {
            self.earlier.remove(0);
        }
        self.earlier.push((fock, error));
        loop {
            if let Some(weights) = self.weights() {
                let mut terms = weights.iter().zip(&self.earlier);
                let zero = Matrix::zero(self.earlier[0].0.size());
                return terms.by_ref().fold(zero, |sum, (weight, (fock, _))| sum.plus(*weight, fock));
            }
            self.earlier.remove(0);
        }
    }

    /// Returns the weights, which add up to one; `None` if the equations are singular.
    fn weights(&self) -> Option<Vec<f64>> {
        let count = self.earlier.len();
        if count == 1 {
            return Some(vec![1.0]);
        }
        let product = |one: usize, other: usize| self.earlier[one].1.dot(&self.earlier[other].1);
        let largest = (0..count).map(|index| product(index, index)).fold(f64::MIN_POSITIVE, f64::max);
        let mut rows: Vec<Vec<f64>> = (0..count)
            .map(|row| {
                let mut row: Vec<f64> = (0..count).map(|column| product(row, column) / largest).collect();
                row.extend([1.0, 0.0]);
                row
            })
            .collect();
        let mut last = vec![1.0; count];
        last.extend([0.0, 1.0]);
        rows.push(last);
        let mut weights = solved(rows)?;
        weights.truncate(count);
        Some(weights)
    }
}

/// Solves linear equations, whose right side is the last column; `None` if a pivot is too small.
fn solved(mut rows: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    let count = rows.len();
    for column in 0..count {
        let size = |row: &usize| rows[*row][column].abs();
        let pivot = (column..count).max_by(|one, other| size(one).total_cmp(&size(other)))?;
        if size(&pivot) < PIVOT_MIN {
            return None;
        }
        rows.swap(column, pivot);
        let own = rows[column].clone();
        for row in rows.iter_mut().skip(column + 1) {
            let factor = row[column] / own[column];
            row.iter_mut().zip(&own).for_each(|(value, pivot)| *value -= factor * pivot);
        }
    }
    let mut solution = vec![0.0; count];
    for row in (0..count).rev() {
        let known: f64 = (row + 1..count).map(|column| rows[row][column] * solution[column]).sum();
        solution[row] = (rows[row][count] - known) / rows[row][row];
    }
    Some(solution)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_that_cancel_each_other_are_combined_until_they_do() {
        let number = |value| Matrix::of(1, |_, _| value);
        let mut diis = Diis::default();
        assert_eq!(diis.next(number(10.0), number(1.0)), number(10.0));
        // Half of each has zero error.
        assert!((diis.next(number(20.0), number(-1.0)).get(0, 0) - 15.0).abs() < 1e-12);
        // A third error in one dimension makes the equations singular: the oldest is dropped.
        assert!((diis.next(number(30.0), number(-3.0)).get(0, 0) - 15.0).abs() < 1e-9);
    }

    #[test]
    fn equations_are_solved_with_pivots() {
        let solution = solved(vec![vec![0.0, 2.0, 4.0], vec![1.0, 1.0, 5.0]]).unwrap();
        assert_eq!(solution, [3.0, 2.0]);
        assert_eq!(solved(vec![vec![1.0, 1.0, 1.0], vec![1.0, 1.0, 2.0]]), None);
    }
}
