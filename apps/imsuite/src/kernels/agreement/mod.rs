//! Kernels whose nodes agree: on a value despite traitors (BY), or on a leader (DP, HS and LCR).
//!
//! The check is the definition of agreement: all nodes that must agree do, on a permitted value. This file has the
//! check of the elections and the two directions of a ring. Invariant: the leader is the node with the greatest
//! identifier.

mod byzantine;
mod network_leader;
mod one_way_ring;
mod two_way_ring;

pub use byzantine::Byzantine;
pub use network_leader::NetworkLeader;
pub use one_way_ring::OneWayRing;
pub use two_way_ring::TwoWayRing;

use super::super::input::Input;
use super::super::kernel::single;

/// Returns the next node of a ring of `size`, clockwise or counterclockwise.
fn next_in_ring(index: u32, size: usize, is_clockwise: bool) -> u32 {
    let size = size as u32;
    if is_clockwise { (index + 1) % size } else { (index + size - 1) % size }
}

/// Returns the answer of a node: the leader, or -1 if it knows none.
fn answer_of(leader: Option<u32>) -> Vec<i64> {
    vec![leader.map_or(-1, i64::from)]
}

/// Checks that all nodes name the node with the greatest identifier.
///
/// # Errors
/// A node names another one.
fn verify_leader(input: &Input, answers: &[Vec<i64>]) -> Result<String, String> {
    let greatest = (0..input.size()).max_by_key(|node| input.identifiers[*node]).ok_or("there is no node")?;
    let found = single(answers)?;
    if let Some(node) = found.iter().position(|leader| *leader != greatest as i64) {
        return Err(format!("node {node} takes {} for the leader, not {greatest}", found[node]));
    }
    let identifier = input.identifiers[greatest];
    Ok(format!(
        "all nodes take node {greatest} for the leader, which has the greatest identifier, {identifier}"
    ))
}
