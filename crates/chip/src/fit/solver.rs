//! Linear least squares with few coefficients, none of them below zero.
//!
//! The rows are rotated one by one into a triangle (Givens), which keeps twice the digits that normal equations would.
//! The best coefficients that are not negative are the plain best ones of some subset of the columns, the others held
//! at zero; with at most [`COLUMNS_MAX`] columns all subsets are tried, so there is no path that could end early. It
//! knows nothing of power. Invariant: the answer does not depend on the scale of a column.

/// The most columns of a system: all subsets of them are tried.
pub(super) const COLUMNS_MAX: usize = 6;

/// Equations reduced to as many as there are columns; the rest of them is one sum of squares.
#[derive(Clone, Debug)]
pub(super) struct Triangle {
    /// Row `k` begins at column `k`; behind the columns stands the target.
    rows: Vec<Vec<f64>>,
    /// What no choice of coefficients can take away.
    squares: f64,
}

/// Coefficients that fit best.
#[derive(Clone, Debug)]
pub(super) struct Solution {
    /// One for each column; zero where it is held there.
    pub values: Vec<f64>,
    /// The columns that are not held at zero.
    pub free: Vec<usize>,
    /// The sum of the squared differences that remain.
    pub squares: f64,
}

impl Triangle {
    /// Reduces rows of `columns` terms and a target each.
    pub fn new(columns: usize, rows: impl IntoIterator<Item = Vec<f64>>) -> Self {
        assert!(columns <= COLUMNS_MAX, "{columns} columns, and {COLUMNS_MAX} are allowed");
        let mut triangle = Self { rows: vec![vec![0.0; columns + 1]; columns], squares: 0.0 };
        rows.into_iter().for_each(|row| triangle.absorb(row));
        triangle
    }

    fn columns(&self) -> usize {
        self.rows.len()
    }

    /// Rotates one equation into the triangle.
    fn absorb(&mut self, mut row: Vec<f64>) {
        let columns = self.columns();
        assert_eq!(row.len(), columns + 1, "one term a column, and the target");
        for (column, own) in self.rows.iter_mut().enumerate() {
            let length = own[column].hypot(row[column]);
            if length == 0.0 {
                continue;
            }
            let (cosine, sine) = (own[column] / length, row[column] / length);
            for (above, below) in own[column..].iter_mut().zip(&mut row[column..]) {
                (*above, *below) = (cosine * *above + sine * *below, cosine * *below - sine * *above);
            }
        }
        self.squares += row[columns] * row[columns];
    }

    /// The same equations with these columns only.
    fn restricted(&self, to: &[usize]) -> Self {
        let target = self.columns();
        let rows =
            self.rows.iter().map(|row| to.iter().chain([&target]).map(|column| row[*column]).collect());
        let mut triangle = Self::new(to.len(), rows);
        triangle.squares += self.squares;
        triangle
    }

    /// The inverse of the triangle; not finite where a column is a sum of others.
    fn inverse(&self) -> Vec<Vec<f64>> {
        let columns = self.columns();
        let mut inverse = vec![vec![0.0; columns]; columns];
        // From the last row up: each is made of those below it.
        for (row, own) in self.rows.iter().enumerate().rev() {
            let term = |column: usize| {
                let sum: f64 = (row + 1..=column).map(|below| own[below] * inverse[below][column]).sum();
                (f64::from(u8::from(row == column)) - sum) / own[row]
            };
            let terms: Vec<f64> = (row..columns).map(term).collect();
            inverse[row][row..].copy_from_slice(&terms);
        }
        inverse
    }

    /// For each column how much of it, from 0 to 1, is no sum of the others: one over the root of what statistics
    /// call the inflation of its variance.
    pub fn distinctness(&self) -> Vec<f64> {
        let length = |terms: &mut dyn Iterator<Item = f64>| terms.map(|term| term * term).sum::<f64>().sqrt();
        let own = |column: usize| length(&mut self.rows.iter().map(|row| row[column]));
        let inverse = self.inverse();
        let inflated = |row: &Vec<f64>| length(&mut row.iter().copied());
        // Not a number if a column is zero or the triangle has a zero in its corner: nothing is distinct then.
        let part = |(column, row)| (own(column) * inflated(row)).recip();
        inverse.iter().enumerate().map(part).map(|part| if part.is_finite() { part } else { 0.0 }).collect()
    }

    /// The coefficients, none below zero, that leave the least sum of squares.
    pub fn solve(&self) -> Solution {
        let columns = self.columns();
        // All columns first: where their plain solution is allowed, it is the best.
        let subsets = (0..1_usize << columns).rev();
        let mut best: Option<Solution> = None;
        for subset in subsets {
            let free: Vec<usize> = (0..columns).filter(|column| subset & (1 << column) != 0).collect();
            let reduced = self.restricted(&free);
            if best.as_ref().is_some_and(|best| reduced.squares >= best.squares) {
                continue;
            }
            let found: Vec<f64> = reduced.inverse().iter().map(|row| reduced.against_target(row)).collect();
            if found.iter().all(|value| value.is_finite() && *value > 0.0) {
                let mut values = vec![0.0; columns];
                free.iter().zip(found).for_each(|(column, value)| values[*column] = value);
                best = Some(Solution { values, free, squares: reduced.squares });
            }
            if best.is_some() && subset + 1 == 1 << columns {
                break;
            }
        }
        best.expect("no columns at all are always allowed")
    }

    fn against_target(&self, row: &[f64]) -> f64 {
        row.iter().zip(&self.rows).map(|(term, own)| term * own[self.columns()]).sum()
    }

    /// How the errors of the coefficients go together if each target has the variance one; nothing where they are not
    /// determined.
    pub fn covariance(&self) -> Option<Vec<Vec<f64>>> {
        let inverse = self.inverse();
        let product = |one: &Vec<f64>, other: &Vec<f64>| one.iter().zip(other).map(|(a, b)| a * b).sum();
        let all: Vec<Vec<f64>> =
            inverse.iter().map(|one| inverse.iter().map(|other| product(one, other)).collect()).collect();
        all.iter().flatten().all(|value: &f64| value.is_finite()).then_some(all)
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

    /// Half of the derivative of the sum of squares by each coefficient.
    fn slopes(columns: usize, rows: &[Vec<f64>], values: &[f64]) -> Vec<f64> {
        let left = |row: &Vec<f64>| row.iter().zip(values).map(|(a, b)| a * b).sum::<f64>() - row[columns];
        (0..columns).map(|column| rows.iter().map(|row| row[column] * left(row)).sum()).collect()
    }

    proptest! {
        /// The conditions of Karush, Kuhn and Tucker: for least squares they hold at the best point and nowhere else,
        /// so they are the oracle.
        #[test]
        fn no_allowed_step_makes_it_better((columns, rows) in systems()) {
            let triangle = Triangle::new(columns, rows.clone());
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
            let triangle = Triangle::new(columns, rows);
            prop_assume!(triangle.distinctness().iter().all(|part| *part > 1e-3));
            for (value, wanted) in triangle.solve().values.into_iter().zip(wanted) {
                prop_assert!((value - wanted).abs() < 1e-9, "{value} instead of {wanted}");
            }
        }

        #[test]
        fn the_scale_of_a_column_changes_its_coefficient_only((columns, rows) in systems(), scale in 1e-9..1e9_f64) {
            let scaled = rows.iter().cloned().map(|mut row| { row[0] *= scale; row });
            let (one, other) = (Triangle::new(columns, rows.clone()), Triangle::new(columns, scaled));
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
        let triangle = Triangle::new(3, rows);
        assert!(triangle.distinctness().iter().all(|part| *part < 1e-12), "{triangle:?}");
        let apart = Triangle::new(2, (1..9).map(f64::from).map(|x| vec![1.0, x, x * x]));
        assert!(apart.distinctness().iter().all(|part| *part > 0.3), "{apart:?}");
    }

    #[test]
    fn a_column_of_zeros_is_not_distinct_and_has_no_error() {
        let triangle = Triangle::new(2, (1..9).map(f64::from).map(|x| vec![0.0, x, x]));
        assert_eq!(triangle.distinctness()[0], 0.0);
        assert_eq!(triangle.covariance(), None);
    }

    #[test]
    fn the_errors_of_a_straight_line_are_those_of_the_textbook() {
        // For y = c + s x: variance of s is 1 / Sxx, of c it is mean(x²) / Sxx, together -mean(x) / Sxx.
        let triangle = Triangle::new(2, [1.0, 2.0, 3.0, 4.0, 5.0].map(|x| vec![1.0, x, 7.0]));
        let covariance = triangle.covariance().unwrap();
        for (ours, theirs) in covariance.into_iter().flatten().zip([1.1, -0.3, -0.3, 0.1]) {
            assert!((ours - theirs).abs() < 1e-12, "{ours} instead of {theirs}");
        }
    }
}
