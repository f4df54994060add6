//! Graphs: one compact representation, and its sources (files, generators, data sets).
//!
//! Applications use [`Graph`] only and never see a file format. It contains no algorithms. Invariant: each row of a
//! graph is sorted and has each target once, so a graph is the same value, bit for bit, for any order of the edges in
//! its file.

#![forbid(unsafe_code)]

mod build;
pub mod dataset;
pub mod edge_list;
mod error;
pub mod fuzz;
pub mod gt;
mod head;
pub mod matrix_market;
pub mod metis;
mod read;
pub mod rmat;

#[cfg(test)]
mod tests;

pub use error::{GraphError, Position};
pub use read::{OpenError, ReadOptions, Weights, is_file, open, weights_remark};

use serde::{Deserialize, Serialize};

/// Most vertices of a graph; ids are `u32` and the breadth-first kernel needs headroom above the largest.
pub const VERTICES_MAX: u64 = 1 << 31;

/// Most adjacency entries of a graph (an undirected edge takes two); offsets are `u32`.
pub const ARCS_MAX: u64 = u32::MAX as u64;

/// A graph in compressed sparse rows: the out-neighbours of each vertex, one row after the other.
///
/// Vertices are `0..vertices()`. An undirected edge is stored in both rows. Parallel edges are merged when
/// the graph is built: the lightest stays (as networkx does for shortest paths), or, if weights are read as
/// [`Weights::Strengths`], they add up. Self-loops are kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Graph {
    /// `true` if an edge leads one way only.
    directed: bool,
    /// Edges after merging; an undirected edge counts once.
    edges: u64,
    /// Row `v` is `offsets[v]..offsets[v + 1]` of `targets`; one entry more than vertices.
    #[serde(with = "isles::plain")]
    offsets: Vec<u32>,
    /// Out-neighbours, ascending within a row.
    #[serde(with = "isles::plain")]
    targets: Vec<u32>,
    /// Lengths parallel to `targets`: above zero, and small enough that each path has a finite length. If `None`,
    /// every edge has length one.
    #[serde(with = "isles::plain::optional")]
    weights: Option<Vec<f64>>,
    /// Contents of its source that were left out.
    #[serde(skip)]
    left_out: LeftOut,
}

/// Contents of a graph's source that the graph does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// `true` if the source has weights that are not used.
    pub weights: bool,
    /// Number of edges merged with others between the same two vertices.
    pub parallel_edges: u64,
}

/// Two graphs are equal if they have the same edges and weights, regardless of their source.
impl PartialEq for Graph {
    fn eq(&self, other: &Graph) -> bool {
        self.directed == other.directed
            && self.offsets == other.offsets
            && self.targets == other.targets
            && self.weights == other.weights
    }
}

impl Graph {
    /// Returns the number of vertices.
    #[inline]
    pub fn vertices(&self) -> u64 {
        self.offsets.len().saturating_sub(1) as u64
    }

    /// Returns the number of edges, with parallel ones merged; an undirected edge counts once.
    pub fn edges(&self) -> u64 {
        self.edges
    }

    /// Returns the number of adjacency entries: the edges that a full traversal visits.
    #[inline]
    pub fn arcs(&self) -> u64 {
        self.targets.len() as u64
    }

    /// Returns `true` if edges lead one way only.
    pub fn is_directed(&self) -> bool {
        self.directed
    }

    /// Returns the unused contents of the graph's source; empty for a graph received from another place.
    pub fn left_out(&self) -> LeftOut {
        self.left_out
    }

    /// Returns `true` if edges have lengths of their own.
    pub fn is_weighted(&self) -> bool {
        self.weights.is_some()
    }

    /// Returns the out-neighbours of `vertex`, ascending.
    ///
    /// # Panics
    /// If `vertex` is not below [`Graph::vertices`].
    #[inline]
    pub fn neighbours(&self, vertex: u32) -> &[u32] {
        &self.targets[self.row(vertex)]
    }

    /// Returns the lengths of the edges to [`Graph::neighbours`], in the same order; `None` for an unweighted graph.
    ///
    /// # Panics
    /// If `vertex` is not below [`Graph::vertices`].
    #[inline]
    pub fn lengths(&self, vertex: u32) -> Option<&[f64]> {
        self.weights.as_ref().map(|weights| &weights[self.row(vertex)])
    }

    /// Returns the same graph with the length `length(from, to)` on each edge; for an undirected edge, `from <= to`.
    ///
    /// # Errors
    /// [`GraphError::BadWeight`] if a length is not above zero, or not finite; [`GraphError::PathTooLong`].
    pub fn with_weights(self, mut length: impl FnMut(u32, u32) -> f64) -> Result<Graph, GraphError> {
        let mut weights = Vec::with_capacity(self.targets.len());
        for from in 0..self.vertices() as u32 {
            for &to in self.neighbours(from) {
                let (first, last) = if self.directed { (from, to) } else { (from.min(to), from.max(to)) };
                let position = Position::Edge(weights.len() as u64);
                weights.push(error::check_weight(length(first, last), position, Weights::Lengths)?);
            }
        }
        error::check_paths(self.vertices(), &weights)?;
        Ok(Graph { weights: Some(weights), ..self })
    }

    /// Returns the bytes of the arrays: the memory cost of one copy of the graph at a place.
    pub fn bytes(&self) -> u64 {
        let weights = self.weights.as_ref().map_or(0, Vec::len);
        (self.offsets.len() * 4 + self.targets.len() * 4 + weights * 8) as u64
    }

    #[inline]
    fn row(&self, vertex: u32) -> std::ops::Range<usize> {
        self.offsets[vertex as usize] as usize..self.offsets[vertex as usize + 1] as usize
    }
}
