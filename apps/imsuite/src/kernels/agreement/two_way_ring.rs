//! HS: a leader in a ring both of whose directions are used.
//!
//! The algorithm of Hirschberg and Sinclair (Communications of the ACM 23, 1980). A candidate sends its identifier 2^k
//! hops in both directions; a greater identifier on the way stops it, else it is turned back at the end. When both have
//! come back the candidate goes on with twice the hops. The node whose identifier has come all the way around is the
//! leader, and announces this. Invariant: an identifier that comes back has met no greater one.

use super::super::super::input::Input;
use super::super::super::kernel::Kernel;
use super::super::super::place_task::{NodeContext, PlaceTask};
use super::{answer_of, next_in_ring, verify_leader};
use serde::{Deserialize, Serialize};

/// The kernel HS.
pub struct TwoWayRing;

/// A node of it.
pub struct Node {
    identifier: u64,
    /// Hops that its identifier goes in this phase.
    reach: u32,
    /// Directions from which its identifier has not come back in this phase.
    awaited: u32,
    leader: Option<u32>,
}

/// Messages of HS to neighbours.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ProbeMessage {
    /// The identifier of a candidate on its way out.
    Out {
        /// The identifier.
        identifier: u64,
        /// Its direction.
        is_clockwise: bool,
        /// Hops that are left, this one included.
        hops: u32,
    },
    /// The same on its way back.
    Back {
        /// The identifier.
        identifier: u64,
        /// The direction of its way back.
        is_clockwise: bool,
    },
    /// The leader; clockwise.
    Leader(u32),
}

impl Node {
    /// Sends the identifier out in both directions.
    fn begin_phase(context: &mut NodeContext<'_, TwoWayRing>, size: usize) {
        context.node.awaited = 2;
        let (identifier, hops) = (context.node.identifier, context.node.reach);
        for is_clockwise in [true, false] {
            let message = ProbeMessage::Out { identifier, is_clockwise, hops };
            context.send(next_in_ring(context.index, size, is_clockwise), message);
        }
    }

    fn take(context: &mut NodeContext<'_, TwoWayRing>, size: usize, message: ProbeMessage) {
        let (index, own) = (context.index, context.node.identifier);
        match message {
            ProbeMessage::Out { identifier, .. } if identifier < own => {}
            ProbeMessage::Out { identifier, is_clockwise, hops } if identifier > own => {
                let (message, is_clockwise) = match hops {
                    1 => (ProbeMessage::Back { identifier, is_clockwise: !is_clockwise }, !is_clockwise),
                    _ => (ProbeMessage::Out { identifier, is_clockwise, hops: hops - 1 }, is_clockwise),
                };
                context.send(next_in_ring(index, size, is_clockwise), message);
            }
            // It has come all the way around; from both sides, and one of them is the first.
            ProbeMessage::Out { .. } => {
                if context.node.leader.replace(index).is_none() {
                    context.send(next_in_ring(index, size, true), ProbeMessage::Leader(index));
                }
            }
            ProbeMessage::Back { identifier, is_clockwise } if identifier != own => {
                let message = ProbeMessage::Back { identifier, is_clockwise };
                context.send(next_in_ring(index, size, is_clockwise), message);
            }
            ProbeMessage::Back { .. } => {
                context.node.awaited -= 1;
                if context.node.awaited == 0 {
                    context.node.reach = context.node.reach.saturating_mul(2);
                    Node::begin_phase(context, size);
                }
            }
            ProbeMessage::Leader(leader) => {
                if context.node.leader.replace(leader).is_none() {
                    context.send(next_in_ring(index, size, true), ProbeMessage::Leader(leader));
                }
            }
        }
    }
}

impl Kernel for TwoWayRing {
    type Node = Node;
    type Message = ProbeMessage;
    type Reply = ();

    fn node(input: &Input, index: u32) -> Node {
        Node { identifier: input.identifiers[index as usize], reach: 1, awaited: 0, leader: None }
    }

    fn reply(_: &Node) {}

    async fn run(task: &mut PlaceTask<Self>) -> isles::Result<()> {
        let size = task.facts().size;
        task.round(|context| Node::begin_phase(context, size)).await?;
        while task.any(|node| node.leader.is_none()).await? {
            task.round(|context| {
                for message in context.messages() {
                    Node::take(context, size, message);
                }
            })
            .await?;
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
