//! KC: the nodes in committees of at most *K* members, each within *K* − 1 hops of its leader.
//!
//! The algorithm of the suite's `kcommitte`, in *K* phases; its sources name no paper. Polling: the least rank of the
//! nodes without a committee spreads for *K* − 1 hops; a node whose leader has a greater rank takes the node with that
//! rank as its leader. Selection: each node that leads itself invites the node of the least rank that it has heard of,
//! and invitations spread for *K* − 1 hops. An invited node joins the committee of the least leader that invites it. A
//! leader invites one node per phase, itself in the first, so a committee cannot grow beyond *K*. Each remaining node
//! is a committee of its own. Equal ranks are ordered by node. Invariant: the number of a committee is that of its
//! leader.

use super::super::super::input::Input;
use super::super::super::kernel::{Kernel, single};
use super::super::super::place_task::{NodeContext, PlaceTask};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The kernel KC.
pub struct Committees;

/// A rank with its node; the least one leads.
type Ranked = (u64, u32);

/// A node of the kernel.
pub struct Node {
    rank: u64,
    size_max: u32,
    leader: u32,
    committee: Option<u32>,
    /// The least node without a committee known in this phase.
    least: Option<Ranked>,
    /// The invitations forwarded in this phase: leader and invited node.
    seen: BTreeSet<(u32, u32)>,
    /// The least leader that invites it in this phase.
    invited_by: Option<Ranked>,
}

/// Messages of KC.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum CommitteeMessage {
    /// The least node without a committee known to the sender.
    Least(Ranked),
    /// A leader invites a node.
    Invitation {
        /// The leader.
        leader: Ranked,
        /// The invited node.
        target: u32,
    },
}

impl Node {
    /// Performs one hop of the polling; the last one only receives.
    fn poll(context: &mut NodeContext<'_, Committees>, hop: u32) {
        if hop == 0 {
            let own = (context.node.rank, context.index);
            context.node.least = context.node.committee.is_none().then_some(own);
        }
        for message in context.messages() {
            if let CommitteeMessage::Least(other) = message {
                context.node.least = Some(context.node.least.map_or(other, |least| least.min(other)));
            }
        }
        if let Some(least) = context.node.least.filter(|_| hop + 1 < context.node.size_max) {
            context.send_all(CommitteeMessage::Least(least));
        }
    }

    /// Performs one hop of the selection; the last one only receives.
    fn select(context: &mut NodeContext<'_, Committees>, hop: u32) {
        let mut invitations: Vec<(Ranked, u32)> = Vec::new();
        for message in context.messages() {
            if let CommitteeMessage::Invitation { leader, target } = message {
                invitations.push((leader, target));
            }
        }
        if hop == 0 {
            context.node.seen.clear();
            let own = (context.node.rank, context.index);
            let target = context.node.least.filter(|_| context.node.leader == context.index);
            invitations.extend(target.map(|(_, target)| (own, target)));
        }
        for (leader, target) in invitations {
            if target == context.index {
                context.node.invited_by =
                    Some(context.node.invited_by.map_or(leader, |other| other.min(leader)));
            } else if context.node.seen.insert((leader.1, target)) && hop + 1 < context.node.size_max {
                context.send_all(CommitteeMessage::Invitation { leader, target });
            }
        }
    }
}

impl Kernel for Committees {
    type Node = Node;
    type Message = CommitteeMessage;
    type Reply = u64;

    fn node(input: &Input, index: u32) -> Node {
        Node {
            rank: input.ranks[index as usize],
            size_max: input.committee_max,
            leader: index,
            committee: None,
            least: None,
            seen: BTreeSet::new(),
            invited_by: None,
        }
    }

    fn reply(node: &Node) -> u64 {
        node.rank
    }

    async fn run(task: &mut PlaceTask<Self>) -> isles::Result<()> {
        let size_max = task.facts().committee_max;
        task.expect(2 * size_max * size_max);
        for _ in 0..size_max {
            for hop in 0..size_max {
                task.round(|context| Node::poll(context, hop)).await?;
            }
            let target = |_: u32, node: &Node| node.least.map(|_| node.leader);
            task.ask(target, |node, leader, rank| {
                if let Some(least) = node.least.filter(|least| *least < (rank, leader)) {
                    node.leader = least.1;
                }
            })
            .await?;
            for hop in 0..size_max {
                task.round(|context| Node::select(context, hop)).await?;
            }
            task.each(|node| {
                let leader = node.invited_by.take().map(|(_, leader)| leader);
                node.committee = node.committee.or(leader);
            });
            if !task.any(|node| node.committee.is_none()).await? {
                break;
            }
        }
        Ok(())
    }

    /// Returns the leader of the committee; [`ALONE`] for a node on its own.
    fn answer(node: &Node) -> Vec<i64> {
        vec![node.committee.map_or(ALONE, i64::from)]
    }

    fn verify(input: &Input, answers: &[Vec<i64>]) -> Result<String, String> {
        let (committees, most) = (single(answers)?, input.committee_max as usize);
        let mut sizes = vec![0; input.size()];
        for (node, &committee) in committees.iter().enumerate() {
            if committee == ALONE {
                continue;
            }
            let leader = usize::try_from(committee).ok().filter(|leader| *leader < input.size());
            let leader = leader
                .ok_or_else(|| format!("node {node} is in committee {committee}, but that has no leader"))?;
            if committees[leader] != committee {
                return Err(format!("the leader {leader} of node {node} is in another committee"));
            }
            let hops = input.hops(leader as u32)[node];
            if hops.is_none_or(|hops| hops as usize >= most) {
                return Err(format!("node {node} is {hops:?} hops from its leader, but K is {most}"));
            }
            sizes[leader] += 1;
        }
        if let Some(leader) = sizes.iter().position(|size| *size > most) {
            return Err(format!("committee {leader} has {} members, but K is {most}", sizes[leader]));
        }
        let alone = committees.iter().filter(|committee| **committee == ALONE).count();
        let count = sizes.iter().filter(|size| **size > 0).count() + alone;
        let is_connected = input.hops(0).iter().all(Option::is_some);
        if most >= input.size() && is_connected && count != 1 {
            return Err(format!("{count} committees, but K allows a single one"));
        }
        Ok(format!("{count} committees of at most {most} nodes, {alone} nodes left over alone"))
    }
}

/// The answer of a node that no leader has invited.
const ALONE: i64 = -1;
