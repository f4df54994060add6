//! Reads geometries: XYZ files in ångström, and the input files of ANUChem's Hartree-Fock program in bohr.
//!
//! XYZ: the number of atoms, a line of any text, then a line for each atom: element, x, y, z; blank lines may follow.
//! `.inp`: a line `molecule`, the atoms as in XYZ but in bohr, a line `end`; before it may stand `units U`, how many
//! of the file's lengths are a bohr. All other lines of `.inp` are settings of that program and are passed over.
//! Invariant: any bytes give atoms or an error that names the line, never a panic.

use super::super::element::{ALLOWED, Element};
use super::super::input_error::{InputError, excerpt};
use super::{ANGSTROM_PER_BOHR, ATOMS_MAX, Atom};

/// What a line of an atom is.
const LINE: &str = "an element and three finite numbers, such as `O 0.0 0.0 0.117`";

/// Largest coordinate, in the file's unit.
const COORDINATE_MAX: f64 = 1e6;

/// The atoms of an XYZ file.
pub(super) fn xyz(source: &str, text: &str) -> Result<Vec<Atom>, InputError> {
    let mut lines = text.lines().enumerate();
    let missing = |missing: String| InputError::Truncated { source: source.to_owned(), missing };
    let (_, first) = lines.next().ok_or_else(|| missing("the number of atoms".to_owned()))?;
    let count = first.trim().parse::<usize>().ok().filter(|count| (1..=ATOMS_MAX).contains(count));
    let allowed = format!("the number of atoms, 1 to {ATOMS_MAX}");
    let count = count.ok_or_else(|| malformed(source, 0, first, &allowed))?;
    lines.next().ok_or_else(|| missing("the line of text after the number of atoms".to_owned()))?;
    let mut atoms = Vec::new();
    for number in 1..=count {
        let line = lines.next().ok_or_else(|| missing(format!("atom {number} of {count}")))?;
        atoms.push(atom(source, line, 1.0 / ANGSTROM_PER_BOHR)?);
    }
    match lines.find(|(_, line)| !line.trim().is_empty()) {
        Some((index, line)) => {
            let allowed = format!("nothing after {count} atoms");
            Err(malformed(source, index, line, &allowed))
        }
        None => Ok(atoms),
    }
}

/// The atoms of an input file of ANUChem.
pub(super) fn inp(source: &str, text: &str) -> Result<Vec<Atom>, InputError> {
    let mut lines = text.lines().enumerate();
    let mut bohr = 1.0;
    loop {
        let missing = || "the line `molecule`".to_owned();
        let (index, line) = lines
            .next()
            .ok_or_else(|| InputError::Truncated { source: source.to_owned(), missing: missing() })?;
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["molecule"] => break,
            ["units", unit] => {
                let unit = unit.parse::<f64>().ok().filter(|unit| (1e-3..=1e3).contains(unit));
                bohr = unit.ok_or_else(|| malformed(source, index, line, "`units` and 0.001 to 1000"))?;
            }
            _ => {}
        }
    }
    let mut atoms = Vec::new();
    for line in lines {
        if line.1.trim() == "end" && !atoms.is_empty() {
            return Ok(atoms);
        }
        atoms.push(atom(source, line, 1.0 / bohr)?);
    }
    Err(InputError::Truncated { source: source.to_owned(), missing: "the line `end`".to_owned() })
}

/// An atom whose coordinates become bohr by `scale`.
fn atom(source: &str, (index, line): (usize, &str), scale: f64) -> Result<Atom, InputError> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [element, coordinates @ ..] = words.as_slice() else {
        return Err(malformed(source, index, line, LINE));
    };
    let element = Element::parse(element).ok_or_else(|| malformed(source, index, line, ALLOWED))?;
    let coordinate = |word: &&str| word.parse::<f64>().ok().filter(|number| number.abs() <= COORDINATE_MAX);
    let numbers: Option<Vec<f64>> = coordinates.iter().map(coordinate).collect();
    match numbers.as_deref() {
        Some(&[x, y, z]) => Ok(Atom { element, point: [x, y, z].map(|number| number * scale) }),
        _ => Err(malformed(source, index, line, LINE)),
    }
}

fn malformed(source: &str, index: usize, line: &str, allowed: &str) -> InputError {
    let (source, found, allowed) = (source.to_owned(), excerpt(line), allowed.to_owned());
    InputError::Malformed { source, line: index + 1, found, allowed }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WATER: &str = "3\nwater\nO 0.0 0.0 0.1173\nH 0.0 0.7572 -0.4692\n1 0.0 -0.7572 -0.4692\n\n";

    #[test]
    fn an_xyz_file_is_in_angstrom_and_an_inp_file_in_bohr() {
        let water = xyz("w", WATER).unwrap();
        assert_eq!(water[1].element, water[2].element);
        assert!((water[1].point[1] - 1.430_9).abs() < 1e-4);
        let hydrogen = inp("h", "H2\nbasis sto3g\nmolecule \nH 0 0 0\nH 1.0 0 0\nend\nscf_max 3\n").unwrap();
        assert_eq!(hydrogen[1].point, [1.0, 0.0, 0.0]);
    }

    #[test]
    fn what_is_malformed_is_named_with_its_line_and_what_was_expected() {
        let message = |text: &str| xyz("f.xyz", text).unwrap_err().to_string();
        assert_eq!(message(""), "f.xyz: the text ends early, the number of atoms is missing");
        assert_eq!(message("x\n"), "f.xyz: line 1: found `x`, expected the number of atoms, 1 to 1000");
        assert_eq!(message("2\n\nH 0 0 0\n"), "f.xyz: the text ends early, atom 2 of 2 is missing");
        assert!(message("1\n\nQ 0 0 0\n").starts_with("f.xyz: line 3: found `Q 0 0 0`, expected an element"));
        for bad in ["H 0 0", "H 0 0 nan", "H 0 0 1e400", "H 0 0 0 0", "H 0 x 0"] {
            assert!(message(&format!("1\n\n{bad}\n")).contains("and three finite numbers"), "{bad}");
        }
        assert!(message("1\n\nH 0 0 0\nH 0 0 1\n").contains("line 4: found `H 0 0 1`, expected nothing"));
        let message = |text: &str| inp("f.inp", text).unwrap_err().to_string();
        assert!(message("H2\n").contains("the line `molecule` is missing"));
        assert!(message("molecule\nH 0 0 0\n").contains("the line `end` is missing"));
        assert!(message("molecule\nend\n").contains("line 2: found `end`, expected an element"));
        assert!(message("units 0\nmolecule\n").contains("line 1: found `units 0`, expected `units` and"));
    }

    proptest! {
        #[test]
        fn any_text_gives_atoms_or_an_error(text in "[ -~\n\t]{0,200}", number in 0_usize..4) {
            let _ = (xyz("f", &text), inp("f", &text));
            let _ = xyz("f", &format!("{number}\n\n{text}"));
            let _ = inp("f", &format!("molecule\n{text}\nend"));
        }

        #[test]
        fn a_damaged_file_gives_atoms_or_an_error(at in 0..WATER.len(), byte in any::<u8>()) {
            let mut bytes = WATER.as_bytes().to_vec();
            bytes[at] = byte;
            let _ = xyz("f", &String::from_utf8_lossy(&bytes));
        }
    }
}
