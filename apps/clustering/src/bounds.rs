//! Finds the best move of a place's vertices with bounds on their gains, so that few vertices are searched.
//!
//! A move from cluster A to cluster B changes little: only vertices of B, neighbours of A's vertices and neighbours of
//! the moved vertex can gain more than before, by a known maximum. So each vertex has a bound in a tournament tree;
//! the vertex with the highest bound is evaluated until the highest bound is exact. Invariant: no vertex gains more
//! than its bound, so the best move is that of a search of all vertices, ties included.

use crate::search::{Clustered, SearchEffort, Searcher};
use crate::state::{Change, Move};
use std::ops::Range;

/// Largest excess of a gain over its bound through rounding, as a share of all weights.
const SLACK: f64 = 1e-13;

/// The bounds of a place's vertices; see the module.
pub struct Bounds {
    /// The vertices of this place.
    own: Range<u32>,
    /// The weight of each of them.
    degrees: Vec<f64>,
    bounds: Vec<f64>,
    /// The last evaluated move of each vertex and its time, 0 if the bound has been raised since.
    moves: Vec<(Move, u64)>,
    /// Winners of the tournament, with the final winner first; leaves are vertices.
    winners: Vec<u32>,
    leaves: usize,
    /// The vertices of each cluster, over all places, and each vertex's position in that list.
    members: Vec<Vec<u32>>,
    positions: Vec<u32>,
    /// Time of the last change of each cluster.
    changed: Vec<u64>,
    time: u64,
    /// The time of the last move that shrank a cluster adjacent to each vertex.
    shrank: Vec<u64>,
    row: (Vec<u32>, Vec<f64>),
}

impl Bounds {
    /// Creates infinite bounds for the vertices `own` of a place. Every vertex is in its own cluster.
    pub fn new(data: &impl Clustered, vertices: usize, own: Range<u32>) -> Bounds {
        let leaves = own.len().next_power_of_two();
        let mut bounds = Bounds {
            degrees: own.clone().map(|vertex| data.degree(vertex)).collect(),
            bounds: vec![f64::INFINITY; own.len()],
            moves: vec![(Move::NONE, 0); own.len()],
            winners: vec![0; 2 * leaves],
            leaves,
            members: (0..vertices as u32).map(|vertex| vec![vertex]).collect(),
            positions: vec![0; vertices],
            changed: vec![0; vertices],
            time: 1,
            shrank: vec![0; own.len()],
            row: (Vec::new(), Vec::new()),
            own,
        };
        (0..leaves).for_each(|leaf| bounds.winners[leaves + leaf] = leaf as u32);
        (1..leaves).rev().for_each(|node| bounds.play(node));
        bounds
    }

    fn bound(&self, leaf: u32) -> f64 {
        self.bounds.get(leaf as usize).copied().unwrap_or(f64::NEG_INFINITY)
    }

    fn play(&mut self, node: usize) {
        let (one, other) = (self.winners[2 * node], self.winners[2 * node + 1]);
        // Ties go to the first.
        self.winners[node] = if self.bound(other) > self.bound(one) { other } else { one };
    }

    fn set(&mut self, index: usize, bound: f64) {
        self.bounds[index] = bound;
        let mut node = (self.leaves + index) / 2;
        while node > 0 {
            self.play(node);
            node /= 2;
        }
    }

    /// Returns the best move, or [`Move::NONE`] if none has a gain.
    pub fn best(
        &mut self,
        data: &impl Clustered,
        searcher: &mut Searcher,
        effort: &mut SearchEffort,
    ) -> Move {
        loop {
            let index = self.winners[1] as usize;
            if self.bound(index as u32) <= 0.0 {
                return Move::NONE;
            }
            let (known, at) = self.moves[index];
            let vertex = self.own.start + index as u32;
            let is_old =
                |cluster: u32| self.changed.get(cluster as usize).is_some_and(|changed| *changed > at);
            if at > 0 && !is_old(data.cluster(vertex)) && !is_old(known.to) {
                return known;
            }
            let found = searcher.best_of(data, vertex, effort);
            self.moves[index] = (found, self.time);
            self.set(index, found.gain);
        }
    }

    /// Raises the bounds affected by a move; `data` already includes the move.
    pub fn moved(
        &mut self,
        data: &impl Clustered,
        change: Change,
        searcher: &Searcher,
        effort: &mut SearchEffort,
    ) {
        let Change { vertex, from: (from, _), to: (to, _) } = change;
        self.time += 1;
        self.changed[from as usize] = self.time;
        self.changed[to as usize] = self.time;
        let left = &mut self.members[from as usize];
        let position = self.positions[vertex as usize];
        left.swap_remove(position as usize);
        if let Some(other) = left.get(position as usize) {
            self.positions[*other as usize] = position;
        }
        let slack = searcher.total() * SLACK;
        let share = data.degree(vertex) / searcher.total();
        // Vertices in the grown cluster lose less by leaving it.
        let joined = std::mem::take(&mut self.members[to as usize]);
        joined.iter().for_each(|member| self.raise(*member, share, slack, effort));
        self.members[to as usize] = joined;
        self.positions[vertex as usize] = self.members[to as usize].len() as u32;
        self.members[to as usize].push(vertex);
        // Neighbours of the shrunk cluster gain more by joining it.
        let left = std::mem::take(&mut self.members[from as usize]);
        for member in &left {
            let (targets, _) = self.read(data, *member);
            for target in &targets {
                let Some(index) = self.index(*target) else { continue };
                // Once per vertex, regardless of the number of edges; members of the grown cluster are raised a second
                // time.
                if std::mem::replace(&mut self.shrank[index], self.time) != self.time {
                    self.raise(*target, share, slack, effort);
                }
            }
            self.row.0 = targets;
        }
        self.members[from as usize] = left;
        let (targets, weights) = self.read(data, vertex);
        // Neighbours of the moved vertex have an edge less to one cluster and an edge more to the other.
        for (target, weight) in targets.iter().zip(&weights) {
            self.raise(*target, 0.0, 2.0 * weight + slack, effort);
        }
        self.row = (targets, weights);
        if let Some(index) = self.index(vertex) {
            self.moves[index].1 = 0;
            self.set(index, f64::INFINITY);
        }
    }

    /// Returns the neighbours of a vertex and their weights; the caller returns the memory.
    fn read(&mut self, data: &impl Clustered, vertex: u32) -> (Vec<u32>, Vec<f64>) {
        let (mut targets, mut weights) = std::mem::take(&mut self.row);
        targets.clear();
        weights.clear();
        data.row(vertex, &mut targets, &mut weights);
        (targets, weights)
    }

    fn index(&self, vertex: u32) -> Option<usize> {
        self.own.contains(&vertex).then(|| (vertex - self.own.start) as usize)
    }

    /// Raises the bound of a vertex of this place by `share` of its weight and `more`; ignores other vertices.
    fn raise(&mut self, vertex: u32, share: f64, more: f64, effort: &mut SearchEffort) {
        let Some(index) = self.index(vertex) else { return };
        self.moves[index].1 = 0;
        effort.clusters += 1;
        self.set(index, self.bounds[index] + self.degrees[index] * share + more);
    }
}
