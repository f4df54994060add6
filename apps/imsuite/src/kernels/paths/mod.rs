//! Kernels that find paths and trees: BF, DST, DR and MST.
//!
//! They are checked against sequential algorithms, which share only the input with them. This file has the common parts
//! of those checks. Invariant: a node that no path reaches has the answer [`UNREACHED`].

mod bellman_ford;
mod routing_tables;
mod shortest_path_tree;
mod spanning_tree;

pub use bellman_ford::BellmanFord;
pub use routing_tables::RoutingTables;
pub use shortest_path_tree::ShortestPathTree;
pub use spanning_tree::SpanningTree;

/// The answer of a node, or about a node, that no path reaches.
const UNREACHED: i64 = -1;

/// The first node whose number is another one than that of the sequential algorithm.
///
/// # Errors
/// There is one.
fn same(name: &str, found: &[i64], expected: &[i64]) -> Result<(), String> {
    match found.iter().zip(expected).position(|(found, expected)| found != expected) {
        Some(node) => Err(format!("the {name} of node {node} is {}, not {}", found[node], expected[node])),
        None => Ok(()),
    }
}
