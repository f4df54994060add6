//! Inputs from a seed, by family.
//!
//! The families are those of the suite's files: `sparse-max` is a connected graph with *n* log *n* − 1 edges,
//! `sparse-min` a random tree, and `ring`, `chain` and `star` have these shapes. Weights, identifiers, votes, traitors
//! and initial values are drawn from separate streams, so that they are independent. Invariant: the same kernel, size,
//! family and seed give the same input, on any machine.

use super::super::kernel::KernelName;
use super::{Expected, Input, InputFault, InputSource, NO_EDGE, NODES_MAX};
use isles::Random;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;

/// A kind of graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GraphFamily {
    /// Connected, with *n* log *n* − 1 edges.
    SparseMax,
    /// A random tree.
    SparseMin,
    /// A ring.
    Ring,
    /// A path from node 0 to the last one.
    Chain,
    /// All edges lead to node 0.
    Star,
}

/// All families, as they are named on the command line.
const FAMILIES: [(GraphFamily, &str); 5] = [
    (GraphFamily::SparseMax, "sparse-max"),
    (GraphFamily::SparseMin, "sparse-min"),
    (GraphFamily::Ring, "ring"),
    (GraphFamily::Chain, "chain"),
    (GraphFamily::Star, "star"),
];

impl fmt::Display for GraphFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = FAMILIES.iter().find(|(family, _)| family == self).map_or("", |(_, name)| name);
        f.write_str(name)
    }
}

impl GraphFamily {
    /// Returns the families on which `kernel` is defined, the default one first.
    pub fn of(kernel: KernelName) -> &'static [GraphFamily] {
        use GraphFamily::{Chain, Ring, SparseMax, SparseMin, Star};
        match kernel {
            KernelName::HS | KernelName::LCR => &[Ring],
            KernelName::VC => &[SparseMin, Chain, Star],
            _ => &[SparseMax, SparseMin, Ring, Chain, Star],
        }
    }
}

/// Parsed value of `--generate N[,FAMILY]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// Number of nodes.
    pub size: usize,
    /// The family; the default one of the kernel if omitted.
    pub family: Option<GraphFamily>,
}

impl Recipe {
    /// Reads the value of `--generate`.
    ///
    /// # Errors
    /// [`InputFault`]: the value is invalid.
    pub fn parse(value: &str) -> Result<Recipe, InputFault> {
        let names: Vec<&str> = FAMILIES.iter().map(|(_, name)| *name).collect();
        let refused = || InputFault {
            source: InputSource::Generator(value.to_owned()),
            line: None,
            expected: Expected::Generator {
                allowed: format!(
                    "N or N,FAMILY with N from 1 to {NODES_MAX} and FAMILY of {}",
                    names.join(", ")
                ),
            },
        };
        let (size, family) = match value.split_once(',') {
            Some((size, family)) => (size, Some(family)),
            None => (value, None),
        };
        let size = size.parse().ok().filter(|size| (1..=NODES_MAX).contains(size)).ok_or_else(refused)?;
        let known = |name: &str| FAMILIES.iter().find(|(_, other)| *other == name).map(|(family, _)| *family);
        let family = family.map(|name| known(name).ok_or_else(refused)).transpose()?;
        Ok(Recipe { size, family })
    }
}

/// Generates an input of `kernel`; `committee_max` is for KC.
///
/// # Errors
/// [`InputFault`]: the kernel is not defined on the family, or K is out of range.
pub fn input(
    kernel: KernelName,
    recipe: Recipe,
    committee_max: u32,
    seed: u64,
    source: &InputSource,
) -> Result<Input, InputFault> {
    let refuse = |expected| Err(InputFault { source: source.clone(), line: None, expected });
    let allowed = GraphFamily::of(kernel);
    let family = recipe.family.unwrap_or(allowed[0]);
    if !allowed.contains(&family) {
        let allowed: Vec<String> = allowed.iter().map(GraphFamily::to_string).collect();
        return refuse(Expected::Family { kernel, allowed: allowed.join(", ") });
    }
    let size = recipe.size;
    if kernel == KernelName::KC && !(1..=size).contains(&(committee_max as usize)) {
        return refuse(Expected::CommitteeMax { found: committee_max, nodes: size });
    }
    let mut draw = Draws { seed, size };
    let neighbours = draw.graph(family);
    let mut input = Input { kernel, neighbours, seed, ..Input::default() };
    match kernel {
        KernelName::BF | KernelName::DST => input.root = draw.stream(1).index(size) as u32,
        KernelName::DP | KernelName::HS | KernelName::LCR => input.identifiers = draw.permutation(2),
        KernelName::KC => {
            input.ranks = draw.permutation(2);
            input.committee_max = committee_max;
        }
        KernelName::BY => {
            let mut random = draw.stream(3);
            input.votes = (0..size).map(|_| random.chance(50)).collect();
            let shuffled = draw.permutation(4).into_iter().map(|number| number as u32 - 1);
            input.traitors = shuffled.take(Input::traitors_max(size)).collect();
            input.traitors.sort_unstable();
        }
        KernelName::DR | KernelName::MST => input.weights = draw.weights(&input.neighbours),
        KernelName::VC => {
            let hops = input.hops(0);
            let nearer =
                |node: usize| input.neighbours[node].iter().find(|other| hops[**other as usize] < hops[node]);
            input.parents = (0..size).map(|node| nearer(node).copied().unwrap_or(0)).collect();
        }
        KernelName::DS | KernelName::MIS => {}
    }
    input.checked(source)
}

/// Returns the neighbours of the nodes of a ring of `size`.
pub(super) fn ring(size: usize) -> Vec<Vec<u32>> {
    let size = size as u32;
    rows(size as usize, (0..size).map(|node| (node, (node + 1) % size)).filter(|(one, other)| one != other))
}

/// Returns the rows of a graph with these edges, each row ascending and without duplicates.
fn rows(size: usize, edges: impl Iterator<Item = (u32, u32)>) -> Vec<Vec<u32>> {
    let mut rows = vec![BTreeSet::new(); size];
    for (one, other) in edges {
        rows[one as usize].insert(other);
        rows[other as usize].insert(one);
    }
    rows.into_iter().map(|row| row.into_iter().collect()).collect()
}

/// The random draws for one input.
struct Draws {
    seed: u64,
    size: usize,
}

impl Draws {
    /// Returns the random numbers for one purpose.
    fn stream(&mut self, purpose: u64) -> Random {
        Random::stream(self.seed, (1 << 40) + purpose)
    }

    fn graph(&mut self, family: GraphFamily) -> Vec<Vec<u32>> {
        let size = self.size;
        let others = 1..size as u32;
        match family {
            GraphFamily::Ring => ring(size),
            GraphFamily::Chain => rows(size, others.map(|node| (node - 1, node))),
            GraphFamily::Star => rows(size, others.map(|node| (0, node))),
            GraphFamily::SparseMin => self.sparse(size.saturating_sub(1)),
            GraphFamily::SparseMax => self.sparse((size * size.ilog2() as usize).saturating_sub(1)),
        }
    }

    /// Draws a random tree, in which the parent of each node precedes it, plus random edges up to `edges` in all.
    fn sparse(&mut self, edges: usize) -> Vec<Vec<u32>> {
        let mut random = self.stream(0);
        let size = self.size;
        let mut all: BTreeSet<(u32, u32)> =
            (1..size).map(|node| (random.index(node) as u32, node as u32)).collect();
        let edges = edges.clamp(all.len(), size * size.saturating_sub(1) / 2);
        while all.len() < edges {
            let (one, other) = (random.index(size) as u32, random.index(size) as u32);
            if one != other {
                all.insert((one.min(other), one.max(other)));
            }
        }
        rows(size, all.into_iter())
    }

    /// Returns a random permutation of the numbers from 1 to the size.
    fn permutation(&mut self, purpose: u64) -> Vec<u64> {
        let mut random = self.stream(purpose);
        let mut numbers: Vec<u64> = (1..=self.size as u64).collect();
        for last in (1..numbers.len()).rev() {
            numbers.swap(last, random.index(last + 1));
        }
        numbers
    }

    /// Draws a weight for each edge, the same in both rows.
    fn weights(&mut self, neighbours: &[Vec<u32>]) -> Vec<Vec<u64>> {
        let seed = self.seed;
        let weight = |one: u32, other: u32| {
            let edge = u64::from(one.min(other)) << 20 | u64::from(one.max(other));
            Random::stream(seed, (1 << 41) + edge).within(&(1..=NO_EDGE - 1))
        };
        let row =
            |(node, row): (usize, &Vec<u32>)| row.iter().map(|other| weight(node as u32, *other)).collect();
        neighbours.iter().enumerate().map(row).collect()
    }
}
