//! Finds the best move of one vertex, over local arrays or shared objects.

use crate::graph::WeightedGraph;
use crate::state::{Clustering, Move, NEW};

/// The data that a search reads.
pub trait Clustered {
    /// Appends the neighbours of a vertex and their weights.
    fn row(&self, vertex: u32, targets: &mut Vec<u32>, weights: &mut Vec<f64>);
    /// Returns the weight of all edges at a vertex.
    fn degree(&self, vertex: u32) -> f64;
    /// Returns the cluster of a vertex.
    fn cluster(&self, vertex: u32) -> u32;
    /// Returns the weight of all vertices of a cluster.
    fn weight(&self, cluster: u32) -> f64;
}

impl Clustered for (&WeightedGraph, &Clustering) {
    fn row(&self, vertex: u32, targets: &mut Vec<u32>, weights: &mut Vec<f64>) {
        let row = self.0.offsets[vertex as usize] as usize..self.0.offsets[vertex as usize + 1] as usize;
        targets.extend_from_slice(&self.0.targets[row.clone()]);
        weights.extend_from_slice(&self.0.weights[row]);
    }

    fn degree(&self, vertex: u32) -> f64 {
        self.0.degrees[vertex as usize]
    }

    fn cluster(&self, vertex: u32) -> u32 {
        self.1.clusters[vertex as usize]
    }

    fn weight(&self, cluster: u32) -> f64 {
        self.1.weights[cluster as usize]
    }
}

/// Memory that searches reuse from vertex to vertex.
#[derive(Clone, Debug)]
pub struct Searcher {
    total: f64,
    /// The weight of the edges from the vertex to each cluster; all zero between searches.
    sums: Vec<f64>,
    touched: Vec<u32>,
    targets: Vec<u32>,
    weights: Vec<f64>,
}

/// Counts of the operations of searches; a modelled chip charges their cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchEffort {
    /// The neighbours that were read.
    pub neighbours: u64,
    /// The clusters that were compared.
    pub clusters: u64,
}

impl Searcher {
    /// Creates a searcher for a graph of `vertices` vertices and half of `total` as its weight.
    pub fn new(vertices: usize, total: f64) -> Searcher {
        let sums = vec![0.0; vertices];
        Searcher { total, sums, touched: Vec::new(), targets: Vec::new(), weights: Vec::new() }
    }

    /// Returns the number of vertices of the graph.
    pub fn vertices(&self) -> usize {
        self.sums.len()
    }

    /// Returns twice the weight of all edges.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// Returns the best move of a vertex; its gain is above zero only if the move is good.
    pub fn best_of(&mut self, data: &impl Clustered, vertex: u32, effort: &mut SearchEffort) -> Move {
        self.targets.clear();
        self.weights.clear();
        data.row(vertex, &mut self.targets, &mut self.weights);
        for (target, weight) in self.targets.iter().zip(&self.weights) {
            let cluster = data.cluster(*target);
            let sum = &mut self.sums[cluster as usize];
            if *sum == 0.0 {
                self.touched.push(cluster);
            }
            *sum += weight;
        }
        let (own, degree) = (data.cluster(vertex), data.degree(vertex));
        let stays = self.sums[own as usize];
        let left = data.weight(own) - degree;
        let mut best = Move { gain: degree * left / self.total - stays, vertex, to: NEW };
        for cluster in self.touched.drain(..) {
            let leads = std::mem::take(&mut self.sums[cluster as usize]);
            if cluster != own {
                let gain = (leads - stays) - degree * (data.weight(cluster) - left) / self.total;
                best = best.better(Move { gain, vertex, to: cluster });
                effort.clusters += 1;
            }
        }
        effort.neighbours += self.targets.len() as u64;
        best
    }
}

/// Clusters a graph on one processor, in at most `steps_max` steps; returns the moves.
pub fn sequential(graph: &WeightedGraph, steps_max: u64) -> (Clustering, Vec<Move>) {
    let mut clustering = Clustering::singletons(graph);
    let mut searcher = Searcher::new(graph.vertices(), graph.total);
    let mut moves = Vec::new();
    while (moves.len() as u64) < steps_max {
        let vertices = 0..graph.vertices() as u32;
        let best = vertices.fold(Move::NONE, |best, vertex| {
            best.better(searcher.best_of(&(graph, &clustering), vertex, &mut SearchEffort::default()))
        });
        if best.gain <= 0.0 {
            break;
        }
        clustering.apply(graph, best);
        moves.push(best);
    }
    (clustering, moves)
}
