//! Kernels that choose nodes or divide them: DS, MIS, VC and KC.
//!
//! Which answer they come to is a matter of chance, or of the order in which their rules are applied, so they are
//! checked for being valid: what was promised of the answer is looked up in the graph. Invariant: a check looks at
//! every node.

mod committees;
mod dominating_set;
mod independent_set;
mod tree_colouring;

pub use committees::Committees;
pub use dominating_set::DominatingSet;
pub use independent_set::IndependentSet;
pub use tree_colouring::TreeColouring;

/// Which nodes answer that they are in the set.
///
/// # Errors
/// A node answers something else than 0 or 1.
fn members(answers: &[Vec<i64>]) -> Result<Vec<bool>, String> {
    let member = |(node, answer): (usize, &Vec<i64>)| match answer[..] {
        [0] => Ok(false),
        [1] => Ok(true),
        _ => Err(format!("node {node} is neither in the set nor outside")),
    };
    answers.iter().enumerate().map(member).collect()
}
