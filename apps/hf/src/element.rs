//! The chemical elements by symbol and atomic number.
//!
//! All elements can be named, because files of basis sets contain them; only molecules of H to Ar are computed. This
//! module knows no geometry and no functions. Invariant: an element has a nuclear charge from 1 to 118.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Symbols in order of the atomic number, from 1.
const SYMBOLS: &str = "H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br \
                       Kr Rb Sr Y Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy Ho \
                       Er Tm Yb Lu Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U Np Pu Am Cm Bk Cf Es \
                       Fm Md No Lr Rf Db Sg Bh Hs Mt Ds Rg Cn Nh Fl Mc Lv Ts Og";

/// The highest atomic number of an element in a molecule: argon.
const COMPUTED_MAX: u8 = 18;

/// Allowed names of an element of a molecule.
pub const ALLOWED: &str = "an element from H to Ar, as its symbol or its number";

/// A chemical element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Element {
    /// Protons of the nucleus, 1 to 118.
    number: u8,
}

impl Element {
    /// Returns the element with a symbol, in any case, or an atomic number.
    pub fn parse(text: &str) -> Option<Element> {
        let index = match text.parse::<usize>() {
            Ok(number) => number.checked_sub(1),
            Err(_) => SYMBOLS.split(' ').position(|symbol| symbol.eq_ignore_ascii_case(text)),
        };
        let index = index.filter(|index| *index < SYMBOLS.split(' ').count());
        index.map(|index| Element { number: index as u8 + 1 })
    }

    /// Returns the element with a symbol or number if its molecules are supported: hydrogen to argon.
    pub fn of_molecule(text: &str) -> Option<Element> {
        Element::parse(text).filter(|element| element.number <= COMPUTED_MAX)
    }

    /// Returns the number of protons, which is also the number of electrons of the neutral atom.
    pub fn number(self) -> u32 {
        u32::from(self.number)
    }

    /// Returns its symbol.
    pub fn symbol(self) -> &'static str {
        SYMBOLS.split(' ').nth(usize::from(self.number) - 1).unwrap_or_default()
    }

    /// Returns the electrons of the ground state of the atom in shells of each angular momentum: s, then p.
    ///
    /// Aufbau order up to argon: 1s, 2s, 2p, 3s, 3p; electrons of heavier atoms are left out.
    pub fn electrons_by_momentum(self) -> [u32; 2] {
        let mut left = self.number();
        let mut electrons = [0; 2];
        for (momentum, capacity) in [(0, 2), (0, 2), (1, 6), (0, 2), (1, 6)] {
            let taken = left.min(capacity);
            electrons[momentum] += taken;
            left -= taken;
        }
        electrons
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.symbol())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_in_any_case_and_numbers_name_an_element_and_nothing_else_does() {
        let carbon = Element::parse("c").unwrap();
        assert_eq!((carbon.number(), carbon.symbol(), Element::parse("6")), (6, "C", Some(carbon)));
        let numbers = ["CL", "K", "rn", "Og"].map(|symbol| Element::parse(symbol).map(Element::number));
        assert_eq!(numbers, [Some(17), Some(19), Some(86), Some(118)]);
        assert_eq!(["Ar", "K"].map(|symbol| Element::of_molecule(symbol).is_some()), [true, false]);
        for nothing in ["", "0", "119", "Zz", "-1", "C1"] {
            assert_eq!(Element::parse(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn electrons_fill_the_shells_of_the_ground_state() {
        let electrons = |symbol| Element::parse(symbol).unwrap().electrons_by_momentum();
        assert_eq!([electrons("H"), electrons("C"), electrons("Ne")], [[1, 0], [4, 2], [4, 6]]);
        assert_eq!([electrons("Na"), electrons("Cl"), electrons("Ar")], [[5, 6], [6, 11], [6, 12]]);
    }
}
