//! The self-consistent field of closed shells: from a density to a Fock matrix to a density, until nothing changes.
//!
//! C. C. J. Roothaan, Rev. Mod. Phys. 23, 69 (1951). This module keeps the matrices of one calculation and decides
//! when it is over; who builds the two-electron part, and where, is the caller's matter: it is asked for the change
//! that a change of the density makes, which gets smaller (J. Almlöf, K. Faegri, K. Korsell, J. Comput. Chem. 3, 385
//! (1982)). Invariant: the energy, the density and the Fock matrix of an iteration belong together.

mod diis;
mod guess;
mod properties;

pub use properties::{Properties, properties};

use super::fock::{FockBuilder, Functions};
use super::input_error::InputError;
use super::integrals::one_electron::{self, Moments};
use super::matrix::Matrix;
use super::molecule::Molecule;
use diis::Diis;
use serde::Serialize;

/// Least eigenvalue of the overlap matrix that is accepted; below it orbitals lose digits that energies need.
pub const OVERLAP_EIGENVALUE_MIN: f64 = 1e-7;

/// One iteration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Iteration {
    /// Its number, from 1.
    pub iteration: u32,
    /// The total energy of its density, in hartree.
    pub energy: f64,
    /// By how much it differs from that before, in hartree; the first from zero.
    pub change: f64,
    /// The largest element of the commutator of Fock and density matrix, in hartree: zero at self-consistency.
    pub gradient: f64,
}

/// A calculation under way.
pub struct Scf {
    nuclear_repulsion: f64,
    moments: Moments,
    core: Matrix,
    /// Orthonormal functions as columns.
    basis: Matrix,
    pairs_of_electrons: usize,
    density: Matrix,
    /// The density whose two-electron part is known, and that part.
    built: Matrix,
    repulsion: Matrix,
    fock: Matrix,
    diis: Diis,
    iterations: Vec<Iteration>,
}

impl Scf {
    /// Begins with the density of the atoms; `builder` has the pairs of `functions`.
    ///
    /// # Errors
    /// The functions depend on each other, or are too few.
    pub fn new(
        molecule: &Molecule,
        functions: &Functions,
        builder: &FockBuilder,
        basis_name: &str,
    ) -> Result<Scf, InputError> {
        let moments = one_electron::moments(&functions.shells, functions.is_cartesian);
        let size = moments.overlap.size();
        let pairs = molecule.electrons() / 2;
        let basis = basis_name.to_owned();
        if pairs > size {
            return Err(InputError::FewFunctions { basis, functions: size, pairs });
        }
        let dependent = |eigenvalue| InputError::DependentFunctions { basis, eigenvalue };
        let orthonormal = orthonormal(&moments.overlap).map_err(dependent)?;
        let attraction = one_electron::attraction(size, builder.pairs(), &molecule.atoms);
        let core = moments.kinetic.plus(1.0, &attraction);
        Ok(Scf {
            nuclear_repulsion: molecule.nuclear_repulsion(),
            moments,
            fock: core.clone(),
            core,
            basis: orthonormal,
            pairs_of_electrons: pairs,
            density: guess::density(molecule, functions),
            built: Matrix::zero(size),
            repulsion: Matrix::zero(size),
            diis: Diis::default(),
            iterations: Vec::new(),
        })
    }

    /// By how much the density differs from that whose two-electron part is known.
    pub fn density_change(&self) -> Matrix {
        self.density.plus(-1.0, &self.built)
    }

    /// Completes an iteration with the two-electron part of [`Scf::density_change`]. The next begins unless it is the
    /// last.
    pub fn advance(&mut self, change: &Matrix, convergence: f64) -> Iteration {
        self.repulsion = self.repulsion.plus(1.0, change);
        self.built = self.density.clone();
        self.fock = self.core.plus(1.0, &self.repulsion);
        let energy = 0.5 * self.density.dot(&self.core.plus(1.0, &self.fock)) + self.nuclear_repulsion;
        let error = commutator(&self.fock, &self.density, &self.moments.overlap, &self.basis);
        let before = self.iterations.last().map_or(0.0, |last| last.energy);
        let number = self.iterations.len() as u32 + 1;
        let last =
            Iteration { iteration: number, energy, change: energy - before, gradient: error.largest() };
        self.iterations.push(last);
        if !last.is_converged(convergence) {
            let next = self.diis.next(self.fock.clone(), error);
            let orbitals = self.orbitals(&next).1;
            self.density = density_of(&orbitals, self.pairs_of_electrons);
        }
        last
    }

    /// The iterations that are complete.
    pub fn iterations(&self) -> &[Iteration] {
        &self.iterations
    }

    /// Energies and coefficients of the orbitals of a Fock matrix.
    fn orbitals(&self, fock: &Matrix) -> (Vec<f64>, Matrix) {
        let (energies, vectors) = self.basis.transposed().times(fock).times(&self.basis).eigen();
        (energies, self.basis.times(&vectors))
    }
}

impl Iteration {
    /// Whether the energy changes by less than `convergence` hartree, and the gradient is below its square root,
    /// because an energy is off by about the square of the gradient.
    pub fn is_converged(&self, convergence: f64) -> bool {
        self.iteration > 1 && self.change.abs() < convergence && self.gradient < convergence.sqrt()
    }
}

/// The density of doubly occupied orbitals, the first so many columns.
fn density_of(orbitals: &Matrix, pairs: usize) -> Matrix {
    Matrix::of(orbitals.size(), |row, column| {
        let [one, other] = [row, column].map(|row| &orbitals.row(row)[..pairs]);
        2.0 * one.iter().zip(other).map(|(one, other)| one * other).sum::<f64>()
    })
}

/// Orthonormal combinations of functions as columns, S^(-1/2) of P.-O. Löwdin; else the least eigenvalue of S.
fn orthonormal(overlap: &Matrix) -> Result<Matrix, f64> {
    let (values, vectors) = overlap.eigen();
    match values.first() {
        Some(least) if *least < OVERLAP_EIGENVALUE_MIN => Err(*least),
        _ => {
            let size = overlap.size();
            let scaled = Matrix::of(size, |row, column| vectors.get(row, column) / values[column].sqrt());
            Ok(scaled.times(&vectors.transposed()))
        }
    }
}

/// F D S - S D F among orthonormal functions.
fn commutator(fock: &Matrix, density: &Matrix, overlap: &Matrix, basis: &Matrix) -> Matrix {
    let product = fock.times(density).times(overlap);
    let commutator = product.plus(-1.0, &product.transposed());
    basis.transposed().times(&commutator).times(basis)
}
