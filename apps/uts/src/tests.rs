//! The trees against their published sizes and a second program, and searches in seeded worlds.

use super::bag::TreeBag;
use super::tree::{SAMPLES, SearchTree, TreeKind, TreeRules, TreeSize, child, root};
use isles::Plan;
use isles::glb::{self, Balanced, Parameters};

/// Nodes, leaves and depth of sample trees with another depth, by `apps/uts/tests/uts.py`.
const SHALLOW: [(&str, u32, (u64, u64, u32)); 8] = [
    ("T1", 6, (16_000, 12_839, 6)),
    ("T1", 7, (63_914, 51_124, 7)),
    ("T2", 2, (227, 124, 11)),
    ("T2", 3, (996, 705, 16)),
    ("T4", 8, (15_914, 11_966, 73)),
    ("T4", 10, (45_120, 34_011, 103)),
    ("T5", 5, (155, 94, 5)),
    ("T5", 10, (5577, 3111, 10)),
];

/// Returns a sample tree with another depth.
fn shallow(name: &str, wanted: u32) -> TreeRules {
    let mut rules = SAMPLES.iter().find(|sample| sample.name == name).expect("a sample").rules;
    match &mut rules.kind {
        TreeKind::Geometric { depth, .. } | TreeKind::Hybrid { depth, .. } => *depth = wanted,
        TreeKind::Binomial { .. } => panic!("{name} has no depth"),
    }
    rules
}

#[test]
fn nodes_are_the_digests_of_a_second_program() {
    // From `apps/uts/tests/uts.py`, which uses another SHA-1.
    let first = root(19);
    assert_eq!(first, [0xc698_8ab7, 0x0cc9_559a, 0xe4d6_cba2, 0x54e2_9a84, 0x5a85_f86b]);
    assert_eq!(child(&first, 0), [0x2fb3_1310, 0x3028_0c16, 0x17a8_1d6a, 0x49c1_e29e, 0xffb1_9645]);
    let deep = child(&child(&first, 3), 70_000);
    assert_eq!(deep, [0x8773_61f3, 0x337f_dec6, 0xd06f_1ee1, 0x2742_3093, 0x42d0_c8f6]);
}

#[test]
fn sizes_are_those_of_a_second_program() {
    for (name, depth, (nodes, leaves, deepest)) in SHALLOW {
        let size = SearchTree::new(shallow(name, depth)).size();
        assert_eq!(size, TreeSize { nodes, leaves, depth: deepest }, "{name} of depth {depth}");
    }
}

/// A walk of 4 million nodes, for optimised builds.
#[test]
#[ignore = "takes long in a build for debugging; `./test --long glb` runs it"]
fn the_sample_trees_have_their_published_sizes() {
    for sample in SAMPLES.iter().filter(|sample| sample.size.nodes < 10_000_000) {
        assert_eq!(SearchTree::new(sample.rules).size(), sample.size, "{}", sample.name);
    }
}

#[test]
fn a_search_in_any_order_finds_the_whole_tree() {
    for (name, depth, (nodes, leaves, deepest)) in SHALLOW.into_iter().filter(|(.., size)| size.0 < 5000) {
        for seed in 0..8 {
            let (rules, places) = (shallow(name, depth), 1 + seed as u32);
            let (result, ..) = isles::simulate(places, Plan::adversarial(seed), move || async move {
                let parameters = Parameters { batch: Some(20), seed, ..Parameters::default() };
                let Balanced { result, .. } = glb::run_with(parameters, TreeBag::new(rules)).await?;
                assert_eq!(result, TreeSize { nodes, leaves, depth: deepest });
                Ok::<_, isles::Error>(())
            });
            result.unwrap_or_else(|error| panic!("{name}, seed {seed}: {error}"));
        }
    }
}
