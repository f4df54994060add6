//! Betweenness of the graphs of the suite.
//!
//! Its own file because these are the measurements of the main job. The kernel is that of the application, not a copy.
//! The invariant: reading the graph is not timed, as it is not for the peer.

use super::batch::median;
use super::say;
use crate::options::Effort;
use isles_apps::bc::Scores;
use isles_apps::graph::{Graph, ReadOptions, Weights, open};
use std::hint::black_box;
use std::time::Instant;

/// The application's kernel without any place, on power. Prints `seconds`.
pub fn sequential_power(effort: Effort) {
    sequential(effort, "power");
}

/// The same on hep-th.
pub fn sequential_hep_th(effort: Effort) {
    sequential(effort, "hep-th");
}

fn sequential(_effort: Effort, name: &str) {
    let graph = graph(name);
    let start = Instant::now();
    let mut scores = Scores::zero();
    for source in 0..graph.vertices() {
        scores.add_source(&graph, source);
    }
    black_box(&scores);
    say("seconds", median(vec![start.elapsed().as_secs_f64()]));
    say("score_sum", scores.values().sum());
}

/// The graph as the peers read it: undirected, every edge of length one.
fn graph(name: &str) -> Graph {
    open(name, &ReadOptions { weights: Weights::Ignored, directed: false })
        .unwrap_or_else(|error| panic!("{error}"))
}
