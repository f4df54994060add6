//! The nodes of one place, with their received messages.
//!
//! Nodes are distributed in blocks: each place has a run of consecutive nodes, and the lengths differ by at most one.
//! Messages of a round are kept separate from those of the next, because a place may begin a round before another has
//! taken the messages of the previous one. Invariant: a node gets all messages of a round at once, in the order of
//! their senders.

use super::input::Input;
use super::kernel::Kernel;
use isles::{Place, here, place_count};
use serde::{Deserialize, Serialize};

/// Returns the place of `node`, with `size` nodes in all.
pub fn home(node: u32, size: usize) -> Place {
    let places = place_count();
    // The last place whose first node is at or before `node`.
    let index = ((node as usize + 1) * places).div_ceil(size).saturating_sub(1);
    isles::places().nth(index).expect("a node lies at one of the places")
}

/// Returns the first node of the place with this index; the number of nodes for the index after the last place.
fn first_of(place: usize, size: usize) -> usize {
    place * size / place_count()
}

/// Messages for a node, each with its sender.
type NodeInbox<K> = Vec<(u32, <K as Kernel>::Message)>;

/// The nodes of a place.
pub struct NodeBlock<K: Kernel> {
    /// The first node of the place.
    first: u32,
    /// States of the nodes.
    pub nodes: Vec<K::Node>,
    /// The neighbours of each, ascending.
    pub neighbours: Vec<Vec<u32>>,
    /// Received messages for each node, of even rounds and of odd ones.
    inbox: [Vec<NodeInbox<K>>; 2],
    /// Counts of rounds, messages and calls.
    pub counts: CallCounts,
}

/// Counts of the communication of a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallCounts {
    /// Number of rounds.
    pub rounds: u64,
    /// Messages and questions to nodes.
    pub messages: u64,
    /// Messages and questions whose node was at another place.
    pub calls: u64,
}

impl<K: Kernel> NodeBlock<K> {
    /// Creates the nodes of this place.
    pub fn new(input: Input) -> NodeBlock<K> {
        let (size, place) = (input.size(), here().index());
        let own = first_of(place, size)..first_of(place + 1, size);
        let nodes: Vec<K::Node> = own.clone().map(|node| K::node(&input, node as u32)).collect();
        let empty = || nodes.iter().map(|_| Vec::new()).collect();
        let inbox = [empty(), empty()];
        let first = own.start as u32;
        let neighbours = input.neighbours[own].to_vec();
        NodeBlock { first, nodes, neighbours, inbox, counts: CallCounts::default() }
    }

    /// Returns the number of the node with the index `own` at this place.
    pub fn name_of(&self, own: usize) -> u32 {
        self.first + own as u32
    }

    /// Returns the state of a node of this place.
    pub fn node(&self, node: u32) -> &K::Node {
        &self.nodes[(node - self.first) as usize]
    }

    /// Stores a message for its node, for an odd round or an even one.
    pub fn receive(&mut self, is_odd: bool, from: u32, to: u32, message: K::Message) {
        self.inbox[usize::from(is_odd)][(to - self.first) as usize].push((from, message));
    }

    /// Takes the messages of a round for the node with the index `own`, ordered by sender and then by message.
    pub fn take(&mut self, is_odd: bool, own: usize) -> NodeInbox<K> {
        let mut inbox = std::mem::take(&mut self.inbox[usize::from(is_odd)][own]);
        inbox.sort_unstable();
        inbox
    }

    /// Returns the answers of the nodes and the counts.
    pub fn found(&self) -> (Vec<Vec<i64>>, CallCounts) {
        (self.nodes.iter().map(K::answer).collect(), self.counts)
    }
}
