//! Properties of a molecule after a converged calculation: orbital energies, the gap, the dipole.
//!
//! Invariant: nothing here changes the calculation.

use super::super::molecule::Molecule;
use super::Scf;
use serde::Serialize;

/// Debye per atomic unit of the dipole, e a0: CODATA 2018.
const DEBYE: f64 = 2.541_746_473;

/// Properties of the molecule.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Properties {
    /// Repulsion energy between the nuclei, in hartree.
    pub nuclear_repulsion: f64,
    /// Energies of all orbitals in hartree, ascending; the occupied ones first.
    pub orbital_energies: Vec<f64>,
    /// Number of occupied orbitals, with two electrons each.
    pub occupied: usize,
    /// Gap from the highest occupied to the lowest other orbital, in hartree; `None` if all are occupied.
    pub gap: Option<f64>,
    /// The dipole in debye, from the center of the nuclear charges.
    pub dipole: [f64; 3],
}

impl Properties {
    /// Returns the length of the dipole, in debye.
    pub fn dipole_length(&self) -> f64 {
        self.dipole.iter().map(|part| part * part).sum::<f64>().sqrt()
    }
}

/// Computes the properties of the molecule from the last iteration.
pub fn properties(scf: &Scf, molecule: &Molecule) -> Properties {
    let orbital_energies = scf.vectors(&scf.fock).0;
    let occupied = scf.pairs_of_electrons;
    let gap = orbital_energies.get(occupied).map(|lowest| lowest - orbital_energies[occupied - 1]);
    let nuclear = |axis: usize| -> f64 {
        molecule.atoms.iter().map(|atom| f64::from(atom.element.number()) * atom.point[axis]).sum()
    };
    let charges: f64 = molecule.atoms.iter().map(|atom| f64::from(atom.element.number())).sum();
    let dipole = [0, 1, 2].map(|axis| {
        let center = nuclear(axis) / charges;
        let electrons = scf.density.dot(&scf.moments.dipole[axis]);
        let shifted = electrons - center * scf.density.dot(&scf.moments.overlap);
        -DEBYE * shifted
    });
    Properties { nuclear_repulsion: scf.nuclear_repulsion, orbital_energies, occupied, gap, dipole }
}
