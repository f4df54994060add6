//! Reads basis sets in Gaussian's format.
//!
//! For each element, or list of elements, a line `ELEMENT .. 0`; for each shell a line `TYPE COUNT SCALE` and its
//! primitives, whose exponents are multiplied by the square of the scale factor; at the end `****`, which may also
//! precede the first element. The first line may be `cartesian` or `spherical`, as Psi4 writes it. Core potentials
//! also begin with a line `ELEMENT 0`, followed by a line `ELEMENT-ECP`.

use super::super::element::Element;
use super::super::input_error::{InputError, number};
use super::PRIMITIVES_MAX;
use super::read::{Findings, SEPARATOR, ShellLines, TextLine};

/// Expected form of the line of an element.
const HEAD: &str = "symbols of elements and `0`, such as `C 0`";

/// Expected form of the line of a shell after the type and the number.
const SCALE: &str = "a type, a number of primitives and a scale factor above zero, such as `SP 3 1.00`";

/// Requirement that a core potential of a wanted element violates.
const NO_CORE: &str = "no core potential for an element of the molecule: all electrons are computed";

/// Highest angular momentum of a core potential.
const POTENTIAL_MAX: usize = 16;

/// Returns `true` if a text is in this format.
pub(super) fn is_form_of(lines: &[TextLine<'_>]) -> bool {
    let is_head = |line: &TextLine<'_>| {
        line.words.len() > 1
            && line.words.last() == Some(&"0")
            && Element::parse(symbol(line.words[0])).is_some()
    };
    let first = lines.iter().find(|line| kind_of(line).is_none());
    first.is_some_and(is_head) || lines.iter().any(|line| line.words[0] == SEPARATOR)
}

/// Reads all lines.
pub(super) fn read(lines: &[TextLine<'_>], found: &mut Findings<'_>) -> Result<(), InputError> {
    let is_cartesian = lines.first().and_then(kind_of);
    let mut rest = if is_cartesian.is_some() { &lines[1..] } else { lines };
    while let Some((head, after)) = rest.split_first() {
        if head.words[0] == SEPARATOR {
            if head.words.len() > 1 {
                return Err(found.malformed(head, "`****` alone"));
            }
            rest = after;
            continue;
        }
        let elements = elements_of(head, found)?;
        let is_ecp = |line: &TextLine<'_>| line.words[0].to_ascii_uppercase().ends_with("-ECP");
        rest = match after.first() {
            Some(line) if is_ecp(line) && elements.is_empty() => skip_potential(after, found)?,
            Some(line) if is_ecp(line) => return Err(found.malformed(line, NO_CORE)),
            _ => shells(after, &elements, is_cartesian, found)?,
        };
    }
    Ok(())
}

/// Returns `true` if d functions are Cartesian; `None` if the line is not just that statement.
fn kind_of(line: &TextLine<'_>) -> Option<bool> {
    match line.words.as_slice() {
        [word] if word.eq_ignore_ascii_case("cartesian") => Some(true),
        [word] if word.eq_ignore_ascii_case("spherical") => Some(false),
        _ => None,
    }
}

/// Returns a symbol without the mark for elements that the molecule may lack.
fn symbol(word: &str) -> &str {
    word.strip_prefix('-').unwrap_or(word)
}

/// Returns the wanted elements in the line of an element.
fn elements_of(head: &TextLine<'_>, found: &mut Findings<'_>) -> Result<Vec<Element>, InputError> {
    let words = head.words.strip_suffix(&["0"]).unwrap_or(&head.words);
    let mut wanted = Vec::new();
    for word in words {
        // A number would be that of an atom of a molecule, which is not known here.
        let element =
            Some(symbol(word)).filter(|symbol| symbol.parse::<i64>().is_err()).and_then(Element::parse);
        let element = element.ok_or_else(|| found.malformed(head, HEAD))?;
        if found.note_element(element) && !wanted.contains(&element) {
            wanted.push(element);
        }
    }
    if words.is_empty() { Err(found.malformed(head, HEAD)) } else { Ok(wanted) }
}

/// Reads the shells of `elements` up to the separator; returns the lines from there on.
fn shells<'l, 'a>(
    mut rest: &'l [TextLine<'a>],
    elements: &[Element],
    is_cartesian: Option<bool>,
    found: &mut Findings<'_>,
) -> Result<&'l [TextLine<'a>], InputError> {
    while let Some((head, after)) = rest.split_first().filter(|(head, _)| head.words[0] != SEPARATOR) {
        let count = head.words.get(1).and_then(|word| word.parse::<usize>().ok());
        let most = if elements.is_empty() { usize::MAX } else { PRIMITIVES_MAX };
        let count = count.filter(|count| (1..=most).contains(count));
        let allowed = format!("a number of primitives, 1 to {PRIMITIVES_MAX}, after the type");
        let count = count.ok_or_else(|| found.malformed(head, &allowed))?;
        let Some((rows, next)) = after.split_at_checked(count) else {
            return Err(found.missing(None, format!("primitive {} of {count}", after.len() + 1)));
        };
        rest = next;
        if let Some(separator) = rows.iter().find(|row| row.words[0] == SEPARATOR) {
            return Err(found.malformed(separator, &format!("one of {count} primitives")));
        }
        for element in elements {
            let factor = scale_of(head).ok_or_else(|| found.malformed(head, SCALE))?.powi(2);
            let momenta = head.words[0];
            found.add(
                *element,
                &ShellLines { head, momenta, factor, rows, has_columns: false, is_cartesian },
            )?;
        }
    }
    Ok(rest)
}

/// Returns the scale factor of a shell; `None` for any other text. Gaussian itself writes a zero after it.
fn scale_of(head: &TextLine<'_>) -> Option<f64> {
    let numbers: Option<Vec<f64>> = head.words[2..].iter().map(|word| number(word)).collect();
    match numbers?.as_slice() {
        [] => Some(1.0),
        [scale] | [scale, 0.0] if *scale > 0.0 => Some(*scale),
        _ => None,
    }
}

/// Skips a core potential, whose first line is `ELEMENT-ECP`; returns the following lines.
fn skip_potential<'l, 'a>(
    lines: &'l [TextLine<'a>],
    found: &Findings<'_>,
) -> Result<&'l [TextLine<'a>], InputError> {
    let (head, mut rest) = (&lines[0], &lines[1..]);
    let highest = head.words.get(1).and_then(|word| word.parse::<usize>().ok());
    let highest = highest.filter(|highest| *highest <= POTENTIAL_MAX);
    let highest =
        highest.ok_or_else(|| found.malformed(head, "the highest angular momentum of a potential"))?;
    for _ in 0..=highest {
        let missing = || found.missing(None, "a part of a core potential".to_owned());
        let [_title, count, after @ ..] = rest else { return Err(missing()) };
        let number = count.words[0].parse::<usize>().ok();
        let number = number.ok_or_else(|| found.malformed(count, "the number of terms of a potential"))?;
        rest = after.get(number..).ok_or_else(missing)?;
    }
    Ok(rest)
}
