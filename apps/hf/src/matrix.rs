//! Square matrices, and the eigenvalues of symmetric ones.
//!
//! The linear algebra for a Hartree-Fock calculation of some hundred functions: products, and eigenvalues by
//! Householder's tridiagonal form and implicit QL steps (B. S. Garbow et al., EISPACK, routines TRED2 and TQL2; J. H.
//! Wilkinson, C. Reinsch, Handbook for Automatic Computation II, contributions II/2 and II/4). A library would take
//! longer to compile than the whole project. Invariant: the same matrix gives the same bits on every processor.

use serde::{Deserialize, Serialize};

/// A square matrix, row by row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Matrix {
    size: usize,
    #[serde(with = "isles::plain")]
    values: Vec<f64>,
}

impl Matrix {
    /// Creates a matrix of zeros.
    pub fn zero(size: usize) -> Matrix {
        Matrix { size, values: vec![0.0; size * size] }
    }

    /// Creates a matrix with the elements `value(row, column)`.
    pub fn of(size: usize, mut value: impl FnMut(usize, usize) -> f64) -> Matrix {
        let places = (0..size).flat_map(|row| (0..size).map(move |column| (row, column)));
        Matrix { size, values: places.map(|(row, column)| value(row, column)).collect() }
    }

    /// Returns the number of rows, which is also that of columns.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns one element.
    pub fn get(&self, row: usize, column: usize) -> f64 {
        self.values[row * self.size + column]
    }

    /// Returns a row.
    pub fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.size..][..self.size]
    }

    /// Sets an element and its mirror image across the diagonal.
    pub fn set_both(&mut self, [row, column]: [usize; 2], value: f64) {
        self.values[row * self.size + column] = value;
        self.values[column * self.size + row] = value;
    }

    /// Returns all elements, row by row.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Returns the sum of this matrix and `factor` times `other`.
    pub fn plus(&self, factor: f64, other: &Matrix) -> Matrix {
        let sum = self.values.iter().zip(&other.values).map(|(one, other)| one + factor * other);
        Matrix { size: self.size, values: sum.collect() }
    }

    /// Returns the product of this matrix and `other`.
    pub fn times(&self, other: &Matrix) -> Matrix {
        let mut product = Matrix::zero(self.size);
        for row in 0..self.size {
            let target = &mut product.values[row * self.size..][..self.size];
            for (factor, source) in self.row(row).iter().zip(other.values.chunks_exact(self.size)) {
                target.iter_mut().zip(source).for_each(|(target, source)| *target += factor * source);
            }
        }
        product
    }

    /// Returns the transpose.
    pub fn transposed(&self) -> Matrix {
        Matrix::of(self.size, |row, column| self.get(column, row))
    }

    /// Returns the sum of the products of corresponding elements.
    pub fn dot(&self, other: &Matrix) -> f64 {
        self.values.iter().zip(&other.values).map(|(one, other)| one * other).sum()
    }

    /// Returns the largest absolute value of the elements.
    pub fn largest(&self) -> f64 {
        self.values.iter().fold(0.0, |largest, value| value.abs().max(largest))
    }

    /// Returns the eigenvalues of a symmetric matrix, ascending, and its eigenvectors as columns.
    ///
    /// # Panics
    /// If an element is not finite.
    pub fn eigen(&self) -> (Vec<f64>, Matrix) {
        assert!(
            self.values.iter().all(|value| value.is_finite()),
            "the matrix has elements that are not finite"
        );
        let mut vectors = self.clone();
        let (mut diagonal, mut beside) = vectors.tridiagonal();
        // Rotations act on columns, which are contiguous as rows of the transpose.
        let mut rows = vectors.transposed();
        rows.iterate(&mut diagonal, &mut beside);
        let mut order: Vec<usize> = (0..self.size).collect();
        order.sort_by(|one, other| diagonal[*one].total_cmp(&diagonal[*other]));
        let vectors = Matrix::of(self.size, |row, column| rows.get(order[column], row));
        (order.iter().map(|index| diagonal[*index]).collect(), vectors)
    }

    /// Replaces itself by the transformation to a tridiagonal matrix; returns that matrix's diagonal and subdiagonal
    /// (TRED2).
    fn tridiagonal(&mut self) -> (Vec<f64>, Vec<f64>) {
        let size = self.size;
        let (mut diagonal, mut beside) = (vec![0.0; size], vec![0.0; size]);
        for row in (1..size).rev() {
            diagonal[row] = self.reflect(row, &mut beside);
        }
        for (row, half) in diagonal.iter_mut().enumerate() {
            if *half != 0.0 {
                for column in 0..row {
                    let sum: f64 = (0..row).map(|k| self.get(row, k) * self.get(k, column)).sum();
                    for k in 0..row {
                        self.values[k * size + column] -= sum * self.get(k, row);
                    }
                }
            }
            *half = self.get(row, row);
            self.values[row * size + row] = 1.0;
            for column in 0..row {
                self.set_both([row, column], 0.0);
            }
        }
        (diagonal, beside)
    }

    /// Applies one Householder reflection, for the row up to the diagonal; returns half its square, or 0 if there was
    /// nothing to reflect.
    fn reflect(&mut self, row: usize, beside: &mut [f64]) -> f64 {
        let (size, last) = (self.size, row - 1);
        let scale: f64 = self.row(row)[..row].iter().map(|value| value.abs()).sum();
        if last == 0 || scale == 0.0 {
            beside[row] = self.get(row, last);
            return 0.0;
        }
        let own = &mut self.values[row * size..][..row];
        own.iter_mut().for_each(|value| *value /= scale);
        let square: f64 = own.iter().map(|value| value * value).sum();
        let root = -square.sqrt().copysign(own[last]);
        beside[row] = scale * root;
        let half = square - own[last] * root;
        own[last] -= root;
        let mut total = 0.0;
        for (j, product) in beside.iter_mut().enumerate().take(row) {
            self.values[j * size + row] = self.get(row, j) / half;
            let left: f64 = (0..=j).map(|k| self.get(j, k) * self.get(row, k)).sum();
            let right: f64 = (j + 1..row).map(|k| self.get(k, j) * self.get(row, k)).sum();
            *product = (left + right) / half;
            total += *product * self.get(row, j);
        }
        let shift = total / (half + half);
        let reflected = self.row(row)[..row].to_vec();
        beside.iter_mut().zip(&reflected).for_each(|(value, own)| *value -= shift * own);
        for (j, (value, other)) in reflected.iter().zip(beside.iter()).enumerate() {
            let target = &mut self.values[j * size..][..=j];
            for (element, (one, two)) in target.iter_mut().zip(beside.iter().zip(&reflected)) {
                *element -= value * one + other * two;
            }
        }
        half
    }

    /// Diagonalises a tridiagonal matrix, and updates its transformation, stored by rows (TQL2).
    fn iterate(&mut self, diagonal: &mut [f64], beside: &mut [f64]) {
        let size = self.size;
        beside.rotate_left(1.min(size));
        for start in 0..size {
            loop {
                let negligible = |index: &usize| {
                    let around = diagonal[*index].abs() + diagonal[index + 1].abs();
                    beside[*index].abs() <= f64::EPSILON * around
                };
                let end = (start..size - 1).find(negligible).unwrap_or(size - 1);
                if end == start {
                    break;
                }
                self.step(start, end, diagonal, beside);
            }
        }
    }

    /// Performs one implicit QL step on the block from `start` to `end`.
    fn step(&mut self, start: usize, end: usize, diagonal: &mut [f64], beside: &mut [f64]) {
        let size = self.size;
        let slope = (diagonal[start + 1] - diagonal[start]) / (2.0 * beside[start]);
        let root = slope.hypot(1.0).copysign(slope);
        let mut shifted = diagonal[end] - diagonal[start] + beside[start] / (slope + root);
        let (mut sine, mut cosine, mut left) = (1.0, 1.0, 0.0);
        for index in (start..end).rev() {
            let (up, across) = (sine * beside[index], cosine * beside[index]);
            let length = up.hypot(shifted);
            beside[index + 1] = length;
            if length == 0.0 {
                diagonal[index + 1] -= left;
                beside[end] = 0.0;
                return;
            }
            (sine, cosine) = (up / length, shifted / length);
            let base = diagonal[index + 1] - left;
            let turn = (diagonal[index] - base) * sine + 2.0 * cosine * across;
            left = sine * turn;
            diagonal[index + 1] = base + left;
            shifted = cosine * turn - across;
            let (lower, upper) = self.values.split_at_mut((index + 1) * size);
            for (one, other) in lower[index * size..].iter_mut().zip(&mut upper[..size]) {
                (*one, *other) = (cosine * *one - sine * *other, sine * *one + cosine * *other);
            }
        }
        diagonal[start] -= left;
        beside[start] = shifted;
        beside[end] = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isles::Random;

    #[test]
    fn eigenvectors_of_random_and_of_degenerate_matrices_are_orthonormal_and_give_the_matrix_back() {
        let mut random = Random::stream(1, 0);
        for size in [1, 2, 3, 10, 60] {
            let mut noise = Matrix::of(size, |_, _| random.unit() - 0.5);
            noise = noise.plus(1.0, &noise.transposed());
            let ones = Matrix::of(size, |_, _| 1.0);
            for matrix in [noise, ones, Matrix::zero(size), Matrix::of(size, |r, c| f64::from(r == c))] {
                let (values, vectors) = matrix.eigen();
                assert!(values.is_sorted());
                let unit = vectors.transposed().times(&vectors);
                let identity = Matrix::of(size, |row, column| f64::from(row == column));
                assert!(unit.plus(-1.0, &identity).largest() < 1e-13);
                let diagonal = Matrix::of(size, |r, c| if r == c { values[r] } else { 0.0 });
                let back = vectors.times(&diagonal).times(&vectors.transposed());
                assert!(back.plus(-1.0, &matrix).largest() < 1e-13 * size as f64);
            }
        }
    }

    #[test]
    fn a_path_has_the_eigenvalues_that_one_computes_by_hand() {
        let size = 9;
        let path = Matrix::of(size, |row, column| f64::from(row.abs_diff(column) == 1));
        for (index, value) in path.eigen().0.iter().enumerate() {
            let expected = 2.0 * (std::f64::consts::PI * (size - index) as f64 / (size + 1) as f64).cos();
            assert!((value - expected).abs() < 1e-14);
        }
    }
}
