//! The binary format of graph-tool (`.gt`), version 1.
//!
//! Layout, according to <https://graph-tool.skewed.de/static/doc/gt_format.html>: magic, version, byte order, comment,
//! directed flag, number of vertices; per vertex its out-degree and out-neighbours in the smallest unsigned type that
//! holds the number of vertices (an undirected edge is stored once); then the property maps. Of those, one edge map
//! named `weight` or `value` of a numeric type is read on request; all others are skipped. It writes nothing.
//! Invariant: nothing is allocated for a length field before its bytes are known to exist.

use super::error::check_weight;
use super::{Graph, GraphError, Position, ReadOptions, Weights};

/// First bytes of a `.gt` file.
pub const MAGIC: &[u8] = "⛾ gt".as_bytes();

/// Names of edge maps that hold lengths, in order of preference.
const WEIGHT_NAMES: [&[u8]; 2] = [b"weight", b"value"];

/// Reads a `.gt` file.
///
/// # Errors
/// Any of [`GraphError`] that names a byte; [`GraphError::NoVertices`].
pub fn decode(bytes: &[u8], options: &ReadOptions) -> Result<Graph, GraphError> {
    let mut cursor = Cursor::after_header(bytes)?;
    let comment = cursor.count("the comment")?;
    cursor.take(comment, "the comment")?;
    let directed = cursor.flag("`0` or `1` (directed)")?;
    let vertices = cursor.count("the number of vertices")?;
    // Each vertex takes at least the eight bytes of its degree.
    if vertices > cursor.left() / 8 {
        return Err(cursor.truncated("the adjacency"));
    }
    let ends = adjacency(&mut cursor, vertices)?;
    let (lengths, has_unused) = property_maps(&mut cursor, vertices, ends.len() as u64, options.weights)?;
    let surplus = cursor.left().min(8);
    if surplus > 0 {
        cursor.take(surplus, "")?;
        return Err(cursor.malformed(surplus, "the end of the file"));
    }
    let graph = Graph::merged(vertices, directed, &ends, lengths.as_deref(), options.weights)?;
    Ok(graph.leaving_out_weights(has_unused))
}

fn adjacency(cursor: &mut Cursor<'_>, vertices: u64) -> Result<Vec<(u32, u32)>, GraphError> {
    if vertices > super::VERTICES_MAX {
        return Err(GraphError::TooLarge { items: "vertices", found: vertices, limit: super::VERTICES_MAX });
    }
    let width = match vertices {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        _ => 4,
    };
    let mut ends = Vec::new();
    for from in 0..vertices as u32 {
        let degree = cursor.count("an out-degree")?;
        let start = cursor.offset as u64;
        let row = cursor.take(degree.saturating_mul(width), "a row of neighbours")?;
        for (index, target) in row.chunks_exact(width as usize).enumerate() {
            let vertex = cursor.order.unsigned(target);
            if vertex >= vertices {
                let position = Position::Byte(start + index as u64 * width);
                return Err(GraphError::VertexOutOfRange { position, vertex, first: 0, last: vertices - 1 });
            }
            ends.push((from, vertex as u32));
        }
    }
    Ok(ends)
}

/// Skips all property maps; returns the weights, if wanted and present, and `true` if there are unused ones.
fn property_maps(
    cursor: &mut Cursor<'_>,
    vertices: u64,
    edges: u64,
    weights: Weights,
) -> Result<(Option<Vec<f64>>, bool), GraphError> {
    let mut has_unused = false;
    let mut best: Option<(usize, Vec<f64>)> = None;
    for _ in 0..cursor.count("the number of property maps")? {
        let owner = cursor.byte("the owner of a property map")?;
        let values = match owner {
            0 => 1,
            1 => vertices,
            2 => edges,
            _ => return Err(cursor.malformed(1, "0, 1 or 2 (a property of the graph, vertices or edges)")),
        };
        let name_length = cursor.count("the name of a property map")?;
        let name = cursor.take(name_length, "the name of a property map")?;
        let kind = ValueType::new(cursor.byte("the type of a property map")?)
            .ok_or_else(|| cursor.malformed(1, KINDS))?;
        let choice = WEIGHT_NAMES.iter().position(|&wanted| wanted == name);
        let (ValueType::Number(number), 2, Some(choice)) = (kind, owner, choice) else {
            kind.skip(cursor, values)?;
            continue;
        };
        has_unused |= !weights.are_read();
        if !weights.are_read() || best.as_ref().is_some_and(|(known, _)| *known <= choice) {
            kind.skip(cursor, values)?;
        } else {
            best = Some((choice, column(cursor, values, number, weights)?));
        }
    }
    Ok((best.map(|(_, lengths)| lengths), has_unused))
}

fn column(
    cursor: &mut Cursor<'_>,
    values: u64,
    number: Number,
    kind: Weights,
) -> Result<Vec<f64>, GraphError> {
    let width = number.width();
    let start = cursor.offset as u64;
    let column = cursor.take(values.saturating_mul(width), "the weights")?;
    let positions = (start..).step_by(width as usize).map(Position::Byte);
    let values = column.chunks_exact(width as usize).map(|bytes| number.value(cursor.order, bytes));
    values.zip(positions).map(|(value, position)| check_weight(value, position, kind)).collect()
}

const KINDS: &str = "a value type from 0 to 14";

/// The numeric types whose maps can be read as lengths.
#[derive(Clone, Copy, Debug)]
enum Number {
    Int16,
    Int32,
    Int64,
    Double,
}

impl Number {
    fn width(self) -> u64 {
        match self {
            Number::Int16 => 2,
            Number::Int32 => 4,
            Number::Int64 | Number::Double => 8,
        }
    }

    fn value(self, order: ByteOrder, bytes: &[u8]) -> f64 {
        let raw = order.unsigned(bytes);
        match self {
            Number::Int16 => f64::from(raw as u16 as i16),
            Number::Int32 => f64::from(raw as u32 as i32),
            Number::Int64 => raw as i64 as f64,
            Number::Double => f64::from_bits(raw),
        }
    }
}

/// The value type of a property map, as needed to skip it.
#[derive(Clone, Copy, Debug)]
enum ValueType {
    Number(Number),
    /// Bytes per value: `bool` and `long double`.
    Fixed(u64),
    /// A length, then this number of bytes for each element: strings, pickled objects, vectors.
    Sequence(u64),
    /// A count, then that number of strings, each with its length.
    Strings,
}

impl ValueType {
    fn new(index: u8) -> Option<ValueType> {
        Some(match index {
            0 => ValueType::Fixed(1),
            1 => ValueType::Number(Number::Int16),
            2 => ValueType::Number(Number::Int32),
            3 => ValueType::Number(Number::Int64),
            4 => ValueType::Number(Number::Double),
            5 => ValueType::Fixed(16),
            6 | 7 | 14 => ValueType::Sequence(1),
            8 => ValueType::Sequence(2),
            9 => ValueType::Sequence(4),
            10 | 11 => ValueType::Sequence(8),
            12 => ValueType::Sequence(16),
            13 => ValueType::Strings,
            _ => return None,
        })
    }

    fn skip(self, cursor: &mut Cursor<'_>, values: u64) -> Result<(), GraphError> {
        const MISSING: &str = "a property map";
        let width = match self {
            ValueType::Number(number) => number.width(),
            ValueType::Fixed(width) => width,
            ValueType::Sequence(width) => {
                for _ in 0..values {
                    let length = cursor.count(MISSING)?;
                    cursor.take(length.saturating_mul(width), MISSING)?;
                }
                return Ok(());
            }
            ValueType::Strings => {
                for _ in 0..values {
                    let strings = cursor.count(MISSING)?;
                    ValueType::Sequence(1).skip(cursor, strings)?;
                }
                return Ok(());
            }
        };
        cursor.take(values.saturating_mul(width), MISSING).map(|_| ())
    }
}

#[derive(Clone, Copy, Debug)]
enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    /// Returns the unsigned number in `bytes`, at most eight of them.
    fn unsigned(self, bytes: &[u8]) -> u64 {
        let push = |value: u64, &byte: &u8| value << 8 | u64::from(byte);
        match self {
            ByteOrder::Little => bytes.iter().rev().fold(0, push),
            ByteOrder::Big => bytes.iter().fold(0, push),
        }
    }
}

/// A reading position; every step checks that its bytes exist.
struct Cursor<'a> {
    bytes: &'a [u8],
    offset: usize,
    order: ByteOrder,
}

impl<'a> Cursor<'a> {
    fn after_header(bytes: &'a [u8]) -> Result<Cursor<'a>, GraphError> {
        let mut cursor = Cursor { bytes, offset: 0, order: ByteOrder::Little };
        if cursor.take(MAGIC.len() as u64, "the magic string")? != MAGIC {
            return Err(cursor.malformed(MAGIC.len() as u64, "the magic string `⛾ gt`"));
        }
        if cursor.byte("the version")? != 1 {
            return Err(cursor.malformed(1, "version 1"));
        }
        if cursor.flag("`0` or `1` (byte order)")? {
            cursor.order = ByteOrder::Big;
        }
        Ok(cursor)
    }

    fn left(&self) -> u64 {
        (self.bytes.len() - self.offset) as u64
    }

    fn take(&mut self, length: u64, missing: &'static str) -> Result<&'a [u8], GraphError> {
        if length > self.left() {
            return Err(self.truncated(missing));
        }
        let taken = &self.bytes[self.offset..self.offset + length as usize];
        self.offset += length as usize;
        Ok(taken)
    }

    fn byte(&mut self, missing: &'static str) -> Result<u8, GraphError> {
        Ok(self.take(1, missing)?[0])
    }

    fn flag(&mut self, allowed: &'static str) -> Result<bool, GraphError> {
        match self.byte(allowed)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.malformed(1, allowed)),
        }
    }

    fn count(&mut self, missing: &'static str) -> Result<u64, GraphError> {
        let bytes = self.take(8, missing)?;
        Ok(self.order.unsigned(bytes))
    }

    fn truncated(&self, missing: &'static str) -> GraphError {
        GraphError::Truncated { position: Position::Byte(self.offset as u64), missing }
    }

    /// Returns the error for the `length` bytes read last.
    fn malformed(&self, length: u64, allowed: &'static str) -> GraphError {
        let start = self.offset - length as usize;
        let found = self.bytes[start..self.offset]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<Vec<_>>()
            .join(" ");
        GraphError::Malformed { position: Position::Byte(start as u64), found, allowed }
    }
}
