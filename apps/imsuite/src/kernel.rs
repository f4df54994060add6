//! Kernels: the state of a node, the messages of the nodes, and the rounds that a place runs.
//!
//! A kernel refers to nodes, not places; `place_task` knows the places of nodes. Invariant: a step of a node depends on
//! its state and on the messages of the previous round, in the order of their senders; so the answer does not depend on
//! the number of places or on the order of arrival.

use super::input::Input;
use super::place_task::PlaceTask;
use clap::ValueEnum;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The kernels, by their short names in the suite's papers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, ValueEnum, Serialize, Deserialize)]
#[value(rename_all = "verbatim")]
pub enum KernelName {
    /// Distances from a root, by Bellman and Ford.
    #[default]
    BF,
    /// A tree of shortest paths from a root, layer by layer, as Dijkstra's algorithm does on edges of length one.
    DST,
    /// Agreement among traitors, by Rabin.
    BY,
    /// Routing tables of all nodes, by Dijkstra.
    DR,
    /// A dominating set, by Jia, Rajaraman and Suel.
    DS,
    /// Committees of at most K nodes, by polling and invitations.
    KC,
    /// A leader in any network, by Peleg.
    DP,
    /// A leader in a ring, using both directions, by Hirschberg and Sinclair.
    HS,
    /// A leader in a ring with one direction, by Le Lann, Chang and Roberts.
    LCR,
    /// A maximal independent set, by Luby.
    MIS,
    /// A minimum spanning tree, by Gallager, Humblet and Spira.
    MST,
    /// Three colours for a rooted tree, by Cole and Vishkin.
    VC,
}

impl KernelName {
    /// All kernels, in the order of the suite's papers.
    pub const ALL: [KernelName; 12] = [
        KernelName::BF,
        KernelName::DST,
        KernelName::BY,
        KernelName::DR,
        KernelName::DS,
        KernelName::KC,
        KernelName::DP,
        KernelName::HS,
        KernelName::LCR,
        KernelName::MIS,
        KernelName::MST,
        KernelName::VC,
    ];

    /// Returns `true` if the kernel is defined on connected graphs only.
    pub fn needs_connection(self) -> bool {
        matches!(self, KernelName::BY | KernelName::DP | KernelName::DST | KernelName::MST | KernelName::VC)
    }
}

impl fmt::Display for KernelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// A kernel in its iterative form.
pub trait Kernel: Sized + 'static {
    /// State of a node.
    type Node: 'static;

    /// Message from a node to another.
    type Message: Serialize + DeserializeOwned + Clone + Ord + 'static;

    /// Answer of a node to a question of another.
    type Reply: Serialize + DeserializeOwned + 'static;

    /// Creates a node before the first round.
    fn node(input: &Input, index: u32) -> Self::Node;

    /// Returns the answer of `node` to a question.
    fn reply(node: &Self::Node) -> Self::Reply;

    /// Runs all rounds with the nodes of one place. All places run the same rounds.
    ///
    /// # Errors
    /// A place has died.
    fn run(task: &mut PlaceTask<Self>) -> impl Future<Output = isles::Result<()>>;

    /// Returns the result of a node: a number, or one for each node.
    fn answer(node: &Self::Node) -> Vec<i64>;

    /// Checks the answers of all nodes; returns a summary in a few words.
    ///
    /// # Errors
    /// A one-line message that names the wrong answer.
    fn verify(input: &Input, answers: &[Vec<i64>]) -> Result<String, String>;
}

/// Returns the results of the nodes, of which each must have found one number.
///
/// # Errors
/// A node has found no number, or several.
pub fn single(answers: &[Vec<i64>]) -> Result<Vec<i64>, String> {
    let one = |(node, answer): (usize, &Vec<i64>)| match answer[..] {
        [number] => Ok(number),
        _ => Err(format!("node {node} has {} answers", answer.len())),
    };
    answers.iter().enumerate().map(one).collect()
}
