//! HS: a leader in a ring, using both directions.
//!
//! The algorithm of Hirschberg and Sinclair (Communications of the ACM 23, 1980). A candidate sends its identifier 2^k
//! hops in both directions; a greater identifier on the way stops it, otherwise it returns from the end. When both
//! have returned, the candidate continues with twice the hops. The node whose identifier has gone all the way round is
//! the leader, and announces this. Invariant: an identifier that returns has met no greater one.

use super::super::super::input::Input;
use super::super::super::kernel::Kernel;
use super::super::super::place_task::{NodeContext, PlaceTask};
use super::{answer_of, next_in_ring, verify_leader};
use serde::{Deserialize, Serialize};

/// The kernel HS.
pub struct TwoWayRing;

/// A node of the kernel.
pub struct Node {
    identifier: u64,
    /// Hops that its identifier travels in this phase.
    reach: u32,
    /// Number of directions from which its identifier has not returned in this phase.
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
        /// Remaining hops, including this one.
        hops: u32,
    },
    /// An identifier on its way back.
    Back {
        /// The identifier.
        identifier: u64,
        /// The direction of the way back.
        is_clockwise: bool,
    },
    /// The leader; sent clockwise.
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
            // It has gone all the way round, from both sides; the first arrival counts.
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
