//! One source of a weighted graph, by Dijkstra's algorithm.
//!
//! As in the breadth-first kernel the backward pass pulls; see there for the formula. Two paths are equally long if
//! their lengths, summed from the source in `f64`, are equal to the last bit, as in networkx and NetworKit. A
//! successor must also have been settled later, so that an edge too short to change a sum cannot make a cycle; on
//! graphs with such edges the three programs give three answers. The length of a path is finite, as [`Graph`]
//! promises. Invariant: between sources every distance is infinite.

use super::count::PathCount;
use super::effort::Effort;
use isles_graph::Graph;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// State of one vertex for the current source.
#[derive(Clone, Copy, Debug)]
struct VertexState<N> {
    /// Least length of a path found so far.
    distance: f64,
    /// Forward: number of such paths. Backward, once visited: `(1 + delta) / paths`.
    value: N,
    /// Position in `order` once settled, [`UNSETTLED`] before.
    rank: u32,
}

const UNSETTLED: u32 = u32::MAX;

impl<N: PathCount> VertexState<N> {
    fn unreached() -> Self {
        VertexState { distance: f64::INFINITY, value: N::default(), rank: UNSETTLED }
    }
}

/// Working memory for [`add_source`], reusable from source to source and graph to graph.
#[derive(Clone, Debug)]
pub(super) struct Workspace<N> {
    cells: Vec<VertexState<N>>,
    /// Settled vertices in order of distance.
    order: Vec<u32>,
    /// Distances as bits, which order like the numbers because none is negative; a vertex may have several entries.
    queue: BinaryHeap<Reverse<(u64, u32)>>,
}

impl<N: PathCount> Default for Workspace<N> {
    fn default() -> Self {
        Workspace { cells: Vec::new(), order: Vec::new(), queue: BinaryHeap::new() }
    }
}

/// Calls `add(vertex, dependency)` for each vertex reached from `source` except itself, and returns the effort.
/// Returns `None`, without a call, if path counts do not fit `N`.
///
/// # Panics
/// If the graph is not weighted.
#[inline(always)] // In one piece with its caller it takes a tenth less time.
pub(super) fn add_source<N: PathCount>(
    graph: &Graph,
    source: u32,
    space: &mut Workspace<N>,
    add: impl FnMut(u32, f64),
) -> Option<Effort> {
    if space.cells.len() != graph.vertices() as usize {
        space.cells = vec![VertexState::unreached(); graph.vertices() as usize];
    }
    let (effort, in_range) = forward(graph, source, space);
    if in_range {
        backward(graph, &space.order[1..], &mut space.cells, add);
    }
    for &vertex in &space.order {
        space.cells[vertex as usize] = VertexState::unreached();
    }
    space.order.clear();
    in_range.then_some(effort)
}

fn forward<N: PathCount>(graph: &Graph, source: u32, space: &mut Workspace<N>) -> (Effort, bool) {
    let Workspace { cells, order, queue } = space;
    cells[source as usize] = VertexState { distance: 0.0, value: N::ONE, rank: UNSETTLED };
    queue.push(Reverse((0, source)));
    let mut effort = Effort::default();
    let mut in_range = true;
    while let Some(Reverse((_, vertex))) = queue.pop() {
        effort.removals += 1;
        effort.queue = effort.queue.max(queue.len() as u64 + 1);
        let cell = &mut cells[vertex as usize];
        if cell.rank != UNSETTLED {
            continue;
        }
        cell.rank = order.len() as u32;
        order.push(vertex);
        let VertexState { distance, value: paths, .. } = *cell;
        in_range &= paths.in_range();
        for (target, length) in arcs(graph, vertex) {
            effort.edges += 1;
            let cell = &mut cells[target as usize];
            let reach = distance + length;
            if reach < cell.distance {
                (cell.distance, cell.value) = (reach, paths);
                queue.push(Reverse((reach.to_bits(), target)));
            } else if reach == cell.distance && cell.rank == UNSETTLED {
                cell.value = cell.value.plus(paths);
            }
        }
    }
    effort.vertices = order.len() as u64;
    (effort, in_range)
}

fn backward<N: PathCount>(
    graph: &Graph,
    order: &[u32],
    cells: &mut [VertexState<N>],
    mut add: impl FnMut(u32, f64),
) {
    for &vertex in order.iter().rev() {
        let VertexState { distance, value: paths, rank } = cells[vertex as usize];
        let mut sum = N::default();
        for (target, length) in arcs(graph, vertex) {
            let cell = cells[target as usize];
            if distance + length == cell.distance && cell.rank > rank && cell.rank != UNSETTLED {
                sum = sum.plus(cell.value);
            }
        }
        cells[vertex as usize].value = paths.reciprocal().plus(sum);
        add(vertex, paths.times(sum));
    }
}

fn arcs(graph: &Graph, vertex: u32) -> impl Iterator<Item = (u32, f64)> {
    let lengths = graph.lengths(vertex).expect("the caller chose this kernel because the graph is weighted");
    graph.neighbours(vertex).iter().copied().zip(lengths.iter().copied())
}
