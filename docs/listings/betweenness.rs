//! Betweenness of one graph, the sources dealt out over all places.
//!
//! The algorithm is Brandes's: from each source a breadth-first search counts shortest paths, and the way back adds
//! up the share of each vertex (U. Brandes, A Faster Algorithm for Betweenness Centrality, 2001).
use isles::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Graph {
    neighbours: Vec<Vec<usize>>,
}

impl Graph {
    /// A path of `length` vertices.
    fn path(length: usize) -> Graph {
        let before = |vertex: usize| vertex.checked_sub(1);
        let after = |vertex: usize| Some(vertex + 1).filter(|next| *next < length);
        Graph { neighbours: (0..length).map(|v| before(v).into_iter().chain(after(v)).collect()).collect() }
    }

    fn vertices(&self) -> usize {
        self.neighbours.len()
    }
}

#[derive(Clone, Serialize, Deserialize)]
struct Scores(Vec<f64>);

impl Scores {
    fn zero(vertices: usize) -> Scores {
        Scores(vec![0.0; vertices])
    }

    fn add_source(&mut self, graph: &Graph, source: usize) {
        let vertices = graph.neighbours.len();
        let (mut distance, mut paths) = (vec![usize::MAX; vertices], vec![0.0; vertices]);
        (distance[source], paths[source]) = (0, 1.0);
        let mut order = vec![source];
        for next in 0.. {
            let Some(&vertex) = order.get(next) else { break };
            for &target in &graph.neighbours[vertex] {
                if distance[target] == usize::MAX {
                    distance[target] = distance[vertex] + 1;
                    order.push(target);
                }
                if distance[target] == distance[vertex] + 1 {
                    paths[target] += paths[vertex];
                }
            }
        }
        let mut share = vec![0.0; vertices];
        for &vertex in order.iter().skip(1).rev() {
            for &before in &graph.neighbours[vertex] {
                if distance[before] + 1 == distance[vertex] {
                    share[before] += paths[before] / paths[vertex] * (1.0 + share[vertex]);
                }
            }
            self.0[vertex] += share[vertex];
        }
    }

    fn merge(mut self, other: Scores) -> Scores {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine += theirs);
        self
    }
}

#[isles::main]
async fn main() -> isles::Result<()> {
    let graph = Replicated::new(Graph::path(101)).await?; // broadcast once, one copy a place
    let scores = PlaceLocal::with(graph.vertices(), Scores::zero).await?; // one instance a place

    let next = Counter::new(); // lives here, usable from anywhere
    finish(async {
        for place in places() {
            spawn_at!(place, {
                while let Some(source) = next.take_below(graph.vertices()).await? {
                    scores.lock().add_source(&graph, source);
                    work(Cycles(200 * graph.vertices() as u64)); // what a source costs on a modelled core
                }
            });
        }
    })
    .await?;

    let total = scores.reduce(Scores::merge).await?;
    let (vertex, score) = total.0.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).expect("not empty");
    println!("vertex {vertex} is the most central: {} shortest paths run through it", score / 2.0);
    assert_eq!((vertex, score / 2.0), (50, 2500.0)); // each pair was counted from both of its ends
    Ok(())
}
