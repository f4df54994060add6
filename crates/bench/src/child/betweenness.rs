//! Betweenness of the graphs of the suite.
//!
//! Its own file because these are the measurements of the main job. The kernel is that of the application, not a copy.
//! The invariant: reading the graph is not timed, as it is not for the peer.

use super::say;
use crate::options::Effort;
use isles_apps::bc::Scores;
use isles_apps::graph::{Graph, ReadOptions, Weights, open};
use std::time::Instant;

/// The application's kernel without any place, on power. Prints `seconds`.
pub fn sequential_power(_effort: Effort) {
    sequential("power");
}

/// The same on hep-th.
pub fn sequential_hep_th(_effort: Effort) {
    sequential("hep-th");
}

fn sequential(name: &str) {
    let graph = graph(name);
    let start = Instant::now();
    let mut scores = Scores::zero();
    for source in 0..graph.vertices() {
        scores.add_source(&graph, source);
    }
    say("seconds", start.elapsed().as_secs_f64()); // the sum below keeps the work from being left out
    say("score_sum", scores.values().sum());
}

/// The graph as the peers read it: undirected, every edge of length one.
pub fn graph(name: &str) -> Graph {
    open(name, &ReadOptions { weights: Weights::Ignored, directed: false })
        .unwrap_or_else(|error| panic!("{error}"))
}
