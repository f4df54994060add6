//! Errors in a description of a molecule or a basis set.
//!
//! One enum for both, because their reader does the same with each: print one line and stop. Invariant: each message
//! names the source, the text found there and the allowed text.

use super::element::Element;
use isles_app::input::{self, ReadFault};
use std::fmt;

/// Error in a description of a molecule or a basis set.
#[derive(Debug)]
pub enum InputError {
    /// A file could not be read.
    Unreadable {
        /// The file.
        source: String,
        /// Error of the system.
        cause: ReadFault,
    },
    /// Neither a built-in name nor a file.
    UnknownName {
        /// The flag and its value.
        found: String,
        /// Allowed names.
        allowed: String,
    },
    /// The text does not match any of the allowed forms.
    Malformed {
        /// The file, or the built-in name.
        source: String,
        /// The line, from 1.
        line: usize,
        /// Text found, shortened.
        found: String,
        /// Allowed forms.
        allowed: String,
    },
    /// The text is incomplete.
    Truncated {
        /// The file.
        source: String,
        /// Missing part.
        missing: String,
    },
    /// The basis set has no functions for an element of the molecule.
    ElementWithoutBasis {
        /// The basis set.
        basis: String,
        /// The element.
        element: Element,
    },
    /// Two nuclei at one point, or nearly so.
    AtomsAtOnePoint {
        /// The molecule.
        molecule: String,
        /// Positions of both in the molecule, from 1.
        atoms: [usize; 2],
        /// Distance between them, in bohr.
        distance: f64,
    },
    /// The number of electrons is not possible for closed shells.
    Electrons {
        /// The molecule.
        molecule: String,
        /// The requested charge.
        charge: i32,
        /// The remaining number of electrons: odd, zero or negative.
        electrons: i64,
    },
    /// There are more electrons than the functions can hold.
    FewFunctions {
        /// The basis set.
        basis: String,
        /// Functions that are nearly linearly dependent.
        functions: usize,
        /// Number of pairs of electrons.
        pairs: usize,
    },
    /// Functions that are nearly sums of others.
    DependentFunctions {
        /// A size exceeds the supported limit.
        basis: String,
        /// The least eigenvalue of the overlap matrix.
        eigenvalue: f64,
    },
    /// More than is supported.
    TooLarge {
        /// The file or the name.
        source: String,
        /// Name of the items that are too many.
        items: &'static str,
        /// Number found.
        found: usize,
        /// Number accepted.
        limit: usize,
    },
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InputError::Unreadable { source, cause } => write!(f, "{source} cannot be read: {cause}"),
            InputError::UnknownName { found, allowed } => write!(f, "{found}; allowed: {allowed}"),
            InputError::Malformed { source, line, found, allowed } => {
                write!(f, "{source}: line {line}: found `{found}`, expected {allowed}")
            }
            InputError::Truncated { source, missing } => {
                write!(f, "{source}: the text ends early: {missing} is missing")
            }
            InputError::ElementWithoutBasis { basis, element } => {
                write!(
                    f,
                    "--basis {basis} has no functions for {element}; allowed: a basis set with \
                     functions for it"
                )
            }
            InputError::AtomsAtOnePoint { molecule, atoms: [one, other], distance } => write!(
                f,
                "{molecule}: atoms {one} and {other} are {distance:.1e} bohr apart; allowed: at least {:.0e} bohr",
                super::molecule::DISTANCE_MIN
            ),
            InputError::Electrons { molecule, charge, electrons: electrons @ ..=0 } => write!(
                f,
                "--charge {charge} leaves {molecule} {electrons} electrons; allowed: a charge that leaves at least 2"
            ),
            InputError::Electrons { molecule, charge, electrons } => write!(
                f,
                "--charge {charge} leaves {molecule} {electrons} electrons; allowed: an even number, all of them paired"
            ),
            InputError::FewFunctions { basis, functions, pairs } => write!(
                f,
                "--basis {basis} has {functions} functions for {pairs} pairs of electrons; allowed: at least as many"
            ),
            InputError::DependentFunctions { basis, eigenvalue } => write!(
                f,
                "--basis {basis}: the functions depend on each other, the overlap has the eigenvalue {eigenvalue:.1e}; \
                 allowed: at least {:.0e}",
                super::scf::OVERLAP_EIGENVALUE_MIN
            ),
            InputError::TooLarge { source, items, found, limit } => {
                write!(f, "{source}: {found} {items}; allowed: at most {limit}")
            }
        }
    }
}

impl std::error::Error for InputError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            InputError::Unreadable { cause, .. } => Some(cause),
            _ => None,
        }
    }
}

/// Returns the beginning of a line, printable, for a one-line message.
pub(super) fn excerpt(line: &str) -> String {
    const CHARACTERS_MAX: usize = 40;
    let printable = line.trim().chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut short: String = printable.take(CHARACTERS_MAX).collect();
    if line.trim().chars().count() > CHARACTERS_MAX {
        short.push_str("...");
    }
    short
}

/// Largest accepted file in bytes, ten times the largest published basis sets.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Reads a file as text.
pub(super) fn read_text(path: &str) -> Result<String, InputError> {
    let unreadable = |cause| InputError::Unreadable { source: path.to_owned(), cause };
    Ok(input::text(&input::bytes(path, FILE_BYTES_MAX).map_err(unreadable)?))
}

/// Parses a finite number, also with Fortran's exponent `D`, or with Mathematica's `*^`, which the data set QM9 uses.
pub(super) fn number(word: &str) -> Option<f64> {
    let is_digit = word.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    let number = word.replace("*^", "e").replace(['D', 'd'], "e").parse::<f64>().ok();
    number.filter(|number| is_digit && number.is_finite())
}
