//! The chemical elements by symbol and atomic number, as far as there are basis sets for them.
//!
//! Knows no geometry and no functions. Invariant: an element that exists has a nuclear charge from 1 to 18.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Symbols in order of the atomic number, from 1.
const SYMBOLS: [&str; 18] =
    ["H", "He", "Li", "Be", "B", "C", "N", "O", "F", "Ne", "Na", "Mg", "Al", "Si", "P", "S", "Cl", "Ar"];

/// What may stand where an element must.
pub const ALLOWED: &str = "an element from H to Ar, as its symbol or its number";

/// A chemical element, hydrogen to argon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Element {
    /// Protons of the nucleus, 1 to 18.
    number: u8,
}

impl Element {
    /// The element of a symbol, in any case, or of an atomic number.
    pub fn parse(text: &str) -> Option<Element> {
        let index = match text.parse::<usize>() {
            Ok(number) => number.checked_sub(1).filter(|index| *index < SYMBOLS.len()),
            Err(_) => SYMBOLS.iter().position(|symbol| symbol.eq_ignore_ascii_case(text)),
        };
        index.map(|index| Element { number: index as u8 + 1 })
    }

    /// Protons of the nucleus, which is also the number of electrons of the neutral atom.
    pub fn number(self) -> u32 {
        u32::from(self.number)
    }

    /// Its symbol.
    pub fn symbol(self) -> &'static str {
        SYMBOLS[usize::from(self.number) - 1]
    }

    /// Electrons of the ground state of the atom in shells of each angular momentum: s, then p.
    ///
    /// Aufbau order up to argon: 1s, 2s, 2p, 3s, 3p.
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
        assert_eq!(Element::parse("CL").map(Element::number), Some(17));
        for nothing in ["", "0", "19", "Zz", "-1", "K", "C1"] {
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
