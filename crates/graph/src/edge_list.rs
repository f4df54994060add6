//! Edge lists: plain text, one edge per line.
//!
//! A line is `from to` or `from to weight`, separated by blanks, tabs or one comma; vertices are whole numbers from 0,
//! and the largest determines their number. The weight may be written `{'weight': 2.5}`, as networkx does. The first
//! line may name the columns, as in CSV (see `head`). Empty lines and lines that begin with `#` or `%` are skipped. A
//! graph has a weight on each line or on none. The format does not define whether the graph is directed;
//! [`ReadOptions`] does. Invariant: memory is proportional to the text, see `vertices_max`.

use super::error::{check_weight, excerpt};
use super::head::{self, EdgeColumns};
use super::{Graph, GraphError, Position, ReadOptions};

/// Allowed forms of a line of an edge list.
const LINE: &str =
    "`from to` or `from to weight`, vertices from 0, split by blanks or a comma, or a `#` comment";

/// Allowed form instead of a lone vertex, and the formats that support one.
const LONE: &str = "`from to`; for a vertex without edges, use METIS or Matrix Market form";

/// Returns the most vertices that a text with `edges` edges may declare: a single huge number must not claim
/// gigabytes.
///
/// 2^20 (4 MB of offsets) always; beyond that at most 64 vertices per edge.
pub(super) fn vertices_max(edges: u64) -> u64 {
    (1 << 20).max(edges.saturating_mul(64)).min(super::VERTICES_MAX)
}

/// Reads an edge list.
///
/// # Errors
/// Any of [`GraphError`] that names a line; [`GraphError::NoVertices`] when there is no edge at all.
pub fn decode(text: &[u8], options: &ReadOptions) -> Result<Graph, GraphError> {
    let mut edges = Edges::default();
    let mut columns = None;
    for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") || line.starts_with(b"%") {
            continue;
        }
        let position = Position::Line(index as u64 + 1);
        if columns.is_none() {
            let named = head::columns(line, position)?;
            let is_head = named.is_some();
            columns = Some(named.unwrap_or_default());
            if is_head {
                continue;
            }
        }
        edges.push(line, position, options, &columns.unwrap_or_default())?;
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
    let vertices = edges.vertex_max + 1;
    let graph = Graph::merged(vertices, options.directed, &edges.ends, lengths, options.weights)?;
    Ok(graph.leaving_out_weights(edges.has_unused_weights))
}

/// The edges read so far.
struct Edges {
    ends: Vec<(u32, u32)>,
    /// Empty, or as long as `ends`.
    lengths: Vec<f64>,
    /// `true` if there are unused weights.
    has_unused_weights: bool,
    vertex_max: u64,
    vertex_max_position: Position,
}

impl Default for Edges {
    fn default() -> Self {
        let (ends, lengths) = (Vec::new(), Vec::new());
        let vertex_max_position = Position::Line(1);
        Edges { ends, lengths, has_unused_weights: false, vertex_max: 0, vertex_max_position }
    }
}

impl Edges {
    fn push(
        &mut self,
        line: &[u8],
        position: Position,
        options: &ReadOptions,
        columns: &EdgeColumns,
    ) -> Result<(), GraphError> {
        let malformed = |allowed| GraphError::Malformed { position, found: excerpt(line), allowed };
        let attributes = line.iter().position(|&byte| byte == b'{').unwrap_or(line.len());
        let (plain, attributes) = line.split_at(attributes);
        let mut words = [&b""[..]; head::COLUMNS_MAX + 1];
        let mut count = 0;
        for (word, place) in Words(plain).zip(&mut words) {
            (*place, count) = (unquoted(word), count + 1);
        }
        if !columns.fits(count) {
            return Err(malformed(if count == 1 { LONE } else { LINE }));
        }
        let vertex = |column: usize| number::<u64>(words[column]).ok_or_else(|| malformed(LINE));
        let (from, to) = (vertex(columns.from)?, vertex(columns.to)?);
        let weight = match words.get(columns.weight).filter(|_| columns.weight < count) {
            Some(word) => Some(number::<f64>(word).ok_or_else(|| malformed(LINE))?),
            None => None,
        };
        let weight = match (weight, attributes) {
            (weight, []) => weight,
            (None, attributes) => weight_of(attributes).ok_or_else(|| malformed(ATTRIBUTES))?,
            (Some(_), _) => return Err(malformed(LINE)),
        };
        self.has_unused_weights |= weight.is_some() && !options.weights.are_read();
        let weight = weight.filter(|_| options.weights.are_read());
        let weight = weight.map(|weight| check_weight(weight, position, options.weights)).transpose()?;
        if !self.ends.is_empty() && weight.is_some() == self.lengths.is_empty() {
            return Err(malformed("a weight on each line or on none"));
        }
        if from.max(to) > self.vertex_max {
            (self.vertex_max, self.vertex_max_position) = (from.max(to), position);
        }
        // Truncation is harmless: a vertex above `u32` is refused with its position before the edges are used.
        self.ends.push((from as u32, to as u32));
        self.lengths.extend(weight);
        Ok(())
    }
}

/// Allowed text in braces after the vertices.
const ATTRIBUTES: &str = "attributes in braces as networkx writes them, such as `{'weight': 2.5}`";

/// Returns the attribute `weight`, or otherwise `value`, of a Python dictionary, if present; `None` if the text is not
/// such a dictionary.
fn weight_of(text: &[u8]) -> Option<Option<f64>> {
    let text = std::str::from_utf8(text).ok()?;
    let mut rest = text.strip_prefix('{')?.strip_suffix('}')?.trim();
    let mut found = [None, None];
    while !rest.is_empty() {
        let quote = rest.chars().next().filter(|quote| ['\'', '"'].contains(quote))?;
        let (key, after) = rest[1..].split_once(quote)?;
        let after = after.trim_start().strip_prefix(':')?.trim_start();
        let end = end_of_value(after);
        let value = after[..end].trim();
        if let Some(place) = ["weight", "value"].iter().position(|name| *name == key) {
            // The notation of numbers in numpy.
            let inner = value.strip_prefix("np.").and_then(|call| call.strip_suffix(')')?.split_once('('));
            found[place] = Some(inner.map_or(value, |(_, inner)| inner).parse::<f64>().ok()?);
        }
        rest = after[end..].strip_prefix(',').unwrap_or(&after[end..]).trim_start();
    }
    Some(found[0].or(found[1]))
}

/// Returns the end of a value: the position of a comma outside of quotes and brackets.
fn end_of_value(text: &str) -> usize {
    let (mut depth, mut quote) = (0_u32, None);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => return at,
            _ => {}
        }
    }
    text.len()
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

/// Returns a word without the quotation marks that CSV may put around it.
pub(super) fn unquoted(word: &[u8]) -> &[u8] {
    word.strip_prefix(b"\"").and_then(|word| word.strip_suffix(b"\"")).unwrap_or(word)
}

/// Parses `word` as a number.
pub(super) fn number<T: std::str::FromStr>(word: &[u8]) -> Option<T> {
    std::str::from_utf8(word).ok()?.parse().ok()
}
