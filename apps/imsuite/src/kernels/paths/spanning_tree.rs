//! MST: a minimum spanning tree, by fragments that merge over blue edges.
//!
//! The synchronous form of the algorithm of Gallager, Humblet and Spira (ACM TOPLAS 5, 1983) as given by Peleg (SIAM
//! 2000, chapter 5). Each node begins as a fragment. In a phase all nodes send their neighbours their fragment; the
//! lightest outgoing edge of a fragment, its blue edge, is found up its tree; the root moves down to that edge, by
//! reversing the path; the new root connects to the other side; then the roots send new names. Edges of equal weight
//! are ordered by their nodes, so the tree is unique. Invariant: each fragment is a part of the minimum spanning tree,
//! rooted at the node that gave it its name.

use super::super::super::input::Input;
use super::super::super::kernel::{Kernel, single};
use super::super::super::place_task::{NodeContext, PlaceTask};
use serde::{Deserialize, Serialize};

/// The kernel MST.
pub struct SpanningTree;

/// An edge in the order that makes the tree unique: weight, then the lower node, then the higher one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WeightedEdge {
    weight: u64,
    lower: u32,
    higher: u32,
}

impl WeightedEdge {
    fn new(weight: u64, one: u32, other: u32) -> WeightedEdge {
        WeightedEdge { weight, lower: one.min(other), higher: one.max(other) }
    }
}

/// A node of the kernel.
pub struct Node {
    /// The weights of the edges to its neighbours.
    weights: Vec<u64>,
    parent: Option<u32>,
    children: Vec<u32>,
    fragment: u32,
    /// The lightest outgoing edge at or below this node, and the child below which it is; `None` for an edge of its
    /// own.
    blue: Option<(WeightedEdge, Option<u32>)>,
    /// Number of children that have not reported their blue edge yet.
    awaited: usize,
    /// The node to which it connects.
    connects_to: Option<u32>,
    /// `true` if the current part of the phase needs another round because of this node.
    is_busy: bool,
}

/// Messages of MST.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum FragmentMessage {
    /// To neighbours: the sender's fragment. To children: their new fragment.
    Fragment(u32),
    /// To a parent: the blue edge below the sender.
    Blue(Option<WeightedEdge>),
    /// To a child, which becomes the parent: the blue edge is below it.
    Turn,
    /// Over a blue edge.
    Connect,
}

impl Node {
    /// Begins the search with the node's own edges and the fragments of its neighbours.
    fn find_own(context: &mut NodeContext<'_, SpanningTree>) {
        let (index, fragment) = (context.index, context.node.fragment);
        let inbox = std::mem::take(&mut context.inbox);
        let leaves =
            inbox.iter().zip(&context.node.weights).filter_map(|((from, message), weight)| match message {
                FragmentMessage::Fragment(other) if *other != fragment => {
                    Some(WeightedEdge::new(*weight, index, *from))
                }
                _ => None,
            });
        context.node.blue = leaves.min().map(|edge| (edge, None));
        context.node.awaited = context.node.children.len();
        context.node.is_busy = true;
    }

    /// Runs one round of the search up the tree.
    fn search(context: &mut NodeContext<'_, SpanningTree>) {
        for (from, message) in std::mem::take(&mut context.inbox) {
            let FragmentMessage::Blue(edge) = message else { continue };
            context.node.awaited -= 1;
            let Some(edge) = edge else { continue };
            if context.node.blue.is_none_or(|(other, _)| edge < other) {
                context.node.blue = Some((edge, Some(from)));
            }
        }
        if context.node.is_busy && context.node.awaited == 0 {
            context.node.is_busy = false;
            let edge = context.node.blue.map(|(edge, _)| edge);
            if let Some(parent) = context.node.parent {
                context.send(parent, FragmentMessage::Blue(edge));
            }
        }
    }

    /// Runs one round of moving the root down to the blue edge; at its end the new root connects.
    fn move_root(context: &mut NodeContext<'_, SpanningTree>, is_first: bool) {
        let turned = std::mem::take(&mut context.inbox)
            .into_iter()
            .find(|(_, message)| *message == FragmentMessage::Turn);
        if let Some((former, _)) = turned {
            context.node.children.push(former);
            context.node.parent = None;
        }
        context.node.is_busy = false;
        let is_at = turned.is_some() || (is_first && context.node.parent.is_none());
        let Some((edge, below)) = context.node.blue.filter(|_| is_at) else { return };
        let Some(child) = below else {
            context.node.connects_to =
                Some(if edge.lower == context.index { edge.higher } else { edge.lower });
            return;
        };
        context.node.children.retain(|other| *other != child);
        context.node.parent = Some(child);
        context.node.is_busy = true;
        context.send(child, FragmentMessage::Turn);
    }

    /// Accepts connections: of two fragments with the same blue edge, the lower node becomes the root of both.
    fn connect(context: &mut NodeContext<'_, SpanningTree>) {
        let joining: Vec<u32> =
            std::mem::take(&mut context.inbox).into_iter().map(|(from, _)| from).collect();
        let index = context.index;
        let node = &mut *context.node;
        let target = node.connects_to.take();
        let is_root = |target: u32| joining.contains(&target) && index < target;
        node.parent = target.filter(|target| !is_root(*target)).or(node.parent);
        node.children.extend(joining.iter().filter(|other| node.parent != Some(**other)));
        node.is_busy = false;
        if node.parent.is_none() {
            node.fragment = index;
            Node::send_to_children(context);
        }
    }

    /// Runs one round of sending the new names down.
    fn rename(context: &mut NodeContext<'_, SpanningTree>) {
        context.node.is_busy = false;
        if let Some(FragmentMessage::Fragment(fragment)) = context.messages().next() {
            context.node.fragment = fragment;
            Node::send_to_children(context);
        }
    }

    /// Sends the fragment to the children.
    fn send_to_children(context: &mut NodeContext<'_, SpanningTree>) {
        let message = FragmentMessage::Fragment(context.node.fragment);
        let children = context.node.children.clone();
        context.node.is_busy = !children.is_empty();
        children.into_iter().for_each(|child| context.send(child, message.clone()));
    }
}

impl Kernel for SpanningTree {
    type Node = Node;
    type Message = FragmentMessage;
    type Reply = ();

    fn node(input: &Input, index: u32) -> Node {
        Node {
            weights: input.weights[index as usize].clone(),
            parent: None,
            children: Vec::new(),
            fragment: index,
            blue: None,
            awaited: 0,
            connects_to: None,
            is_busy: false,
        }
    }

    fn reply(_: &Node) {}

    async fn run(task: &mut PlaceTask<Self>) -> isles::Result<()> {
        loop {
            task.round(|context| context.send_all(FragmentMessage::Fragment(context.node.fragment))).await?;
            task.round(|context| {
                Node::find_own(context);
                Node::search(context);
            })
            .await?;
            while task.any(|node| node.is_busy).await? {
                task.round(Node::search).await?;
            }
            if !task.any(|node| node.parent.is_none() && node.blue.is_some()).await? {
                return Ok(());
            }
            task.round(|context| Node::move_root(context, true)).await?;
            while task.any(|node| node.is_busy).await? {
                task.round(|context| Node::move_root(context, false)).await?;
            }
            task.round(|context| {
                if let Some(target) = context.node.connects_to {
                    context.send(target, FragmentMessage::Connect);
                }
            })
            .await?;
            task.round(Node::connect).await?;
            while task.any(|node| node.is_busy).await? {
                task.round(Node::rename).await?;
            }
        }
    }

    /// Returns the parent; the root has the answer [`super::UNREACHED`].
    fn answer(node: &Node) -> Vec<i64> {
        vec![node.parent.map_or(super::UNREACHED, i64::from)]
    }

    fn verify(input: &Input, answers: &[Vec<i64>]) -> Result<String, String> {
        let mut found = Vec::with_capacity(input.size());
        for (node, parent) in single(answers)?.into_iter().enumerate() {
            let index = input.neighbours[node].iter().position(|other| i64::from(*other) == parent);
            match index {
                Some(index) => {
                    let parent = input.neighbours[node][index];
                    found.push(WeightedEdge::new(input.weights[node][index], node as u32, parent));
                }
                None if parent == super::UNREACHED => {}
                None => return Err(format!("there is no edge from node {node} to its parent {parent}")),
            }
        }
        found.sort_unstable();
        let expected = by_kruskal(input);
        if found != expected {
            let weight = |edges: &[WeightedEdge]| edges.iter().map(|edge| edge.weight).sum::<u64>();
            return Err(format!("the tree weighs {}, not {}", weight(&found), weight(&expected)));
        }
        let weight: u64 = expected.iter().map(|edge| edge.weight).sum();
        Ok(format!("a tree of weight {weight}; compared with Kruskal's algorithm, edge by edge"))
    }
}

/// Returns the edges of the minimum spanning tree, ascending, by Kruskal's algorithm.
fn by_kruskal(input: &Input) -> Vec<WeightedEdge> {
    let mut edges: Vec<WeightedEdge> = Vec::new();
    for (node, row) in input.neighbours.iter().enumerate() {
        let upward = row.iter().zip(&input.weights[node]).filter(|(other, _)| **other as usize > node);
        edges.extend(upward.map(|(other, weight)| WeightedEdge::new(*weight, node as u32, *other)));
    }
    edges.sort_unstable();
    let mut part: Vec<u32> = (0..input.size() as u32).collect();
    edges.retain(|edge| {
        let (one, other) = (part[edge.lower as usize], part[edge.higher as usize]);
        part.iter_mut().filter(|part| **part == other).for_each(|part| *part = one);
        one != other
    });
    edges
}
