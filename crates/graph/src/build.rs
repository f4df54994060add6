//! Builds the compressed rows of a [`Graph`] from edges in any order.
//!
//! This is the only constructor of graphs, so that merging, order and limits hold for every source. It reads no files.
//! Invariant: the result depends on the set of edges, never on their order.

use super::error::{check_paths, check_sum, check_weight};
use super::{ARCS_MAX, Graph, GraphError, LeftOut, Position, VERTICES_MAX, Weights};

impl Graph {
    /// Creates a graph of `vertices` vertices with an edge for each pair of `ends`, whose length is at the same index
    /// in `lengths`.
    ///
    /// Parallel edges are merged into the lightest; self-loops are kept.
    ///
    /// # Errors
    /// [`GraphError::NoVertices`], [`GraphError::TooLarge`], [`GraphError::VertexOutOfRange`],
    /// [`GraphError::BadWeight`], [`GraphError::PathTooLong`].
    ///
    /// # Panics
    /// If `lengths` is given and its length differs from that of `ends`.
    pub fn from_edges(
        vertices: u64,
        directed: bool,
        ends: &[(u32, u32)],
        lengths: Option<&[f64]>,
    ) -> Result<Graph, GraphError> {
        Graph::merged(vertices, directed, ends, lengths, Weights::Lengths)
    }

    /// Same as [`Graph::from_edges`], but merges parallel edges according to `kind`: strengths add up.
    pub(super) fn merged(
        vertices: u64,
        directed: bool,
        ends: &[(u32, u32)],
        weights: Option<&[f64]>,
        kind: Weights,
    ) -> Result<Graph, GraphError> {
        if let Some(weights) = weights {
            assert_eq!(weights.len(), ends.len(), "one length for each edge");
        }
        check(vertices, directed, ends, weights, kind)?;
        let mut graph = scatter(vertices as usize, directed, ends, weights);
        merge_rows(&mut graph, kind);
        let loops =
            (0..vertices as u32).filter(|&v| graph.neighbours(v).binary_search(&v).is_ok()).count() as u64;
        graph.edges = if directed { graph.arcs() } else { (graph.arcs() + loops) / 2 };
        graph.left_out.parallel_edges = ends.len() as u64 - graph.edges;
        Ok(graph)
    }

    /// Returns the same graph, marked as having unused weights in its source if `is_so`.
    pub(super) fn leaving_out_weights(mut self, is_so: bool) -> Graph {
        self.left_out.weights = is_so;
        self
    }
}

fn check(
    vertices: u64,
    directed: bool,
    ends: &[(u32, u32)],
    weights: Option<&[f64]>,
    kind: Weights,
) -> Result<(), GraphError> {
    if vertices == 0 {
        return Err(GraphError::NoVertices);
    }
    if vertices > VERTICES_MAX {
        return Err(GraphError::TooLarge { items: "vertices", found: vertices, limit: VERTICES_MAX });
    }
    let arcs = ends.len() as u64 * if directed { 1 } else { 2 };
    if arcs > ARCS_MAX {
        return Err(GraphError::TooLarge { items: "adjacency entries", found: arcs, limit: ARCS_MAX });
    }
    for (edge, &(from, to)) in ends.iter().enumerate() {
        let vertex = u64::from(from.max(to));
        if vertex >= vertices {
            let position = Position::Edge(edge as u64);
            return Err(GraphError::VertexOutOfRange { position, vertex, first: 0, last: vertices - 1 });
        }
    }
    let weights = weights.unwrap_or_default();
    for (edge, &weight) in weights.iter().enumerate() {
        check_weight(weight, Position::Edge(edge as u64), kind)?;
    }
    match kind {
        Weights::Strengths => check_sum(weights),
        Weights::Lengths | Weights::Ignored => check_paths(vertices, weights),
    }
}

/// Sorts the edges by source with a counting sort; rows are neither sorted nor merged yet.
fn scatter(vertices: usize, directed: bool, ends: &[(u32, u32)], lengths: Option<&[f64]>) -> Graph {
    let mirrored = |from: u32, to: u32| !directed && from != to;
    let mut offsets = vec![0u32; vertices + 1];
    for &(from, to) in ends {
        offsets[from as usize + 1] += 1;
        offsets[to as usize + 1] += u32::from(mirrored(from, to));
    }
    for vertex in 0..vertices {
        offsets[vertex + 1] += offsets[vertex];
    }
    let arcs = offsets[vertices] as usize;
    let mut targets = vec![0u32; arcs];
    let mut weights = lengths.map(|_| vec![0.0; arcs]);
    let mut ends_of_rows = offsets.clone();
    for (edge, &(from, to)) in ends.iter().enumerate() {
        let mut put = |from: u32, to: u32| {
            let slot = ends_of_rows[from as usize] as usize;
            ends_of_rows[from as usize] += 1;
            targets[slot] = to;
            if let (Some(weights), Some(lengths)) = (&mut weights, lengths) {
                weights[slot] = lengths[edge];
            }
        };
        put(from, to);
        if mirrored(from, to) {
            put(to, from);
        }
    }
    Graph { directed, edges: 0, offsets, targets, weights, left_out: LeftOut::default() }
}

/// Sorts each row by target and weight, merges the entries of each target, and closes the gaps.
fn merge_rows(graph: &mut Graph, kind: Weights) {
    let mut row: Vec<(u32, f64)> = Vec::new();
    let mut kept = 0;
    let mut start = 0;
    for vertex in 0..graph.offsets.len() - 1 {
        let end = graph.offsets[vertex + 1] as usize;
        row.clear();
        match &graph.weights {
            Some(weights) => row.extend((start..end).map(|slot| (graph.targets[slot], weights[slot]))),
            None => row.extend((start..end).map(|slot| (graph.targets[slot], 1.0))),
        }
        row.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        row.dedup_by(|next, kept| {
            let is_parallel = next.0 == kept.0;
            if is_parallel && kind == Weights::Strengths {
                kept.1 += next.1;
            }
            is_parallel
        });
        for &(target, weight) in &row {
            graph.targets[kept] = target;
            if let Some(weights) = &mut graph.weights {
                weights[kept] = weight;
            }
            kept += 1;
        }
        start = end;
        graph.offsets[vertex + 1] = kept as u32;
    }
    graph.targets.truncate(kept);
    graph.targets.shrink_to_fit();
    if let Some(weights) = &mut graph.weights {
        weights.truncate(kept);
        weights.shrink_to_fit();
    }
}
