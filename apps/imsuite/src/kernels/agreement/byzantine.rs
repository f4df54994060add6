//! BY: agreement on one of two values despite traitors.
//!
//! Rabin's algorithm with a coin that all nodes see (24th FOCS, 1983), with the thresholds of Motwani and Raghavan
//! (Randomized Algorithms, 1995, section 12.6). In each turn all nodes send their votes through the network, hop by
//! hop; a traitor sends a different vote to each neighbour, but forwards the votes that it receives. A node that
//! counts at least as many equal votes as the coin's threshold takes that value, else 0; a node that reaches the last
//! threshold has decided. The algorithm ends when all loyal nodes have decided. If several votes of one node are
//! forwarded, that of the lowest-numbered neighbour counts. Invariant: loyal nodes count the same votes of loyal
//! nodes, so their counts differ at most by the number of traitors.

use super::super::super::input::Input;
use super::super::super::kernel::{Kernel, single};
use super::super::super::place_task::{NodeContext, PlaceTask};
use isles::Random;

/// The kernel BY. Its messages are votes: the node and its value.
pub struct Byzantine;

/// The answer of a traitor, which need not agree.
const TRAITOR: i64 = -1;

/// The random streams that belong to no node.
const COIN: u64 = 1 << 32;

/// A node of the kernel.
pub struct Node {
    vote: bool,
    is_traitor: bool,
    /// The votes of this turn, by voter.
    votes: Vec<Option<bool>>,
    /// Random numbers of a traitor.
    random: Random,
    /// Common coin, the same at all nodes.
    coin: Random,
    decision: Option<bool>,
}

impl Node {
    /// Performs one hop of the votes, out of `diameter`; the last one only receives.
    fn spread(context: &mut NodeContext<'_, Byzantine>, hop: u32, diameter: u32) {
        if hop == 0 {
            let index = context.index;
            context.node.votes.fill(None);
            context.node.votes[index as usize] = Some(context.node.vote);
            for other in context.neighbours {
                let vote =
                    if context.node.is_traitor { context.node.random.chance(50) } else { context.node.vote };
                context.send(*other, (index, vote));
            }
            return;
        }
        for (of, vote) in context.messages() {
            if context.node.votes[of as usize].is_some() {
                continue;
            }
            context.node.votes[of as usize] = Some(vote);
            if hop < diameter {
                context.send_all((of, vote));
            }
        }
    }

    /// Takes the value for the next turn, and decides if there are enough votes for it.
    fn count(&mut self) {
        let all = self.votes.len();
        let ayes = self.votes.iter().flatten().filter(|vote| **vote).count();
        let noes = self.votes.iter().flatten().count() - ayes;
        let (value, votes) = (ayes > noes, ayes.max(noes));
        let [low, high, last] = thresholds(all);
        let threshold = if self.coin.chance(50) { high } else { low };
        self.vote = value && votes >= threshold;
        if votes >= last && self.decision.is_none() {
            self.decision = Some(value);
        }
    }
}

/// Returns the numbers of equal votes that a node needs among `nodes`: two bounds for taking the value, one of which
/// the coin chooses, and the bound for deciding.
fn thresholds(nodes: usize) -> [usize; 3] {
    [5 * nodes / 8 + 1, 3 * nodes / 4 + 1, 7 * nodes / 8]
}

impl Kernel for Byzantine {
    type Node = Node;
    type Message = (u32, bool);
    type Reply = ();

    fn node(input: &Input, index: u32) -> Node {
        Node {
            vote: input.votes[index as usize],
            is_traitor: input.traitors.contains(&index),
            votes: vec![None; input.size()],
            random: Random::stream(input.seed, u64::from(index)),
            coin: Random::stream(input.seed, COIN),
            decision: None,
        }
    }

    fn reply(_: &Node) {}

    async fn run(task: &mut PlaceTask<Self>) -> isles::Result<()> {
        let diameter = task.facts().diameter;
        while task.any(|node| !node.is_traitor && node.decision.is_none()).await? {
            for hop in 0..=diameter {
                task.round(|context| Node::spread(context, hop, diameter)).await?;
            }
            task.each(Node::count);
        }
        Ok(())
    }

    /// Returns the decision, 0 or 1.
    fn answer(node: &Node) -> Vec<i64> {
        vec![node.decision.filter(|_| !node.is_traitor).map_or(TRAITOR, i64::from)]
    }

    fn verify(input: &Input, answers: &[Vec<i64>]) -> Result<String, String> {
        let found = single(answers)?;
        let loyal: Vec<usize> =
            (0..input.size()).filter(|node| !input.traitors.contains(&(*node as u32))).collect();
        let decision = loyal.first().map(|node| found[*node]).unwrap_or(TRAITOR);
        if let Some(node) = loyal.iter().find(|node| found[**node] != decision || decision == TRAITOR) {
            return Err(format!(
                "node {node} decides for {}, node {} for {decision}",
                found[*node], loyal[0]
            ));
        }
        let is_voted = loyal.iter().any(|node| i64::from(input.votes[*node]) == decision);
        if !is_voted {
            return Err(format!("all loyal nodes decide for {decision}, but none of them voted for it"));
        }
        let (loyal, traitors) = (loyal.len(), input.traitors.len());
        Ok(format!("{loyal} loyal nodes decide for {decision}, among {traitors} traitors"))
    }
}
