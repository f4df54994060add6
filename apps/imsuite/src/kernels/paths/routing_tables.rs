//! DR: the routing table of each node: the first hop of a shortest path to each other node.
//!
//! Each node runs Dijkstra's algorithm (Numerische Mathematik 1, 1959) on its own. It knows its own edges; when it
//! settles another node, it asks that node for its edges. All nodes settle one node per round. Of equally near nodes
//! the lowest-numbered one is settled first, and of equally long paths the one found first is kept. Invariant: the
//! distance to a settled node is that of a shortest path, and the table has its first hop.

use super::super::super::input::Input;
use super::super::super::kernel::Kernel;
use super::super::super::place_task::PlaceTask;
use super::UNREACHED;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The kernel DR. Its nodes send no messages; they ask for edges.
pub struct RoutingTables;

/// The known route to another node.
#[derive(Clone, Copy, Default)]
struct KnownRoute {
    /// The length of the shortest path found so far.
    length: Option<u64>,
    /// The first hop of that path.
    first_hop: u32,
    is_settled: bool,
}

/// A node of the kernel.
pub struct Node {
    /// Its edges: neighbour and weight.
    edges: Vec<(u32, u64)>,
    /// The known route to each node.
    routes: Vec<KnownRoute>,
    /// The node to settle next.
    nearest: Option<u32>,
}

impl Node {
    /// Adds the edges of a node that is being settled.
    fn settle(&mut self, node: u32, edges: &[(u32, u64)]) {
        let settled = &mut self.routes[node as usize];
        settled.is_settled = true;
        let (Some(length), own_hop) = (settled.length, settled.first_hop) else { return };
        for (neighbour, weight) in edges {
            let route = &mut self.routes[*neighbour as usize];
            let longer = length + weight;
            if route.length.is_none_or(|length| longer < length) {
                // The first edge of a path is the one that leaves the node itself.
                let first_hop = if length == 0 { *neighbour } else { own_hop };
                *route = KnownRoute { length: Some(longer), first_hop, is_settled: false };
            }
        }
        let open = |(node, route): (usize, &KnownRoute)| {
            (!route.is_settled).then_some(()).and(route.length).map(|length| (length, node as u32))
        };
        self.nearest = self.routes.iter().enumerate().filter_map(open).min().map(|(_, node)| node);
    }
}

impl Kernel for RoutingTables {
    type Node = Node;
    type Message = ();
    type Reply = Vec<(u32, u64)>;

    fn node(input: &Input, index: u32) -> Node {
        let own = index as usize;
        let edges: Vec<_> =
            input.neighbours[own].iter().copied().zip(input.weights[own].iter().copied()).collect();
        let mut node =
            Node { edges: Vec::new(), routes: vec![KnownRoute::default(); input.size()], nearest: None };
        node.routes[own] = KnownRoute { length: Some(0), first_hop: index, is_settled: false };
        node.settle(index, &edges);
        Node { edges, ..node }
    }

    fn reply(node: &Node) -> Vec<(u32, u64)> {
        node.edges.clone()
    }

    async fn run(task: &mut PlaceTask<Self>) -> isles::Result<()> {
        for _ in 1..task.facts().size {
            task.ask(|_, node| node.nearest, |node, target, edges| node.settle(target, &edges)).await?;
        }
        Ok(())
    }

    fn answer(node: &Node) -> Vec<i64> {
        let hop = |route: &KnownRoute| route.length.map_or(UNREACHED, |_| i64::from(route.first_hop));
        node.routes.iter().map(hop).collect()
    }

    fn verify(input: &Input, answers: &[Vec<i64>]) -> Result<String, String> {
        let mut longest = 0;
        for target in 0..input.size() {
            // Edges lead both ways, so the lengths from the target equal those to it.
            let lengths = lengths_from(input, target);
            longest = longest.max(lengths.iter().flatten().max().copied().unwrap_or_default());
            for (node, answer) in answers.iter().enumerate() {
                check_hop(input, node, target, answer, &lengths)?;
            }
        }
        Ok(format!("the longest shortest path has length {longest}; compared with a sequential Dijkstra"))
    }
}

/// Checks that the first hop from a node to a target is that of a shortest path.
fn check_hop(
    input: &Input,
    node: usize,
    target: usize,
    answer: &[i64],
    lengths: &[Option<u64>],
) -> Result<(), String> {
    let hop = answer.get(target).copied().ok_or_else(|| format!("node {node} knows nothing of {target}"))?;
    let expected = match lengths[node] {
        None => hop == UNREACHED,
        Some(0) => hop == node as i64,
        Some(length) => {
            let index = input.neighbours[node].iter().position(|other| i64::from(*other) == hop);
            index.is_some_and(|index| {
                lengths[hop as usize].is_some_and(|rest| rest + input.weights[node][index] == length)
            })
        }
    };
    if expected { Ok(()) } else { Err(format!("no shortest path from {node} to {target} begins with {hop}")) }
}

/// Returns the lengths of the shortest paths from a node, computed with a heap, independently of the kernel.
fn lengths_from(input: &Input, from: usize) -> Vec<Option<u64>> {
    let mut lengths = vec![None; input.size()];
    let mut open = BinaryHeap::from([Reverse((0_u64, from))]);
    while let Some(Reverse((length, node))) = open.pop() {
        if lengths[node].is_some() {
            continue;
        }
        lengths[node] = Some(length);
        for (neighbour, weight) in input.neighbours[node].iter().zip(&input.weights[node]) {
            open.push(Reverse((length + weight, *neighbour as usize)));
        }
    }
    lengths
}
