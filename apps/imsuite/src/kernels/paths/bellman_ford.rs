//! BF: the distance of each node from a root, in hops.
//!
//! The algorithm of Bellman and Ford as given by Peleg (Distributed Computing, SIAM 2000, chapter 5): the root has
//! distance 0; a node that has learned a shorter distance sends it to all its neighbours, each of which is one hop
//! farther. It ends after the first round without messages. Invariant: a distance that a node has sent is the length
//! of a path from the root.

use super::super::super::input::Input;
use super::super::super::kernel::{Kernel, single};
use super::super::super::place_task::PlaceTask;
use super::{UNREACHED, same};

/// The kernel BF. Its messages are distances.
pub struct BellmanFord;

/// A node of the kernel.
pub struct Node {
    /// The least known distance.
    distance: Option<u32>,
    /// `true` if the distance changed in this round.
    is_new: bool,
}

impl Kernel for BellmanFord {
    type Node = Node;
    type Message = u32;
    type Reply = ();

    fn node(input: &Input, index: u32) -> Node {
        let is_root = index == input.root;
        Node { distance: is_root.then_some(0), is_new: is_root }
    }

    fn reply(_: &Node) {}

    async fn run(task: &mut PlaceTask<Self>) -> isles::Result<()> {
        let mut is_first = true;
        loop {
            task.round(|context| {
                let nearest = context.messages().min();
                let farther = nearest.map(|distance| distance + 1);
                let node = &mut *context.node;
                node.is_new = match (node.distance, farther) {
                    (_, None) => node.is_new && is_first,
                    (None, Some(_)) => true,
                    (Some(distance), Some(farther)) => farther < distance,
                };
                if !node.is_new {
                    return;
                }
                node.distance = farther.or(node.distance);
                if let Some(distance) = node.distance {
                    context.send_all(distance);
                }
            })
            .await?;
            is_first = false;
            if !task.any(|node| node.is_new).await? {
                return Ok(());
            }
        }
    }

    fn answer(node: &Node) -> Vec<i64> {
        vec![node.distance.map_or(UNREACHED, i64::from)]
    }

    fn verify(input: &Input, answers: &[Vec<i64>]) -> Result<String, String> {
        let found = single(answers)?;
        let expected: Vec<i64> =
            input.hops(input.root).into_iter().map(|hops| hops.map_or(UNREACHED, i64::from)).collect();
        same("distance", &found, &expected)?;
        let farthest = found.iter().max().copied().unwrap_or_default();
        Ok(format!(
            "the farthest node is {farthest} hops from the root; compared with a breadth-first search"
        ))
    }
}
