//! Reads basis sets: the parts shared by all formats.
//!
//! Detects the format of a text and handles its lines, numbers, types of functions and the contractions that are kept;
//! the formats are in [`nwchem`] and [`gaussian`]. A file may hold more than a molecule needs: only the entries of the
//! wanted elements are checked and kept, and the others are read just far enough to find their ends. Invariant: any
//! text yields a basis set or an error that names the line, never a panic; nothing of a wanted element is skipped.

use super::super::element::Element;
use super::super::input_error::{InputError, excerpt, number};
use super::{BasisSet, CONTRACTIONS_MAX, Contraction, MOMENTUM_MAX, PRIMITIVES_MAX};
use super::{gaussian, nwchem};
use isles_app::frame::count;

/// Separator between the elements in Gaussian's form.
pub(super) const SEPARATOR: &str = "****";

/// Accepted exponents, in bohr^-2; atoms have none outside this range.
const EXPONENTS: std::ops::RangeInclusive<f64> = 1e-6..=1e12;

/// The letters of the supported angular momenta, in order.
const LETTERS: &str = "SPD";

/// Allowed types of functions.
pub(super) const TYPE: &str = "a type of functions: S, P, D, SP, SPD or L, which is SP";

/// Allowed names of an element of a basis set.
pub(super) const ELEMENT: &str = "an element, as its symbol or its number";

/// A line of the text without its comment: its index and its words. Text in quotation marks is one word.
#[derive(Clone, Debug)]
pub(super) struct TextLine<'a> {
    pub(super) index: usize,
    pub(super) words: Vec<&'a str>,
}

impl TextLine<'_> {
    /// Returns `true` if the first word is `word`, in any case.
    pub(super) fn begins_with(&self, word: &str) -> bool {
        self.words[0].eq_ignore_ascii_case(word)
    }

    /// Returns `true` if the first word is a number.
    pub(super) fn is_numeric(&self) -> bool {
        number(self.words[0]).is_some()
    }
}

/// Returns the contractions of `elements` in a text of either format.
pub(super) fn basis_set(source: &str, text: &str, elements: &[Element]) -> Result<BasisSet, InputError> {
    let lines = text.lines().enumerate().map(|(index, line)| TextLine { index, words: words(line) });
    let lines: Vec<TextLine<'_>> = lines.filter(|line| !line.words.is_empty()).collect();
    let mut found =
        Findings { source, wanted: elements, elements: Vec::new(), is_cartesian: None, is_empty: true };
    if gaussian::is_form_of(&lines) {
        gaussian::read(&lines, &mut found)?;
    } else {
        nwchem::read(&lines, &mut found)?;
    }
    if found.is_empty {
        let (source, missing) = (source.to_owned(), "the first element".to_owned());
        return Err(InputError::Truncated { source, missing });
    }
    let is_cartesian = found.is_cartesian.unwrap_or_default();
    Ok(BasisSet { name: source.to_owned(), elements: found.elements, is_cartesian })
}

/// Returns the words of a line up to its comment, which begins with `#` or `!`.
fn words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while let Some(first) = rest.chars().next().filter(|first| !['#', '!'].contains(first)) {
        let end = match first {
            '"' => rest[1..].find('"').map(|end| end + 2),
            _ => rest.find(|c: char| c.is_whitespace() || ['#', '!'].contains(&c)),
        };
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        words.push(word);
        rest = after.trim_start();
    }
    words
}

/// Entries found in a text.
pub(super) struct Findings<'a> {
    source: &'a str,
    wanted: &'a [Element],
    elements: Vec<(Element, Vec<Contraction>)>,
    /// Kind of the d functions of wanted elements, if stated in the text: `true` if Cartesian.
    is_cartesian: Option<bool>,
    /// `true` until the first element.
    is_empty: bool,
}

/// The lines of one shell of functions.
pub(super) struct ShellLines<'l, 'a> {
    /// The line that states the type.
    pub(super) head: &'l TextLine<'a>,
    /// The type.
    pub(super) momenta: &'l str,
    /// Factor of the exponents.
    pub(super) factor: f64,
    /// The lines of the primitives.
    pub(super) rows: &'l [TextLine<'a>],
    /// `true` if a row may have several coefficients of one angular momentum.
    pub(super) has_columns: bool,
    /// Kind of the d functions, if stated in the text: `true` if Cartesian.
    pub(super) is_cartesian: Option<bool>,
}

impl Findings<'_> {
    /// Records an element of the text; returns `true` if it is wanted.
    pub(super) fn note_element(&mut self, element: Element) -> bool {
        self.is_empty = false;
        self.wanted.contains(&element)
    }

    /// Adds a shell of a wanted element.
    pub(super) fn add(&mut self, element: Element, shell: &ShellLines<'_, '_>) -> Result<(), InputError> {
        let momenta = momenta_of(shell.momenta).ok_or_else(|| self.malformed(shell.head, TYPE))?;
        let contractions = self.contractions(&momenta, shell)?;
        if momenta.contains(&2) && shell.is_cartesian.is_some() {
            if self.is_cartesian.is_some_and(|other| Some(other) != shell.is_cartesian) {
                let allowed = "one kind of d functions for all elements, Cartesian or spherical";
                return Err(self.malformed(shell.head, allowed));
            }
            self.is_cartesian = shell.is_cartesian;
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
            return Err(self.malformed(shell.head, &allowed));
        }
        Ok(())
    }

    /// Returns the contractions in the columns of a shell's rows.
    fn contractions(
        &self,
        momenta: &[usize],
        shell: &ShellLines<'_, '_>,
    ) -> Result<Vec<Contraction>, InputError> {
        let rows = shell.rows;
        if rows.len() > PRIMITIVES_MAX {
            let allowed = format!("at most {PRIMITIVES_MAX} primitives");
            return Err(self.malformed(&rows[PRIMITIVES_MAX], &allowed));
        }
        let wanted = self.columns(momenta, shell)?;
        let momentum = |column: usize| momenta[column.min(momenta.len() - 1)];
        let mut contractions: Vec<Contraction> = (0..wanted)
            .map(|column| Contraction {
                momentum: momentum(column),
                primitives: Vec::with_capacity(rows.len()),
            })
            .collect();
        for row in rows {
            let numbers: Option<Vec<f64>> = row.words.iter().map(|word| number(word)).collect();
            let is_row = |numbers: &Vec<f64>| {
                numbers.len() == wanted + 1 && EXPONENTS.contains(&(numbers[0] * shell.factor))
            };
            let Some(numbers) = numbers.filter(is_row) else {
                let plural = if wanted == 1 { "" } else { "s" };
                let allowed = format!("an exponent from 1e-6 to 1e12 and {wanted} coefficient{plural}");
                return Err(self.malformed(row, &allowed));
            };
            for (contraction, coefficient) in contractions.iter_mut().zip(&numbers[1..]) {
                if *coefficient != 0.0 {
                    contraction.primitives.push((numbers[0] * shell.factor, *coefficient));
                }
            }
        }
        if contractions.iter().any(|contraction| contraction.primitives.is_empty()) {
            return Err(self.malformed(&rows[0], "coefficients that are not all zero"));
        }
        Ok(contractions)
    }

    /// Returns the number of coefficients in a row: one for each angular momentum, or, in a format with columns, the
    /// number in the first row for the single angular momentum.
    fn columns(&self, momenta: &[usize], shell: &ShellLines<'_, '_>) -> Result<usize, InputError> {
        let rows = shell.rows;
        let columns = rows[0].words.len().saturating_sub(1).max(1);
        if momenta.len() > 1 || columns == 1 || !shell.has_columns {
            return Ok(momenta.len());
        }
        let is_number = |(row, count): (&TextLine<'_>, usize)| row.words[0].parse() == Ok(count);
        if rows.len() > 1 && rows.iter().zip(1..).all(is_number) {
            let allowed = "an exponent in the first column; the primitives are numbered there";
            return Err(self.malformed(&rows[0], allowed));
        }
        if columns > rows.len() {
            let [coefficients, primitives] = [("coefficient", "coefficients"), ("primitive", "primitives")]
                .map(|(one, more)| count(rows.len() as u64, one, more));
            let allowed = format!("at most {coefficients} for {primitives}, not {columns}");
            return Err(self.malformed(&rows[0], &allowed));
        }
        Ok(columns)
    }

    /// Returns the error for a line with other contents than `allowed`.
    pub(super) fn malformed(&self, line: &TextLine<'_>, allowed: &str) -> InputError {
        let (source, found) = (self.source.to_owned(), excerpt(&line.words.join(" ")));
        InputError::Malformed { source, line: line.index + 1, found, allowed: allowed.to_owned() }
    }

    /// Returns the error for a missing part: at the end of the text, or at the line found instead.
    pub(super) fn missing(&self, next: Option<&TextLine<'_>>, missing: String) -> InputError {
        match next {
            Some(line) => self.malformed(line, &missing),
            None => InputError::Truncated { source: self.source.to_owned(), missing },
        }
    }
}

/// Returns the angular momenta of the columns of a type; `None` if one of them is beyond d.
fn momenta_of(name: &str) -> Option<Vec<usize>> {
    const { assert!(MOMENTUM_MAX + 1 == LETTERS.len()) };
    if name.eq_ignore_ascii_case("L") {
        return Some(vec![0, 1]);
    }
    let momenta: Option<Vec<usize>> =
        name.chars().map(|character| LETTERS.find(character.to_ascii_uppercase())).collect();
    momenta.filter(|momenta| !momenta.is_empty() && momenta.is_sorted_by(|one, next| one < next))
}

#[cfg(test)]
mod tests;
