//! Multilevel clustering: vertices move locally, clusters become the vertices of a coarser graph, and so on; then the
//! clusters are refined on each graph on the way back.
//!
//! [`Multilevel`] returns the next vertices to search, and applies the moves. A batch is searched against one state,
//! so its moves do not depend on the number of searchers. When they are applied, in order, each gain is recomputed,
//! because previous moves may have changed it. Invariant: the modularity grows with each move by more than rounding,
//! so the method terminates.

use crate::graph::WeightedGraph;
use crate::search::{Clustered, SearchEffort, Searcher};
use crate::state::{Change, Clustering, Move, NEW};
use std::borrow::Cow;

/// Smallest gain of a move, as a share of all weights, that is not a rounding error.
const SLACK: f64 = 1e-12;

/// Number of batches in a sweep over all vertices. With fewer, moves of one batch conflict more often; with more,
/// places wait for each other more often.
const BATCHES: usize = 16;

/// Least vertices of a batch.
const BATCH_MIN: usize = 16;

/// The graph of one level.
struct LevelGraph<'g> {
    graph: Cow<'g, WeightedGraph>,
    /// The vertex of the next level that contains each vertex.
    parents: Vec<u32>,
}

/// The vertices to be searched, in sweeps.
struct Sweeps {
    present: Vec<u32>,
    next: Vec<u32>,
    /// `true` for each vertex that will be searched again.
    is_waiting: Vec<bool>,
    at: usize,
    batch: usize,
}

impl Sweeps {
    /// Queues all vertices, the lightest first, because their clusters settle soonest.
    fn new(graph: &WeightedGraph) -> Sweeps {
        let vertices = graph.vertices();
        let mut present: Vec<u32> = (0..vertices as u32).collect();
        present.sort_by(|one, other| graph.degrees[*one as usize].total_cmp(&graph.degrees[*other as usize]));
        let batch = (vertices / BATCHES).max(BATCH_MIN);
        Sweeps { present, next: Vec::new(), is_waiting: vec![true; vertices], at: 0, batch }
    }

    /// Returns the next batch; `None` if no vertex is left.
    fn next_batch(&mut self) -> Option<&[u32]> {
        if self.at == self.present.len() {
            std::mem::swap(&mut self.present, &mut self.next);
            self.next.clear();
            self.at = 0;
        }
        let batch = self.at..self.present.len().min(self.at + self.batch);
        self.at = batch.end;
        let batch = &self.present[batch];
        batch.iter().for_each(|vertex| self.is_waiting[*vertex as usize] = false);
        (!batch.is_empty()).then_some(batch)
    }

    fn add(&mut self, vertex: u32) {
        if !std::mem::replace(&mut self.is_waiting[vertex as usize], true) {
            self.next.push(vertex);
        }
    }
}

/// The multilevel method; see the module.
pub struct Multilevel<'g> {
    levels: Vec<LevelGraph<'g>>,
    is_refining: bool,
    state: Clustering,
    sweeps: Sweeps,
    stage: u64,
    batches: u64,
    moves: Vec<Move>,
}

impl<'g> Multilevel<'g> {
    /// Starts with each vertex in its own cluster.
    pub fn new(graph: &'g WeightedGraph) -> Multilevel<'g> {
        Multilevel {
            levels: vec![LevelGraph { graph: Cow::Borrowed(graph), parents: Vec::new() }],
            is_refining: false,
            state: Clustering::singletons(graph),
            sweeps: Sweeps::new(graph),
            stage: 0,
            batches: 0,
            moves: Vec::new(),
        }
    }

    /// Returns the vertices to search next; `None` at the end. Changes the level if none is left on the current one.
    pub fn next_batch(&mut self) -> Option<Vec<u32>> {
        loop {
            if let Some(batch) = self.sweeps.next_batch() {
                self.batches += 1;
                return Some(batch.to_vec());
            }
            let has_begun = (!self.is_refining && self.coarsen()) || self.refine();
            if !has_begun {
                return None;
            }
            self.stage += 1;
        }
    }

    /// Returns the number of the level, from 0 for the finest.
    pub fn level(&self) -> usize {
        self.levels.len() - 1
    }

    /// Returns the number of level changes; each replaces all clusters.
    pub fn stage(&self) -> u64 {
        self.stage
    }

    /// Returns the graph of the level.
    pub fn graph(&self) -> &WeightedGraph {
        &self.levels[self.level()].graph
    }

    /// Returns the clusters of the level.
    pub fn state(&self) -> &Clustering {
        &self.state
    }

    /// Applies the moves found for the last batch, in the order of its vertices; returns the changes.
    pub fn commit(&mut self, found: &[Move], effort: &mut SearchEffort) -> Vec<Change> {
        let mut changes = Vec::with_capacity(found.len());
        let graph = &*self.levels[self.levels.len() - 1].graph;
        for proposed in found {
            let (gain, neighbours) = gain_now(graph, &self.state, proposed);
            effort.neighbours += neighbours;
            if gain <= graph.total * SLACK {
                self.sweeps.add(proposed.vertex);
                continue;
            }
            let made = Move { gain, ..*proposed };
            let change = self.state.apply(graph, made);
            for (neighbour, _) in graph.row(proposed.vertex as usize) {
                if self.state.clusters[neighbour as usize] != change.to.0 {
                    self.sweeps.add(neighbour);
                }
            }
            self.moves.push(made);
            changes.push(change);
        }
        changes
    }

    /// Makes the clusters the vertices of a coarser graph; returns `true` if it has fewer vertices.
    fn coarsen(&mut self) -> bool {
        let (parents, count) = self.state.numbered();
        let last = self.level();
        let graph = &self.levels[last].graph;
        if count == graph.vertices() {
            return false;
        }
        let coarser = aggregated(graph, &parents, count);
        self.levels[last].parents = parents;
        self.state = Clustering::singletons(&coarser);
        self.sweeps = Sweeps::new(&coarser);
        self.levels.push(LevelGraph { graph: Cow::Owned(coarser), parents: Vec::new() });
        true
    }

    /// Returns to the finer graph, with the clusters of this one; returns `false` at the finest.
    fn refine(&mut self) -> bool {
        self.is_refining = true;
        if self.level() == 0 {
            return false;
        }
        self.levels.pop();
        let LevelGraph { graph, parents } = &self.levels[self.level()];
        let clusters = parents.iter().map(|parent| self.state.clusters[*parent as usize]).collect();
        self.state = Clustering::of(graph, clusters);
        self.sweeps = Sweeps::new(graph);
        true
    }

    /// Returns the clusters, all moves of all levels in order, and the number of batches.
    pub fn into_found(self) -> (Clustering, Vec<Move>, u64) {
        (self.state, self.moves, self.batches)
    }
}

/// Returns the current gain of a move, and the number of neighbours read for it; no gain if its target has become
/// empty.
fn gain_now(graph: &WeightedGraph, state: &Clustering, proposed: &Move) -> (f64, u64) {
    let vertex = proposed.vertex as usize;
    let own = state.clusters[vertex];
    let (mut leads, mut stays, mut neighbours) = (0.0, 0.0, 0);
    for (neighbour, weight) in graph.row(vertex) {
        let cluster = state.clusters[neighbour as usize];
        leads += if cluster == proposed.to { weight } else { 0.0 };
        stays += if cluster == own { weight } else { 0.0 };
        neighbours += 1;
    }
    let is_good = own != proposed.to && (proposed.to == NEW || leads > 0.0);
    let weight = if proposed.to == NEW { 0.0 } else { state.weights[proposed.to as usize] };
    let left = state.weights[own as usize] - graph.degrees[vertex];
    let gain = (leads - stays) - graph.degrees[vertex] * (weight - left) / graph.total;
    (if is_good { gain } else { 0.0 }, neighbours)
}

/// Appends the good moves of these vertices.
pub fn propose(
    searcher: &mut Searcher,
    data: &impl Clustered,
    vertices: &[u32],
    effort: &mut SearchEffort,
    found: &mut Vec<Move>,
) {
    let least = searcher.total() * SLACK;
    let best = vertices.iter().map(|vertex| searcher.best_of(data, *vertex, effort));
    found.extend(best.filter(|best| best.gain > least));
}

/// Returns the graph whose vertices are the clusters; edges within a cluster count only in its degree.
fn aggregated(graph: &WeightedGraph, parents: &[u32], count: usize) -> WeightedGraph {
    let mut starts = vec![0; count + 1];
    parents.iter().for_each(|parent| starts[*parent as usize + 1] += 1);
    (0..count).for_each(|parent| starts[parent + 1] += starts[parent]);
    let (mut ends, mut members) = (starts.clone(), vec![0; parents.len()]);
    for (vertex, parent) in parents.iter().enumerate() {
        members[ends[*parent as usize]] = vertex;
        ends[*parent as usize] += 1;
    }
    let mut coarser = WeightedGraph { offsets: vec![0], total: graph.total, ..WeightedGraph::default() };
    let (mut sums, mut touched) = (vec![0.0; count], Vec::new());
    for parent in 0..count {
        let mut degree = 0.0;
        for vertex in &members[starts[parent]..starts[parent + 1]] {
            degree += graph.degrees[*vertex];
            for (neighbour, weight) in graph.row(*vertex) {
                let to = parents[neighbour as usize];
                if sums[to as usize] == 0.0 {
                    touched.push(to);
                }
                sums[to as usize] += weight;
            }
        }
        touched.sort_unstable();
        for to in touched.drain(..) {
            let sum = std::mem::take(&mut sums[to as usize]);
            if to as usize != parent {
                coarser.targets.push(to);
                coarser.weights.push(sum);
            }
        }
        coarser.offsets.push(coarser.targets.len() as u32);
        coarser.degrees.push(degree);
    }
    coarser.lines = coarser.targets.len() as u64 / 2;
    coarser
}

/// Clusters a graph on one processor; returns the clusters, all moves, and the number of batches.
pub fn sequential(graph: &WeightedGraph) -> (Clustering, Vec<Move>, u64) {
    let mut levels = Multilevel::new(graph);
    let mut searcher = Searcher::new(graph.vertices(), graph.total);
    let (mut effort, mut found) = (SearchEffort::default(), Vec::new());
    while let Some(batch) = levels.next_batch() {
        found.clear();
        propose(&mut searcher, &(levels.graph(), levels.state()), &batch, &mut effort, &mut found);
        levels.commit(&found, &mut effort);
    }
    levels.into_found()
}
