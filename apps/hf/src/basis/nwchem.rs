//! Reads basis sets in NWChem's format.
//!
//! A line `ELEMENT TYPE` is followed by a line for each primitive, with its exponent and coefficients; several columns
//! of coefficients are several contractions. Lines `BASIS "NAME" SPHERICAL` (or `CARTESIAN`) and `END` may enclose
//! them, once or for each element. A part from `ECP` to `END` has the core potentials of elements. Types are S, P, D,
//! and SP (or L), whose second coefficient is that of the p function.

use super::super::element::Element;
use super::super::input_error::InputError;
use super::read::{ELEMENT, Findings, ShellLines, TextLine};

/// Allowed words of a line `BASIS`.
const BASIS: &str = "`BASIS`, a name, SPHERICAL or CARTESIAN, PRINT or NOPRINT, SEGMENT or NOSEGMENT";

/// Requirement that a core potential of a wanted element violates.
const NO_CORE: &str = "no core potential for an element of the molecule: all electrons are computed";

/// The part of the text that contains a line.
#[derive(Clone, Copy)]
struct SetPart {
    /// Its number, from 0 before the first line `BASIS`.
    number: usize,
    is_ecp: bool,
    is_cartesian: Option<bool>,
}

/// Reads all lines.
pub(super) fn read(lines: &[TextLine<'_>], found: &mut Findings<'_>) -> Result<(), InputError> {
    let mut block = SetPart { number: 0, is_ecp: false, is_cartesian: None };
    // The wanted elements found so far, each with the number of its block.
    let mut met: Vec<(Element, usize)> = Vec::new();
    let mut rest = lines;
    while let Some((line, after)) = rest.split_first() {
        rest = after;
        if line.begins_with("BASIS") || line.begins_with("ECP") {
            let is_ecp = line.begins_with("ECP");
            let is_cartesian = if is_ecp { None } else { kind_of(line, found)? };
            block = SetPart { number: block.number + 1, is_ecp, is_cartesian };
        } else if line.begins_with("END") {
            if line.words.len() > 1 {
                return Err(found.malformed(line, "`END` alone"));
            }
            block = SetPart { number: block.number + 1, is_ecp: false, is_cartesian: None };
        } else if block.is_ecp {
            let element = Element::parse(line.words[0]).filter(|_| !line.is_numeric());
            if element.is_some_and(|element| found.note_element(element)) {
                return Err(found.malformed(line, NO_CORE));
            }
        } else {
            rest = shell(line, after, block, found, &mut met)?;
        }
    }
    Ok(())
}

/// Reads a shell that begins with the line `head`; returns the lines after it.
fn shell<'l, 'a>(
    head: &'l TextLine<'a>,
    after: &'l [TextLine<'a>],
    block: SetPart,
    found: &mut Findings<'_>,
    met: &mut Vec<(Element, usize)>,
) -> Result<&'l [TextLine<'a>], InputError> {
    let element = Element::parse(head.words[0]).ok_or_else(|| found.malformed(head, ELEMENT))?;
    let count = after.iter().position(|line| !line.is_numeric()).unwrap_or(after.len());
    let (rows, next) = after.split_at(count);
    if !found.note_element(element) {
        return Ok(next);
    }
    let [_, momenta] = head.words.as_slice() else {
        return Err(found.malformed(head, "an element and a type of functions, such as `C SP`"));
    };
    match met.iter().find(|(known, _)| *known == element) {
        Some((_, number)) if *number != block.number => {
            return Err(found.malformed(head, "the functions of an element in one block"));
        }
        Some(_) => {}
        None => met.push((element, block.number)),
    }
    if rows.is_empty() {
        let missing = format!("an exponent with its coefficients after line {}", head.index + 1);
        return Err(found.missing(next.first(), missing));
    }
    let is_cartesian = block.is_cartesian;
    found.add(element, &ShellLines { head, momenta, factor: 1.0, rows, has_columns: true, is_cartesian })?;
    Ok(next)
}

/// Returns `true` if d functions are Cartesian; `None` if the line `BASIS` does not state it.
fn kind_of(line: &TextLine<'_>, found: &Findings<'_>) -> Result<Option<bool>, InputError> {
    let mut kind = None;
    for (index, word) in line.words.iter().enumerate().skip(1) {
        match word.to_ascii_uppercase().as_str() {
            "CARTESIAN" if kind.is_none() => kind = Some(true),
            "SPHERICAL" if kind.is_none() => kind = Some(false),
            "PRINT" | "NOPRINT" | "SEGMENT" | "NOSEGMENT" => {}
            "CARTESIAN" | "SPHERICAL" | "REL" => return Err(found.malformed(line, BASIS)),
            _ if index == 1 => {} // the name
            _ => return Err(found.malformed(line, BASIS)),
        }
    }
    Ok(kind)
}
