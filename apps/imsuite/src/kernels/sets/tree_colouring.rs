//! VC: three colours for the nodes of a rooted tree, with different colours for neighbours.
//!
//! The algorithm of Cole and Vishkin (Information and Control 70, 1986) with the shift-down of Goldberg, Plotkin and
//! Shannon (SIAM Journal on Discrete Mathematics 1, 1988), as given by Peleg (SIAM 2000, chapter 7). A node's first
//! colour is its number. A new colour is the lowest bit that differs from the parent's colour, with its position, so
//! that after a few turns six colours remain. Then, once for each of the last three colours, all nodes take the colour
//! of their parent, so that siblings are alike, and the nodes of that colour take one of the first three that no
//! neighbour has. Invariant: after each turn neighbours have different colours.

use super::super::super::input::Input;
use super::super::super::kernel::{Kernel, single};
use super::super::super::place_task::{NodeContext, PlaceTask};

/// The kernel VC. Its messages are colours.
pub struct TreeColouring;

/// Number of colours after the first part, and after the second.
const SIX: u32 = 6;
const THREE: u32 = 3;

/// A node of the kernel.
pub struct Node {
    colour: u32,
    /// Parent; `None` at the root.
    parent: Option<u32>,
}

impl Node {
    /// Sends the colour to the children.
    fn send_to_children(context: &mut NodeContext<'_, TreeColouring>) {
        let (parent, colour) = (context.node.parent, context.node.colour);
        let children = context.neighbours.iter().copied().filter(|other| Some(*other) != parent);
        children.for_each(|child| context.send(child, colour));
    }

    /// Returns the first of three colours that is not among these.
    fn free(taken: &[u32]) -> u32 {
        (0..THREE).find(|colour| !taken.contains(colour)).unwrap_or(THREE)
    }
}

impl Kernel for TreeColouring {
    type Node = Node;
    type Message = u32;
    type Reply = ();

    fn node(input: &Input, index: u32) -> Node {
        let parent = input.parents[index as usize];
        Node { colour: index, parent: (index != input.root).then_some(parent) }
    }

    fn reply(_: &Node) {}

    async fn run(task: &mut PlaceTask<Self>) -> isles::Result<()> {
        while task.any(|node| node.colour >= SIX).await? {
            task.round(Node::send_to_children).await?;
            task.round(|context| {
                let own = context.node.colour;
                // The root uses any colour other than its own in place of its parent's.
                let parent = context.messages().next().unwrap_or(own ^ 1);
                let position = (own ^ parent).trailing_zeros();
                context.node.colour = 2 * position + ((own >> position) & 1);
            })
            .await?;
        }
        for last in (THREE..SIX).rev() {
            task.round(Node::send_to_children).await?;
            task.round(|context| {
                let own = context.node.colour;
                context.node.colour = context.messages().next().unwrap_or_else(|| Node::free(&[own]));
                context.send_all(context.node.colour);
            })
            .await?;
            task.round(|context| {
                let taken: Vec<u32> = context.messages().collect();
                if context.node.colour == last {
                    context.node.colour = Node::free(&taken);
                }
            })
            .await?;
        }
        Ok(())
    }

    fn answer(node: &Node) -> Vec<i64> {
        vec![i64::from(node.colour)]
    }

    fn verify(input: &Input, answers: &[Vec<i64>]) -> Result<String, String> {
        let colours = single(answers)?;
        for (node, neighbours) in input.neighbours.iter().enumerate() {
            if !(0..i64::from(THREE)).contains(&colours[node]) {
                return Err(format!("node {node} has the colour {}, not one of three", colours[node]));
            }
            if let Some(other) = neighbours.iter().find(|other| colours[**other as usize] == colours[node]) {
                return Err(format!("the neighbours {node} and {other} have the same colour"));
            }
        }
        let counts = [0, 1, 2].map(|colour| colours.iter().filter(|other| **other == colour).count());
        Ok(format!(
            "{}, {} and {} nodes of three colours, no two neighbours alike",
            counts[0], counts[1], counts[2]
        ))
    }
}
