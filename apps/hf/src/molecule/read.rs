//! Reads geometries: XYZ files in ångström, and the input files of ANUChem's Hartree-Fock program in bohr.
//!
//! XYZ: the number of atoms, a line of free text (see [`header`](super::header)), then a line for each atom: element,
//! x, y, z. Further columns (charges, forces) and lines after the atoms are skipped, except that further atom lines
//! are an error. `.inp`: a line `molecule`, the atoms as in XYZ but in bohr, a line `end`. Lines `units U`, the number
//! of the file's length units per bohr, and `charge N` may precede it. All other lines of `.inp` are settings of that
//! program and are skipped. Invariant: any bytes yield atoms or an error that names the line, never a panic.

use super::super::element::{ALLOWED, Element};
use super::super::input_error::{InputError, excerpt, number};
use super::header::{self, Columns};
use super::{ANGSTROM_PER_BOHR, ATOMS_MAX, Atom};

/// Expected form of the line of an atom.
const LINE: &str = "an element and three finite numbers, such as `O 0.0 0.0 0.117`";

/// Largest coordinate, in the file's unit.
const COORDINATE_MAX: f64 = 1e6;

/// A line of a text.
#[derive(Clone, Copy)]
pub(super) struct NumberedLine<'a> {
    /// Its number, from 0.
    pub(super) index: usize,
    pub(super) text: &'a str,
}

fn numbered_lines(text: &str) -> impl Iterator<Item = NumberedLine<'_>> {
    text.lines().enumerate().map(|(index, text)| NumberedLine { index, text })
}

/// Returns the atoms of a molecule in an XYZ file: number `frame`, from 1, if there are several. Its charge is
/// `charge`.
pub(super) fn xyz(
    source: &str,
    text: &str,
    charge: i32,
    frame: Option<usize>,
) -> Result<Vec<Atom>, InputError> {
    let lines: Vec<NumberedLine<'_>> = numbered_lines(text).collect();
    let starts = starts(&lines);
    if frame.is_none() && starts.len() > 1 {
        let allowed = format!("one molecule; choose one of the {} with --frame", starts.len());
        return Err(malformed(source, lines[starts[1]], &allowed));
    }
    let frame = frame.unwrap_or(1);
    let Some(&start) = frame.checked_sub(1).and_then(|index| starts.get(index)) else {
        let allowed = format!("1 to {}, the molecules in {source}", starts.len());
        return Err(InputError::UnknownName { found: format!("--frame is {frame}"), allowed });
    };
    let end = starts.get(frame).copied().unwrap_or(lines.len());
    one(source, &lines[start..end], charge)
}

/// Returns the lines at which the molecules of an XYZ file begin. The first is the beginning of the file; any other is
/// a number followed by a line of text and that number of atoms.
fn starts(lines: &[NumberedLine<'_>]) -> Vec<usize> {
    let count_at = |index: usize| lines.get(index).and_then(|line| line.text.trim().parse::<usize>().ok());
    let end = |index: usize, count: usize| index.checked_add(2)?.checked_add(count);
    let (mut starts, mut index) =
        (vec![0], count_at(0).and_then(|count| end(0, count)).unwrap_or(lines.len()));
    while index < lines.len() {
        let last = count_at(index).filter(|count| *count > 0).and_then(|count| end(index, count));
        match last.filter(|last| {
            lines
                .get(index + 2..*last)
                .is_some_and(|atoms| atoms.iter().all(|line| looks_like_an_atom(*line)))
        }) {
            Some(last) => {
                starts.push(index);
                index = last;
            }
            None => index += 1,
        }
    }
    starts
}

/// Returns `true` if a line holds an element and three numbers.
fn looks_like_an_atom(line: NumberedLine<'_>) -> bool {
    let words: Vec<&str> = line.text.split_whitespace().collect();
    words.len() > 3
        && Element::parse(words[0]).is_some()
        && words[1..4].iter().all(|word| number(word).is_some())
}

/// Returns the atoms of the only molecule in lines of an XYZ file.
fn one(source: &str, lines: &[NumberedLine<'_>], charge: i32) -> Result<Vec<Atom>, InputError> {
    let mut lines = lines.iter().copied();
    let missing = |missing: String| InputError::Truncated { source: source.to_owned(), missing };
    let first = lines.next().ok_or_else(|| missing("the number of atoms".to_owned()))?;
    let count = first.text.trim().parse::<usize>().ok().filter(|count| (1..=ATOMS_MAX).contains(count));
    let allowed = format!("the number of atoms, 1 to {ATOMS_MAX}");
    let count = count.ok_or_else(|| malformed(source, first, &allowed))?;
    let second = lines.next();
    let second = second.ok_or_else(|| missing("the line of text after the number of atoms".to_owned()))?;
    let columns = header::columns(source, second, charge)?;
    let mut atoms = Vec::new();
    let mut begins_with_its_number = true;
    for number in 1..=count {
        let line = lines.next().ok_or_else(|| missing(format!("atom {number} of {count}")))?;
        let words: Vec<&str> = line.text.split_whitespace().collect();
        begins_with_its_number &= words.len() > 4 && words[0].parse() == Ok(number);
        atoms.push(atom(source, line, &words, &columns)?);
        if begins_with_its_number && columns.species == 0 && number == count && count > 1 {
            let allowed = "an element in the first column; the atoms are numbered there";
            return Err(malformed(source, line, allowed));
        }
    }
    // Only symbols count: lines after the atoms may begin with numbers, such as frequencies.
    let is_symbol = |line: &NumberedLine<'_>| line.text.trim_start().starts_with(char::is_alphabetic);
    match lines.find(|line| is_symbol(line) && looks_like_an_atom(*line)) {
        Some(line) => {
            let allowed = format!("no atom after the {count} that line {} counts", first.index + 1);
            Err(malformed(source, line, &allowed))
        }
        None => Ok(atoms.into_iter().map(|atom| scaled(atom, 1.0 / ANGSTROM_PER_BOHR)).collect()),
    }
}

/// Returns the atoms of an input file of ANUChem; `charge` is that of the molecule.
pub(super) fn inp(source: &str, text: &str, charge: i32) -> Result<Vec<Atom>, InputError> {
    let mut lines = numbered_lines(text);
    let mut bohr = 1.0;
    loop {
        let missing = || "the line `molecule`".to_owned();
        let line = lines
            .next()
            .ok_or_else(|| InputError::Truncated { source: source.to_owned(), missing: missing() })?;
        let words: Vec<&str> = line.text.split_whitespace().collect();
        match words.as_slice() {
            ["molecule"] => break,
            ["units", rest @ ..] => {
                let unit = if let [unit] = rest { number(unit) } else { None };
                let unit = unit.filter(|unit| (1e-3..=1e3).contains(unit));
                bohr = unit.ok_or_else(|| malformed(source, line, "`units` and 0.001 to 1000"))?;
            }
            ["charge", rest @ ..] if rest.len() != 1 || number(rest[0]) != Some(f64::from(charge)) => {
                return Err(malformed(source, line, &format!("`charge {charge}`, as --charge says")));
            }
            _ => {}
        }
    }
    let mut atoms = Vec::new();
    for line in lines {
        if line.text.trim() == "end" && !atoms.is_empty() {
            return Ok(atoms);
        }
        let words: Vec<&str> = line.text.split_whitespace().collect();
        let atom = atom(source, line, &words, &Columns::default())?;
        if words.len() > 4 {
            return Err(malformed(source, line, LINE));
        }
        atoms.push(scaled(atom, 1.0 / bohr));
    }
    Err(InputError::Truncated { source: source.to_owned(), missing: "the line `end`".to_owned() })
}

/// Returns the atom of a line, with its position in the file's unit.
fn atom(source: &str, line: NumberedLine<'_>, words: &[&str], columns: &Columns) -> Result<Atom, InputError> {
    let species = words.get(columns.species).ok_or_else(|| malformed(source, line, LINE))?;
    let element = Element::of_molecule(species).ok_or_else(|| malformed(source, line, ALLOWED))?;
    let coordinates = words.get(columns.position..columns.position + 3).unwrap_or_default();
    let coordinate = |word: &&str| number(word).filter(|number| number.abs() <= COORDINATE_MAX);
    let numbers: Option<Vec<f64>> = coordinates.iter().map(coordinate).collect();
    match numbers.as_deref() {
        Some(&[x, y, z])
            if words.len() == columns.count || columns.is_open && words.len() > columns.count =>
        {
            Ok(Atom { element, point: [x, y, z] })
        }
        _ if !columns.is_open => {
            let allowed = format!("{} columns with three finite coordinates, as in line 2", columns.count);
            Err(malformed(source, line, &allowed))
        }
        _ => Err(malformed(source, line, LINE)),
    }
}

/// Returns an atom with its position multiplied by `scale`.
fn scaled(atom: Atom, scale: f64) -> Atom {
    Atom { point: atom.point.map(|number| number * scale), ..atom }
}

/// Returns the error for a line with other contents than `allowed`.
pub(super) fn malformed(source: &str, line: NumberedLine<'_>, allowed: &str) -> InputError {
    let (source, found, allowed) = (source.to_owned(), excerpt(line.text), allowed.to_owned());
    InputError::Malformed { source, line: line.index + 1, found, allowed }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WATER: &str = "3\nwater\nO 0.0 0.0 0.1173\nH 0.0 0.7572 -0.4692\n1 0.0 -0.7572 -0.4692\n\n";

    #[test]
    fn an_xyz_file_is_in_angstrom_and_an_inp_file_in_bohr() {
        let water = xyz("w", WATER, 0, None).unwrap();
        assert_eq!(water[1].element, water[2].element);
        assert!((water[1].point[1] - 1.430_9).abs() < 1e-4);
        let hydrogen =
            inp("h", "H2\nbasis sto3g\nmolecule \nH 0 0 0\nH 1.0 0 0\nend\nscf_max 3\n", 0).unwrap();
        assert_eq!(hydrogen[1].point, [1.0, 0.0, 0.0]);
    }

    #[test]
    fn columns_and_lines_behind_the_geometry_change_nothing() {
        let plain = xyz("w", "2\nx\nC 0 0 0\nO 0 0 0.0113\n", 0, None).unwrap();
        let others = [
            "2\ncharges\nC 0 0 0 -0.4 T\nO 0 0 1.13D-02 0.4 F\n",
            "2\ngdb 1 \t0.1\nC\t0\t0\t0\t-0.5\nO\t0\t0\t1.13*^-2\t0.5\n1341.3 1341.3\nC#O\tC#O\nInChI=1S/CO/c1-2\n",
            "2\nProperties=species:S:1:pos:R:3:forces:R:3 pbc=\"F F F\"\nC 0 0 0 1 1 1\nO 0 0 .0113 1 1 1\n",
            "2\nProperties=id:I:1:pos:R:3:species:S:1\n1 0 0 0 C\n2 0 0 0.0113 O\n",
        ];
        for other in others {
            assert_eq!(xyz("w", other, 0, None).unwrap(), plain, "{other}");
        }
    }

    #[test]
    fn of_several_molecules_one_is_chosen() {
        let text = "2\nCO\nC 0 0 0\nO 0 0 1.1\nC#O\n\n1\nHe\n2 0 0 0\n1\nHe, far\nHe 0 0 9\n341.3 21\n";
        let atoms = |frame| xyz("f", text, 0, frame).map_err(|error| error.to_string());
        assert_eq!(
            atoms(Some(1)),
            xyz("f", "2\n\nC 0 0 0\nO 0 0 1.1\n", 0, None).map_err(|error| error.to_string())
        );
        assert_eq!(atoms(Some(2)).unwrap().len(), 1);
        assert_eq!(atoms(Some(3)).unwrap()[0].point[2] * ANGSTROM_PER_BOHR, 9.0);
        let message = atoms(None).unwrap_err();
        assert_eq!(message, "f: line 7: found `1`, expected one molecule; choose one of the 3 with --frame");
        assert_eq!(atoms(Some(4)).unwrap_err(), "--frame is 4; allowed: 1 to 3, the molecules in f");
        assert!(atoms(Some(0)).is_err());
    }

    #[test]
    fn what_is_malformed_is_named_with_its_line_and_what_was_expected() {
        let message = |text: &str| xyz("f.xyz", text, 0, None).unwrap_err().to_string();
        assert_eq!(message(""), "f.xyz: the text ends early: the number of atoms is missing");
        assert_eq!(message("x\n"), "f.xyz: line 1: found `x`, expected the number of atoms, 1 to 1000");
        assert_eq!(message("2\n\nH 0 0 0\n"), "f.xyz: the text ends early: atom 2 of 2 is missing");
        assert!(message("1\n\nQ 0 0 0\n").starts_with("f.xyz: line 3: found `Q 0 0 0`, expected an element"));
        for bad in ["H 0 0", "H 0 0 nan", "H 0 0 1e400", "H 0 x 0"] {
            assert!(message(&format!("1\n\n{bad}\n")).contains("and three finite numbers"), "{bad}");
        }
        assert!(
            message("1\n\nH 0 0 0\nH 0 0 1\n")
                .contains("line 4: found `H 0 0 1`, expected no atom after the 1 that")
        );
        assert!(
            message("2\n\n1 6 0 0 0\n2 8 0 0 1.1\n")
                .contains("line 4: found `2 8 0 0 1.1`, expected an element")
        );
        let extended = "1\nProperties=species:S:1:pos:R:3\n";
        for bad in ["H 0 0 0 1", "H 0 0"] {
            let expected = format!("line 3: found `{bad}`, expected 4 columns with three finite coordinates");
            assert!(message(&format!("{extended}{bad}\n")).contains(&expected), "{bad}");
        }
        let message = |text: &str| inp("f.inp", text, 0).unwrap_err().to_string();
        assert!(message("H2\n").contains("the line `molecule` is missing"));
        assert!(message("molecule\nH 0 0 0\n").contains("the line `end` is missing"));
        assert!(message("molecule\nend\n").contains("line 2: found `end`, expected an element"));
        assert!(
            message("charge 1\nmolecule\n").contains("line 1: found `charge 1`, expected `charge 0`, as")
        );
        assert!(
            message("molecule\nH 0 0 0 1\nend\n")
                .contains("line 2: found `H 0 0 0 1`, expected an element and")
        );
        for units in ["units 0", "units", "units 1.0 2.0"] {
            let expected = format!("line 1: found `{units}`, expected `units` and");
            assert!(message(&format!("{units}\nmolecule\n")).contains(&expected), "{units}");
        }
        assert!(
            message("charge 0 1\nmolecule\n").contains("line 1: found `charge 0 1`, expected `charge 0`")
        );
    }

    proptest! {
        #[test]
        fn any_text_gives_atoms_or_an_error(text in "[ -~\n\t]{0,200}", number in 0_usize..4) {
            let _ = (xyz("f", &text, 0, None), inp("f", &text, 0));
            let _ = xyz("f", &format!("{number}\n\n{text}"), 0, None);
            let _ = inp("f", &format!("molecule\n{text}\nend"), 0);
        }

        #[test]
        fn a_damaged_file_gives_atoms_or_an_error(at in 0..WATER.len(), byte in any::<u8>()) {
            let mut bytes = WATER.as_bytes().to_vec();
            bytes[at] = byte;
            let _ = xyz("f", &String::from_utf8_lossy(&bytes), 0, None);
        }
    }
}
