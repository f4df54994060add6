//! LCR: a leader in a ring, using one direction.
//!
//! The algorithm of Le Lann (IFIP Congress 1977) as improved by Chang and Roberts (Communications of the ACM 22,
//! 1979): each node sends its identifier to the next; a node forwards identifiers greater than its own and drops the
//! rest. The node whose identifier returns is the leader, and announces this once around the ring. Invariant: only the
//! greatest identifier returns.

use super::super::super::input::Input;
use super::super::super::kernel::Kernel;
use super::super::super::place_task::PlaceTask;
use super::{answer_of, next_in_ring, verify_leader};
use serde::{Deserialize, Serialize};

/// The kernel LCR.
pub struct OneWayRing;

/// A node of the kernel.
pub struct Node {
    identifier: u64,
    leader: Option<u32>,
}

/// Messages of LCR to the next node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RingMessage {
    /// The identifier of a node that may become the leader.
    Identifier(u64),
    /// The leader.
    Leader(u32),
}

impl Node {
    /// Returns the message that a node forwards, if any.
    fn forwarded(&mut self, index: u32, message: RingMessage) -> Option<RingMessage> {
        match message {
            RingMessage::Identifier(other) if other > self.identifier => Some(RingMessage::Identifier(other)),
            RingMessage::Identifier(other) if other < self.identifier => None,
            RingMessage::Identifier(_) => {
                self.leader = Some(index);
                Some(RingMessage::Leader(index))
            }
            RingMessage::Leader(leader) => {
                let is_news = self.leader.replace(leader).is_none();
                is_news.then_some(RingMessage::Leader(leader))
            }
        }
    }
}

impl Kernel for OneWayRing {
    type Node = Node;
    type Message = RingMessage;
    type Reply = ();

    fn node(input: &Input, index: u32) -> Node {
        Node { identifier: input.identifiers[index as usize], leader: None }
    }

    fn reply(_: &Node) {}

    async fn run(task: &mut PlaceTask<Self>) -> isles::Result<()> {
        let size = task.facts().size;
        task.round(|context| {
            let next = next_in_ring(context.index, size, true);
            context.send(next, RingMessage::Identifier(context.node.identifier));
        })
        .await?;
        while task.any(|node| node.leader.is_none()).await? {
            task.round(|context| {
                let next = next_in_ring(context.index, size, true);
                for message in context.messages() {
                    if let Some(message) = context.node.forwarded(context.index, message) {
                        context.send(next, message);
                    }
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
