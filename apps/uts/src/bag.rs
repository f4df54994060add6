//! Nodes with unvisited children, as a bag balanced over places.
//!
//! An entry is a node and the range of its unvisited children. A thief gets half of each range, as in X10's UTS (W.
//! Zhang et al., 2014), so it gets nodes of all depths. Invariant: each child is in one range of one bag, or has been
//! counted in one.

use super::tree::{NodeState, SearchTree, TreeRules, TreeSize, child, root};
use isles::Cycles;
use isles::glb::Bag;
use isles::prelude::*;
use isles_app::frame::add_done;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Cycles per node on a modelled core: a block of SHA-1, about 900 cycles of a Pentium, a logarithm, and the rest. Our
/// estimate.
const NODE: Cycles = Cycles(1200);

/// A node with unvisited children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OpenNode {
    state: NodeState,
    depth: u32,
    /// The children `low..high`; at least one.
    low: u32,
    high: u32,
}

/// Words of an entry.
const WORDS: usize = 8;

/// The unvisited part of a tree, and the counts so far.
#[derive(Clone, Debug)]
pub struct TreeBag {
    tree: SearchTree,
    /// The deepest entries are at the end.
    entries: Vec<OpenNode>,
    size: TreeSize,
}

impl TreeBag {
    /// Creates the bag of a tree with a visited root.
    pub fn new(rules: TreeRules) -> TreeBag {
        let tree = SearchTree::new(rules);
        let (mut entries, mut size) = (Vec::new(), TreeSize::default());
        visit(&tree, &mut entries, &mut size, root(rules.root_seed), 0);
        TreeBag { tree, entries, size }
    }
}

/// Visits one node.
#[inline(always)]
fn visit(tree: &SearchTree, entries: &mut Vec<OpenNode>, size: &mut TreeSize, state: NodeState, depth: u32) {
    let children = tree.children(&state, depth);
    size.nodes += 1;
    size.depth = size.depth.max(depth);
    match children {
        0 => size.leaves += 1,
        _ => entries.push(OpenNode { state, depth, low: 0, high: children }),
    }
}

impl Bag for TreeBag {
    type Result = TreeSize;

    // The stack and the counts are local variables: through `self` a node takes a quarter longer.
    fn process(&mut self, count: usize) -> usize {
        let mut entries = std::mem::take(&mut self.entries);
        let mut size = self.size;
        let mut visited = 0;
        while visited < count {
            let Some(entry) = entries.last_mut() else { break };
            entry.high -= 1;
            let (state, depth) = (child(&entry.state, entry.high), entry.depth + 1);
            if entry.low == entry.high {
                entries.pop();
            }
            visit(&self.tree, &mut entries, &mut size, state, depth);
            visited += 1;
        }
        (self.entries, self.size) = (entries, size);
        work(Cycles(NODE.0 * visited as u64));
        add_done(visited as u64);
        visited
    }

    fn split(&mut self) -> Option<TreeBag> {
        let mut given = Vec::new();
        for entry in &mut self.entries {
            let half = (entry.high - entry.low) / 2;
            if half > 0 {
                given.push(OpenNode { high: entry.low + half, ..*entry });
                entry.low += half;
            }
        }
        if given.is_empty() {
            // With one child each, the upper nodes have the larger trees.
            given = self.entries.drain(..self.entries.len() / 2).collect();
        }
        let has_any = !given.is_empty();
        has_any.then(|| TreeBag { tree: self.tree.clone(), entries: given, size: TreeSize::default() })
    }

    fn merge(&mut self, other: TreeBag) {
        self.size.merge(other.size);
        if self.entries.is_empty() {
            self.entries = other.entries;
        } else {
            // Received entries go below the current ones, so that the walk stays deep.
            self.entries.splice(..0, other.entries);
        }
    }

    fn result(self) -> TreeSize {
        self.size
    }
}

/// Serialised form of a bag: words, sent as one block.
#[derive(Serialize, Deserialize)]
struct SerializedBag {
    rules: TreeRules,
    words: Vec<u32>,
    size: TreeSize,
}

impl Serialize for TreeBag {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut words = Vec::with_capacity(WORDS * self.entries.len());
        for entry in &self.entries {
            words.extend(entry.state);
            words.extend([entry.depth, entry.low, entry.high]);
        }
        SerializedBag { rules: self.tree.rules(), words, size: self.size }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for TreeBag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let SerializedBag { rules, words, size } = SerializedBag::deserialize(deserializer)?;
        let (chunks, rest) = words.as_chunks::<WORDS>();
        let entry = |[a, b, c, d, e, depth, low, high]: &[u32; WORDS]| {
            (low < high).then_some(OpenNode {
                state: [*a, *b, *c, *d, *e],
                depth: *depth,
                low: *low,
                high: *high,
            })
        };
        match chunks.iter().map(entry).collect::<Option<Vec<OpenNode>>>().filter(|_| rest.is_empty()) {
            Some(entries) => Ok(TreeBag { tree: SearchTree::new(rules), entries, size }),
            None => Err(serde::de::Error::custom("nodes without children left, or a part of one")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::SAMPLES;
    use proptest::prelude::*;

    /// Returns a part of a sample tree that is small enough for a debug build.
    fn small(index: usize) -> TreeRules {
        use crate::tree::{GeometricShape, TreeKind};
        let rules = SAMPLES[index % SAMPLES.len()].rules;
        let kind = match rules.kind {
            TreeKind::Geometric { shape, .. } => TreeKind::Geometric { shape, depth: 5 },
            TreeKind::Binomial { .. } => TreeKind::Binomial { probability: 0.2, children: 4 },
            TreeKind::Hybrid { .. } => TreeKind::Hybrid { depth: 8, probability: 0.2, children: 4 },
        };
        let kind = match kind {
            TreeKind::Geometric { shape: GeometricShape::Cyclic, .. } => {
                TreeKind::Geometric { shape: GeometricShape::Cyclic, depth: 4 }
            }
            kind => kind,
        };
        TreeRules { kind, root_children: rules.root_children.min(300), root_seed: rules.root_seed }
    }

    proptest! {
        #[test]
        fn a_tree_in_parts_has_the_size_of_the_whole(
            index in 0_usize..7,
            seed in any::<u32>(),
            moves in proptest::collection::vec((0_usize..4, 1_usize..60), 0..60),
        ) {
            let rules = TreeRules { root_seed: seed, ..small(index) };
            let whole = SearchTree::new(rules).size();
            let mut bags = vec![TreeBag::new(rules)];
            for (kind, count) in moves {
                let chosen = count % bags.len();
                match kind {
                    0 => _ = bags[chosen].process(count),
                    1 => {
                        let part = bags[chosen].split();
                        bags.extend(part);
                    }
                    2 if bags.len() > 1 => {
                        let other = bags.swap_remove(chosen);
                        bags[0].merge(other);
                    }
                    _ => {
                        let words = postcard::to_allocvec(&bags[chosen]).unwrap();
                        bags[chosen] = postcard::from_bytes(&words).unwrap();
                    }
                }
            }
            let mut size = TreeSize::default();
            for mut bag in bags {
                while bag.process(100) == 100 {}
                prop_assert!(bag.split().is_none());
                size.merge(bag.result());
            }
            prop_assert_eq!(size, whole);
        }
    }
}
