//! Kernels that choose nodes or divide them: DS, MIS, VC and KC.
//!
//! The answer depends on random numbers, or on the order in which rules are applied, so it is checked for validity:
//! the required properties are verified in the graph. Invariant: a check covers every node.

mod committees;
mod dominating_set;
mod independent_set;
mod tree_colouring;

pub use committees::Committees;
pub use dominating_set::DominatingSet;
pub use independent_set::IndependentSet;
pub use tree_colouring::TreeColouring;

/// Returns, for each node, `true` if it answers that it is in the set.
///
/// # Errors
/// A node answers something other than 0 or 1.
fn members(answers: &[Vec<i64>]) -> Result<Vec<bool>, String> {
    let member = |(node, answer): (usize, &Vec<i64>)| match answer[..] {
        [0] => Ok(false),
        [1] => Ok(true),
        _ => Err(format!("node {node} is neither in the set nor outside")),
    };
    answers.iter().enumerate().map(member).collect()
}
