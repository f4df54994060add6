//! Sums that do not depend on the order of their addends: multiples of 2^-48 hartree.
//!
//! The place and time at which a unit is computed vary from run to run, which would change the last bits of a
//! floating-point sum. So each addend is rounded once to a multiple of [`UNIT`], and integers are added, which is
//! exact. Error: an element has at most one addend per pair of shells and four per shell, each off by less than
//! 3.6e-15 hartree; that is below 2e-11 for the 3,321 pairs of aspirin in 3-21G, and the errors of its hundreds of
//! small addends partly cancel. Invariant: nothing here adds floats.

/// Value of one unit of a sum, in hartree.
const UNIT: f64 = 1.0 / (1_u64 << 48) as f64;

/// Bound on the elements, in hartree; the repulsion on an electron of a molecule is below a thousand.
const LIMIT: f64 = 16_384.0;

/// The sums of the elements of a square matrix.
#[derive(Clone, Debug)]
pub struct FixedPointSums {
    size: usize,
    sums: Vec<i64>,
}

impl FixedPointSums {
    /// Creates sums of zero.
    pub fn zero(size: usize) -> FixedPointSums {
        FixedPointSums { size, sums: vec![0; size * size] }
    }

    /// Resets the sums to zero.
    pub fn clear(&mut self) {
        self.sums.fill(0);
    }

    /// Adds a segment of a row.
    ///
    /// # Panics
    /// If an addend or a sum is larger than possible in a molecule, or is not a number.
    pub fn add(&mut self, row: usize, column: usize, addends: impl ExactSizeIterator<Item = f64>) {
        let sums = &mut self.sums[row * self.size + column..][..addends.len()];
        for (sum, addend) in sums.iter_mut().zip(addends) {
            assert!(addend.abs() < LIMIT, "{addend} hartree is out of range for the Fock matrix");
            let scaled = addend * (1.0 / UNIT);
            let cut = (scaled + 0.5_f64.copysign(scaled)) as i64;
            *sum = sum.checked_add(cut).expect("an element of the Fock matrix is below 32,768 hartree");
        }
    }

    /// Returns the sums of both elements across the diagonal, row by row up to it.
    pub fn folded(&self) -> Vec<i64> {
        let element = |row: usize, column: usize| self.sums[row * self.size + column];
        let rows = (0..self.size).flat_map(|row| (0..=row).map(move |column| (row, column)));
        rows.map(|(row, column)| element(row, column).wrapping_add(element(column, row))).collect()
    }
}

/// Returns the mean of both elements of a folded sum, in hartree.
pub fn mean(folded: i64) -> f64 {
    folded as f64 * (UNIT / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_order_of_addends_gives_the_same_sum_within_its_error(
            addends in proptest::collection::vec(-100.0_f64..100.0, 1..40),
            turn in 0_usize..40,
        ) {
            let sum = |addends: &[f64]| {
                let mut sums = FixedPointSums::zero(1);
                addends.iter().for_each(|addend| sums.add(0, 0, [*addend].into_iter()));
                sums.folded()[0]
            };
            let mut turned = addends.clone();
            turned.rotate_left(turn % addends.len());
            prop_assert_eq!(sum(&addends), sum(&turned));
            let expected: f64 = addends.iter().sum();
            prop_assert!((mean(sum(&addends)) - expected).abs() < addends.len() as f64 * UNIT + 1e-12);
        }
    }

    #[test]
    fn elements_across_the_diagonal_are_folded_to_their_mean() {
        let mut sums = FixedPointSums::zero(2);
        sums.add(0, 0, [1.0, 2.0].into_iter());
        sums.add(1, 0, [-4.5, 0.25].into_iter());
        assert_eq!(sums.folded().into_iter().map(mean).collect::<Vec<_>>(), [1.0, -1.25, 0.25]);
        sums.clear();
        assert_eq!(sums.folded(), [0; 3]);
    }

    #[test]
    #[should_panic(expected = "NaN hartree is out of range")]
    fn what_is_no_number_is_refused() {
        FixedPointSums::zero(1).add(0, 0, [f64::NAN].into_iter());
    }
}
