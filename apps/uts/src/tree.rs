//! The trees of the Unbalanced Tree Search benchmark, and the number of children of a node.
//!
//! S. Olivier, J. Huan, J. Liu, J. Prins, J. Dinan, P. Sadayappan, C.-W. Tseng: "UTS: An Unbalanced Tree Search
//! Benchmark" (LCPC 2006). A node is 20 bytes, the SHA-1 of its parent's and of its number among its siblings, so a
//! tree does not depend on where its nodes are visited. This module knows no places. Invariant: the numbers of
//! children are those of the published C program bit for bit; the published sizes are in [`SAMPLES`].

use serde::{Deserialize, Serialize};
use sha1::block_api::compress;
use std::f64::consts::PI;

/// Most children of a node, except for the root of a binomial tree.
const CHILDREN_MAX: u32 = 100;

/// SHA-1 before the first block (FIPS 180-4, 5.3.1).
const INITIAL: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];

/// Dependence on the depth of the expected number of children in a geometric tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GeometricShape {
    /// Falls linearly to 0.
    Linear,
    /// Rises and falls.
    Cyclic,
    /// Constant down to the depth of the tree, then 0.
    Fixed,
}

/// Distribution of the number of children.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TreeKind {
    /// Each node but the root has `children` with probability `probability`, else none.
    Binomial {
        /// q.
        probability: f64,
        /// m.
        children: u32,
    },
    /// The number is geometrically distributed; the mean depends on the depth.
    Geometric {
        /// a.
        shape: GeometricShape,
        /// d.
        depth: u32,
    },
    /// Linear geometric in the upper half of the depth, binomial below.
    Hybrid {
        /// d.
        depth: u32,
        /// q.
        probability: f64,
        /// m.
        children: u32,
    },
}

/// The rules of one tree.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TreeRules {
    /// Distribution of the number of children.
    pub kind: TreeKind,
    /// The expected number of children of the root, b_0.
    pub root_children: u32,
    /// r.
    pub root_seed: u32,
}

/// Counts of a traversal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeSize {
    /// All nodes, the root included.
    pub nodes: u64,
    /// Nodes without children.
    pub leaves: u64,
    /// The depth of the deepest node; the root has 0.
    pub depth: u32,
}

impl TreeSize {
    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: TreeSize) {
        self.nodes += other.nodes;
        self.leaves += other.leaves;
        self.depth = self.depth.max(other.depth);
    }
}

/// A tree with a published size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampleTree {
    /// Its name.
    pub name: &'static str,
    /// Its rules.
    pub rules: TreeRules,
    /// Its size, from `sample_trees.sh` of the UTS distribution.
    pub size: TreeSize,
}

const fn sample(name: &'static str, rules: TreeRules, size: TreeSize) -> SampleTree {
    SampleTree { name, rules, size }
}

const fn rules(kind: TreeKind, root_children: u32, root_seed: u32) -> TreeRules {
    TreeRules { kind, root_children, root_seed }
}

const fn size(nodes: u64, depth: u32, leaves: u64) -> TreeSize {
    TreeSize { nodes, leaves, depth }
}

const fn geometric(shape: GeometricShape, depth: u32) -> TreeKind {
    TreeKind::Geometric { shape, depth }
}

const fn binomial(probability: f64, children: u32) -> TreeKind {
    TreeKind::Binomial { probability, children }
}

const HYBRID: TreeKind = TreeKind::Hybrid { depth: 16, probability: 0.234_375, children: 4 };

/// The published sample trees.
pub const SAMPLES: [SampleTree; 7] = [
    sample("T1", rules(geometric(GeometricShape::Fixed, 10), 4, 19), size(4_130_071, 10, 3_305_118)),
    sample("T2", rules(geometric(GeometricShape::Cyclic, 16), 6, 502), size(4_117_769, 81, 2_342_762)),
    sample("T3", rules(binomial(0.124_875, 8), 2000, 42), size(4_112_897, 1572, 3_599_034)),
    sample("T4", rules(HYBRID, 6, 1), size(4_132_453, 134, 3_108_986)),
    sample("T5", rules(geometric(GeometricShape::Linear, 20), 4, 34), size(4_147_582, 20, 2_181_318)),
    sample("T1L", rules(geometric(GeometricShape::Fixed, 13), 4, 29), size(102_181_082, 13, 81_746_377)),
    sample("T3L", rules(binomial(0.200_014, 5), 2000, 7), size(111_345_631, 17_844, 89_076_904)),
];

/// The identity of a node: 20 bytes as big-endian words, which with its depth determine everything else.
pub type NodeState = [u32; 5];

/// Returns the SHA-1 of the 20 bytes of `head`, followed by the 4 bytes of `last` if there is one.
#[inline]
fn hash(head: [u32; 5], last: Option<u32>) -> NodeState {
    let (mut words, mut len) = ([0_u32; 16], 5);
    words[..5].copy_from_slice(&head);
    if let Some(last) = last {
        (words[5], len) = (last, 6);
    }
    words[len] = 0x8000_0000;
    words[15] = 32 * len as u32;
    let mut block = [0_u8; 64];
    for (bytes, word) in block.chunks_exact_mut(4).zip(words) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    let mut state = INITIAL;
    compress(&mut state, &[block]);
    state
}

/// Returns the root of the trees with this seed.
pub fn root(seed: u32) -> NodeState {
    hash([0, 0, 0, 0, seed], None)
}

/// Returns child `number` of a node.
#[inline]
pub fn child(parent: &NodeState, number: u32) -> NodeState {
    hash(*parent, Some(number))
}

/// Returns the uniform random number of a node, in `[0, 1)`.
#[inline]
fn uniform(state: &NodeState) -> f64 {
    f64::from(state[4] & 0x7fff_ffff) / 2_147_483_648.0
}

/// The rules of a tree, with values precomputed for each depth.
#[derive(Clone, Debug)]
pub struct SearchTree {
    rules: TreeRules,
    /// Logarithms for geometric nodes by depth: ln(1 - p), where p = 1 / (1 + expected children). Deeper nodes are
    /// leaves.
    logarithms: Vec<f64>,
}

impl SearchTree {
    /// Creates the tree with these rules.
    pub fn new(rules: TreeRules) -> SearchTree {
        let depths = match rules.kind {
            TreeKind::Binomial { .. } => 0,
            TreeKind::Geometric { shape: GeometricShape::Cyclic, depth } => 5 * depth + 1,
            TreeKind::Geometric { depth, .. } => depth,
            TreeKind::Hybrid { depth, .. } => depth / 2,
        };
        let logarithm = |depth| (1.0 - 1.0 / (1.0 + expected_children(&rules, depth))).ln();
        SearchTree { rules, logarithms: (0..depths).map(logarithm).collect() }
    }

    /// Returns its rules.
    pub fn rules(&self) -> TreeRules {
        self.rules
    }

    /// Returns the number of children of a node at `depth`.
    #[inline]
    pub fn children(&self, state: &NodeState, depth: u32) -> u32 {
        match self.rules.kind {
            TreeKind::Binomial { .. } if depth == 0 => self.rules.root_children,
            TreeKind::Binomial { probability, children } => binomial_children(state, probability, children),
            TreeKind::Geometric { .. } => self.geometric_children(state, depth),
            TreeKind::Hybrid { depth: half, .. } if depth < half / 2 => self.geometric_children(state, depth),
            TreeKind::Hybrid { probability, children, .. } => binomial_children(state, probability, children),
        }
    }

    #[inline]
    fn geometric_children(&self, state: &NodeState, depth: u32) -> u32 {
        let Some(logarithm) = self.logarithms.get(depth as usize) else { return 0 };
        (((1.0 - uniform(state)).ln() / logarithm).floor() as u32).min(CHILDREN_MAX)
    }

    /// Returns the size of the tree, by a plain sequential walk.
    pub fn size(&self) -> TreeSize {
        let mut size = TreeSize::default();
        let mut stack = vec![(root(self.rules.root_seed), 0)];
        while let Some((state, depth)) = stack.pop() {
            let children = self.children(&state, depth);
            size.nodes += 1;
            size.leaves += u64::from(children == 0);
            size.depth = size.depth.max(depth);
            stack.extend((0..children).map(|number| (child(&state, number), depth + 1)));
        }
        size
    }
}

#[inline]
fn binomial_children(state: &NodeState, probability: f64, children: u32) -> u32 {
    if uniform(state) < probability { children.min(CHILDREN_MAX) } else { 0 }
}

/// Returns the expected number of children of a geometric node at `depth`.
fn expected_children(rules: &TreeRules, depth: u32) -> f64 {
    let root_children = f64::from(rules.root_children);
    let (shape, depth_max) = match rules.kind {
        TreeKind::Geometric { shape, depth } => (shape, f64::from(depth)),
        TreeKind::Hybrid { depth, .. } => (GeometricShape::Linear, f64::from(depth)),
        TreeKind::Binomial { .. } => return root_children,
    };
    let at = f64::from(depth);
    match shape {
        _ if depth == 0 => root_children,
        GeometricShape::Linear => root_children * (1.0 - at / depth_max),
        GeometricShape::Cyclic if at > 5.0 * depth_max => 0.0,
        GeometricShape::Cyclic => root_children.powf((2.0 * PI * at / depth_max).sin()),
        GeometricShape::Fixed if at < depth_max => root_children,
        GeometricShape::Fixed => 0.0,
    }
}
