//! Stability: a test for lower energies near a converged one, and the direction to them.
//!
//! At self-consistency the slope of the energy is zero; it is a minimum if its second derivatives over all rotations
//! of occupied into other real orbitals have no negative eigenvalue (R. Seeger, J. A. Pople, J. Chem. Phys. 66, 3045
//! (1977)). The lowest one is found by Davidson's method (E. R. Davidson, J. Comput. Phys. 17, 87 (1975)); each step
//! takes the two-electron part of one density. The first rotation has a component in every direction, so that no
//! symmetry hides an eigenvalue. Invariant: an eigenvalue found is never below the lowest.

use super::super::matrix::Matrix;
use super::descent::{CanonicalOrbitals, rotation};
use serde::Serialize;

/// Largest eigenvalue that indicates an instability, in hartree; values above it are numerical errors of zero.
const NEGATIVE: f64 = -1e-5;

/// Accepted error of an eigenvalue, as a fraction of it.
const RELATIVE_ERROR_MAX: f64 = 0.05;

/// Error of an eigenvalue that is always accepted, in hartree.
const ERROR_MAX: f64 = 2e-5;

/// Smallest divisor of an element of a rotation, in hartree.
const DIFFERENCE_MIN: f64 = 0.05;

/// Stability of an energy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Stability {
    /// `true` if no lower energy is near; `None` if the limit of builds was reached first.
    pub is_stable: Option<bool>,
    /// The lowest second derivative of the energy over rotations, per electron, in hartree.
    pub eigenvalue: f64,
    /// Number of two-electron parts built for this result.
    pub builds: usize,
}

/// A search for the lowest eigenvalue in progress.
pub struct StabilitySearch {
    orbitals: CanonicalOrbitals,
    pairs: usize,
    /// Orthonormal functions, as columns.
    basis: Matrix,
    /// Orthonormal rotations, and their products with the second derivatives; the last product is not known yet.
    rotations: Vec<Matrix>,
    products: Vec<Matrix>,
    builds_max: usize,
    /// The rotation of the lowest eigenvalue.
    lowest: Matrix,
}

impl StabilitySearch {
    /// Starts at converged orbitals, the first `pairs` of which are occupied; `None` if all are occupied.
    pub(super) fn new(
        orbitals: CanonicalOrbitals,
        pairs: usize,
        basis: Matrix,
        builds_max: usize,
    ) -> Option<StabilitySearch> {
        let size = basis.size();
        if pairs == size {
            return None;
        }
        // Pseudo-random numbers, so that the rotation has a component in each symmetry.
        let mut state = 1_u32;
        let first = Matrix::of(size, |row, column| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let number = f64::from(state >> 8) / f64::from(1 << 23) - 1.0;
            let is_rotation = row >= pairs && column < pairs;
            if is_rotation { number / orbitals.gap(row, column).max(DIFFERENCE_MIN) } else { 0.0 }
        });
        let first = normalised(&first);
        let (rotations, products, lowest) = (vec![first.clone()], Vec::new(), first);
        Some(StabilitySearch { orbitals, pairs, basis, rotations, products, builds_max, lowest })
    }

    /// Returns the number of the next product, from 1, and the maximum number.
    pub fn next_product(&self) -> (usize, usize) {
        (self.products.len() + 1, self.builds_max)
    }

    /// Returns the change of the density along the rotation being tried.
    pub fn density(&self) -> Matrix {
        let among = &self.orbitals.orbitals;
        let rotation = self.rotations.last().unwrap_or(&self.lowest);
        let half = among.times(rotation).times(&among.transposed());
        let half = self.basis.times(&half).times(&self.basis.transposed());
        let sum = half.plus(1.0, &half.transposed());
        sum.plus(1.0, &sum)
    }

    /// Takes the two-electron part of [`StabilitySearch::density`]; returns the result, if it is known.
    pub fn advance(&mut self, repulsion: &Matrix) -> Option<Stability> {
        let among = self.basis.times(&self.orbitals.orbitals);
        let repulsion = rotation(&among.transposed().times(repulsion).times(&among), self.pairs);
        let tried = self.rotations.last()?;
        let gaps = Matrix::of(tried.size(), |row, column| match row >= self.pairs && column < self.pairs {
            true => self.orbitals.gap(row, column) * tried.get(row, column),
            false => 0.0,
        });
        self.products.push(gaps.plus(1.0, &repulsion));
        let count = self.products.len();
        let element = |row: usize, column: usize| self.rotations[row].dot(&self.products[column]);
        let small = Matrix::of(count, |row, column| 0.5 * (element(row, column) + element(column, row)));
        let (values, vectors) = small.eigen();
        let eigenvalue = values[0];
        let combined = |all: &[Matrix]| {
            let zero = Matrix::zero(repulsion.size());
            all.iter().enumerate().fold(zero, |sum, (index, one)| sum.plus(vectors.get(index, 0), one))
        };
        self.lowest = combined(&self.rotations);
        let residual = combined(&self.products).plus(-eigenvalue, &self.lowest);
        let error = residual.dot(&residual).sqrt();
        let error_max = (RELATIVE_ERROR_MAX * eigenvalue.abs()).max(ERROR_MAX);
        let answer = |is_stable| Some(Stability { is_stable, eigenvalue, builds: count });
        if error < error_max || !self.extend(&residual, eigenvalue) {
            return answer(Some(eigenvalue > NEGATIVE));
        }
        if count == self.builds_max { answer((eigenvalue <= NEGATIVE).then_some(false)) } else { None }
    }

    /// Returns the rotation along which the energy decreases if it is not stable, and the orbitals that it rotates.
    pub(super) fn into_lowest(self) -> (Matrix, CanonicalOrbitals) {
        (self.lowest, self.orbitals)
    }

    /// Adds a rotation towards the eigenvector; returns `false` if there is none.
    fn extend(&mut self, residual: &Matrix, eigenvalue: f64) -> bool {
        let mut next = Matrix::of(residual.size(), |row, column| {
            let is_rotation = row >= self.pairs && column < self.pairs;
            let difference = if is_rotation { self.orbitals.gap(row, column) - eigenvalue } else { 1.0 };
            residual.get(row, column) / difference.abs().max(DIFFERENCE_MIN)
        });
        next = normalised(&next);
        for _ in 0..2 {
            for other in &self.rotations {
                next = next.plus(-next.dot(other), other);
            }
        }
        let is_new = next.dot(&next) > 1e-12;
        if is_new {
            self.rotations.push(normalised(&next));
        }
        is_new
    }
}

/// Returns a rotation scaled to length one.
fn normalised(rotation: &Matrix) -> Matrix {
    rotation.plus(1.0 / rotation.dot(rotation).sqrt() - 1.0, rotation)
}
