//! Checks scores against their definition: the share of shortest paths through a vertex, summed over all pairs.
//!
//! The kernels sum dependencies from the farthest vertex back (Brandes). Here paths are only counted forwards: all of
//! them, and those through each tested vertex. Both use the same rule for equally long paths: their lengths, summed
//! from the source in `f64`, are equal to the last bit. Invariant: it shares no code with the kernels.

use super::Scores;
use isles_app::frame::Verification;
use isles_graph::Graph;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Numbers of tested vertices: those with the highest scores, and others, evenly spread over all.
const HIGHEST: usize = 4;
const SPREAD: usize = 4;
const TESTED: usize = HIGHEST + SPREAD;

/// Largest relative error of a score against the definition; both sum one term per pair.
const ERROR_MAX: f64 = 1e-9;

/// Compares some scores of `graph` with their definition; `None` if numbers of paths exceed `f64`.
pub(super) fn by_definition(graph: &Graph, scores: &Scores) -> Option<Verification> {
    let vertices = graph.vertices() as u32;
    let highest = scores.top(HIGHEST).0.into_iter().map(|ranked| ranked.vertex);
    let spread = (0..SPREAD as u64).map(|part| (part * u64::from(vertices) / SPREAD as u64) as u32);
    let tested: Vec<u32> = highest.chain(spread).filter(|vertex| *vertex < vertices).collect();
    let mut expected = [0.0; TESTED];
    for source in 0..vertices {
        add_source(graph, source, &tested, &mut expected);
    }
    if expected.iter().any(|score| !score.is_finite()) {
        return None;
    }
    let halves = if graph.is_directed() { 1.0 } else { 0.5 };
    let values: Vec<f64> = scores.values().collect();
    let error = |(vertex, expected): (&u32, &f64)| {
        (values[*vertex as usize] - expected * halves).abs() / (expected * halves).max(1.0)
    };
    let worst = tested.iter().zip(&expected).map(error).fold(0.0, f64::max);
    let all = scores.sources() == u64::from(vertices);
    let text = format!(
        "{} scores against their definition, counting all paths forwards: at most {worst:.1e} off; {} of \
         {vertices} sources",
        tested.len(),
        scores.sources()
    );
    Some(Verification { holds: all && worst <= ERROR_MAX, text })
}

/// Adds, for each tested vertex, the shares of the shortest paths from `source` through it.
fn add_source(graph: &Graph, source: u32, tested: &[u32], sums: &mut [f64; TESTED]) {
    let (order, distances) = settle(graph, source);
    let mut ranks = vec![usize::MAX; distances.len()];
    for (rank, vertex) in order.iter().enumerate() {
        ranks[*vertex as usize] = rank;
    }
    let mut paths = vec![0.0; distances.len()];
    let mut over = vec![[0.0; TESTED]; distances.len()];
    paths[source as usize] = 1.0;
    for &vertex in &order {
        let at = vertex as usize;
        let lanes = |number: &usize| tested[*number] == vertex;
        for number in (0..tested.len()).filter(lanes) {
            over[at][number] = if vertex == source { 0.0 } else { paths[at] };
        }
        for (target, length) in arcs(graph, vertex) {
            let target = target as usize;
            if distances[at] + length == distances[target] && ranks[target] > ranks[at] {
                paths[target] += paths[at];
                let from = over[at];
                over[target].iter_mut().zip(from).for_each(|(sum, more)| *sum += more);
            }
        }
        for (number, sum) in sums.iter_mut().enumerate().take(tested.len()) {
            *sum += if tested[number] == vertex { 0.0 } else { over[at][number] / paths[at] };
        }
    }
}

/// Returns the reachable vertices, nearest first, and the distance of each.
fn settle(graph: &Graph, source: u32) -> (Vec<u32>, Vec<f64>) {
    let mut distances = vec![f64::INFINITY; graph.vertices() as usize];
    distances[source as usize] = 0.0;
    let mut order = Vec::new();
    if !graph.is_weighted() {
        let mut queue = VecDeque::from([source]);
        while let Some(vertex) = queue.pop_front() {
            order.push(vertex);
            let reach = distances[vertex as usize] + 1.0;
            for &target in graph.neighbours(vertex) {
                if distances[target as usize].is_infinite() {
                    distances[target as usize] = reach;
                    queue.push_back(target);
                }
            }
        }
        return (order, distances);
    }
    let mut is_settled = vec![false; distances.len()];
    // Distances as bits, which order like the numbers because none is negative.
    let mut queue = BinaryHeap::from([Reverse((0, source))]);
    while let Some(Reverse((_, vertex))) = queue.pop() {
        if std::mem::replace(&mut is_settled[vertex as usize], true) {
            continue;
        }
        order.push(vertex);
        for (target, length) in arcs(graph, vertex) {
            let reach = distances[vertex as usize] + length;
            if reach < distances[target as usize] {
                distances[target as usize] = reach;
                queue.push(Reverse((reach.to_bits(), target)));
            }
        }
    }
    (order, distances)
}

/// Returns the out-neighbours of a vertex with the lengths of the edges to them.
fn arcs(graph: &Graph, vertex: u32) -> impl Iterator<Item = (u32, f64)> {
    let lengths = graph.lengths(vertex);
    let length = move |number: usize| lengths.map_or(1.0, |lengths| lengths[number]);
    graph.neighbours(vertex).iter().enumerate().map(move |(number, target)| (*target, length(number)))
}
