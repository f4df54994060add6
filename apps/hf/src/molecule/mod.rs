//! Molecules: atoms at points, and their electrons.
//!
//! Lengths are in bohr throughout. The built-in geometries are those of the Hartree-Fock program of ANUChem; files
//! come in two formats, `.xyz` in ångström and `.inp` in bohr (see `read`). This module knows no basis functions.
//! Invariant: no two atoms are closer than [`DISTANCE_MIN`], and the number of electrons is even and at least two.

mod header;
mod read;

use super::element::Element;
use super::input_error::{InputError, read_text};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;

/// Ångström per bohr: CODATA 2018, a0 = 0.529177210903 Å.
pub const ANGSTROM_PER_BOHR: f64 = 0.529_177_210_903;

/// Smallest accepted distance between two nuclei, in bohr; in real molecules it is never below 1.
pub const DISTANCE_MIN: f64 = 1e-2;

/// Maximum number of atoms of a molecule; the matrices for this number still fit a place.
pub const ATOMS_MAX: usize = 1000;

/// An atom: its element and its position.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Atom {
    /// The element.
    pub element: Element,
    /// Its position, in bohr.
    pub point: [f64; 3],
}

/// A molecule with closed shells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Molecule {
    /// Its name, as passed to `--molecule`.
    pub name: String,
    /// Its atoms, in order of the file.
    pub atoms: Vec<Atom>,
    /// Its charge, in elementary charges.
    pub charge: i32,
}

/// The built-in molecules.
const BUILT_IN: [(&str, &str); 6] = [
    ("h2", include_str!("../../data/molecules/h2.inp")),
    ("h2o", include_str!("../../data/molecules/h2o.inp")),
    ("ch4", include_str!("../../data/molecules/ch4.inp")),
    ("nh3", include_str!("../../data/molecules/nh3.inp")),
    ("benzene", include_str!("../../data/molecules/benzene.inp")),
    ("aspirin", include_str!("../../data/molecules/aspirin.inp")),
];

/// Returns `true` if `name` is a file name, not a built-in molecule.
pub fn is_file(name: &str) -> bool {
    built_in(name).is_none()
}

fn built_in(name: &str) -> Option<&'static (&'static str, &'static str)> {
    BUILT_IN.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))
}

/// Returns the molecule with a built-in name, in any case, or from a file that ends in `.xyz` or `.inp`, with a
/// charge.
///
/// # Errors
/// As [`open_frame`].
pub fn open(name: &str, charge: i32) -> Result<Molecule, InputError> {
    open_frame(name, charge, None)
}

/// Same as [`open`], but reads molecule number `frame`, from 1, of an `.xyz` file with several.
///
/// # Errors
/// [`InputError`]: there is no such molecule, or it does not have closed shells.
pub fn open_frame(name: &str, charge: i32, frame: Option<usize>) -> Result<Molecule, InputError> {
    let ending = Path::new(name).extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let is_xyz = built_in(name).is_none() && ending.eq_ignore_ascii_case("xyz");
    if let Some(frame) = frame.filter(|_| !is_xyz) {
        let allowed = format!("no --frame with --molecule {name}: only .xyz files hold several molecules");
        return Err(InputError::UnknownName { found: format!("--frame is {frame}"), allowed });
    }
    let (name, atoms) = match built_in(name) {
        Some((known, text)) => ((*known).to_owned(), read::inp(known, text, charge)?),
        None if is_xyz => (name.to_owned(), read::xyz(name, &read_text(name)?, charge, frame)?),
        None if ending.eq_ignore_ascii_case("inp") => {
            (name.to_owned(), read::inp(name, &read_text(name)?, charge)?)
        }
        None => {
            let known: Vec<&str> = BUILT_IN.iter().map(|(known, _)| *known).collect();
            let allowed = format!("{}, or a file that ends in .xyz or .inp", known.join(", "));
            return Err(InputError::UnknownName { found: format!("--molecule is {name:?}"), allowed });
        }
    };
    Molecule { name, atoms, charge }.checked()
}

impl Molecule {
    /// Returns the molecule if it is valid.
    fn checked(self) -> Result<Molecule, InputError> {
        if self.atoms.len() > ATOMS_MAX {
            let (source, found) = (self.name, self.atoms.len());
            return Err(InputError::TooLarge { source, items: "atoms", found, limit: ATOMS_MAX });
        }
        for (index, one) in self.atoms.iter().enumerate() {
            let near = |other: &Atom| distance(&one.point, &other.point) < DISTANCE_MIN;
            if let Some(other) = self.atoms[..index].iter().position(near) {
                let distance = distance(&one.point, &self.atoms[other].point);
                let atoms = [other + 1, index + 1];
                return Err(InputError::AtomsAtOnePoint { molecule: self.name, atoms, distance });
            }
        }
        let nuclear: u32 = self.atoms.iter().map(|atom| atom.element.number()).sum();
        let electrons = i64::from(nuclear) - i64::from(self.charge);
        if electrons < 2 || electrons % 2 != 0 {
            return Err(InputError::Electrons { molecule: self.name, charge: self.charge, electrons });
        }
        Ok(self)
    }

    /// Returns the distinct elements of its atoms.
    pub fn elements(&self) -> Vec<Element> {
        let elements: BTreeSet<Element> = self.atoms.iter().map(|atom| atom.element).collect();
        elements.into_iter().collect()
    }

    /// Returns the number of electrons.
    pub fn electrons(&self) -> usize {
        let nuclear: u32 = self.atoms.iter().map(|atom| atom.element.number()).sum();
        (i64::from(nuclear) - i64::from(self.charge)) as usize
    }

    /// Returns the repulsion energy of the nuclei, in hartree.
    pub fn nuclear_repulsion(&self) -> f64 {
        let pairs = self.atoms.iter().enumerate().flat_map(|(index, one)| {
            self.atoms[..index].iter().map(move |other| {
                f64::from(one.element.number() * other.element.number()) / distance(&one.point, &other.point)
            })
        });
        pairs.sum()
    }
}

/// Returns the distance between two points, in bohr.
fn distance(one: &[f64; 3], other: &[f64; 3]) -> f64 {
    one.iter().zip(other).map(|(one, other)| (one - other).powi(2)).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_molecules_have_the_nuclear_repulsion_that_pyscf_gives() {
        // From gto.Mole.energy_nuc of PySCF 2.14 at the same points.
        let expected = [("h2o", 8.986_930_880_892), ("NH3", 12.113_324_303_585), ("h2", 1.0)];
        let large = [("benzene", 204.844_465_543_357), ("aspirin", 772.467_554_085_003)];
        for (name, energy) in expected.into_iter().chain(large) {
            let found = open(name, 0).unwrap().nuclear_repulsion();
            assert!((found - energy).abs() < 1e-11 * energy.max(1.0), "{name}: {found}");
        }
    }

    #[test]
    fn units_of_a_file_are_its_length_of_a_bohr() {
        let methane = open("ch4", 0).unwrap();
        let bond = distance(&methane.atoms[0].point, &methane.atoms[1].point) * ANGSTROM_PER_BOHR;
        assert!((bond - 1.098).abs() < 1e-3, "{bond} ångström from carbon to hydrogen");
    }

    #[test]
    fn what_is_no_closed_shell_molecule_is_refused_with_the_reason() {
        let message = |name: &str, charge| open(name, charge).unwrap_err().to_string();
        assert!(message("h2o", 1).contains("9 electrons; allowed: an even number"));
        assert!(message("h2", 2).contains("--charge 2 leaves h2 0 electrons"));
        assert!(message("h2", 4).contains("-2 electrons; allowed: a charge that leaves at least 2"));
        assert!(message("water", 0).contains("allowed: h2, h2o, ch4, nh3, benzene, aspirin, or a file"));
        assert!(message("nowhere.xyz", 0).starts_with("nowhere.xyz cannot be read"));
        let atom = |x| Atom { element: Element::parse("H").unwrap(), point: [x, 0.0, 0.0] };
        let molecule =
            Molecule { name: "close".to_owned(), atoms: vec![atom(1.0), atom(0.0), atom(1.0)], charge: -1 };
        assert!(molecule.checked().unwrap_err().to_string().starts_with("close: atoms 1 and 3 are 0.0e0"));
    }
}
