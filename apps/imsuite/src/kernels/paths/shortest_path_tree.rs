//! DST: a tree of shortest paths from a root, grown layer by layer.
//!
//! Dijkstra's algorithm on edges of length one, distributed (Peleg, Distributed Computing, SIAM 2000, chapter 5). A
//! phase adds a layer: a start message travels from the root to the youngest layer, whose nodes ask their other
//! neighbours to join. A node outside the tree joins the lowest-numbered asker and refuses the others. Then echoes
//! travel up and report growth. A subtree that has not grown never will, and gets no further starts. Invariant: after
//! phase *p* the tree has all nodes within *p* hops of the root, each at its distance.

use super::super::super::input::Input;
use super::super::super::kernel::{Kernel, single};
use super::super::super::place_task::{NodeContext, PlaceTask};
use super::same;
use serde::{Deserialize, Serialize};

/// The kernel DST.
pub struct ShortestPathTree;

/// A node of the kernel.
#[derive(Default)]
pub struct Node {
    is_root: bool,
    parent: Option<u32>,
    /// `true` if the node is in the youngest layer.
    is_youngest: bool,
    /// The children below which the tree has grown, in this phase or, before their answers, in the last one.
    growing: Vec<u32>,
    /// Number of neighbours or children that have not answered yet in this phase.
    awaited: usize,
}

/// Messages of DST.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TreeMessage {
    /// From a parent: a phase begins.
    Start,
    /// From the youngest layer: become my child.
    Join,
    /// I am your child.
    Accept,
    /// I am in the tree already.
    Refuse,
    /// From a child: the phase has ended here; `true` if the tree has grown.
    Echo(bool),
}

impl Node {
    /// Begins a phase: a node of the youngest layer asks its neighbours, any other node notifies its children.
    fn start(context: &mut NodeContext<'_, ShortestPathTree>) {
        let asked: Vec<u32> = match context.node.is_youngest {
            true => context
                .neighbours
                .iter()
                .copied()
                .filter(|other| Some(*other) != context.node.parent)
                .collect(),
            false => std::mem::take(&mut context.node.growing),
        };
        let message = if context.node.is_youngest { TreeMessage::Join } else { TreeMessage::Start };
        context.node.awaited = asked.len();
        asked.into_iter().for_each(|other| context.send(other, message.clone()));
        if context.node.awaited == 0 {
            Node::echo(context);
        }
    }

    /// Ends the phase at this node.
    fn echo(context: &mut NodeContext<'_, ShortestPathTree>) {
        context.node.is_youngest = false;
        let has_grown = !context.node.growing.is_empty();
        if let Some(parent) = context.node.parent {
            context.send(parent, TreeMessage::Echo(has_grown));
        }
    }

    /// Records an answer; the last one ends the phase at this node.
    fn answered(context: &mut NodeContext<'_, ShortestPathTree>, from: u32, has_grown: bool) {
        if has_grown {
            context.node.growing.push(from);
        }
        context.node.awaited -= 1;
        if context.node.awaited == 0 {
            Node::echo(context);
        }
    }
}

impl Kernel for ShortestPathTree {
    type Node = Node;
    type Message = TreeMessage;
    type Reply = ();

    fn node(input: &Input, index: u32) -> Node {
        let is_root = index == input.root;
        Node { is_root, is_youngest: is_root, ..Node::default() }
    }

    fn reply(_: &Node) {}

    async fn run(task: &mut PlaceTask<Self>) -> isles::Result<()> {
        let mut phase = 1;
        loop {
            // The start travels phase - 1 layers down, a question and its answer go there and back, and echoes travel
            // up again.
            for round in 0..=2 * phase {
                task.round(|context| {
                    if context.node.is_root && round == 0 {
                        Node::start(context);
                    }
                    for (from, message) in std::mem::take(&mut context.inbox) {
                        match message {
                            TreeMessage::Start => Node::start(context),
                            TreeMessage::Join if context.node.is_root || context.node.parent.is_some() => {
                                context.send(from, TreeMessage::Refuse);
                            }
                            TreeMessage::Join => {
                                (context.node.parent, context.node.is_youngest) = (Some(from), true);
                                context.send(from, TreeMessage::Accept);
                            }
                            TreeMessage::Accept => Node::answered(context, from, true),
                            TreeMessage::Refuse => Node::answered(context, from, false),
                            TreeMessage::Echo(has_grown) => Node::answered(context, from, has_grown),
                        }
                    }
                })
                .await?;
            }
            if !task.any(|node| node.is_root && !node.growing.is_empty()).await? {
                return Ok(());
            }
            phase += 1;
        }
    }

    /// Returns the parent; the root has the answer [`super::UNREACHED`].
    fn answer(node: &Node) -> Vec<i64> {
        vec![node.parent.map_or(super::UNREACHED, i64::from)]
    }

    fn verify(input: &Input, answers: &[Vec<i64>]) -> Result<String, String> {
        let hops = input.hops(input.root);
        let parent = |node: usize| {
            let nearer = |other: &&u32| hops[**other as usize] < hops[node];
            input.neighbours[node].iter().find(nearer).map_or(super::UNREACHED, |other| i64::from(*other))
        };
        let expected: Vec<i64> = (0..input.size()).map(parent).collect();
        same("parent", &single(answers)?, &expected)?;
        let depth = hops.iter().flatten().max().copied().unwrap_or_default();
        Ok(format!("a tree of depth {depth}; compared with a breadth-first search"))
    }
}
