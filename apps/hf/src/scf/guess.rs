//! The initial density: superposed atoms, or electrons that feel only the nuclei.
//!
//! For superposed atoms, each element of the molecule is computed alone, in the same functions, with the electrons of
//! its ground state spread evenly over the orbitals of a shell, so that the atom is spherical (J. H. Van Lenthe et
//! al., J. Comput. Chem. 27, 926 (2006)). The molecule's density is the sum; the iterations account for its charge.
//! Invariant: the density of an atom is spherical.

use super::super::basis::shell::Shell;
use super::super::fock::{self, FockBuilder, Functions, WorkUnit, units};
use super::super::integrals::one_electron;
use super::super::matrix::Matrix;
use super::super::molecule::{Atom, Molecule};
use super::diis::Diis;
use super::{commutator, orthonormal};
use serde::Serialize;

/// Initial density of the iterations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Guess {
    /// The superposed densities of the atoms.
    #[default]
    Atoms,
    /// The orbitals of electrons that interact only with the nuclei.
    Core,
}

/// Maximum number of iterations of an atom; its density is then good enough for a guess.
const ITERATIONS_MAX: usize = 40;

/// Largest commutator of a sufficiently converged atom density.
const COMMUTATOR_MAX: f64 = 1e-4;

/// Returns the sum of the densities of the atoms.
pub(super) fn density(molecule: &Molecule, functions: &Functions) -> Matrix {
    let mut density = Matrix::zero(one_electron::functions(&functions.shells));
    let mut known: Vec<(Atom, Matrix)> = Vec::new();
    for (index, atom) in molecule.atoms.iter().enumerate() {
        let shells: Vec<Shell> =
            functions.shells.iter().filter(|shell| shell.atom == index).cloned().collect();
        let Some(first) = shells.first().map(|shell| shell.first) else { continue };
        let same = |(other, _): &&(Atom, Matrix)| other.element == atom.element;
        let own = match known.iter().find(same) {
            Some((_, own)) => own.clone(),
            None => atom_density(atom, shells, first, functions.is_cartesian),
        };
        for row in 0..own.size() {
            (0..=row)
                .for_each(|column| density.set_both([first + row, first + column], own.get(row, column)));
        }
        known.push((*atom, own));
    }
    density
}

/// Returns the density of an isolated atom, whose first function in the molecule is `first`.
fn atom_density(atom: &Atom, mut shells: Vec<Shell>, first: usize, is_cartesian: bool) -> Matrix {
    shells.iter_mut().for_each(|shell| shell.first -= first);
    let functions = Functions { shells, is_cartesian };
    let mut builder = FockBuilder::new(&functions);
    let moments = one_electron::moments(&functions.shells, is_cartesian);
    let size = moments.overlap.size();
    let core = moments.kinetic.plus(1.0, &one_electron::attraction(size, builder.pairs(), &[*atom]));
    let Some(basis) = orthonormal(&moments.overlap).ok() else { return Matrix::zero(size) };
    let (mut diis, mut density, mut fock) = (Diis::default(), Matrix::zero(size), core.clone());
    for _ in 0..ITERATIONS_MAX {
        density = occupied(&fock, &basis, &functions, atom);
        builder.begin(&fock::packed(&density));
        (0..units(builder.shells()))
            .for_each(|unit| _ = builder.add_unit(WorkUnit::new(unit, builder.shells())));
        let own = core.plus(1.0, &fock::matrix(size, &builder.sums()));
        let error = commutator(&own, &density, &moments.overlap, &basis);
        if error.largest() < COMMUTATOR_MAX {
            break;
        }
        fock = diis.next(own, error);
    }
    density
}

/// Returns the density of the lowest orbitals, with the s and p electrons of the ground state in sets of one and of
/// three.
fn occupied(fock: &Matrix, basis: &Matrix, functions: &Functions, atom: &Atom) -> Matrix {
    let (_, vectors) = basis.transposed().times(fock).times(basis).eigen();
    let orbitals = basis.times(&vectors);
    let size = orbitals.size();
    let mut left = atom.element.electrons_by_momentum().map(f64::from);
    let mut density = Matrix::zero(size);
    let mut open: [Vec<usize>; 2] = Default::default();
    for orbital in 0..size {
        let momentum = momentum_of(&orbitals, orbital, functions);
        let Some(open) = open.get_mut(momentum) else { continue };
        open.push(orbital);
        if open.len() < 2 * momentum + 1 {
            continue;
        }
        let electrons = left[momentum].min(2.0 * open.len() as f64);
        left[momentum] -= electrons;
        let occupation = electrons / open.len() as f64;
        for orbital in open.drain(..) {
            let element =
                |row, column| occupation * orbitals.get(row, orbital) * orbitals.get(column, orbital);
            density = density.plus(1.0, &Matrix::of(size, element));
        }
    }
    density
}

/// Returns the angular momentum of the functions that form an orbital of an atom.
fn momentum_of(orbitals: &Matrix, orbital: usize, functions: &Functions) -> usize {
    let weight = |momentum: usize| -> f64 {
        let own = functions.shells.iter().filter(|shell| shell.momentum == momentum);
        own.flat_map(|shell| shell.first..shell.first + shell.functions)
            .map(|function| orbitals.get(function, orbital).powi(2))
            .sum()
    };
    let weights = [0, 1, 2].map(weight);
    let heaviest = (0..3).max_by(|one, other| weights[*one].total_cmp(&weights[*other]));
    heaviest.unwrap_or_default()
}
