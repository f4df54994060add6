//! Matrix Market files: a square sparse matrix read as a graph.
//!
//! Accepted: `%%MatrixMarket matrix coordinate` with `pattern`, `integer` or `real` entries, `general` (a directed
//! graph) or `symmetric` (an undirected one). Not accepted: dense arrays, and complex, hermitian or skew-symmetric
//! matrices, which are not graphs. Format: Boisvert, Pozo, Remington, NISTIR 5935 (1996). Invariant: memory is
//! proportional to the text, whatever the size line claims.

use super::edge_list::{Words, number, vertices_max};
use super::error::{check_weight, excerpt};
use super::{Graph, GraphError, Position, ReadOptions};

/// First bytes of a Matrix Market file.
pub const MAGIC: &[u8] = b"%%MatrixMarket";

pub(super) const HEADER: &str =
    "`%%MatrixMarket matrix coordinate`, then `pattern`, `integer` or `real`, then `general` or `symmetric`";
const SIZE: &str = "`rows columns entries` of a square matrix";
const ENTRY: &str = "`row column` in a pattern matrix, `row column value` in others, from 1";

/// Contents of the first line.
struct Header {
    pattern: bool,
    symmetric: bool,
}

/// Reads a Matrix Market file.
///
/// # Errors
/// Any of [`GraphError`] that names a line.
pub fn decode(text: &[u8], options: &ReadOptions) -> Result<Graph, GraphError> {
    let mut lines = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).zip(1..);
    let header = header(lines.next().map_or(&[][..], |(line, _)| line))?;
    let mut lines = lines.filter(|(line, _)| !line.is_empty() && !line.starts_with(b"%"));
    let Some((size_line, number)) = lines.next() else {
        return Err(GraphError::Truncated { position: Position::Line(2), missing: "the size line" });
    };
    let (vertices, entries) = size(size_line, Position::Line(number))?;
    let mut ends = Vec::new();
    let mut lengths = Vec::new();
    let mut line_last = number;
    for (line, number) in lines {
        line_last = number;
        if ends.len() as u64 == entries {
            let (position, found) = (Position::Line(number), excerpt(line));
            return Err(GraphError::Malformed { position, found, allowed: "the end, all entries are read" });
        }
        let (from, to, weight) = entry(line, Position::Line(number), vertices, &header, options)?;
        ends.push((from, to));
        lengths.extend(weight);
    }
    if (ends.len() as u64) < entries {
        return Err(GraphError::Truncated { position: Position::Line(line_last + 1), missing: "an entry" });
    }
    let limit = vertices_max(entries);
    if vertices > limit {
        return Err(GraphError::TooLarge { items: "vertices for so few entries", found: vertices, limit });
    }
    let lengths = (!lengths.is_empty()).then_some(lengths.as_slice());
    let graph = Graph::merged(vertices, !header.symmetric, &ends, lengths, options.weights)?;
    Ok(graph.leaving_out_weights(!header.pattern && !options.weights.are_read()))
}

fn header(line: &[u8]) -> Result<Header, GraphError> {
    let malformed =
        || GraphError::Malformed { position: Position::Line(1), found: excerpt(line), allowed: HEADER };
    let lower = line.to_ascii_lowercase();
    let words: Vec<&[u8]> = lower.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
    let [b"%%matrixmarket", b"matrix", b"coordinate", field, symmetry] = words[..] else {
        return Err(malformed());
    };
    let pattern = match field {
        b"pattern" => true,
        b"integer" | b"real" => false,
        _ => return Err(malformed()),
    };
    match symmetry {
        b"general" => Ok(Header { pattern, symmetric: false }),
        b"symmetric" => Ok(Header { pattern, symmetric: true }),
        _ => Err(malformed()),
    }
}

/// Parses the numbers of vertices and entries.
fn size(line: &[u8], position: Position) -> Result<(u64, u64), GraphError> {
    let numbers: Option<Vec<u64>> = Words(line).map(number::<u64>).collect();
    match numbers.as_deref() {
        Some(&[0, 0, _]) => Err(GraphError::NoVertices),
        Some(&[rows, columns, entries]) if rows == columns => Ok((rows, entries)),
        _ => Err(GraphError::Malformed { position, found: excerpt(line), allowed: SIZE }),
    }
}

fn entry(
    line: &[u8],
    position: Position,
    vertices: u64,
    header: &Header,
    options: &ReadOptions,
) -> Result<(u32, u32, Option<f64>), GraphError> {
    let malformed = || GraphError::Malformed { position, found: excerpt(line), allowed: ENTRY };
    let mut words = Words(line);
    let mut vertex = || {
        let vertex = words.next().and_then(number::<u64>).ok_or_else(malformed)?;
        if vertex == 0 || vertex > vertices.min(super::VERTICES_MAX) {
            return Err(GraphError::VertexOutOfRange { position, vertex, first: 1, last: vertices });
        }
        Ok((vertex - 1) as u32)
    };
    let (from, to) = (vertex()?, vertex()?);
    let value = words.next();
    if value.is_none() != header.pattern || words.next().is_some() {
        return Err(malformed());
    }
    let weight = value.map(|word| number::<f64>(word).ok_or_else(malformed)).transpose()?;
    let weight = weight.filter(|_| options.weights.are_read());
    let weight = weight.map(|weight| check_weight(weight, position, options.weights)).transpose()?;
    Ok((from, to, weight))
}
