//! Kernels that find paths and trees: BF, DST, DR and MST.
//!
//! They are checked against sequential algorithms, which share only the input with them. This file has the common
//! parts of those checks. Invariant: a node without a path has the answer [`UNREACHED`].

mod bellman_ford;
mod routing_tables;
mod shortest_path_tree;
mod spanning_tree;

pub use bellman_ford::BellmanFord;
pub use routing_tables::RoutingTables;
pub use shortest_path_tree::ShortestPathTree;
pub use spanning_tree::SpanningTree;

/// The answer for a node without a path.
const UNREACHED: i64 = -1;

/// Checks that the numbers of all nodes are those of the sequential algorithm.
///
/// # Errors
/// A node has another number; the message names the first.
fn same(name: &str, found: &[i64], expected: &[i64]) -> Result<(), String> {
    match found.iter().zip(expected).position(|(found, expected)| found != expected) {
        Some(node) => Err(format!("the {name} of node {node} is {}, not {}", found[node], expected[node])),
        None => Ok(()),
    }
}
