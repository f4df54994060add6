//! Scores: the sum of dependencies at each vertex, exact under any distribution of the sources.
//!
//! Floating-point sums depend on their order, and so on the distribution of sources. Therefore each dependency (which
//! one source computes alone, always in the same order) is rounded once to fixed point, and fixed-point numbers are
//! added as 128-bit integers, which is exact: any partition and any order of merging give the same bits. Error: each
//! addend is off by at most half a unit of `2^-b`, where a graph of `n` vertices has `b = 61 - ceil(log2 n)` fraction
//! bits; for the 4,941 sources of the power grid that is less than 1e-11 in total. Cost: a multiplication, a
//! conversion and a 128-bit addition per vertex and source. Invariant: nothing here adds floats.

use super::count::WideFloat;
use super::effort::{Effort, Skew};
use super::{bfs, dijkstra};
use isles_app::frame::bar;
use isles_graph::Graph;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::{self, Write};

/// Betweenness scores of the vertices of one graph, from the sources added so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Scores {
    /// Shape of the graph of the sums; `None` before the first source.
    shape: Option<ScoresShape>,
    /// Sum of the dependencies of each vertex, in units of `2^-fraction_bits`.
    sums: Vec<u128>,
    /// Number of sources added.
    sources: u64,
    /// Adjacency entries read, each counted once per source (the backward pass reads them again).
    edges_traversed: u64,
    #[serde(skip)]
    space: Workspace,
}

/// Properties on which two scores must agree before they can be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ScoresShape {
    vertices: u64,
    arcs: u64,
    directed: bool,
    weighted: bool,
}

impl ScoresShape {
    fn of(graph: &Graph) -> ScoresShape {
        ScoresShape {
            vertices: graph.vertices(),
            arcs: graph.arcs(),
            directed: graph.is_directed(),
            weighted: graph.is_weighted(),
        }
    }

    /// Returns the fraction bits. A dependency is below `vertices`, so it takes `ceil(log2 vertices)` bits before the
    /// point; one more bit is for rounding, and one is the sign bit of the conversion.
    fn fraction_bits(self) -> u32 {
        61 - self.vertices.next_power_of_two().trailing_zeros()
    }

    /// Returns the value of one unit of a sum. In an undirected graph each pair counts from both ends, hence the half.
    fn unit(self) -> f64 {
        let halving = u32::from(!self.directed);
        1.0 / (1u64 << (self.fraction_bits() + halving)) as f64
    }
}

/// Working memory of the kernels, created on first use and never sent.
#[derive(Clone, Debug, Default)]
struct Workspace {
    bfs: bfs::Workspace<f64>,
    bfs_wide: bfs::Workspace<WideFloat>,
    dijkstra: dijkstra::Workspace<f64>,
    dijkstra_wide: dijkstra::Workspace<WideFloat>,
    skew: Option<Skew>,
}

impl Scores {
    /// Returns empty scores: the first source determines their size.
    pub fn zero() -> Scores {
        Scores::default()
    }

    /// Adds the dependencies of all vertices on `source`: by breadth-first search, or by Dijkstra's algorithm if
    /// `graph` is weighted.
    ///
    /// # Panics
    /// If `source` is not a vertex, or an earlier source was of another graph.
    pub fn add_source(&mut self, graph: &Graph, source: u64) {
        let effort = self.count_source(graph, source);
        self.charge(graph, &effort);
    }

    /// Same as [`Scores::add_source`], but returns the effort instead of charging it.
    pub(super) fn count_source(&mut self, graph: &Graph, source: u64) -> Effort {
        let shape = ScoresShape::of(graph);
        assert!(source < shape.vertices, "source {source} of a graph with {} vertices", shape.vertices);
        let known = *self.shape.get_or_insert(shape);
        assert_eq!(known, shape, "scores of one graph cannot take a source of another");
        self.sums.resize(shape.vertices as usize, 0);
        let scale = (1u64 << shape.fraction_bits()) as f64;
        let (sums, source) = (&mut self.sums, source as u32);
        let mut add = |vertex: u32, dependency: f64| {
            sums[vertex as usize] += (dependency * scale + 0.5) as i64 as u128;
        };
        let space = &mut self.space;
        let effort = if graph.is_weighted() {
            dijkstra::add_source(graph, source, &mut space.dijkstra, &mut add)
                .or_else(|| dijkstra::add_source(graph, source, &mut space.dijkstra_wide, &mut add))
        } else {
            bfs::add_source(graph, source, &mut space.bfs, &mut add)
                .or_else(|| bfs::add_source(graph, source, &mut space.bfs_wide, &mut add))
        };
        let effort = effort.expect("wide counts are always in range");
        self.edges_traversed += effort.edges;
        self.sources += 1;
        effort
    }

    /// Charges a modelled core for a source.
    fn charge(&mut self, graph: &Graph, effort: &Effort) {
        let skew = self.space.skew.get_or_insert_with(|| Skew::of(graph));
        effort.passes(graph, skew).into_iter().for_each(isles::work);
    }

    /// Charges the known effort of a source; the sums become this place's part of those of `all` sources.
    pub(super) fn reuse_source(&mut self, graph: &Graph, effort: &Effort, all: &Scores) {
        self.charge(graph, effort);
        if self.shape.is_none() {
            let part = |sum: &u128| sum / isles::place_count() as u128;
            (self.shape, self.sums) = (all.shape, all.sums.iter().map(part).collect());
        }
        self.edges_traversed += effort.edges;
        self.sources += 1;
    }

    /// Returns the scores of the sources of both. Associative and commutative to the last bit.
    ///
    /// # Panics
    /// If they are of different graphs.
    pub fn merge(self, other: Scores) -> Scores {
        let (Some(ours), Some(theirs)) = (self.shape, other.shape) else {
            return if self.shape.is_some() { self } else { other };
        };
        assert_eq!(ours, theirs, "scores of different graphs cannot be merged");
        let mut merged = self;
        for (sum, addend) in merged.sums.iter_mut().zip(&other.sums) {
            *sum += addend;
        }
        merged.sources += other.sources;
        merged.edges_traversed += other.edges_traversed;
        merged
    }

    /// Returns `true` if the scores are of all sources of `graph`.
    pub(super) fn are_complete(&self, graph: &Graph) -> bool {
        self.shape == Some(ScoresShape::of(graph))
            && (self.sums.len() as u64, self.sources) == (graph.vertices(), graph.vertices())
    }

    /// Returns the number of vertices; zero before the first source.
    pub fn vertices(&self) -> u64 {
        self.sums.len() as u64
    }

    /// Returns the number of sources added; the scores are complete when it equals the number of vertices.
    pub fn sources(&self) -> u64 {
        self.sources
    }

    /// Returns the adjacency entries read, each counted once per source: the numerator of "edges traversed per
    /// second".
    pub fn edges_traversed(&self) -> u64 {
        self.edges_traversed
    }

    /// Returns the score of each vertex, in order of the vertices.
    pub fn values(&self) -> impl ExactSizeIterator<Item = f64> + '_ {
        let unit = self.shape.map_or(0.0, ScoresShape::unit);
        self.sums.iter().map(move |&sum| sum as f64 * unit)
    }

    /// Writes a line `vertex,betweenness` and one line per vertex; numbers are the shortest decimals that read back to
    /// the same bits.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn write_csv(&self, mut out: impl Write) -> io::Result<()> {
        writeln!(out, "vertex,betweenness")?;
        for (vertex, score) in self.values().enumerate() {
            writeln!(out, "{vertex},{score}")?;
        }
        out.flush()
    }

    /// Returns the `count` vertices with the highest scores, or all; ties go to the lower vertex.
    pub fn top(&self, count: usize) -> Top {
        let mut vertices: Vec<u32> = (0..self.sums.len() as u32).collect();
        let key = |&vertex: &u32| (std::cmp::Reverse(self.sums[vertex as usize]), vertex);
        if count < vertices.len() {
            vertices.select_nth_unstable_by_key(count, key);
            vertices.truncate(count);
        }
        vertices.sort_unstable_by_key(key);
        let unit = self.shape.map_or(0.0, ScoresShape::unit);
        let ranked = |vertex: u32| Ranked { vertex, score: self.sums[vertex as usize] as f64 * unit };
        Top(vertices.into_iter().map(ranked).collect())
    }
}

/// Compares the sums and the numbers of sources; working memory does not count.
impl PartialEq for Scores {
    fn eq(&self, other: &Scores) -> bool {
        (self.shape, &self.sums, self.sources, self.edges_traversed)
            == (other.shape, &other.sums, other.sources, other.edges_traversed)
    }
}

/// One line of a [`Top`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ranked {
    /// The vertex.
    pub vertex: u32,
    /// Score of the vertex.
    pub score: f64,
}

/// The most central vertices, highest first; displays as a table with bars.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Top(pub Vec<Ranked>);

impl fmt::Display for Top {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>4}  {:>10}  {:>18}", "rank", "vertex", "betweenness")?;
        let most = self.0.first().map_or(0.0, |ranked| ranked.score);
        for (index, Ranked { vertex, score }) in self.0.iter().enumerate() {
            let bar = bar(*score, most);
            let blanks = if bar.is_empty() { "" } else { "  " };
            write!(f, "\n{:>4}  {vertex:>10}  {score:>18.4}{blanks}{bar}", index + 1)?;
        }
        Ok(())
    }
}
