//! The self-consistent field of closed shells: from a density to a Fock matrix to a density, until convergence.
//!
//! C. C. J. Roothaan, Rev. Mod. Phys. 23, 69 (1951). This module keeps the matrices of one calculation and decides
//! when it ends. The caller builds the two-electron part only for the change of the density, which becomes small (J.
//! Almlöf, K. Faegri, K. Korsell, J. Comput. Chem. 3, 385 (1982)). Invariant: the energy, the density and the Fock
//! matrix of an iteration belong together.

mod descent;
mod diis;
mod guess;
mod properties;
mod stability;

pub use guess::Guess;
pub use stability::{Stability, StabilitySearch};

pub use properties::{Properties, properties};

use super::fock::{FockBuilder, Functions};
use super::input_error::InputError;
use super::integrals::one_electron::{self, Moments};
use super::matrix::Matrix;
use super::molecule::Molecule;
use descent::{CanonicalOrbitals, Descent};
use diis::Diis;
use serde::Serialize;

/// Smallest accepted eigenvalue of the overlap matrix; below it orbitals lose digits that energies need.
pub const OVERLAP_EIGENVALUE_MIN: f64 = 1e-7;

/// Limits of the gradient of the second iteration: as a multiple of that of the guess, and in hartree; the larger one
/// applies.
const GRADIENT_AFTER_GUESS: (f64, f64) = (1.5, 1e-3);

/// First iteration that is checked for an oscillating extrapolation; ordinary molecules have converged by then.
const WANDERING_FROM: u32 = 20;

/// Gradient in hartree above which a long extrapolation counts as oscillating.
const WANDERING_GRADIENT: f64 = 1e-2;

/// Gradient in hartree below which extrapolation replaces a descent, because it is faster near a solution.
const NEAR_GRADIENT: f64 = 1e-2;

/// Increase in hartree by an extrapolation near a solution after which the descent resumes.
const CLIMB_MAX: f64 = 1e-9;

/// One iteration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Iteration {
    /// Its number, from 1.
    pub iteration: u32,
    /// The total energy of its density, in hartree.
    pub energy: f64,
    /// Change from the energy of the previous iteration, in hartree; in the first iteration from zero.
    pub change: f64,
    /// The largest element of the commutator of Fock and density matrix, in hartree: zero at self-consistency.
    pub gradient: f64,
}

/// Number of matrices of [`Scf`]: five of moments, nine other fields, and two for each step of the extrapolation's
/// memory.
const MATRICES: usize = 5 + 9 + 2 * diis::MEMORY;

/// A calculation in progress.
pub struct Scf {
    nuclear_repulsion: f64,
    moments: Moments,
    core: Matrix,
    /// Orthonormal functions, as columns.
    basis: Matrix,
    pairs_of_electrons: usize,
    density: Matrix,
    /// The orbitals of the density in terms of orthonormal functions, the occupied ones first; `None` for the guess.
    orbitals: Option<Matrix>,
    /// The lowest energy so far, with its orbitals in terms of orthonormal functions, and its Fock matrix.
    lowest: Option<(f64, Matrix, Matrix)>,
    /// The density with a known two-electron part, and that part.
    built: Matrix,
    repulsion: Matrix,
    fock: Matrix,
    diis: Diis,
    /// The descent that replaces an oscillating extrapolation, or that leads from a solution to a lower one.
    descent: Option<Descent>,
    nearness: Nearness,
    iterations: Vec<Iteration>,
}

/// State of a descent near a solution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Nearness {
    /// Not yet near a solution.
    #[default]
    Far,
    /// Extrapolation has replaced the descent.
    Extrapolated,
    /// The extrapolation increased the energy, so the descent continues to the end.
    Climbed,
}

impl Scf {
    /// Starts with a density of `guess`; `builder` has the pairs of `functions`.
    ///
    /// # Errors
    /// The functions are linearly dependent, or too few.
    pub fn new(
        molecule: &Molecule,
        functions: &Functions,
        builder: &FockBuilder,
        basis_name: &str,
        guess: Guess,
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
        let mut scf = Scf {
            nuclear_repulsion: molecule.nuclear_repulsion(),
            moments,
            fock: core.clone(),
            core,
            basis: orthonormal,
            pairs_of_electrons: pairs,
            density: Matrix::zero(size),
            orbitals: None,
            lowest: None,
            built: Matrix::zero(size),
            repulsion: Matrix::zero(size),
            diis: Diis::default(),
            descent: None,
            nearness: Nearness::default(),
            iterations: Vec::new(),
        };
        match guess {
            Guess::Atoms => scf.density = guess::density(molecule, functions),
            Guess::Core => scf.occupy(scf.vectors(&scf.core).1),
        }
        Ok(scf)
    }

    /// Returns the bytes of its matrices during the iterations, including those of the extrapolation.
    pub fn bytes(&self) -> u64 {
        (MATRICES * self.core.size() * self.core.size() * size_of::<f64>()) as u64
    }

    /// Returns `true` if the next density comes from a descent, not from an extrapolation.
    pub fn is_descending(&self) -> bool {
        self.descent.is_some() && self.nearness != Nearness::Extrapolated
    }

    /// Returns the change of the density since the last known two-electron part.
    pub fn density_change(&self) -> Matrix {
        self.density.plus(-1.0, &self.built)
    }

    /// Completes an iteration with the two-electron part of [`Scf::density_change`], and prepares the next one unless
    /// converged.
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
            self.begin_next(&last, error);
        }
        last
    }

    /// Chooses the density of the next iteration: by extrapolation, or by descent if that oscillates.
    fn begin_next(&mut self, last: &Iteration, error: Matrix) {
        if self.descends(last) {
            let trial = self.descent.as_ref().map(Descent::trial);
            return trial.into_iter().for_each(|trial| self.occupy(trial));
        }
        let (factor, least) = GRADIENT_AFTER_GUESS;
        if last.iteration == 2 && last.gradient > (factor * self.iterations[0].gradient).max(least) {
            // The guess has a small commutator, but its density is no solution and would dominate all others.
            self.diis = Diis::default();
        }
        let next = self.diis.next(self.fock.clone(), error);
        self.occupy(self.vectors(&next).1);
    }

    /// Returns `true` if a descent chooses the next density; it has then used the last one.
    fn descends(&mut self, last: &Iteration) -> bool {
        let Some(orbitals) = &self.orbitals else { return false };
        if self.descent.is_none() && self.lowest.as_ref().is_none_or(|(energy, ..)| *energy > last.energy) {
            self.lowest = Some((last.energy, orbitals.clone(), self.fock.clone()));
        }
        let to_orthonormal = |fock| self.basis.transposed().times(fock).times(&self.basis);
        let Some(descent) = &mut self.descent else {
            let wanders = last.iteration >= WANDERING_FROM && last.gradient > WANDERING_GRADIENT;
            if let Some((energy, orbitals, fock)) = self.lowest.as_ref().filter(|_| wanders) {
                let fock = to_orthonormal(fock);
                self.descent = Some(Descent::from(orbitals, &fock, *energy, self.pairs_of_electrons));
            }
            return wanders;
        };
        if self.nearness == Nearness::Extrapolated {
            if last.energy <= descent.energy() + CLIMB_MAX {
                return false;
            }
            self.nearness = Nearness::Climbed;
            return true;
        }
        let is_kept = descent.advance(&to_orthonormal(&self.fock), last.energy);
        if is_kept && self.nearness == Nearness::Far && last.gradient < NEAR_GRADIENT {
            self.nearness = Nearness::Extrapolated;
            self.diis = Diis::default();
        }
        self.nearness != Nearness::Extrapolated
    }

    /// Starts the search for an instability of the converged energy, with at most `builds_max` two-electron parts.
    /// Returns `None` if all orbitals are occupied, or no iteration has completed.
    pub fn stability(&self, builds_max: usize) -> Option<StabilitySearch> {
        let fock = self.to_orthonormal(&self.fock);
        let orbitals = CanonicalOrbitals::of(self.orbitals.as_ref()?, &fock, self.pairs_of_electrons);
        StabilitySearch::new(orbitals, self.pairs_of_electrons, self.basis.clone(), builds_max)
    }

    /// Leaves the converged solution towards a lower one, in the direction found by a search.
    pub fn follow(&mut self, search: StabilitySearch) {
        let energy = self.iterations.last().map_or(f64::NAN, |last| last.energy);
        let (direction, orbitals) = search.into_lowest();
        let descent = Descent::along(&direction, orbitals, energy, self.pairs_of_electrons);
        self.occupy(descent.trial());
        (self.descent, self.nearness) = (Some(descent), Nearness::Far);
    }

    /// Sets the orbitals, in terms of orthonormal functions, the occupied ones first.
    fn occupy(&mut self, orbitals: Matrix) {
        self.density = density_of(&self.basis.times(&orbitals), self.pairs_of_electrons);
        self.orbitals = Some(orbitals);
    }

    /// Transforms a matrix to orthonormal functions.
    fn to_orthonormal(&self, matrix: &Matrix) -> Matrix {
        self.basis.transposed().times(matrix).times(&self.basis)
    }

    /// Returns the completed iterations.
    pub fn iterations(&self) -> &[Iteration] {
        &self.iterations
    }

    /// Returns the orbital energies of a Fock matrix, and the orbitals in terms of orthonormal functions.
    fn vectors(&self, fock: &Matrix) -> (Vec<f64>, Matrix) {
        self.to_orthonormal(fock).eigen()
    }
}

impl Iteration {
    /// Returns `true` if the energy changes by less than `convergence` hartree and the gradient is below its square
    /// root, because the error of an energy is about the square of the gradient.
    pub fn is_converged(&self, convergence: f64) -> bool {
        self.iteration > 1 && self.change.abs() < convergence && self.gradient < convergence.sqrt()
    }
}

/// Returns the density of doubly occupied orbitals, the first `pairs` columns.
fn density_of(orbitals: &Matrix, pairs: usize) -> Matrix {
    Matrix::of(orbitals.size(), |row, column| {
        let [one, other] = [row, column].map(|row| &orbitals.row(row)[..pairs]);
        2.0 * one.iter().zip(other).map(|(one, other)| one * other).sum::<f64>()
    })
}

/// Returns orthonormal combinations of functions as columns, S^(-1/2) of P.-O. Löwdin; the error is the smallest
/// eigenvalue of S.
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

/// Returns F D S - S D F in terms of orthonormal functions.
fn commutator(fock: &Matrix, density: &Matrix, overlap: &Matrix, basis: &Matrix) -> Matrix {
    let product = fock.times(density).times(overlap);
    let commutator = product.plus(-1.0, &product.transposed());
    basis.transposed().times(&commutator).times(basis)
}
