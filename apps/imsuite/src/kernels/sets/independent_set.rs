//! MIS: a maximal independent set, by random numbers.
//!
//! Luby's algorithm (SIAM Journal on Computing 15, 1986) in the form of Metivier, Robson, Saheb-Djahromi and Zemmari
//! (Distributed Computing 23, 2011): in each turn every undecided node draws a number and sends it to its undecided
//! neighbours. A node with the least number joins and announces this; its neighbours leave and announce it. Equal
//! numbers are ordered by node. Invariant: no two neighbours join in one turn, and a neighbour of a member is decided
//! in the same turn.

use super::super::super::input::Input;
use super::super::super::kernel::Kernel;
use super::super::super::place_task::PlaceTask;
use super::members;
use isles::Random;
use serde::{Deserialize, Serialize};

/// The kernel MIS.
pub struct IndependentSet;

/// State of a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Membership {
    Undecided,
    Member,
    Neighbour,
}

/// A node of the kernel.
pub struct Node {
    state: Membership,
    /// The neighbours not known to have decided.
    undecided: Vec<u32>,
    random: Random,
    /// The number drawn in this turn.
    drawn: u64,
}

/// Messages of MIS.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SetMessage {
    /// Random number drawn by the sender.
    Drawn(u64),
    /// The sender is in the set.
    Joined,
    /// The sender is not in the set, and never will be.
    Left,
}

impl Kernel for IndependentSet {
    type Node = Node;
    type Message = SetMessage;
    type Reply = ();

    fn node(input: &Input, index: u32) -> Node {
        let undecided = input.neighbours[index as usize].clone();
        let random = Random::stream(input.seed, u64::from(index));
        Node { state: Membership::Undecided, undecided, random, drawn: 0 }
    }

    fn reply(_: &Node) {}

    async fn run(task: &mut PlaceTask<Self>) -> isles::Result<()> {
        while task.any(|node| node.state == Membership::Undecided).await? {
            task.round(|context| {
                // Only nodes that left in the last round have sent a message.
                for (from, _) in std::mem::take(&mut context.inbox) {
                    context.node.undecided.retain(|other| *other != from);
                }
                if context.node.state == Membership::Undecided {
                    context.node.drawn = context.node.random.bits();
                    let undecided = context.node.undecided.clone();
                    undecided
                        .into_iter()
                        .for_each(|other| context.send(other, SetMessage::Drawn(context.node.drawn)));
                }
            })
            .await?;
            task.round(|context| {
                let own = (context.node.drawn, context.index);
                let is_less = |(from, message): &(u32, SetMessage)| match message {
                    SetMessage::Drawn(drawn) => own < (*drawn, *from),
                    SetMessage::Joined | SetMessage::Left => true,
                };
                if context.node.state == Membership::Undecided && context.inbox.iter().all(is_less) {
                    context.node.state = Membership::Member;
                    let undecided = std::mem::take(&mut context.node.undecided);
                    undecided.into_iter().for_each(|other| context.send(other, SetMessage::Joined));
                }
            })
            .await?;
            task.round(|context| {
                let joined: Vec<u32> =
                    std::mem::take(&mut context.inbox).into_iter().map(|(from, _)| from).collect();
                if context.node.state == Membership::Undecided && !joined.is_empty() {
                    context.node.state = Membership::Neighbour;
                    let mut undecided = std::mem::take(&mut context.node.undecided);
                    undecided.retain(|other| !joined.contains(other));
                    undecided.into_iter().for_each(|other| context.send(other, SetMessage::Left));
                }
            })
            .await?;
        }
        Ok(())
    }

    /// Returns 1 for a member, 0 for another node.
    fn answer(node: &Node) -> Vec<i64> {
        vec![i64::from(node.state == Membership::Member)]
    }

    fn verify(input: &Input, answers: &[Vec<i64>]) -> Result<String, String> {
        let members = members(answers)?;
        for (node, neighbours) in input.neighbours.iter().enumerate() {
            let member = neighbours.iter().find(|other| members[**other as usize]);
            match (members[node], member) {
                (true, Some(other)) => {
                    return Err(format!("the neighbours {node} and {other} are both in the set"));
                }
                (false, None) => return Err(format!("neither node {node} nor a neighbour is in the set")),
                _ => {}
            }
        }
        let count = members.iter().filter(|member| **member).count();
        Ok(format!(
            "{count} nodes, no two of them neighbours, and each other node has one of them as a neighbour"
        ))
    }
}
