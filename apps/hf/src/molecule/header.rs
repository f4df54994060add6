//! The second line of an XYZ file: free text, or the extended form, which defines the columns.
//!
//! The extended form is a list of `key=value`, with quotation marks around values that contain blanks. The keys used
//! are `Properties`, which names the columns; `pbc` and `Lattice`, because crystals are not supported; `charge` and
//! `multiplicity`, which must match the calculation. All other keys are ignored.

use super::super::input_error::{InputError, number};
use super::read::{NumberedLine, malformed};

/// Columns of an atom's line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Columns {
    /// The column of the element, from 0.
    pub(super) species: usize,
    /// The first of the three columns of the coordinates.
    pub(super) position: usize,
    /// Number of columns.
    pub(super) count: usize,
    /// `true` if more columns may follow.
    pub(super) is_open: bool,
}

impl Default for Columns {
    fn default() -> Columns {
        Columns { species: 0, position: 1, count: 4, is_open: true }
    }
}

/// Required contents of `Properties`.
const PROPERTIES: &str = "Properties of name:type:columns with species:S:1 and pos:R:3";

/// Returns the columns of the atoms after a header; `charge` is that of the molecule.
pub(super) fn columns(source: &str, line: NumberedLine<'_>, charge: i32) -> Result<Columns, InputError> {
    let values = values(line.text);
    let value =
        |name: &str| values.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| *value);
    let is_set = |word: &str| ["t", "true", "1"].iter().any(|known| known.eq_ignore_ascii_case(word));
    let is_periodic = match value("pbc") {
        Some(pbc) => pbc.split(|c: char| c.is_whitespace() || c == ',').any(is_set),
        None => value("Lattice").is_some(),
    };
    if is_periodic {
        return Err(malformed(source, line, "a molecule without periodic boundaries: pbc=\"F F F\""));
    }
    for name in ["charge", "total_charge"] {
        let own = value(name).and_then(number);
        if own.is_some_and(|own| own != f64::from(charge)) {
            return Err(malformed(source, line, &format!("{name}={charge}, as given by --charge")));
        }
    }
    if value("multiplicity").and_then(number).is_some_and(|own| own != 1.0) {
        return Err(malformed(source, line, "multiplicity=1: all electrons are paired"));
    }
    match value("Properties") {
        Some(properties) => of_properties(properties).ok_or_else(|| malformed(source, line, PROPERTIES)),
        None => Ok(Columns::default()),
    }
}

/// Returns the columns that a value of `Properties` defines.
fn of_properties(text: &str) -> Option<Columns> {
    let words: Vec<&str> = text.split(':').collect();
    let (mut species, mut position, mut count) = (None, None, 0_usize);
    for word in words.chunks(3) {
        let [name, _, columns] = word else { return None };
        let columns = columns.parse::<u16>().ok()?;
        match (*name, columns) {
            ("species", 1) if species.is_none() => species = Some(count),
            ("pos", 3) if position.is_none() => position = Some(count),
            ("species" | "pos", _) => return None,
            _ => {}
        }
        count += usize::from(columns);
    }
    Some(Columns { species: species?, position: position?, count, is_open: false })
}

/// Returns the pairs `key=value` of a line.
fn values(line: &str) -> Vec<(&str, &str)> {
    let mut values = Vec::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('=') {
        let key = before.rsplit(char::is_whitespace).next().unwrap_or_default();
        let close = match after.chars().next() {
            Some('"') => Some('"'),
            Some('\'') => Some('\''),
            Some('{') => Some('}'),
            Some('[') => Some(']'),
            _ => None,
        };
        let (value, next) = match close {
            Some(close) => after[1..].split_once(close).unwrap_or((&after[1..], "")),
            None => after.split_once(char::is_whitespace).unwrap_or((after, "")),
        };
        values.push((key, value));
        rest = next;
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_says_what_the_columns_are() {
        let found =
            |line| columns("f", NumberedLine { index: 1, text: line }, 0).map_err(|error| error.to_string());
        let columns = |species, position, count, is_open| Ok(Columns { species, position, count, is_open });
        for plain in
            ["", "water", "energy=-3 forces", "E = 5 charge=0", "a=\"b", "Lattice=\"1 0 0\" pbc=\"F F F\""]
        {
            assert_eq!(found(plain), columns(0, 1, 4, true), "{plain}");
        }
        assert_eq!(
            found("e=1 Properties=pos:R:3:forces:R:3:species:S:1 pbc=\"F F F\""),
            columns(6, 0, 7, false)
        );
        assert_eq!(found("properties=\"species:S:1:pos:R:3\""), columns(0, 1, 4, false));
    }

    #[test]
    fn a_header_that_asks_for_something_else_is_refused() {
        let message = |line| columns("f", NumberedLine { index: 1, text: line }, 1).unwrap_err().to_string();
        for (line, expected) in [
            ("pbc=\"T F F\"", "a molecule without periodic boundaries"),
            ("Lattice=\"9 0 0 0 9 0 0 0 9\"", "a molecule without periodic boundaries"),
            ("charge=0", "charge=1, as given by --charge"),
            ("charge=1 multiplicity=3", "multiplicity=1: all electrons are paired"),
            ("Properties=species:S:1", PROPERTIES),
            ("Properties=species:S:1:pos:R:2", PROPERTIES),
            ("Properties=species:S:1:pos:R", PROPERTIES),
        ] {
            assert!(message(line).contains(expected) && message(line).contains("line 2: found"), "{line}");
        }
    }
}
