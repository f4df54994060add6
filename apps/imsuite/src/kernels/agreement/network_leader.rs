//! DP: a leader in any connected network, in a time bounded by its diameter.
//!
//! Peleg's algorithm (Journal of Parallel and Distributed Computing 8, 1990). In each pulse all nodes send their
//! neighbours the greatest identifier that they know, and the greatest known distance that it has travelled. The
//! distance flows back to the candidate, which learns of each hop two pulses later. A candidate that knows no greater
//! identifier, and for two pulses no greater distance, is the leader; this spreads in the same way. Invariant: after
//! pulse *p* the greatest identifier has travelled *p* hops.

use super::super::super::input::Input;
use super::super::super::kernel::Kernel;
use super::super::super::place_task::{NodeContext, PlaceTask};
use super::{answer_of, verify_leader};
use serde::{Deserialize, Serialize};

/// The kernel DP.
pub struct NetworkLeader;

/// Pulses without change after which a candidate is the leader.
const QUIET: u32 = 2;

/// A node of the kernel.
pub struct Node {
    /// The greatest identifier that it knows.
    greatest: u64,
    /// The greatest known distance that this identifier has travelled, in hops.
    farthest: u32,
    /// `true` if the greatest identifier is its own.
    is_candidate: bool,
    /// Number of pulses without growth of the distance.
    quiet: u32,
    leader: Option<u32>,
}

/// Messages of DP.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PulseMessage {
    /// The greatest identifier, and the greatest known distance that it has travelled.
    Known {
        /// The identifier.
        greatest: u64,
        /// The distance in hops.
        farthest: u32,
    },
    /// The leader.
    Leader(u32),
}

impl Node {
    /// Updates the node with the identifiers and distances known to the neighbours, at the end of a pulse.
    fn learn(&mut self, pulse: u32, known: &[(u64, u32)]) {
        let greatest = known.iter().map(|(greatest, _)| *greatest).max().unwrap_or(0);
        let is_overtaken = greatest > self.greatest;
        if is_overtaken {
            (self.greatest, self.farthest, self.is_candidate) = (greatest, pulse, false);
        }
        let of_greatest = known.iter().filter(|(greatest, _)| *greatest == self.greatest);
        let farthest = of_greatest.map(|(_, farthest)| *farthest).max().unwrap_or(0);
        self.quiet = if farthest > self.farthest { 0 } else { self.quiet + 1 };
        self.farthest = self.farthest.max(farthest);
    }

    fn pulse(context: &mut NodeContext<'_, NetworkLeader>, pulse: u32) {
        let (mut known, mut leader) = (Vec::new(), None);
        for message in context.messages() {
            match message {
                PulseMessage::Known { greatest, farthest } => known.push((greatest, farthest)),
                PulseMessage::Leader(other) => leader = Some(other),
            }
        }
        if context.node.leader.is_some() {
            return; // it has told its neighbours
        }
        if pulse > 0 {
            context.node.learn(pulse, &known);
        }
        let is_leader = context.node.is_candidate && context.node.quiet >= QUIET;
        context.node.leader = leader.or(is_leader.then_some(context.index));
        let Node { greatest, farthest, leader, .. } = *context.node;
        context.send_all(leader.map_or(PulseMessage::Known { greatest, farthest }, PulseMessage::Leader));
    }
}

impl Kernel for NetworkLeader {
    type Node = Node;
    type Message = PulseMessage;
    type Reply = ();

    fn node(input: &Input, index: u32) -> Node {
        let greatest = input.identifiers[index as usize];
        Node { greatest, farthest: 0, is_candidate: true, quiet: 0, leader: None }
    }

    fn reply(_: &Node) {}

    async fn run(task: &mut PlaceTask<Self>) -> isles::Result<()> {
        let mut pulse = 0;
        while task.any(|node| node.leader.is_none()).await? {
            task.round(|context| Node::pulse(context, pulse)).await?;
            pulse += 1;
        }
        Ok(())
    }

    fn answer(node: &Node) -> Vec<i64> {
        answer_of(node.leader)
    }

    fn verify(input: &Input, answers: &[Vec<i64>]) -> Result<String, String> {
        verify_leader(input, answers)
    }
}
