//! Descent: orbitals are rotated so that the energy falls with every accepted step.
//!
//! Unlike extrapolation it cannot oscillate: it minimises the energy over rotations of occupied into other orbitals
//! (T. Van Voorhis, M. Head-Gordon, Mol. Phys. 100, 1713 (2002)), by a limited-memory quasi-Newton method (J. Nocedal,
//! Math. Comp. 35, 773 (1980)) that starts from the differences of orbital energies. A rotation is a matrix with
//! nonzero elements only in the rows of unoccupied and the columns of occupied orbitals. Invariant: the orbitals of
//! the base are orthonormal, the occupied ones first, and the energy of each base is below that of the previous one.

use super::super::matrix::Matrix;

/// Number of earlier steps remembered.
const MEMORY: usize = 10;

/// Largest element of a step: a rotation by about 17 degrees.
const STEP_MAX: f64 = 0.3;

/// Factor applied to a step that increases the energy.
const SHORTER: f64 = 0.25;

/// Smallest assumed curvature along a rotation, in hartree.
const CURVATURE_MIN: f64 = 0.2;

/// Tolerance for comparing energies, in hartree: the rounding errors of sums.
const NOISE: f64 = 1e-9;

/// Orbitals in terms of orthonormal functions, with their energies; the Fock matrix is diagonal within the occupied
/// ones and within the others.
#[derive(Clone, Debug)]
pub(super) struct CanonicalOrbitals {
    /// The orbitals as columns.
    pub(super) orbitals: Matrix,
    /// Their energies in hartree.
    pub(super) energies: Vec<f64>,
    /// Accumulated rotation of the given orbitals.
    turned: Matrix,
    /// The Fock matrix between occupied and other orbitals, as a rotation: half the slope of the energy per electron.
    pub(super) gradient: Matrix,
}

impl CanonicalOrbitals {
    /// Returns orbitals with the same spans as `orbitals`, the first `pairs` of which are occupied.
    pub(super) fn of(orbitals: &Matrix, fock: &Matrix, pairs: usize) -> CanonicalOrbitals {
        let size = fock.size();
        let fock = orbitals.transposed().times(fock).times(orbitals);
        let block = |first: usize, size: usize| {
            Matrix::of(size, |row, column| {
                0.5 * (fock.get(first + row, first + column) + fock.get(first + column, first + row))
            })
        };
        let (mut energies, occupied) = block(0, pairs).eigen();
        let (others_energies, others) = block(pairs, size - pairs).eigen();
        energies.extend(others_energies);
        let turned = Matrix::of(size, |row, column| match (row < pairs, column < pairs) {
            (true, true) => occupied.get(row, column),
            (false, false) => others.get(row - pairs, column - pairs),
            _ => 0.0,
        });
        let gradient = rotation(&turned.transposed().times(&fock).times(&turned), pairs);
        CanonicalOrbitals { orbitals: orbitals.times(&turned), energies, turned, gradient }
    }

    /// Returns the difference between the energies of an unoccupied and an occupied orbital.
    pub(super) fn gap(&self, other: usize, occupied: usize) -> f64 {
        self.energies[other] - self.energies[occupied]
    }
}

/// Returns the elements of a matrix that belong to a rotation; the others are zero.
pub(super) fn rotation(matrix: &Matrix, pairs: usize) -> Matrix {
    Matrix::of(
        matrix.size(),
        |row, column| {
            if row >= pairs && column < pairs { matrix.get(row, column) } else { 0.0 }
        },
    )
}

/// A minimisation in progress.
#[derive(Clone, Debug)]
pub(super) struct Descent {
    pairs: usize,
    base: CanonicalOrbitals,
    energy: f64,
    /// Rotation from the base to the trial orbitals.
    step: Matrix,
    /// Earlier steps with the changes of the gradient along them, oldest first.
    history: Vec<(Matrix, Matrix)>,
}

impl Descent {
    /// Starts at orbitals with their Fock matrix, both in terms of orthonormal functions, and their energy.
    pub(super) fn from(orbitals: &Matrix, fock: &Matrix, energy: f64, pairs: usize) -> Descent {
        let base = CanonicalOrbitals::of(orbitals, fock, pairs);
        let step = Matrix::zero(fock.size());
        let mut descent = Descent { pairs, base, energy, step, history: Vec::new() };
        descent.step = descent.next_step();
        descent
    }

    /// Starts with a step along a rotation of `base`, at which the slope of the energy is zero.
    pub(super) fn along(direction: &Matrix, base: CanonicalOrbitals, energy: f64, pairs: usize) -> Descent {
        let step = bounded(&direction.plus(STEP_MAX / direction.largest() - 1.0, direction));
        Descent { pairs, base, energy, step, history: Vec::new() }
    }

    /// Returns the next trial orbitals.
    pub(super) fn trial(&self) -> Matrix {
        let turned = exponential(&self.step.plus(-1.0, &self.step.transposed()));
        self.base.orbitals.times(&turned)
    }

    /// Returns the energy of the base, in hartree.
    pub(super) fn energy(&self) -> f64 {
        self.energy
    }

    /// Takes the Fock matrix and the energy of [`Descent::trial`]; returns `true` if the trial becomes the base.
    pub(super) fn advance(&mut self, fock: &Matrix, energy: f64) -> bool {
        if energy > self.energy + NOISE {
            self.step = self.step.plus(SHORTER - 1.0, &self.step);
            return false;
        }
        let next = CanonicalOrbitals::of(&self.trial(), fock, self.pairs);
        let turned = |rotation: &Matrix| next.turned.transposed().times(rotation).times(&next.turned);
        self.history.push((self.step.clone(), self.base.gradient.clone()));
        self.history.iter_mut().for_each(|pair| *pair = (turned(&pair.0), turned(&pair.1)));
        if let Some((step, before)) = self.history.pop() {
            let change = next.gradient.plus(-1.0, &before);
            // Only a positive curvature determines the step length.
            if change.dot(&step) > 1e-3 * CURVATURE_MIN * step.dot(&step) {
                self.history.push((step, change));
            }
        }
        if self.history.len() > MEMORY {
            self.history.remove(0);
        }
        (self.base, self.energy) = (next, energy);
        self.step = self.next_step();
        true
    }

    /// Returns the step from the base to the estimated minimum.
    fn next_step(&mut self) -> Matrix {
        let step = self.newton_step();
        if step.dot(&self.base.gradient) < 0.0 {
            return bounded(&step);
        }
        self.history.clear();
        bounded(&self.newton_step())
    }

    /// Returns the negative product of the gradient and the inverse curvature, as far as known.
    fn newton_step(&self) -> Matrix {
        let mut rest = self.base.gradient.clone();
        let mut factors = Vec::with_capacity(self.history.len());
        for (step, change) in self.history.iter().rev() {
            let factor = step.dot(&rest) / step.dot(change);
            rest = rest.plus(-factor, change);
            factors.push(factor);
        }
        let pairs = self.pairs;
        let mut product = Matrix::of(rest.size(), |row, column| {
            let is_rotation = row >= pairs && column < pairs;
            if is_rotation {
                rest.get(row, column) / self.base.gap(row, column).max(CURVATURE_MIN)
            } else {
                0.0
            }
        });
        for ((step, change), factor) in self.history.iter().zip(factors.iter().rev()) {
            let other = change.dot(&product) / step.dot(change);
            product = product.plus(factor - other, step);
        }
        product.plus(-2.0, &product)
    }
}

/// Returns a step of limited length.
fn bounded(step: &Matrix) -> Matrix {
    let shorter = (STEP_MAX / step.largest().max(f64::MIN_POSITIVE)).min(1.0);
    step.plus(shorter - 1.0, step)
}

/// Returns the exponential of an antisymmetric matrix, a rotation: a series for a small fraction, squared repeatedly.
fn exponential(matrix: &Matrix) -> Matrix {
    const TERMS: u32 = 14;
    let halvings = (matrix.largest() * matrix.size() as f64 / 0.5).max(1.0).log2().ceil() as i32;
    let part = matrix.plus(0.5_f64.powi(halvings) - 1.0, matrix);
    let one = Matrix::of(matrix.size(), |row, column| f64::from(u8::from(row == column)));
    let mut sum = one.clone();
    let mut term = one;
    for number in 1..=TERMS {
        let product = term.times(&part);
        term = product.plus(1.0 / f64::from(number) - 1.0, &product);
        sum = sum.plus(1.0, &term);
    }
    (0..halvings).fold(sum, |sum, _| sum.times(&sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_of_an_angle_is_its_rotation() {
        let angle = 2.5_f64;
        let turned = exponential(&Matrix::of(2, |row, column| match (row, column) {
            (0, 1) => -angle,
            (1, 0) => angle,
            _ => 0.0,
        }));
        let (sine, cosine) = angle.sin_cos();
        for (found, expected) in turned.values().iter().zip([cosine, -sine, sine, cosine]) {
            assert!((found - expected).abs() < 1e-14, "{turned:?}");
        }
    }

    #[test]
    fn an_energy_falls_to_its_least_with_every_step_that_is_kept() {
        // Without repulsion the minimum energy of two electron pairs is twice the sum of the two lowest eigenvalues.
        let fock = Matrix::of(6, |row, column| {
            ((row * column + row + column) as f64).sin() - row.min(column) as f64
        });
        let least = 2.0 * fock.eigen().0[..2].iter().sum::<f64>();
        let energy = |orbitals: &Matrix| {
            let turned = orbitals.transposed().times(&fock).times(orbitals);
            2.0 * (turned.get(0, 0) + turned.get(1, 1))
        };
        let start = Matrix::of(6, |row, column| f64::from(u8::from(row == column)));
        let mut descent = Descent::from(&start, &fock, energy(&start), 2);
        let mut before = descent.energy;
        for _ in 0..60 {
            let trial = descent.trial();
            descent.advance(&fock, energy(&trial));
            assert!(descent.energy <= before + NOISE);
            before = descent.energy;
        }
        assert!((before - least).abs() < 1e-10, "{before} {least}");
    }
}
