//! Edge lists: plain text, one edge a line.
//!
//! A line is `from to` or `from to weight`, separated by blanks, tabs or one comma; vertices are whole
//! numbers from 0 and there are as many as the largest says. Empty lines and lines that begin with `#` or `%`
//! are skipped. A graph has a weight on each line or on none. The format does not say whether edges lead one
//! way; [`ReadOptions`] does. Invariant: memory stays in proportion to the text, see `vertices_max`.

use super::error::{check_weight, excerpt};
use super::{Graph, GraphError, Position, ReadOptions, Weights};

/// What a line of an edge list may be.
const LINE: &str =
    "`from to` or `from to weight`, vertices from 0, split by blanks or a comma, or a `#` comment";

/// Most vertices that a text with `edges` edges may declare: a lone huge number must not claim gigabytes.
///
/// 2^20 (4 MB of offsets) always, beyond that at most 64 vertices an edge.
pub(super) fn vertices_max(edges: u64) -> u64 {
    (1 << 20).max(edges.saturating_mul(64)).min(super::VERTICES_MAX)
}

/// Reads an edge list.
///
/// # Errors
/// Any of [`GraphError`] that names a line; [`GraphError::NoVertices`] when there is no edge at all.
pub fn decode(text: &[u8], options: &ReadOptions) -> Result<Graph, GraphError> {
    let mut edges = Edges::default();
    for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        if !line.is_empty() && !line.starts_with(b"#") && !line.starts_with(b"%") {
            edges.push(line, Position::Line(index as u64 + 1), options)?;
        }
    }
    if edges.ends.is_empty() {
        return Err(GraphError::NoVertices);
    }
    let count = edges.ends.len() as u64;
    let limit = vertices_max(count);
    if edges.vertex_max >= limit {
        let (position, vertex) = (edges.vertex_max_position, edges.vertex_max);
        return Err(GraphError::SparseVertices { position, vertex, edges: count, last: limit - 1 });
    }
    let lengths = (!edges.lengths.is_empty()).then_some(edges.lengths.as_slice());
    Graph::from_edges(edges.vertex_max + 1, options.directed, &edges.ends, lengths)
}

/// The edges read so far.
struct Edges {
    ends: Vec<(u32, u32)>,
    /// Empty, or as long as `ends`.
    lengths: Vec<f64>,
    vertex_max: u64,
    vertex_max_position: Position,
}

impl Default for Edges {
    fn default() -> Self {
        Edges { ends: Vec::new(), lengths: Vec::new(), vertex_max: 0, vertex_max_position: Position::Line(1) }
    }
}

impl Edges {
    fn push(&mut self, line: &[u8], position: Position, options: &ReadOptions) -> Result<(), GraphError> {
        let malformed = |allowed| GraphError::Malformed { position, found: excerpt(line), allowed };
        let mut words = Words(line);
        let mut vertex = || words.next().and_then(number::<u64>).ok_or_else(|| malformed(LINE));
        let (from, to) = (vertex()?, vertex()?);
        let weight = words.next();
        if words.next().is_some() {
            return Err(malformed(LINE));
        }
        let weight = match weight {
            Some(word) if options.weights == Weights::Read => {
                Some(check_weight(number::<f64>(word).ok_or_else(|| malformed(LINE))?, position)?)
            }
            _ => None,
        };
        if !self.ends.is_empty() && weight.is_some() == self.lengths.is_empty() {
            return Err(malformed("a weight on each line or on none"));
        }
        if from.max(to) > self.vertex_max {
            (self.vertex_max, self.vertex_max_position) = (from.max(to), position);
        }
        // Truncation is harmless: a vertex above `u32` is refused with its position before the edges are
        // used.
        self.ends.push((from as u32, to as u32));
        self.lengths.extend(weight);
        Ok(())
    }
}

/// The words of a line, separated by blanks, or by one comma with blanks around it.
pub(super) struct Words<'a>(pub &'a [u8]);

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.0.trim_ascii_start();
        if rest.is_empty() {
            return None;
        }
        let end = rest.iter().position(|&b| b == b',' || b.is_ascii_whitespace()).unwrap_or(rest.len());
        let (word, tail) = rest.split_at(end);
        let tail = tail.trim_ascii_start();
        self.0 = tail.strip_prefix(b",").unwrap_or(tail);
        Some(word)
    }
}

/// The number that `word` is, if it is one.
pub(super) fn number<T: std::str::FromStr>(word: &[u8]) -> Option<T> {
    std::str::from_utf8(word).ok()?.parse().ok()
}
