//! Input of a kernel: a graph of nodes that know their neighbours, and further data that the kernel needs.
//!
//! An input comes from a file in the suite's format ([`read`]) or from a generator ([`generate`]); both end in
//! [`Input::checked`]. It knows no places. Invariant: a checked input is one on which its kernel is defined: the graph
//! is undirected, without loops, and of the shape that the kernel needs; every number is in its range.

mod error;
pub mod generate;
pub mod read;

pub use error::{Expected, InputFault, InputSource};

use super::kernel::KernelName;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Largest number of nodes.
pub const NODES_MAX: usize = 8192;

/// Largest number of nodes if calls carry everything reachable, including a matrix of 8 MiB.
pub const REACHABLE_NODES_MAX: usize = 1024;

/// Weight from a node to itself in the suite's weight matrices: more than that of any edge.
pub const NO_EDGE: u64 = 2_147_483_647;

/// Input of a kernel. Fields that the kernel does not use are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// The kernel that it is for.
    pub kernel: KernelName,
    /// The neighbours of each node, ascending. If the file of a ring does not list them: those of the ring.
    pub neighbours: Vec<Vec<u32>>,
    /// The weights of the edges to `neighbours`: DR and MST.
    pub weights: Vec<Vec<u64>>,
    /// The start node: BF, DST and VC.
    pub root: u32,
    /// The parent of each node in the tree; the root is its own parent: VC.
    pub parents: Vec<u32>,
    /// The distinct identifiers of the nodes: DP, HS and LCR.
    pub identifiers: Vec<u64>,
    /// The initial values of the nodes; the smallest ones lead: KC.
    pub ranks: Vec<u64>,
    /// Most members of a committee: KC.
    pub committee_max: u32,
    /// The initial votes: BY.
    pub votes: Vec<bool>,
    /// The nodes that vote arbitrarily, ascending: BY.
    pub traitors: Vec<u32>,
    /// The seed of the random numbers that the kernel draws: BY, DS and MIS.
    pub seed: u64,
}

/// Facts about the input that all nodes know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputFacts {
    /// Number of nodes.
    pub size: usize,
    /// The largest number of hops between two nodes; only for BY, the other kernels do not know it.
    pub diameter: u32,
    /// Most members of a committee; only for KC.
    pub committee_max: u32,
}

impl Input {
    /// Returns the facts that all nodes know.
    pub fn facts(&self) -> InputFacts {
        let diameter = if self.kernel == KernelName::BY { self.diameter() } else { 0 };
        InputFacts { size: self.size(), diameter, committee_max: self.committee_max }
    }

    /// Returns the number of nodes.
    pub fn size(&self) -> usize {
        self.neighbours.len()
    }

    /// Returns the number of edges.
    pub fn edges(&self) -> usize {
        self.neighbours.iter().map(Vec::len).sum::<usize>() / 2
    }

    /// Returns the most traitors among `size` nodes for which Rabin's thresholds lead to agreement: an eighth, less
    /// one.
    pub fn traitors_max(size: usize) -> usize {
        (size / 8).saturating_sub(1)
    }

    /// Returns the hops from `root` to each node; `None` if there is no path.
    pub fn hops(&self, root: u32) -> Vec<Option<u32>> {
        let mut hops = vec![None; self.size()];
        hops[root as usize] = Some(0);
        let (mut reached, mut next) = (vec![root], 0);
        while let Some(&node) = reached.get(next) {
            next += 1;
            let beyond = hops[node as usize].map(|hops| hops + 1);
            for &neighbour in &self.neighbours[node as usize] {
                if hops[neighbour as usize].is_none() {
                    hops[neighbour as usize] = beyond;
                    reached.push(neighbour);
                }
            }
        }
        hops
    }

    /// Returns the largest number of hops between two connected nodes.
    fn diameter(&self) -> u32 {
        (0..self.size() as u32).flat_map(|node| self.hops(node).into_iter().flatten()).max().unwrap_or(0)
    }

    /// Returns the input if its kernel is defined on it.
    ///
    /// # Errors
    /// [`InputFault`] of `source`: the missing property.
    pub fn checked(self, source: &InputSource) -> Result<Input, InputFault> {
        let refuse = |expected: Expected| Err(InputFault { source: source.clone(), line: None, expected });
        let kernel = self.kernel;
        if let Some((one, other)) = self.one_way() {
            return refuse(Expected::BothWays { one, other });
        }
        if kernel.needs_connection() && self.size() > 0 {
            let missing = self.hops(self.root).iter().position(Option::is_none);
            if let Some(node) = missing {
                return refuse(Expected::Connected { kernel, from: self.root, node: node as u32 });
            }
        }
        if kernel == KernelName::VC
            && let Some(expected) = self.fault_of_tree()
        {
            return refuse(expected);
        }
        if let Some(twice) = first_twice(&self.identifiers) {
            return refuse(Expected::DistinctIdentifiers { twice });
        }
        let (traitors, most) = (self.traitors.len(), Input::traitors_max(self.size()));
        if traitors > most {
            return refuse(Expected::FewTraitors { traitors, most, nodes: self.size() });
        }
        Ok(self)
    }

    /// Returns an edge that the neighbour does not list, or a loop.
    fn one_way(&self) -> Option<(u32, u32)> {
        let edges = |node: usize| self.neighbours[node].iter().map(move |other| (node as u32, *other));
        let is_missing = |(one, other): &(u32, u32)| {
            one == other || self.neighbours[*other as usize].binary_search(one).is_err()
        };
        (0..self.size()).flat_map(edges).find(is_missing)
    }

    /// Returns a fault if the parents do not form a tree of the edges with this root.
    fn fault_of_tree(&self) -> Option<Expected> {
        let size = self.size();
        if self.edges() + 1 != size {
            return Some(Expected::Tree { nodes: size, edges: self.edges() });
        }
        // A connected graph with one edge fewer than nodes is a tree: each node but the root has one nearer neighbour.
        let hops = self.hops(self.root);
        (0..size).find_map(|node| {
            let nearer = |other: &&u32| hops[**other as usize] < hops[node];
            let parent = self.neighbours[node].iter().find(nearer).copied().unwrap_or(self.root);
            let found = self.parents[node];
            (found != parent).then_some(Expected::Parent { node: node as u32, parent, found })
        })
    }
}

/// Returns the first value that occurs a second time.
fn first_twice(values: &[u64]) -> Option<u64> {
    let mut seen = BTreeSet::new();
    values.iter().find(|value| !seen.insert(**value)).copied()
}
