//! The cluster of each vertex, and the changes made by a move.

use crate::graph::WeightedGraph;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The target of a move into a new cluster.
pub const NEW: u32 = u32::MAX;

/// A move of a vertex, and its gain.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Move {
    /// The increase of the modularity, times the weight of all edges.
    pub gain: f64,
    /// The vertex that moves.
    pub vertex: u32,
    /// The cluster that it joins, or [`NEW`].
    pub to: u32,
}

impl Move {
    /// A move that gains nothing, worse than any good one.
    pub const NONE: Move = Move { gain: 0.0, vertex: u32::MAX, to: NEW };

    /// Returns the move with the higher gain; ties go to the lower vertex, then to the lower cluster.
    #[must_use]
    pub fn better(self, other: Move) -> Move {
        let is_other = match other.gain.total_cmp(&self.gain) {
            std::cmp::Ordering::Greater => true,
            std::cmp::Ordering::Equal => (other.vertex, other.to) < (self.vertex, self.to),
            std::cmp::Ordering::Less => false,
        };
        if is_other { other } else { self }
    }
}

/// Effects of a move: the cluster of its vertex, and the weights of two clusters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The vertex that has moved.
    pub vertex: u32,
    /// The cluster that it left, and that cluster's new weight.
    pub from: (u32, f64),
    /// The cluster that it joined, and that cluster's new weight.
    pub to: (u32, f64),
}

/// A clustering of a graph, to which moves are applied.
#[derive(Clone, Debug)]
pub struct Clustering {
    /// The cluster of each vertex.
    pub clusters: Vec<u32>,
    /// The weight of each cluster.
    pub weights: Vec<f64>,
    sizes: Vec<u32>,
    /// The clusters that became empty, the lowest on top; some may have vertices again.
    empty: BinaryHeap<Reverse<u32>>,
}

impl Clustering {
    /// Returns the clustering with each vertex in its own cluster.
    pub fn singletons(graph: &WeightedGraph) -> Clustering {
        let vertices = graph.vertices();
        Clustering {
            clusters: (0..vertices as u32).collect(),
            weights: graph.degrees.clone(),
            sizes: vec![1; vertices],
            empty: BinaryHeap::new(),
        }
    }

    /// Returns the clustering with these clusters, by vertex. The cluster numbers must be below the number of
    /// vertices.
    pub fn of(graph: &WeightedGraph, clusters: Vec<u32>) -> Clustering {
        let vertices = graph.vertices();
        let (mut weights, mut sizes) = (vec![0.0; vertices], vec![0; vertices]);
        for (cluster, degree) in clusters.iter().zip(&graph.degrees) {
            weights[*cluster as usize] += degree;
            sizes[*cluster as usize] += 1;
        }
        let empty = (0..).zip(&sizes).filter(|(_, size)| **size == 0).map(|(cluster, _)| Reverse(cluster));
        Clustering { empty: empty.collect(), clusters, weights, sizes }
    }

    /// Takes the first empty cluster, if there is one.
    fn take_empty(&mut self) -> Option<u32> {
        let sizes = &self.sizes;
        std::iter::from_fn(|| self.empty.pop())
            .map(|cluster| cluster.0)
            .find(|cluster| sizes[*cluster as usize] == 0)
    }

    /// Returns the clusters by vertex, numbered from 0 in the order of their first vertices, and their number.
    pub fn numbered(&self) -> (Vec<u32>, usize) {
        let mut numbers = vec![NEW; self.clusters.len()];
        let mut count = 0;
        let number = |cluster: &u32| {
            let number = &mut numbers[*cluster as usize];
            if *number == NEW {
                *number = count;
                count += 1;
            }
            *number
        };
        (self.clusters.iter().map(number).collect(), count as usize)
    }

    /// Applies a move, and returns the changes.
    pub fn apply(&mut self, graph: &WeightedGraph, chosen: Move) -> Change {
        let vertex = chosen.vertex as usize;
        let (weight, from) = (graph.degrees[vertex], self.clusters[vertex]);
        let to = if chosen.to == NEW { self.take_empty().unwrap_or(from) } else { chosen.to };
        self.clusters[vertex] = to;
        self.sizes[from as usize] -= 1;
        self.sizes[to as usize] += 1;
        self.weights[to as usize] += weight;
        let left = &mut self.weights[from as usize];
        // Discards rounding residue.
        *left = if self.sizes[from as usize] == 0 { 0.0 } else { *left - weight };
        if self.sizes[from as usize] == 0 {
            self.empty.push(Reverse(from));
        }
        Change {
            vertex: chosen.vertex,
            from: (from, self.weights[from as usize]),
            to: (to, self.weights[to as usize]),
        }
    }

    /// Returns the sizes of the clusters that are not empty, the largest first.
    pub fn sizes(&self) -> Vec<u32> {
        let mut sizes: Vec<u32> = self.sizes.iter().copied().filter(|size| *size > 0).collect();
        sizes.sort_unstable_by(|one, other| other.cmp(one));
        sizes
    }
}

/// Computes the modularity of a clustering from the graph alone.
pub fn modularity(graph: &WeightedGraph, clusters: &[u32]) -> f64 {
    let vertices = graph.vertices();
    let (mut inside, mut weights) = (0.0, vec![0.0; vertices]);
    for vertex in 0..vertices {
        let same = graph.row(vertex).filter(|(to, _)| clusters[*to as usize] == clusters[vertex]);
        let edges: f64 = graph.row(vertex).map(|(_, weight)| weight).sum();
        // The remaining weight at a vertex is that of its loops.
        inside += same.map(|(_, weight)| weight).sum::<f64>() + (graph.degrees[vertex] - edges);
        weights[clusters[vertex] as usize] += graph.degrees[vertex];
    }
    let expected: f64 = weights.iter().map(|weight| (weight / graph.total) * (weight / graph.total)).sum();
    inside / graph.total - expected
}
