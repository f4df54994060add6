//! Effort of one source, counted, and its cost on a core: operations by class, and the memory that they touch.
//!
//! The kernels count their operations; the sum is charged once for each pass over a source, so a real machine does not
//! notice. The numbers of operations of an edge, a vertex or an entry of the heap were counted in the kernels by eye,
//! as a compiler for a core with 32-bit registers would do it; nobody has measured them there, so the shape over places
//! is worth more than the seconds. The chip decides the cost of an operation, and which lines are in which cache.
//! Invariant: memory that a pass walks through in order is a stream, in pieces if it goes from row to row; the rest is
//! a table.

use isles::Work;
use isles_graph::Graph;
use serde::{Deserialize, Serialize};

/// Bytes of an index, a length or a count, and a sum.
const INDEX: u64 = 4;
const NUMBER: u64 = 8;
const SUM: u64 = 16;

/// A vertex with distance, value and rank; an entry of the heap.
const CELL: u64 = 24;
const ENTRY: u64 = 16;

/// Effort of one source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Effort {
    /// Adjacency entries looked at on the way forward.
    pub(super) edges: u64,
    /// Vertices reached, the source included.
    pub(super) vertices: u64,
    /// Edges on shortest paths, which the way back of the breadth-first kernel takes; it takes all otherwise.
    pub(super) successors: u64,
    /// Entries taken out of the queue, which is a heap if edges have lengths.
    pub(super) removals: u64,
    /// The most entries that it has had.
    pub(super) queue: u64,
}

impl Effort {
    /// Returns `true` if a source of `graph` can take this effort.
    pub(super) fn is_possible(&self, graph: &Graph) -> bool {
        let Effort { edges, vertices, successors, removals, queue } = *self;
        let (all, arcs) = (graph.vertices(), graph.arcs());
        // The heap has an entry of the source, and at most one of each arc.
        vertices <= all && edges <= arcs && successors <= arcs && removals <= arcs + 1 && queue <= arcs + 1
    }

    /// Returns the work of a core, pass by pass.
    pub(super) fn passes(&self, graph: &Graph) -> [Work; 2] {
        if graph.is_weighted() { self.by_distance(graph) } else { self.by_breadth(graph) }
    }

    /// Returns the work of the breadth-first kernel.
    fn by_breadth(&self, graph: &Graph) -> [Work; 2] {
        let Effort { edges, vertices, successors, .. } = *self;
        let all = graph.vertices();
        // An edge: its target, the target's position and paths, both written back, and the end of the list of edges on
        // paths. A vertex: its row, its end in that list, the ends of two loops.
        let walked = INDEX * (edges + successors + 2 * vertices);
        let forward = Work::new()
            .integers(12 * edges + 10 * vertices)
            .floats(edges)
            .branches(edges + 2 * vertices)
            .streamed(walked)
            .of(walked)
            .pieces(vertices)
            .scattered(edges, INDEX * all)
            .scattered(edges, NUMBER * vertices)
            .scattered(vertices, INDEX * all);
        // An edge on a path: its successor's share. A vertex: the reciprocal of its paths, its dependency, to whole
        // numbers and into a sum of four words; then its position is forgotten.
        let walked = INDEX * (successors + 2 * vertices) + 2 * NUMBER * vertices;
        let back = Work::new()
            .integers(4 * successors + 38 * vertices)
            .floats(successors + 5 * vertices)
            .divisions(vertices)
            .branches(successors + 4 * vertices)
            .streamed(walked)
            .of(walked)
            .scattered(successors, NUMBER * vertices)
            .scattered(vertices, SUM * all)
            .scattered(vertices, INDEX * all);
        [forward, back]
    }

    /// Returns the work of Dijkstra's kernel.
    fn by_distance(&self, graph: &Graph) -> [Work; 2] {
        let Effort { edges, vertices, removals, queue, .. } = *self;
        let all = graph.vertices();
        let walked = (INDEX + NUMBER) * edges + INDEX * vertices;
        let levels = u64::from(queue.max(2).ilog2());
        // An entry goes down as many levels as the heap has, which takes a comparison of two children and a move each,
        // and up a few; the first levels are always in the first cache, so two lines of it are looked for.
        let forward = Work::new()
            .integers(10 * edges + 12 * vertices + (10 * levels + 20) * removals)
            .floats(2 * edges)
            .branches(3 * edges + 2 * vertices + (2 * levels + 4) * removals)
            .streamed(walked)
            .of(walked)
            .pieces(2 * vertices)
            .scattered(edges + removals, CELL * all)
            .scattered(2 * removals, ENTRY * queue)
            .scattered(vertices, INDEX * all);
        let back = Work::new()
            .integers(8 * edges + 36 * vertices)
            .floats(2 * edges + 5 * vertices)
            .divisions(vertices)
            .branches(3 * edges + 4 * vertices)
            .streamed(walked)
            .of(walked)
            .pieces(2 * vertices)
            .scattered(edges + 2 * vertices, CELL * all)
            .scattered(vertices, SUM * all)
            .scattered(vertices, INDEX * all);
        [forward, back]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isles_graph::{self as graph, ReadOptions, Weights};

    #[test]
    fn each_kernel_says_what_it_has_counted() {
        let (edges, vertices, successors, removals, queue) = (100, 10, 30, 20, 16);
        let effort = Effort { edges, vertices, successors, removals, queue };
        let options = ReadOptions { weights: Weights::Ignored, directed: false };
        let karate = graph::open("karate", &options).unwrap();
        let [forward, back] = effort.passes(&karate);
        assert_eq!((forward.divisions, back.divisions, back.floats), (0, 10, 80));
        assert_eq!((forward.streamed_bytes, forward.streamed_pieces), (4 * (100 + 30 + 20), 10));
        assert_eq!(back.tables[0].accesses, 30);
        let weighted = karate.with_weights(|_, _| 1.0).unwrap();
        let [forward, _] = effort.passes(&weighted);
        assert_eq!(forward.tables[1], isles::Table { accesses: 40, bytes: 256 });
        assert_eq!(forward.branches, 300 + 20 + 12 * 20);
    }
}
