//! One source of an unweighted graph, by breadth-first search.
//!
//! Vertices are renumbered in the order in which the search reaches them (*positions*), so that all arrays but one are
//! read front to back or back to front. The forward pass has no branch that depends on the graph: each step writes the
//! reached vertex and the path edge it may have found, and advances the ends of both lists by zero or one. The
//! backward pass reads the path edges in reverse; each position pulls from its successors,
//!
//! ```text
//! delta[v] = paths[v] * sum over successors w of (1 + delta[w]) / paths[w]
//! ```
//!
//! so there are no predecessor lists, one division per vertex, and out-neighbours suffice on directed graphs.
//! Invariant: between sources every position is [`UNREACHED`] and every count zero.

use super::count::PathCount;
use super::effort::Effort;
use isles_graph::Graph;

/// The position of a vertex not reached from the current source; above all others.
const UNREACHED: u32 = u32::MAX;

/// Working memory for [`add_source`], reusable from source to source and graph to graph.
///
/// The arrays that the forward pass appends to have one extra entry, because it writes before it knows whether the
/// entry counts.
#[derive(Clone, Debug)]
pub(super) struct Workspace<N> {
    /// Position of each vertex; the only array with random accesses.
    positions: Vec<u32>,
    /// Vertex at each position.
    order: Vec<u32>,
    /// Number of shortest paths to each position.
    paths: Vec<N>,
    /// `(1 + delta) / paths` of each position.
    shares: Vec<N>,
    /// Edges that lie on shortest paths, by position of the source: the position of the target.
    successors: Vec<u32>,
    /// End of the successors of each position.
    ends: Vec<u32>,
}

impl<N> Default for Workspace<N> {
    fn default() -> Self {
        Workspace {
            positions: Vec::new(),
            order: Vec::new(),
            paths: Vec::new(),
            shares: Vec::new(),
            successors: Vec::new(),
            ends: Vec::new(),
        }
    }
}

impl<N: PathCount> Workspace<N> {
    fn prepare(&mut self, vertices: usize, arcs: usize) {
        self.positions.resize(vertices + 1, UNREACHED);
        self.order.resize(vertices + 1, 0);
        self.paths.resize(vertices + 1, N::default());
        self.shares.resize(vertices + 1, N::default());
        self.ends.resize(vertices + 1, 0);
        self.successors.resize(arcs + 1, 0);
    }
}

/// Calls `add(vertex, dependency)` for each vertex reached from `source` except itself, and returns the effort.
/// Returns `None`, without a call, if path counts do not fit `N`.
#[inline(always)] // In one piece with its caller it takes a tenth less time.
pub(super) fn add_source<N: PathCount>(
    graph: &Graph,
    source: u32,
    space: &mut Workspace<N>,
    add: impl FnMut(u32, f64),
) -> Option<Effort> {
    space.prepare(graph.vertices() as usize, graph.arcs() as usize);
    let mut effort = forward(graph, source, space);
    let reached = effort.vertices as usize;
    let in_range = space.paths[..reached].iter().fold(true, |all, paths| all & paths.in_range());
    if in_range {
        backward(reached, space, add);
    }
    for &vertex in &space.order[..reached] {
        space.positions[vertex as usize] = UNREACHED;
    }
    space.paths[..reached].fill(N::default());
    effort.successors = u64::from(space.ends[reached - 1]);
    in_range.then_some(effort)
}

/// Returns the effort, without the edges on paths. The list of reached vertices is also the queue.
fn forward<N: PathCount>(graph: &Graph, source: u32, space: &mut Workspace<N>) -> Effort {
    let size = space.order.len();
    // Slices of one length, so that one comparison serves several bounds checks.
    let (positions, order) = (&mut space.positions[..size], &mut space.order[..size]);
    let (paths, ends) = (&mut space.paths[..size], &mut space.ends[..size]);
    let successors = &mut space.successors[..];
    positions[source as usize] = 0;
    order[0] = source;
    paths[0] = N::ONE;
    let (mut head, mut tail, mut found) = (0, 1, 0);
    let (mut traversed, mut longest) = (0, 0);
    while head < tail {
        let level_end = tail;
        while head < level_end {
            longest = longest.max(tail - head);
            let own = paths[head];
            let row = graph.neighbours(order[head]);
            traversed += row.len() as u64;
            for &target in row {
                let position = positions[target as usize].min(tail as u32);
                positions[target as usize] = position;
                order[tail] = target;
                tail += usize::from(position as usize == tail);
                let on_path = position as usize >= level_end;
                paths[position as usize] = paths[position as usize].plus_if(on_path, own);
                successors[found] = position;
                found += usize::from(on_path);
            }
            ends[head] = found as u32;
            head += 1;
        }
    }
    let (vertices, queue) = (tail as u64, longest as u64);
    Effort { edges: traversed, vertices, removals: vertices, queue, ..Effort::default() }
}

fn backward<N: PathCount>(reached: usize, space: &mut Workspace<N>, mut add: impl FnMut(u32, f64)) {
    let (order, paths) = (&space.order[..reached], &space.paths[..reached]);
    let (shares, ends) = (&mut space.shares[..reached], &space.ends[..reached]);
    let successors = &space.successors[..ends[reached - 1] as usize];
    let mut end = ends[reached - 1] as usize;
    for position in (1..reached).rev() {
        let start = ends[position - 1] as usize;
        let mut sum = N::default();
        for &successor in &successors[start..end] {
            sum = sum.plus(shares[successor as usize]);
        }
        end = start;
        shares[position] = paths[position].reciprocal().plus(sum);
        add(order[position], paths[position].times(sum));
    }
}
