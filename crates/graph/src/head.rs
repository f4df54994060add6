//! The first line of an edge list, which may name its columns as in CSV.
//!
//! Columns are found by name, in any order and case; a file of two columns may use any names. Invariant: every column
//! of a file with a head is used, or the head is refused.

use super::edge_list::{number, unquoted};
use super::error::excerpt;
use super::{GraphError, Position};

/// Most columns of an edge list.
pub(super) const COLUMNS_MAX: usize = 3;

/// Names of the columns.
const FROM: [&str; 5] = ["from", "source", "src", "tail", "u"];
const TO: [&str; 6] = ["to", "target", "dst", "destination", "head", "v"];
const WEIGHT: [&str; 6] = ["weight", "length", "distance", "value", "cost", "w"];

/// Allowed forms of a head.
const HEAD: &str = "a head of `source,target` or `source,target,weight` alone";

/// Columns of the source, the target and the weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EdgeColumns {
    pub(super) from: usize,
    pub(super) to: usize,
    /// The column of the weight; past the last one if there is none.
    pub(super) weight: usize,
    /// Number of columns; `None` if there is no head.
    count: Option<usize>,
}

impl Default for EdgeColumns {
    fn default() -> EdgeColumns {
        EdgeColumns { from: 0, to: 1, weight: 2, count: None }
    }
}

impl EdgeColumns {
    /// Returns `true` if a line may have `count` words.
    pub(super) fn fits(&self, count: usize) -> bool {
        self.count.map_or((2..=COLUMNS_MAX).contains(&count), |own| own == count)
    }
}

/// Returns the columns that a line names, if it is a head.
///
/// # Errors
/// It is a head, but not of an edge list.
pub(super) fn columns(line: &[u8], position: Position) -> Result<Option<EdgeColumns>, GraphError> {
    let has_comma = line.contains(&b',');
    let is_between = |byte: &u8| if has_comma { *byte == b',' } else { byte.is_ascii_whitespace() };
    let cells = line.split(is_between).map(|cell| unquoted(cell.trim_ascii()));
    let names: Vec<String> = cells
        .filter(|cell| has_comma || !cell.is_empty())
        .map(|cell| String::from_utf8_lossy(cell).to_lowercase())
        .collect();
    let is_name = |name: &String| {
        name.is_empty()
            || name.starts_with(|c: char| c.is_alphabetic() || c == '_')
                && number::<f64>(name.as_bytes()).is_none()
    };
    let place = |known: &[&str]| names.iter().position(|name| known.contains(&name.as_str()));
    let known = [place(&FROM), place(&TO)];
    if names.len() < 2 || !names.iter().all(is_name) || !has_comma && known.contains(&None) {
        return Ok(None);
    }
    let weight = place(&WEIGHT);
    let (from, to) = match (known, names.len()) {
        ([Some(from), Some(to)], _) => (from, to),
        (_, 2) if weight.is_none() => (0, 1),
        (_, 3) if weight == Some(2) => (0, 1),
        _ => (0, 0),
    };
    let count = 2 + usize::from(weight.is_some());
    if from == to || names.len() != count || names.iter().any(String::is_empty) {
        return Err(GraphError::Malformed { position, found: excerpt(line), allowed: HEAD });
    }
    Ok(Some(EdgeColumns { from, to, weight: weight.unwrap_or(count), count: Some(count) }))
}
