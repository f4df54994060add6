//! Reads basis sets in the forms of NWChem and of Gaussian.
//!
//! NWChem: a line `ELEMENT TYPE`, then a line for each primitive with exponent and coefficients; several columns of
//! coefficients are several contractions. Gaussian: for each element a line `ELEMENT 0`, for each contraction a line
//! `TYPE COUNT 1.00` and its primitives, at the end `****`. Types are S, P, D and SP (or L), whose second coefficient
//! is that of the p function. A number may have Fortran's exponent D. Comments begin with `#` or `!`. Invariant: any
//! text gives a basis set or an error that names the line, never a panic.

use super::super::element::{ALLOWED, Element};
use super::super::input_error::{InputError, excerpt};
use super::{BasisSet, CONTRACTIONS_MAX, Contraction, MOMENTUM_MAX, PRIMITIVES_MAX};

/// What stands between the elements in Gaussian's form.
const SEPARATOR: &str = "****";

/// Exponents that are accepted, in bohr^-2: beyond them nothing of an atom lies.
const EXPONENTS: std::ops::RangeInclusive<f64> = 1e-6..=1e12;

/// The angular momenta of a type, in order of its columns.
const TYPES: [(&str, &[usize]); 5] = [("S", &[0]), ("P", &[1]), ("D", &[2]), ("SP", &[0, 1]), ("L", &[0, 1])];

/// What may stand where a type must.
const TYPE: &str = "a type of functions: S, P, D, SP or L";

/// A line of the text: its index, and its words.
type Line<'a> = (usize, Vec<&'a str>);

/// The basis set of a text, in either form.
pub(super) fn basis_set(source: &str, text: &str) -> Result<BasisSet, InputError> {
    let content = |line: &str| !(line.is_empty() || line.starts_with(['#', '!']));
    let lines = text.lines().enumerate().filter(|(_, line)| content(line.trim()));
    let lines: Vec<Line<'_>> =
        lines.map(|(index, line)| (index, line.split_whitespace().collect())).collect();
    let is_gaussian = lines.iter().any(|(_, words)| words[0] == SEPARATOR);
    let mut reader = Reader { source, elements: Vec::new() };
    if is_gaussian {
        reader.gaussian(&lines)?
    } else {
        reader.nwchem(&lines)?
    }
    if reader.elements.is_empty() {
        let (source, missing) = (source.to_owned(), "the first element".to_owned());
        return Err(InputError::Truncated { source, missing });
    }
    Ok(BasisSet { name: source.to_owned(), elements: reader.elements })
}

struct Reader<'a> {
    source: &'a str,
    elements: Vec<(Element, Vec<Contraction>)>,
}

impl Reader<'_> {
    fn nwchem(&mut self, lines: &[Line<'_>]) -> Result<(), InputError> {
        let is_number = |line: &Line<'_>| number(line.1[0]).is_some();
        let is_frame =
            |line: &&Line<'_>| ["BASIS", "END"].iter().any(|word| line.1[0].eq_ignore_ascii_case(word));
        let lines: Vec<Line<'_>> = lines.iter().filter(|line| !is_frame(line)).cloned().collect();
        let mut rest = lines.as_slice();
        while let Some((head, after)) = rest.split_first() {
            let [element, momenta] = head.1.as_slice() else {
                return Err(self.malformed(head, "an element and a type of functions, such as `C SP`"));
            };
            let element = Element::parse(element).ok_or_else(|| self.malformed(head, ALLOWED))?;
            let momenta = momenta_of(momenta).ok_or_else(|| self.malformed(head, TYPE))?;
            let count = after.iter().position(|line| !is_number(line)).unwrap_or(after.len());
            let (rows, next) = after.split_at(count);
            if rows.is_empty() {
                let missing = format!("an exponent with its coefficients after line {}", head.0 + 1);
                return Err(self.truncated_or_malformed(next.first(), missing));
            }
            self.add(element, momenta, rows)?;
            rest = next;
        }
        Ok(())
    }

    fn gaussian(&mut self, lines: &[Line<'_>]) -> Result<(), InputError> {
        let mut lines = lines.iter().skip_while(|line| line.1[0] != SEPARATOR).peekable();
        while let Some(separator) = lines.next() {
            if separator.1[0] != SEPARATOR {
                return Err(self.malformed(separator, "`****` after the contractions of an element"));
            }
            let Some(head) = lines.next() else { break };
            let element = Element::parse(head.1[0].trim_start_matches('-'));
            let element = element.ok_or_else(|| self.malformed(head, ALLOWED))?;
            while let Some(line) = lines.next_if(|line| line.1[0] != SEPARATOR) {
                let momenta = momenta_of(line.1[0]).ok_or_else(|| self.malformed(line, TYPE))?;
                let count = line.1.get(1).and_then(|word| word.parse::<usize>().ok());
                let count = count.filter(|count| (1..=PRIMITIVES_MAX).contains(count));
                let allowed = format!("a number of primitives, 1 to {PRIMITIVES_MAX}, after the type");
                let count = count.ok_or_else(|| self.malformed(line, &allowed))?;
                let rows: Vec<Line<'_>> = lines.by_ref().take(count).cloned().collect();
                if rows.len() < count {
                    let missing = format!("primitive {} of {count}", rows.len() + 1);
                    return Err(self.truncated_or_malformed(None, missing));
                }
                self.add(element, momenta, &rows)?;
            }
        }
        Ok(())
    }

    /// Adds the contractions whose columns stand in `rows`.
    fn add(&mut self, element: Element, momenta: &[usize], rows: &[Line<'_>]) -> Result<(), InputError> {
        if rows.len() > PRIMITIVES_MAX {
            let allowed = format!("at most {PRIMITIVES_MAX} primitives");
            return Err(self.malformed(&rows[PRIMITIVES_MAX], &allowed));
        }
        let columns = rows[0].1.len().saturating_sub(1);
        let (is_general, wanted) = (momenta.len() == 1, momenta.len());
        let mut contractions: Vec<Contraction> = (0..columns.max(wanted))
            .map(|column| Contraction {
                momentum: momenta[column.min(wanted - 1)],
                primitives: Vec::with_capacity(rows.len()),
            })
            .collect();
        for row in rows {
            let numbers: Option<Vec<f64>> = row.1.iter().map(|word| number(word)).collect();
            let is_row = |numbers: &Vec<f64>| {
                let fits =
                    if is_general { numbers.len() == columns + 1 } else { numbers.len() == wanted + 1 };
                fits && numbers.len() > 1 && EXPONENTS.contains(&numbers[0])
            };
            let Some(numbers) = numbers.filter(is_row) else {
                let columns = if is_general { columns.max(1) } else { wanted };
                let allowed = format!("an exponent from 1e-6 to 1e12 and {columns} coefficients");
                return Err(self.malformed(row, &allowed));
            };
            for (contraction, coefficient) in contractions.iter_mut().zip(&numbers[1..]) {
                if *coefficient != 0.0 {
                    contraction.primitives.push((numbers[0], *coefficient));
                }
            }
        }
        if contractions.iter().any(|contraction| contraction.primitives.is_empty()) {
            return Err(self.malformed(&rows[0], "coefficients that are not all zero"));
        }
        let index = self.elements.iter().position(|(known, _)| *known == element);
        let index = index.unwrap_or_else(|| {
            self.elements.push((element, Vec::new()));
            self.elements.len() - 1
        });
        let all = &mut self.elements[index].1;
        all.extend(contractions);
        if all.len() > CONTRACTIONS_MAX {
            let allowed = format!("at most {CONTRACTIONS_MAX} contractions of an element");
            return Err(self.malformed(&rows[0], &allowed));
        }
        Ok(())
    }

    fn malformed(&self, line: &Line<'_>, allowed: &str) -> InputError {
        let (source, found) = (self.source.to_owned(), excerpt(&line.1.join(" ")));
        InputError::Malformed { source, line: line.0 + 1, found, allowed: allowed.to_owned() }
    }

    /// That something is missing: at the end of the text, or where another line stands.
    fn truncated_or_malformed(&self, next: Option<&Line<'_>>, missing: String) -> InputError {
        match next {
            Some(line) => self.malformed(line, &missing),
            None => InputError::Truncated { source: self.source.to_owned(), missing },
        }
    }
}

/// The angular momenta of the columns of a type.
fn momenta_of(name: &str) -> Option<&'static [usize]> {
    const { assert!(MOMENTUM_MAX == 2) };
    TYPES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, momenta)| *momenta)
}

/// A finite number, also with Fortran's exponent `D`.
fn number(word: &str) -> Option<f64> {
    let is_digit = word.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    let number = word.replace(['D', 'd'], "e").parse::<f64>().ok();
    number.filter(|number| is_digit && number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GAUSSIAN: &str = "! STO-3G\n****\nH     0\nS   3   1.00\n  3.42525091 0.15432897\n  0.62391373 0.53532814\n  \
        0.16885540D+00 4.4463454D-01\n****\nC 0\nSP 1 1.00\n 2.9 0.5 0.25\n****\n";

    fn contractions(text: &str, element: &str) -> Vec<Contraction> {
        let element = Element::parse(element).unwrap();
        basis_set("f", text).unwrap().contractions(element).unwrap()
    }

    #[test]
    fn both_forms_of_a_set_are_one() {
        let nwchem = "# STO-3G\nBASIS \"ao basis\" PRINT\nH S\n3.42525091 0.15432897\n0.62391373 0.53532814\n\
            0.16885540 0.44463454\nC SP\n2.9 0.5 0.25\nEND\n";
        for element in ["H", "C"] {
            assert_eq!(contractions(nwchem, element), contractions(GAUSSIAN, element));
        }
        assert_eq!(contractions(nwchem, "C")[1].primitives, [(2.9, 0.25)]);
    }

    #[test]
    fn several_columns_are_several_contractions_and_a_zero_is_no_primitive() {
        let found = contractions("C P\n9.0 0.1 0.0\n1.0 0.7 1.0\n", "C");
        let expected = [vec![(9.0, 0.1), (1.0, 0.7)], vec![(1.0, 1.0)]];
        assert_eq!(found.iter().map(|one| one.primitives.clone()).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_is_malformed_is_named_with_its_line_and_what_was_expected() {
        let message = |text: &str| basis_set("f", text).unwrap_err().to_string();
        assert_eq!(message("# nothing\n"), "f: the text ends early, the first element is missing");
        assert!(message("H S\n1.0 1.0\nQ S\n").starts_with("f: line 3: found `Q S`, expected an element"));
        assert!(message("C F\n1.0 1.0\n").contains("line 1: found `C F`, expected a type of functions"));
        assert!(message("C S\n").contains("an exponent with its coefficients after line 1 is missing"));
        assert!(message("C S\nC P\n").contains("line 2: found `C P`, expected an exponent"));
        for bad in ["1.0", "0.0 1.0", "-1 1", "1.0 x", "1e99 1.0"] {
            assert!(message(&format!("C S\n{bad}\n")).contains("line 2"), "{bad}");
        }
        assert!(message("C S\n1.0 0.0\n").contains("not all zero"));
        assert!(message("C SP\n1.0 0.5\n").contains("and 2 coefficients"));
        assert!(message("****\nH 0\nS 2 1.0\n1.0 1.0\n").contains("primitive 2 of 2 is missing"));
        assert!(message("****\nH 0\nS x\n").contains("line 3: found `S x`, expected a number of primitives"));
    }

    proptest! {
        #[test]
        fn any_text_gives_a_set_or_an_error(text in "[ -~\n\t]{0,300}") {
            let _ = basis_set("f", &text);
            let _ = basis_set("f", &format!("****\n{text}"));
        }

        #[test]
        fn a_damaged_set_gives_a_set_or_an_error(at in 0..GAUSSIAN.len(), byte in any::<u8>()) {
            let mut bytes = GAUSSIAN.as_bytes().to_vec();
            bytes[at] = byte;
            let _ = basis_set("f", &String::from_utf8_lossy(&bytes));
        }
    }
}
