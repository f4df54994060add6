//! METIS files: the neighbours of each vertex in a line of its own.
//!
//! The first line is `vertices edges`, with a third number `1` if edges have weights; then comes a line for each
//! vertex, in order, with its neighbours from 1, each followed by the weight of its edge, if any. An edge appears in
//! the lines of both vertices and counts once. Lines that begin with `%` are comments; an empty line is a vertex
//! without edges. The text cannot be distinguished from an edge list, so the file extension decides. Format: G.
//! Karypis, METIS 5.1.0 manual, section 4.1.1. Invariant: memory is proportional to the text, whatever line 1 claims.

use super::edge_list::{Words, number};
use super::error::{check_weight, excerpt};
use super::{Graph, GraphError, Position, ReadOptions};
use std::path::Path;

/// File extensions of this format.
const ENDINGS: [&str; 2] = ["graph", "metis"];

const HEADER: &str =
    "`vertices edges`, and 1 if edges have weights; weights and sizes of vertices are not supported";
const NEIGHBOURS: &str = "the neighbours of a vertex, from 1, each with its weight if there are weights";
const BOTH: &str = "each edge in the lines of both its vertices, with one weight; for a directed graph, \
     use an edge list or a Matrix Market file, `general`";

/// Returns `true` if the name of a file, gzipped or not, has the extension of this format.
pub(super) fn is_name_of(path: &Path) -> bool {
    let is_gzip = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gz"));
    let inner = if is_gzip { path.file_stem().map(Path::new) } else { Some(path) };
    let ending = inner.and_then(Path::extension);
    ending.is_some_and(|ending| ENDINGS.iter().any(|known| ending.eq_ignore_ascii_case(known)))
}

/// Reads a METIS file.
///
/// # Errors
/// Any of [`GraphError`] that names a line.
pub fn decode(text: &[u8], options: &ReadOptions) -> Result<Graph, GraphError> {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let lines = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).zip(1..);
    let mut lines = lines.filter(|(line, _)| !line.starts_with(b"%"));
    let Some((first, line_first)) = lines.find(|(line, _)| !line.is_empty()) else {
        return Err(GraphError::NoVertices);
    };
    let (vertices, edges, has_weights) = header(first, Position::Line(line_first))?;
    let mut arcs = Arcs { vertices, has_weights, options, list: Vec::new(), lines: Vec::new() };
    let mut line_last = line_first;
    for (line, number) in lines {
        line_last = number;
        let position = Position::Line(number);
        if arcs.lines.len() as u64 == vertices {
            if line.is_empty() {
                continue;
            }
            let found = excerpt(line);
            return Err(GraphError::Malformed { position, found, allowed: "the end, all vertices are read" });
        }
        arcs.push(line, position)?;
    }
    if (arcs.lines.len() as u64) < vertices {
        return Err(GraphError::Truncated { position: Position::Line(line_last + 1), missing: "a vertex" });
    }
    arcs.graph(edges, Position::Line(line_first), first)
}

/// Parses the numbers of vertices and edges; the last value is `true` if edges have weights.
fn header(line: &[u8], position: Position) -> Result<(u64, u64, bool), GraphError> {
    let numbers: Option<Vec<u64>> = Words(line).map(number::<u64>).collect();
    match numbers.as_deref() {
        Some([0, ..]) => Err(GraphError::NoVertices),
        Some(&[vertices, edges]) | Some(&[vertices, edges, 0]) => Ok((vertices, edges, false)),
        Some(&[vertices, edges, 1]) => Ok((vertices, edges, true)),
        _ => Err(GraphError::Malformed { position, found: excerpt(line), allowed: HEADER }),
    }
}

/// Contents of the lines of the vertices.
struct Arcs<'a> {
    vertices: u64,
    has_weights: bool,
    options: &'a ReadOptions,
    /// Each edge from each side: its lower and its higher vertex, `true` if named by the lower one, and its weight.
    list: Vec<(u32, u32, bool, f64)>,
    /// The line of each vertex.
    lines: Vec<u64>,
}

impl Arcs<'_> {
    /// Reads the line of the next vertex.
    fn push(&mut self, line: &[u8], position: Position) -> Result<(), GraphError> {
        let malformed = |allowed| GraphError::Malformed { position, found: excerpt(line), allowed };
        let Position::Line(line_number) = position else { return Err(malformed(NEIGHBOURS)) };
        let own = self.lines.len() as u64 + 1;
        self.lines.push(line_number);
        let mut words = Words(line);
        while let Some(word) = words.next() {
            let vertex = number::<u64>(word).ok_or_else(|| malformed(NEIGHBOURS))?;
            if vertex == 0 || vertex > self.vertices.min(super::VERTICES_MAX) {
                return Err(GraphError::VertexOutOfRange { position, vertex, first: 1, last: self.vertices });
            }
            if vertex == own {
                return Err(malformed("neighbours other than the vertex itself"));
            }
            let mut weight = 1.0;
            if self.has_weights {
                let word = words.next().and_then(number::<f64>).ok_or_else(|| malformed(NEIGHBOURS))?;
                if self.options.weights.are_read() {
                    weight = check_weight(word, position, self.options.weights)?;
                }
            }
            let [low, high] = [own.min(vertex), own.max(vertex)].map(|vertex| (vertex - 1) as u32);
            self.list.push((low, high, own < vertex, weight));
        }
        Ok(())
    }

    /// Returns the graph if each edge is in both lines and the number of edges matches the first line.
    fn graph(mut self, edges: u64, position: Position, first: &[u8]) -> Result<Graph, GraphError> {
        self.list.sort_unstable_by(|one, other| {
            (one.0, one.1, one.2).cmp(&(other.0, other.1, other.2)).then(one.3.total_cmp(&other.3))
        });
        for pair in self.list.chunks(2) {
            let is_both = matches!(pair, [one, other]
                if (one.0, one.1, one.3) == (other.0, other.1, other.3) && one.2 != other.2);
            if !is_both {
                let (low, high, is_of_low, _) = pair[0];
                let (named, other) = if is_of_low { (high, low) } else { (low, high) };
                let position = Position::Line(self.lines[other as usize]);
                let found = format!("vertex {}", named + 1);
                return Err(GraphError::Malformed { position, found, allowed: BOTH });
            }
        }
        let found = self.list.len() as u64 / 2;
        if found != edges {
            let allowed = "the number of edges that follow, each counted once";
            return Err(GraphError::Malformed { position, found: excerpt(first), allowed });
        }
        let pairs = self.list.iter().step_by(2);
        let ends: Vec<(u32, u32)> = pairs.clone().map(|edge| (edge.0, edge.1)).collect();
        let are_lengths = self.has_weights && self.options.weights.are_read();
        let lengths: Option<Vec<f64>> = are_lengths.then(|| pairs.map(|edge| edge.3).collect());
        let graph = Graph::merged(self.vertices, false, &ends, lengths.as_deref(), self.options.weights)?;
        Ok(graph.leaving_out_weights(self.has_weights && !are_lengths))
    }
}
