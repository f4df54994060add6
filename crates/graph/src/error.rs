//! The errors in the description of a graph.
//!
//! One enum for all readers and generators, because their callers do the same with each: print one line and stop. It
//! does not name the file; [`super::OpenError`] adds that. Invariant: each message has the text found, its position
//! and the allowed text.

use super::Weights;
use std::fmt;

/// Position of something in its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// Line of a text file, from 1.
    Line(u64),
    /// Offset in a binary file, from 0 (after decompression).
    Byte(u64),
    /// Number of an edge in a list of edges, from 0.
    Edge(u64),
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Position::Line(line) => write!(f, "line {line}"),
            Position::Byte(offset) => write!(f, "byte {offset}"),
            Position::Edge(edge) => write!(f, "edge {edge}"),
        }
    }
}

/// Reason why there is no graph.
#[derive(Debug)]
pub enum GraphError {
    /// The file could not be read.
    Unreadable(std::io::Error),
    /// The bytes are in no known format.
    UnknownFormat,
    /// The text is in a recognised, unsupported format.
    ForeignFormat {
        /// Name of the form.
        name: &'static str,
    },
    /// The compressed file ends early or fails its check sum.
    BadCompression(std::io::Error),
    /// The text does not match any of the allowed forms.
    Malformed {
        /// Its position.
        position: Position,
        /// Text found there, shortened.
        found: String,
        /// Forms allowed there.
        allowed: &'static str,
    },
    /// A vertex that the graph does not have.
    VertexOutOfRange {
        /// Position at which it is named.
        position: Position,
        /// The vertex as written.
        vertex: u64,
        /// The first vertex that exists, as the format counts.
        first: u64,
        /// The last vertex that exists, as the format counts.
        last: u64,
    },
    /// A vertex number so large that most vertices would have no edge.
    SparseVertices {
        /// Position at which it is named.
        position: Position,
        /// The vertex as written.
        vertex: u64,
        /// Number of edges of the graph.
        edges: u64,
        /// Last vertex that this number of edges can have.
        last: u64,
    },
    /// A weight that is invalid as a length or a strength.
    BadWeight {
        /// Its position.
        position: Position,
        /// The weight as read.
        weight: f64,
        /// Requested use of the weights.
        kind: Weights,
    },
    /// Strengths whose sum is not finite.
    StrengthsTooLarge,
    /// A length with which the length of a path could overflow.
    PathTooLong {
        /// The longest length.
        weight: f64,
        /// Number of vertices of the graph.
        vertices: u64,
        /// Longest length that this number of vertices admits.
        limit: f64,
    },
    /// The graph has no vertices.
    NoVertices,
    /// The file ends before its contents do.
    Truncated {
        /// Position at which the missing part begins.
        position: Position,
        /// Name of the missing part.
        missing: &'static str,
    },
    /// More than is supported, or than the size of the input allows.
    TooLarge {
        /// Name of the items that are too many.
        items: &'static str,
        /// Actual or declared amount.
        found: u64,
        /// Largest amount accepted.
        limit: u64,
    },
    /// A generator's parameter outside its range.
    BadParameter {
        /// The parameter with its value, as given.
        found: String,
        /// Accepted values.
        allowed: &'static str,
    },
}

/// The formats that are read.
const FORMATS: &str = "edge list, CSV, Matrix Market, METIS .graph and graph-tool .gt, each also gzipped";

impl fmt::Display for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GraphError::Unreadable(error) => write!(f, "cannot be read: {error}"),
            GraphError::UnknownFormat => {
                write!(f, "unknown format; allowed: {FORMATS}")
            }
            GraphError::ForeignFormat { name } => write!(f, "this is {name}; allowed: {FORMATS}"),
            GraphError::BadCompression(error) => write!(f, "damaged gzip stream: {error}"),
            GraphError::Malformed { position, found, allowed } => {
                write!(f, "{position}: found `{found}`, expected {allowed}")
            }
            GraphError::VertexOutOfRange { position, vertex, first, last } => {
                write!(f, "{position}: vertex {vertex} is out of range; allowed: {first} to {last}")
            }
            GraphError::SparseVertices { position, vertex, edges, last } => {
                let plural = if *edges == 1 { "" } else { "s" };
                write!(
                    f,
                    "{position}: vertex {vertex} in a graph of {edges} edge{plural}; allowed: at most \
                     {last}, because vertices are numbered from 0 without large gaps"
                )
            }
            GraphError::BadWeight { position, weight, kind } => {
                let kind = if *kind == Weights::Strengths { "strength" } else { "length" };
                write!(
                    f,
                    "{position}: weight {weight} is not a {kind}; weights must be above zero and finite"
                )
            }
            GraphError::StrengthsTooLarge => {
                write!(
                    f,
                    "the sum of all weights is not finite; allowed: weights whose sum, twice, is below 1.7e308"
                )
            }
            GraphError::PathTooLong { weight, vertices, limit } => {
                write!(
                    f,
                    "weight {weight:e} in a graph of {vertices} vertices; allowed: at most {limit:e}, \
                     because the length of every path must be finite"
                )
            }
            GraphError::NoVertices => write!(f, "the graph has no vertices; allowed: at least one"),
            GraphError::Truncated { position, missing } => {
                write!(f, "the file ends early: at {position} {missing} is missing")
            }
            GraphError::TooLarge { items, found, limit } => {
                write!(f, "{found} {items}; allowed: at most {limit}")
            }
            GraphError::BadParameter { found, allowed } => {
                write!(f, "`{found}` is not accepted, expected {allowed}")
            }
        }
    }
}

impl std::error::Error for GraphError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            GraphError::Unreadable(error) | GraphError::BadCompression(error) => Some(error),
            _ => None,
        }
    }
}

/// Returns `weight` if it is a valid length or strength: above zero and finite.
pub(super) fn check_weight(weight: f64, position: Position, kind: Weights) -> Result<f64, GraphError> {
    if weight > 0.0 && weight.is_finite() {
        Ok(weight)
    } else {
        Err(GraphError::BadWeight { position, weight, kind })
    }
}

/// Checks that no shortest path over `vertices` vertices overflows, whatever the order of its edges.
///
/// A path has fewer edges than the graph has vertices; the factor two exceeds the rounding of 2^31 sums.
pub(super) fn check_paths(vertices: u64, weights: &[f64]) -> Result<(), GraphError> {
    let weight = weights.iter().copied().fold(0.0, f64::max);
    let limit = f64::MAX / (2 * vertices) as f64;
    if weight > limit { Err(GraphError::PathTooLong { weight, vertices, limit }) } else { Ok(()) }
}

/// Checks that strengths have a finite sum, even if each counts at both ends of its edge.
pub(super) fn check_sum(weights: &[f64]) -> Result<(), GraphError> {
    let sum = 2.0 * weights.iter().sum::<f64>();
    if sum.is_finite() { Ok(()) } else { Err(GraphError::StrengthsTooLarge) }
}

/// Returns the first characters of `bytes`, printable, for a one-line message.
pub(super) fn excerpt(bytes: &[u8]) -> String {
    const CHARACTERS_MAX: usize = 40;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * CHARACTERS_MAX)]);
    let mut printable = text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c });
    let mut short: String = printable.by_ref().take(CHARACTERS_MAX).collect();
    if printable.next().is_some() {
        short.push('…');
    }
    short
}
