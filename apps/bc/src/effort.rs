//! Counted effort of one source, and its cost on a core: operations by class, and the memory that they access.
//!
//! The kernels count their operations; the sum is charged once per pass over a source, so the cost on a real machine
//! is negligible. The operations per edge, vertex or heap entry were counted in the kernels by hand, as a compiler for
//! a core with 32-bit registers would generate them; they are not measured, so relative times over places are more
//! reliable than seconds. The chip determines the cost of an operation, and the contents of caches. Invariant: memory
//! that a pass reads in order is a stream, in pieces if it goes from row to row; the rest is a table.

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
    /// Adjacency entries read in the forward pass.
    pub(super) edges: u64,
    /// Number of reached vertices, including the source.
    pub(super) vertices: u64,
    /// Edges on shortest paths, which the backward pass of the breadth-first kernel reads; the other kernel reads all.
    pub(super) successors: u64,
    /// Number of entries removed from the queue, which is a heap if edges have lengths.
    pub(super) removals: u64,
    /// Maximum length of the queue.
    pub(super) queue: u64,
}

impl Effort {
    /// Returns `true` if a source of `graph` can have this effort.
    pub(super) fn is_possible(&self, graph: &Graph) -> bool {
        let Effort { edges, vertices, successors, removals, queue } = *self;
        let (all, arcs) = (graph.vertices(), graph.arcs());
        // The heap has an entry of the source, and at most one of each arc.
        vertices <= all && edges <= arcs && successors <= arcs && removals <= arcs + 1 && queue <= arcs + 1
    }

    /// Returns the work of a core for each pass.
    pub(super) fn passes(&self, graph: &Graph, skew: &Skew) -> [Work; 2] {
        if graph.is_weighted() { self.by_distance(graph, skew) } else { self.by_breadth(graph, skew) }
    }

    /// Returns the work of the breadth-first kernel.
    fn by_breadth(&self, graph: &Graph, skew: &Skew) -> [Work; 2] {
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
            .pieces(vertices);
        let forward = skew.scattered(forward, [edges, 0], INDEX * all);
        let forward = skew.scattered(forward, [edges, 0], NUMBER * vertices).scattered(vertices, INDEX * all);
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
    fn by_distance(&self, graph: &Graph, skew: &Skew) -> [Work; 2] {
        let Effort { edges, vertices, removals, queue, .. } = *self;
        let all = graph.vertices();
        let walked = (INDEX + NUMBER) * edges + INDEX * vertices;
        let levels = u64::from(queue.max(2).ilog2());
        // An entry moves down all levels of the heap, each with a comparison of two children and a move, and up a few;
        // the first levels are always in the first-level cache, so two lines are looked up there.
        let forward = Work::new()
            .integers(10 * edges + 12 * vertices + (10 * levels + 20) * removals)
            .floats(2 * edges)
            .branches(3 * edges + 2 * vertices + (2 * levels + 4) * removals)
            .streamed(walked)
            .of(walked)
            .pieces(2 * vertices);
        let forward = skew
            .scattered(forward, [edges + removals, 0], CELL * all)
            .scattered(2 * removals, ENTRY * queue)
            .scattered(vertices, INDEX * all);
        let back = Work::new()
            .integers(8 * edges + 36 * vertices)
            .floats(2 * edges + 5 * vertices)
            .divisions(vertices)
            .branches(3 * edges + 4 * vertices)
            .streamed(walked)
            .of(walked)
            .pieces(2 * vertices);
        let back = skew
            .scattered(back, [edges, 2 * vertices], CELL * all)
            .scattered(vertices, SUM * all)
            .scattered(vertices, INDEX * all);
        [forward, back]
    }
}

/// Distribution of edges over the vertices of a graph, in three classes of vertices by their number of edges.
///
/// A vertex's cell is used once per edge to it, so hubs are found in a cache more often than others. Three classes are
/// nearly as accurate as one per vertex: for an R-MAT graph of 16,384 vertices (`large`), a cache of 8,192 lines finds
/// 0.62 of the cells with all degrees, 0.59 with three classes, and 0.41 with one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Skew {
    /// Vertices of each class, and the edges to them.
    classes: [VertexClass; CLASSES],
}

/// Vertices with similar numbers of edges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct VertexClass {
    vertices: u64,
    edges: u64,
}

/// Number of classes, each with nearly four times as many vertices as all previous ones together.
const CLASSES: usize = 3;

impl Skew {
    pub(super) fn of(graph: &Graph) -> Skew {
        let all = graph.vertices();
        let mut degrees = vec![0_u64; all as usize];
        for vertex in 0..all as u32 {
            graph.neighbours(vertex).iter().for_each(|target| degrees[*target as usize] += 1);
        }
        degrees.sort_unstable_by(|one, other| other.cmp(one));
        let mut classes = [VertexClass::default(); CLASSES];
        let mut begin = 0;
        for (class, shift) in classes.iter_mut().zip((0..CLASSES).rev()) {
            let end = degrees.len() >> (2 * shift);
            let edges = degrees[begin..end].iter().sum();
            *class = VertexClass { vertices: (end - begin) as u64, edges };
            begin = end;
        }
        Skew { classes }
    }

    /// Adds the accesses to a table of `bytes` bytes with an entry for each vertex: `by_edge` of them in proportion to
    /// the vertices' edges, `by_vertex` uniformly.
    fn scattered(&self, work: Work, [by_edge, by_vertex]: [u64; 2], bytes: u64) -> Work {
        let (vertices, edges) = self
            .classes
            .iter()
            .fold((0, 0), |(vertices, edges), class| (vertices + class.vertices, edges + class.edges));
        let part = |of: u64, share: u64, all: u64| {
            (u128::from(of) * u128::from(share)).checked_div(u128::from(all)).unwrap_or(0) as u64
        };
        self.classes.iter().fold(work, |work, class| {
            let accesses = part(by_edge, class.edges, edges) + part(by_vertex, class.vertices, vertices);
            work.scattered(accesses, part(bytes, class.vertices, vertices))
        })
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
        let skew = Skew::of(&karate);
        let [forward, back] = effort.passes(&karate, &skew);
        assert_eq!((forward.divisions, back.divisions, back.floats), (0, 10, 80));
        assert_eq!((forward.streamed_bytes, forward.streamed_pieces), (4 * (100 + 30 + 20), 10));
        assert_eq!(back.tables[0].accesses, 30);
        // Of 34 members the two with most edges, the next six, and the rest: 17 + 16, 48 and 59 of 156 ends.
        let classes = skew.classes.map(|class| (class.vertices, class.edges));
        assert_eq!(classes, [(2, 33), (6, 48), (26, 75)]);
        let accesses: Vec<u64> = forward.tables[..3].iter().map(|table| table.accesses).collect();
        assert_eq!(accesses, [100 * 33 / 156, 100 * 48 / 156, 100 * 75 / 156]);
        let weighted = karate.with_weights(|_, _| 1.0).unwrap();
        let [forward, _] = effort.passes(&weighted, &skew);
        assert_eq!(forward.tables[3], isles::Table { accesses: 40, bytes: 256 });
        assert_eq!(forward.branches, 300 + 20 + 12 * 20);
    }
}
