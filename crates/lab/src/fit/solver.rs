//! Linear least squares with few coefficients, none of them negative.
//!
//! The decomposition is nalgebra's (Householder's QR), which keeps twice the digits of normal equations. The best
//! non-negative coefficients are the plain least-squares solution for some subset of the columns, with the others held
//! at zero. There are at most [`COLUMNS_MAX`] columns, so all subsets are tried, and no search can stop early. Nothing
//! here depends on power. Invariant: the answer does not depend on the scale of a column.

use nalgebra::{DMatrix, DVector};

/// Maximum number of columns of a system: all subsets of them are tried.
pub(super) const COLUMNS_MAX: usize = 6;

/// Equations reduced to one for each column, and the sum of squares of the rest.
#[derive(Clone, Debug)]
pub(super) struct TriangularSystem {
    /// Zero below its diagonal.
    columns: DMatrix<f64>,
    target: DVector<f64>,
    /// Sum of squares that no choice of coefficients can remove.
    squares: f64,
}

/// Coefficients that fit best.
#[derive(Clone, Debug)]
pub(super) struct Solution {
    /// One value for each column; zero if it is held there.
    pub values: Vec<f64>,
    /// The columns that are not held at zero.
    pub free: Vec<usize>,
    /// The sum of the squared differences that remain.
    pub squares: f64,
}

impl TriangularSystem {
    /// Reduces rows, each of `columns` terms and a target.
    pub fn new(columns: usize, rows: impl IntoIterator<Item = Vec<f64>>) -> Self {
        assert!(columns <= COLUMNS_MAX, "{columns} columns, and {COLUMNS_MAX} are allowed");
        let rows: Vec<Vec<f64>> = rows.into_iter().collect();
        assert!(rows.iter().all(|row| row.len() == columns + 1), "one term a column, and the target");
        // Rows of zeros make it at least as high as it is wide.
        let height = rows.len().max(columns);
        let at = |row: usize, column: usize| rows.get(row).map_or(0.0, |row| row[column]);
        let system = DMatrix::from_fn(height, columns, at);
        Self::reduced(system, DVector::from_fn(height, |row, _| at(row, columns)))
    }

    fn reduced(system: DMatrix<f64>, mut target: DVector<f64>) -> Self {
        let columns = system.ncols();
        let reduced = system.qr();
        reduced.q_tr_mul(&mut target);
        let squares = target.rows_range(columns..).norm_squared();
        Self { columns: reduced.r(), target: target.rows_range(..columns).into_owned(), squares }
    }

    /// Returns the same equations with the columns `to` only.
    fn restricted(&self, to: &[usize]) -> Self {
        let mut triangle = Self::reduced(self.columns.select_columns(to), self.target.clone());
        triangle.squares += self.squares;
        triangle
    }

    /// Returns the inverse of the triangle; `None` if a column is exactly a linear combination of others.
    fn inverse(&self) -> Option<DMatrix<f64>> {
        let size = self.columns.ncols();
        self.columns.solve_upper_triangular(&DMatrix::identity(size, size))
    }

    /// Returns for each column the part of it, from 0 to 1, that is independent of the others: one over the square root
    /// of its variance inflation factor.
    pub(crate) fn distinctness(&self) -> Vec<f64> {
        let size = self.columns.ncols();
        let Some(inverse) = self.inverse() else { return vec![0.0; size] };
        let part = |column| (self.columns.column(column).norm() * inverse.row(column).norm()).recip();
        (0..size).map(part).map(|part| if part.is_finite() { part } else { 0.0 }).collect()
    }

    /// Returns the non-negative coefficients with the smallest sum of squares.
    pub(crate) fn solve(&self) -> Solution {
        let columns = self.columns.ncols();
        let mut best = Solution {
            values: vec![0.0; columns],
            free: Vec::new(),
            squares: self.squares + self.target.norm_squared(),
        };
        // All columns first: if their plain solution is allowed, it is the best.
        for subset in (1..1_usize << columns).rev() {
            let free: Vec<usize> = (0..columns).filter(|column| subset & (1 << column) != 0).collect();
            let reduced = self.restricted(&free);
            if reduced.squares >= best.squares {
                continue;
            }
            let Some(found) = reduced.columns.solve_upper_triangular(&reduced.target) else { continue };
            if found.iter().all(|value| value.is_finite() && *value > 0.0) {
                let mut values = vec![0.0; columns];
                free.iter().zip(&found).for_each(|(column, value)| values[*column] = *value);
                best = Solution { values, free, squares: reduced.squares };
                if subset + 1 == 1 << columns {
                    break;
                }
            }
        }
        best
    }

    /// Returns the covariance of the coefficients if each target has variance one, or `None` if they are not
    /// determined.
    pub(crate) fn covariance(&self) -> Option<Vec<Vec<f64>>> {
        let inverse = self.inverse()?;
        let all = &inverse * inverse.transpose();
        let rows = all.row_iter().map(|row| row.iter().copied().collect()).collect();
        all.iter().all(|value| value.is_finite()).then_some(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Systems of one to six columns with more rows than columns; terms and targets between -1 and 1.
    fn systems() -> impl Strategy<Value = (usize, Vec<Vec<f64>>)> {
        (1..=COLUMNS_MAX, 7..40_usize).prop_flat_map(|(columns, rows)| {
            let row = proptest::collection::vec(-1.0..1.0, columns + 1);
            (Just(columns), proptest::collection::vec(row, rows))
        })
    }

    /// Returns half of the derivative of the sum of squares with respect to each coefficient.
    fn slopes(columns: usize, rows: &[Vec<f64>], values: &[f64]) -> Vec<f64> {
        let left = |row: &Vec<f64>| row.iter().zip(values).map(|(a, b)| a * b).sum::<f64>() - row[columns];
        (0..columns).map(|column| rows.iter().map(|row| row[column] * left(row)).sum()).collect()
    }

    proptest! {
        /// The Karush-Kuhn-Tucker conditions: for least squares they hold at the best point only, so they are the
        /// oracle.
        #[test]
        fn no_allowed_step_makes_it_better((columns, rows) in systems()) {
            let triangle = TriangularSystem::new(columns, rows.clone());
            prop_assume!(triangle.distinctness().iter().all(|part| *part > 1e-3));
            let solution = triangle.solve();
            for (column, slope) in slopes(columns, &rows, &solution.values).into_iter().enumerate() {
                if solution.free.contains(&column) {
                    prop_assert!(solution.values[column] > 0.0 && slope.abs() < 1e-9, "{column}: {slope}");
                } else {
                    prop_assert!(solution.values[column] == 0.0 && slope > -1e-9, "{column}: {slope}");
                }
            }
            let model = |row: &Vec<f64>| row.iter().zip(&solution.values).map(|(a, b)| a * b).sum::<f64>();
            let squares: f64 = rows.iter().map(|row| (model(row) - row[columns]).powi(2)).sum();
            prop_assert!((squares - solution.squares).abs() < 1e-9);
        }

        #[test]
        fn exact_targets_give_their_coefficients_back(
            (columns, mut rows) in systems(),
            wanted in proptest::collection::vec(prop_oneof![Just(0.0), 0.1..10.0], COLUMNS_MAX),
        ) {
            for row in &mut rows {
                row[columns] = row.iter().zip(&wanted[..columns]).map(|(a, b)| a * b).sum();
            }
            let triangle = TriangularSystem::new(columns, rows);
            prop_assume!(triangle.distinctness().iter().all(|part| *part > 1e-3));
            for (value, wanted) in triangle.solve().values.into_iter().zip(wanted) {
                prop_assert!((value - wanted).abs() < 1e-9, "{value} instead of {wanted}");
            }
        }

        #[test]
        fn the_scale_of_a_column_changes_its_coefficient_only((columns, rows) in systems(), scale in 1e-9..1e9_f64) {
            let scaled = rows.iter().cloned().map(|mut row| { row[0] *= scale; row });
            let (one, other) = (TriangularSystem::new(columns, rows.clone()), TriangularSystem::new(columns, scaled));
            prop_assume!(one.distinctness().iter().all(|part| *part > 1e-3));
            for (one, other) in one.distinctness().into_iter().zip(other.distinctness()) {
                prop_assert!((one - other).abs() < 1e-9);
            }
            let (one, other) = (one.solve(), other.solve());
            prop_assert_eq!(one.free, other.free);
            prop_assert!((one.values[0] - other.values[0] * scale).abs() < 1e-9);
        }
    }

    #[test]
    fn a_column_that_is_a_sum_of_others_is_not_distinct() {
        let rows = (1..9).map(f64::from).map(|x| vec![1.0, x, 3.0 + 2.0 * x, x * x]);
        let triangle = TriangularSystem::new(3, rows);
        assert!(triangle.distinctness().iter().all(|part| *part < 1e-12), "{triangle:?}");
        let apart = TriangularSystem::new(2, (1..9).map(f64::from).map(|x| vec![1.0, x, x * x]));
        assert!(apart.distinctness().iter().all(|part| *part > 0.3), "{apart:?}");
    }

    #[test]
    fn a_column_of_zeros_is_not_distinct_and_has_no_error() {
        let triangle = TriangularSystem::new(2, (1..9).map(f64::from).map(|x| vec![0.0, x, x]));
        assert_eq!(triangle.distinctness()[0], 0.0);
        assert_eq!(triangle.covariance(), None);
    }

    #[test]
    fn the_errors_of_a_straight_line_are_those_of_the_textbook() {
        // For y = c + s x: the variance of s is 1 / Sxx, that of c is mean(x²) / Sxx, and their covariance is -mean(x)
        // / Sxx.
        let triangle = TriangularSystem::new(2, [1.0, 2.0, 3.0, 4.0, 5.0].map(|x| vec![1.0, x, 7.0]));
        let covariance = triangle.covariance().unwrap();
        for (ours, theirs) in covariance.into_iter().flatten().zip([1.1, -0.3, -0.3, 0.1]) {
            assert!((ours - theirs).abs() < 1e-12, "{ours} instead of {theirs}");
        }
    }
}
