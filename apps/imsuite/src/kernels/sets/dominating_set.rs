//! DS: a small dominating set: every other node has a neighbour in it.
//!
//! The local randomised greedy algorithm of Jia, Rajaraman and Suel (Distributed Computing 15, 2002). A node is white
//! while neither it nor a neighbour is in the set; its span is the number of white nodes among itself and its
//! neighbours. In each turn the nodes whose span, rounded down to a power of two, is the greatest within two hops are
//! active. The support of a white node is the number of active nodes around it. An active node becomes a candidate
//! with probability one over the greatest support around it, and a candidate joins if its white nodes have at most
//! three candidates each on average. Invariant: a node counts as white to a neighbour until the turn after the one in
//! which it was covered.

use super::super::super::input::Input;
use super::super::super::kernel::Kernel;
use super::super::super::place_task::PlaceTask;
use super::members;
use isles::Random;

/// The kernel DS. Its messages are numbers, whose meaning depends on the round.
pub struct DominatingSet;

/// Most candidates per white node, on average, for which a candidate joins.
const CANDIDATES_MAX: u32 = 3;

/// A node of the kernel. The numbers belong to the current turn.
pub struct Node {
    is_member: bool,
    is_white: bool,
    /// White nodes among itself and its neighbours.
    span: u32,
    /// The greatest known rounded span.
    greatest: u32,
    is_active: bool,
    is_candidate: bool,
    /// Number of active nodes around it, later of candidates around it.
    around: u32,
    random: Random,
}

impl Node {
    /// Returns the span, rounded down to a power of two; 0 without white nodes.
    fn rounded(&self) -> u32 {
        self.span.checked_ilog2().map_or(0, |exponent| 1 << exponent)
    }
}

impl Kernel for DominatingSet {
    type Node = Node;
    type Message = u32;
    type Reply = ();

    fn node(input: &Input, index: u32) -> Node {
        Node {
            is_member: false,
            is_white: true,
            span: input.neighbours[index as usize].len() as u32 + 1,
            greatest: 0,
            is_active: false,
            is_candidate: false,
            around: 0,
            random: Random::stream(input.seed, u64::from(index)),
        }
    }

    fn reply(_: &Node) {}

    async fn run(task: &mut PlaceTask<Self>) -> isles::Result<()> {
        while task.any(|node| node.is_white).await? {
            find_active(task).await?;
            find_candidates(task).await?;
            join(task).await?;
        }
        Ok(())
    }

    /// Returns 1 for a member, 0 for another node.
    fn answer(node: &Node) -> Vec<i64> {
        vec![i64::from(node.is_member)]
    }

    fn verify(input: &Input, answers: &[Vec<i64>]) -> Result<String, String> {
        let members = members(answers)?;
        for (node, neighbours) in input.neighbours.iter().enumerate() {
            if !members[node] && !neighbours.iter().any(|other| members[*other as usize]) {
                return Err(format!("neither node {node} nor a neighbour is in the set"));
            }
        }
        let count = members.iter().filter(|member| **member).count();
        Ok(format!("{count} nodes, and each other node has one of them as a neighbour"))
    }
}

/// Runs three rounds: two to find the greatest span within two hops, and one in which the nodes with that span
/// announce that they are active.
async fn find_active(task: &mut PlaceTask<DominatingSet>) -> isles::Result<()> {
    task.round(|context| {
        // Neighbours that are no longer white announced it in the last turn.
        context.node.span -= context.messages().count() as u32;
        context.node.greatest = context.node.rounded();
        context.send_all(context.node.greatest);
    })
    .await?;
    task.round(|context| {
        context.node.greatest = context.messages().fold(context.node.greatest, u32::max);
        context.send_all(context.node.greatest);
    })
    .await?;
    task.round(|context| {
        context.node.greatest = context.messages().fold(context.node.greatest, u32::max);
        context.node.is_active = context.node.span > 0 && context.node.rounded() == context.node.greatest;
        if context.node.is_active {
            context.send_all(1);
        }
    })
    .await
}

/// Runs two rounds: white nodes send their support; active nodes draw, and candidates announce themselves.
async fn find_candidates(task: &mut PlaceTask<DominatingSet>) -> isles::Result<()> {
    task.round(|context| {
        context.node.around = context.messages().count() as u32 + u32::from(context.node.is_active);
        if context.node.is_white {
            context.send_all(context.node.around);
        }
    })
    .await?;
    task.round(|context| {
        let own = Some(context.node.around).filter(|_| context.node.is_white);
        let support = context.messages().chain(own).max().unwrap_or(1);
        let node = &mut *context.node;
        node.is_candidate = node.is_active && node.random.unit() * f64::from(support) < 1.0;
        if node.is_candidate {
            context.send_all(1);
        }
    })
    .await
}

/// Runs three rounds: white nodes send the number of candidates around them; candidates join if there are not too
/// many, and announce it; nodes covered by that announce that they are no longer white.
async fn join(task: &mut PlaceTask<DominatingSet>) -> isles::Result<()> {
    task.round(|context| {
        context.node.around = context.messages().count() as u32 + u32::from(context.node.is_candidate);
        if context.node.is_white {
            context.send_all(context.node.around);
        }
    })
    .await?;
    task.round(|context| {
        let own = Some(context.node.around).filter(|_| context.node.is_white);
        let candidates: u32 = context.messages().chain(own).sum();
        context.node.is_member |=
            context.node.is_candidate && candidates <= CANDIDATES_MAX * context.node.span;
        if context.node.is_candidate && context.node.is_member {
            context.send_all(1);
        }
    })
    .await?;
    task.round(|context| {
        let is_covered = context.messages().next().is_some() || context.node.is_member;
        if context.node.is_white && is_covered {
            (context.node.is_white, context.node.span) = (false, context.node.span - 1);
            context.send_all(1);
        }
    })
    .await
}
