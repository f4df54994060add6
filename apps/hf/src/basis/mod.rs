//! Basis sets: for each element, contracted Gaussian functions by angular momentum.
//!
//! A contraction is a sum of primitives `c exp(-a r^2)` times a solid harmonic; its coefficients are those of
//! normalised primitives, as published. Three sets are built in, with the tables of PySCF, because the last digits of
//! energies depend on them; others come from files (see `read`), which may hold unneeded elements. This module knows
//! no molecule. Invariant: a contraction has at least one primitive, all exponents are above zero, and not all
//! coefficients are zero.

mod gaussian;
mod nwchem;
mod read;
pub mod shell;

use super::element::Element;
use super::input_error::{InputError, read_text};
use std::path::Path;

/// Highest angular momentum of a function: d.
pub const MOMENTUM_MAX: usize = 2;

/// Most primitives of a contraction.
pub const PRIMITIVES_MAX: usize = 32;

/// Most contractions of an element.
pub const CONTRACTIONS_MAX: usize = 64;

/// One contraction of an element.
#[derive(Clone, Debug, PartialEq)]
pub struct Contraction {
    /// Angular momentum: 0 is s, 1 is p, 2 is d.
    pub momentum: usize,
    /// Exponents in bohr^-2, each with its coefficient of the normalised primitive.
    pub primitives: Vec<(f64, f64)>,
}

/// A basis set.
#[derive(Clone, Debug)]
pub struct BasisSet {
    /// Its name, as `--basis` takes it.
    pub name: String,
    /// `true` if the file asks for six Cartesian functions in a d shell.
    pub is_cartesian: bool,
    /// The contractions of the wanted elements, in order of the text.
    elements: Vec<(Element, Vec<Contraction>)>,
}

/// The built-in basis sets.
const BUILT_IN: [(&str, &str); 3] = [
    ("sto-3g", include_str!("../../data/basis/sto-3g.nw")),
    ("3-21g", include_str!("../../data/basis/3-21g.nw")),
    ("6-31g*", include_str!("../../data/basis/6-31g-star.nw")),
];

/// Returns `true` if `name` is a file name, not a built-in basis set.
pub fn is_file(name: &str) -> bool {
    built_in(name).is_none()
}

fn built_in(name: &str) -> Option<&'static (&'static str, &'static str)> {
    BUILT_IN.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))
}

/// Returns the basis set with a built-in name, in any case, or from a file, for `elements`.
///
/// Entries of a file for other elements are not checked.
///
/// # Errors
/// [`InputError`]: there is no such set, or the file is malformed.
pub fn open(name: &str, elements: &[Element]) -> Result<BasisSet, InputError> {
    if let Some((known, text)) = built_in(name) {
        return read::basis_set(known, text, elements);
    }
    if !Path::new(name).exists() {
        let known: Vec<&str> = BUILT_IN.iter().map(|(known, _)| *known).collect();
        let allowed = format!("{}, or a file in the format of NWChem or Gaussian", known.join(", "));
        return Err(InputError::UnknownName { found: format!("--basis is {name:?}"), allowed });
    }
    read::basis_set(name, &read_text(name)?, elements)
}

impl BasisSet {
    /// Returns the contractions of an element, in ascending order of angular momentum, then in order of the text.
    ///
    /// # Errors
    /// The set has none for it.
    pub fn contractions(&self, element: Element) -> Result<Vec<Contraction>, InputError> {
        let found = self.elements.iter().find(|(known, _)| *known == element);
        let missing = || InputError::ElementWithoutBasis { basis: self.name.clone(), element };
        let mut contractions = found.ok_or_else(missing)?.1.clone();
        contractions.sort_by_key(|contraction| contraction.momentum);
        Ok(contractions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_sets_have_all_elements_to_argon_and_the_published_contractions_of_carbon() {
        let carbon = Element::parse("C").unwrap();
        let shape = |name| -> Vec<(usize, usize)> {
            let contractions = open(name, &[carbon]).unwrap().contractions(carbon).unwrap();
            contractions.iter().map(|one| (one.momentum, one.primitives.len())).collect()
        };
        assert_eq!(shape("STO-3G"), [(0, 3), (0, 3), (1, 3)]);
        assert_eq!(shape("3-21G"), [(0, 3), (0, 2), (0, 1), (1, 2), (1, 1)]);
        assert_eq!(shape("6-31G*"), [(0, 6), (0, 3), (0, 1), (1, 3), (1, 1), (2, 1)]);
        for (name, _) in BUILT_IN {
            for number in 1..=18 {
                let element = Element::parse(&number.to_string()).unwrap();
                assert!(
                    !open(name, &[element]).unwrap().contractions(element).unwrap().is_empty(),
                    "{name} {element}"
                );
            }
        }
    }

    #[test]
    fn a_name_that_is_neither_set_nor_file_is_refused() {
        let message = open("sto-4g", &[]).unwrap_err().to_string();
        assert_eq!(
            message,
            "--basis is \"sto-4g\"; allowed: sto-3g, 3-21g, 6-31g*, or a file in the format of NWChem or \
             Gaussian"
        );
    }
}
