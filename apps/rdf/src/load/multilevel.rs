//! Partitioning of a graph into parts of about equal weight with few edges between them, by a multilevel method.
//!
//! As in METIS (Karypis and Kumar, "A fast and high quality multilevel scheme for partitioning irregular graphs",
//! 1998) the graph is coarsened, the coarsest graph is partitioned, and the result is refined level by level. Instead
//! of matching pairs, vertices are clustered by size-constrained label propagation (Meyerhenke, Sanders and Schulz,
//! "Partitioning complex networks via size-constrained clustering", 2014): RDF has vertices with so large a degree
//! that matching barely shrinks the graph. It knows no triples. Invariant: equal graphs have equal parts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Allowed ratio of the weight of the heaviest part to the mean.
const IMBALANCE: f64 = 1.05;

/// Approximate number of vertices of the coarsest graph per part.
const COARSEST_PER_PART: usize = 60;

/// A cluster weighs at most a part divided by this number, so that the coarsest graph can be balanced.
const CLUSTERS_PER_PART: u64 = 20;

/// Rounds of label propagation at a level.
const CLUSTER_ROUNDS: usize = 3;

/// Number of start vertices tried when the coarsest graph is partitioned.
const GROWING_TRIALS: usize = 8;

/// Rounds of refinement at a level.
const REFINE_ROUNDS: usize = 6;

/// An undirected weighted graph as adjacency lists.
#[derive(Clone, Debug, Default)]
pub struct WeightedGraph {
    /// Start of the neighbours of each vertex, and the end of the last.
    starts: Vec<usize>,
    /// Neighbours and the weights of the edges to them.
    neighbours: Vec<(u32, u32)>,
    weights: Vec<u64>,
}

impl WeightedGraph {
    /// Creates a graph of vertices with these weights; parallel edges add up, and loops are ignored.
    pub fn of(weights: Vec<u64>, edges: impl Iterator<Item = (u32, u32)> + Clone) -> WeightedGraph {
        WeightedGraph::of_weighted(weights, edges.map(|(one, other)| (one, other, 1)))
    }

    fn of_weighted(weights: Vec<u64>, edges: impl Iterator<Item = (u32, u32, u32)> + Clone) -> WeightedGraph {
        let mut starts = vec![0; weights.len() + 1];
        let edges = edges.filter(|(one, other, _)| one != other);
        for (one, other, _) in edges.clone() {
            starts[one as usize + 1] += 1;
            starts[other as usize + 1] += 1;
        }
        for vertex in 0..weights.len() {
            starts[vertex + 1] += starts[vertex];
        }
        let mut next = starts.clone();
        let mut neighbours = vec![(0, 0); starts[weights.len()]];
        for (one, other, weight) in edges {
            for (from, to) in [(one, other), (other, one)] {
                neighbours[next[from as usize]] = (to, weight);
                next[from as usize] += 1;
            }
        }
        WeightedGraph { starts, neighbours, weights }
    }

    fn len(&self) -> usize {
        self.weights.len()
    }

    fn neighbours(&self, vertex: usize) -> &[(u32, u32)] {
        &self.neighbours[self.starts[vertex]..self.starts[vertex + 1]]
    }

    fn total(&self) -> u64 {
        self.weights.iter().sum()
    }

    /// Sums the weights of the edges from a vertex to each group; groups come in the order of its neighbours.
    fn connections(&self, vertex: usize, groups: &[u32], out: &mut Connections) {
        out.clear();
        for (neighbour, weight) in self.neighbours(vertex) {
            out.add(groups[*neighbour as usize], u64::from(*weight));
        }
    }

    /// Returns the weight of the edges between different parts.
    fn cut(&self, parts: &[u32]) -> u64 {
        let of_vertex = |vertex: usize| -> u64 {
            let others = self.neighbours(vertex).iter();
            let cut = others.filter(|(other, _)| parts[*other as usize] != parts[vertex]);
            cut.map(|(_, weight)| u64::from(*weight)).sum()
        };
        (0..self.len()).map(of_vertex).sum::<u64>() / 2
    }
}

/// Sums of weights by group, in order of first occurrence. It has a slot for each group and clears only the used ones:
/// a hash table that one vertex of very large degree has grown would be slow for all others.
#[derive(Debug)]
struct Connections {
    /// The position of each group among the sums, or [`Connections::NONE`].
    positions: Vec<u32>,
    sums: Vec<(u32, u64)>,
}

impl Connections {
    const NONE: u32 = u32::MAX;

    /// Creates sums for groups below `groups`.
    fn new(groups: usize) -> Connections {
        Connections { positions: vec![Connections::NONE; groups], sums: Vec::new() }
    }

    fn clear(&mut self) {
        for (group, _) in self.sums.drain(..) {
            self.positions[group as usize] = Connections::NONE;
        }
    }

    fn add(&mut self, group: u32, weight: u64) {
        let position = &mut self.positions[group as usize];
        match self.sums.get_mut(*position as usize) {
            Some((_, sum)) => *sum += weight,
            None => {
                *position = self.sums.len() as u32;
                self.sums.push((group, weight));
            }
        }
    }

    fn of(&self, group: u32) -> u64 {
        self.sums.get(self.positions[group as usize] as usize).map_or(0, |sum| sum.1)
    }
}

/// Returns the part of each vertex, below `parts`.
pub fn partition(graph: &WeightedGraph, parts: usize) -> Vec<u32> {
    if parts < 2 {
        return vec![0; graph.len()];
    }
    let cluster_max = (graph.total() / (parts as u64 * CLUSTERS_PER_PART)).max(1);
    let mut levels: Vec<(WeightedGraph, Vec<u32>)> = Vec::new();
    let mut coarsest = graph.clone();
    while coarsest.len() > parts * COARSEST_PER_PART {
        let (clusters, count) = clustered(&coarsest, cluster_max);
        if count * 20 > coarsest.len() * 19 {
            break;
        }
        let coarser = contracted(&coarsest, &clusters, count);
        levels.push((std::mem::replace(&mut coarsest, coarser), clusters));
    }
    let mut own = grown(&coarsest, parts);
    refine(&coarsest, &mut own, parts);
    for (finer, clusters) in levels.iter().rev() {
        own = clusters.iter().map(|cluster| own[*cluster as usize]).collect();
        refine(finer, &mut own, parts);
    }
    own
}

/// Returns the cluster of each vertex, and the number of clusters. Vertices with few neighbours choose first.
fn clustered(graph: &WeightedGraph, weight_max: u64) -> (Vec<u32>, usize) {
    let mut clusters: Vec<u32> = (0..graph.len() as u32).collect();
    let mut weights = graph.weights.clone();
    let mut order = clusters.clone();
    order.sort_by_key(|vertex| graph.neighbours(*vertex as usize).len());
    let mut connections = Connections::new(graph.len());
    for _ in 0..CLUSTER_ROUNDS {
        let mut moved = 0;
        for vertex in order.iter().map(|vertex| *vertex as usize) {
            graph.connections(vertex, &clusters, &mut connections);
            let (own, weight) = (clusters[vertex], graph.weights[vertex]);
            let fits = |cluster: u32| cluster == own || weights[cluster as usize] + weight <= weight_max;
            let candidates = connections.sums.iter().filter(|(cluster, _)| fits(*cluster));
            // Ties go to the vertex's own cluster, then to the lightest.
            let best = candidates.max_by_key(|(cluster, sum)| {
                (*sum, *cluster == own, Reverse((weights[*cluster as usize], *cluster)))
            });
            if let Some((best, _)) = best.copied().filter(|(best, _)| *best != own) {
                weights[own as usize] -= weight;
                weights[best as usize] += weight;
                clusters[vertex] = best;
                moved += 1;
            }
        }
        if moved * 50 < graph.len() {
            break;
        }
    }
    let mut dense = vec![u32::MAX; graph.len()];
    let mut count = 0;
    for cluster in &mut clusters {
        let number = &mut dense[*cluster as usize];
        if *number == u32::MAX {
            *number = count;
            count += 1;
        }
        *cluster = *number;
    }
    (clusters, count as usize)
}

/// Returns the graph whose vertices are the clusters.
fn contracted(graph: &WeightedGraph, clusters: &[u32], count: usize) -> WeightedGraph {
    let mut weights = vec![0; count];
    clusters.iter().zip(&graph.weights).for_each(|(cluster, weight)| weights[*cluster as usize] += weight);
    let mut edges: Vec<(u32, u32, u32)> = Vec::new();
    for (vertex, cluster) in clusters.iter().enumerate() {
        for (other, weight) in graph.neighbours(vertex) {
            let other = clusters[*other as usize];
            if *cluster < other {
                edges.push((*cluster, other, *weight));
            }
        }
    }
    edges.sort_unstable_by_key(|(one, other, _)| (*one, *other));
    edges.dedup_by(|next, kept| {
        let is_same = (next.0, next.1) == (kept.0, kept.1);
        if is_same {
            kept.2 = kept.2.saturating_add(next.2);
        }
        is_same
    });
    WeightedGraph::of_weighted(weights, edges.iter().copied())
}

/// Returns the maximum weight of a part.
fn weight_max(graph: &WeightedGraph, parts: usize) -> u64 {
    (graph.total() as f64 / parts as f64 * IMBALANCE).ceil() as u64
}

/// Returns initial parts by greedy graph growing: a part adds the vertex with most edges to it until it has its
/// weight. Several start vertices are tried; the least cut after refinement wins.
fn grown(graph: &WeightedGraph, parts: usize) -> Vec<u32> {
    let trials = (0..GROWING_TRIALS.min(graph.len().max(1))).map(|trial| {
        let mut own = grown_from(graph, parts, trial * graph.len() / GROWING_TRIALS);
        refine(graph, &mut own, parts);
        (graph.cut(&own), own)
    });
    trials.min_by_key(|(cut, _)| *cut).map(|(_, own)| own).unwrap_or_default()
}

fn grown_from(graph: &WeightedGraph, parts: usize, first: usize) -> Vec<u32> {
    let none = parts as u32 - 1; // the last part is what is left
    let mut own = vec![none; graph.len()];
    let mut left = graph.total();
    let mut starts = (first..graph.len()).chain(0..first);
    for part in 0..none {
        let target = left / u64::from(none - part + 1);
        let (mut weight, mut gains) = (0, vec![0_u64; graph.len()]);
        let mut candidates = BinaryHeap::new();
        while weight < target {
            // A candidate with a larger gain has been queued again.
            let best = std::iter::from_fn(|| candidates.pop())
                .find(|(gain, Reverse(vertex))| own[*vertex] == none && gains[*vertex] == *gain);
            let next = best.map(|(_, Reverse(vertex))| vertex);
            let Some(vertex) = next.or_else(|| starts.find(|vertex| own[*vertex] == none)) else { break };
            own[vertex] = part;
            weight += graph.weights[vertex];
            for (other, edge) in graph.neighbours(vertex) {
                let other = *other as usize;
                gains[other] += u64::from(*edge);
                if own[other] == none {
                    candidates.push((gains[other], Reverse(other)));
                }
            }
        }
        left -= weight;
    }
    own
}

/// Moves vertices to the part to which they have most edges, as long as there is room, and out of overweight parts.
fn refine(graph: &WeightedGraph, own: &mut [u32], parts: usize) {
    let mut weights = vec![0_u64; parts];
    own.iter().zip(&graph.weights).for_each(|(part, weight)| weights[*part as usize] += weight);
    let (mut connections, max) = (Connections::new(parts), weight_max(graph, parts));
    for _ in 0..REFINE_ROUNDS {
        let mut moved = 0;
        for vertex in 0..graph.len() {
            let (part, weight) = (own[vertex], graph.weights[vertex]);
            graph.connections(vertex, own, &mut connections);
            let (inside, too_heavy) = (connections.of(part), weights[part as usize] > max);
            if !too_heavy && connections.sums.len() < 2 && inside > 0 {
                continue;
            }
            let has_room = |other: u32| other != part && weights[other as usize] + weight <= max;
            let key = |other: &u32| (connections.of(*other), Reverse((weights[*other as usize], *other)));
            let best = match too_heavy {
                true => (0..parts as u32).filter(|other| has_room(*other)).max_by_key(key),
                false => {
                    connections.sums.iter().map(|sum| sum.0).filter(|other| has_room(*other)).max_by_key(key)
                }
            };
            let Some(best) = best else { continue };
            let gain = connections.of(best);
            let evens = weights[best as usize] + weight < weights[part as usize];
            if too_heavy || gain > inside || gain == inside && evens {
                weights[part as usize] -= weight;
                weights[best as usize] += weight;
                own[vertex] = best;
                moved += 1;
            }
        }
        if moved == 0 {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a pseudo-random number.
    fn mixed(number: u64) -> u64 {
        let mixed = (number ^ (number >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 20
    }

    fn weights_of(graph: &WeightedGraph, own: &[u32], parts: usize) -> Vec<u64> {
        let mut weights = vec![0; parts];
        own.iter().zip(&graph.weights).for_each(|(part, weight)| weights[*part as usize] += weight);
        weights
    }

    /// Groups of 500 vertices with many edges inside and one to the next group; the vertex numbers are shuffled.
    #[test]
    fn groups_that_hang_together_stay_together() {
        let (groups, size) = (8_u32, 500_u32);
        let place = |vertex: u32| {
            let step = 2_743; // has no factor in common with 4,000
            vertex * step % (groups * size)
        };
        let mut edges = Vec::new();
        for group in 0..groups {
            for vertex in 0..size {
                for try_number in 0..4 {
                    let other = mixed(u64::from(group * size + vertex) * 7 + try_number) as u32 % size;
                    edges.push((place(group * size + vertex), place(group * size + other)));
                }
            }
            edges.push((place(group * size), place((group + 1) % groups * size)));
        }
        let graph = WeightedGraph::of(vec![1; (groups * size) as usize], edges.iter().copied());
        for parts in [2, 4, 8] {
            let own = partition(&graph, parts);
            let cut = graph.cut(&own);
            assert!(cut <= 2 * u64::from(groups), "{parts} parts cut {cut} of {} edges", edges.len());
            let heaviest = weights_of(&graph, &own, parts).into_iter().max().unwrap();
            assert!(heaviest <= weight_max(&graph, parts), "{parts} parts: {heaviest}");
            assert_eq!(own, partition(&graph, parts));
        }
    }

    #[test]
    fn hubs_lone_vertices_and_odd_numbers_of_parts_are_balanced() {
        let edges = (1..3_000_u32).map(|leaf| (leaf % 3, leaf));
        let graph = WeightedGraph::of((0..3_500).map(|vertex| 1 + mixed(vertex) % 5).collect(), edges);
        for parts in [1, 2, 3, 7, 48] {
            let own = partition(&graph, parts);
            assert!(own.iter().all(|part| (*part as usize) < parts));
            let heaviest = weights_of(&graph, &own, parts).into_iter().max().unwrap();
            assert!(heaviest <= weight_max(&graph, parts) + 5, "{parts} parts: {heaviest}");
        }
        assert!(partition(&WeightedGraph::of(Vec::new(), std::iter::empty()), 3).is_empty());
        assert_eq!(partition(&WeightedGraph::of(vec![9], std::iter::empty()), 3).len(), 1);
    }
}
