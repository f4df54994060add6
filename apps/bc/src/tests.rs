//! Goldens, laws and an independent slow implementation against the kernels.

use super::count::WideFloat;
use super::run::BcFound;
use super::{Scores, bfs, dijkstra, verify};
use isles_graph::{Graph, ReadOptions, open};
use proptest::collection::vec;
use proptest::prelude::*;

fn named(name: &str) -> Graph {
    open(name, &ReadOptions::default()).expect("a graph that is part of the program")
}

fn all(graph: &Graph) -> Scores {
    let mut scores = Scores::zero();
    (0..graph.vertices()).for_each(|source| scores.add_source(graph, source));
    scores
}

fn values(graph: &Graph) -> Vec<f64> {
    all(graph).values().collect()
}

fn undirected(vertices: u64, ends: &[(u32, u32)]) -> Graph {
    Graph::from_edges(vertices, false, ends, None).expect("a small sound graph")
}

/// A random graph with integer lengths: vertices, directed, edges with lengths.
#[derive(Clone, Debug)]
struct Case {
    vertices: usize,
    directed: bool,
    ends: Vec<(u32, u32)>,
    lengths: Vec<u64>,
}

impl Case {
    fn graph(&self, weighted: bool) -> Graph {
        let lengths: Vec<f64> = self.lengths.iter().map(|&length| length as f64).collect();
        let lengths = weighted.then_some(lengths.as_slice());
        Graph::from_edges(self.vertices as u64, self.directed, &self.ends, lengths)
            .expect("sound by construction")
    }
}

fn cases() -> impl Strategy<Value = Case> {
    (1usize..14, any::<bool>()).prop_flat_map(|(vertices, directed)| {
        let vertex = 0..vertices as u32;
        vec(((vertex.clone(), vertex), 1u64..4), 0..40).prop_map(move |edges| {
            let (ends, lengths) = edges.into_iter().unzip();
            Case { vertices, directed, ends, lengths }
        })
    })
}

/// Betweenness from its definition, by all-pairs distances and all triples; it shares nothing with the kernels.
struct Slow {
    distances: Vec<Vec<u64>>,
    betweenness: Vec<f64>,
}

const FAR: u64 = u64::MAX / 4;

fn slow(case: &Case, weighted: bool) -> Slow {
    let n = case.vertices;
    let mut matrix = vec![vec![FAR; n]; n];
    for (&(from, to), &length) in case.ends.iter().zip(&case.lengths) {
        let length = if weighted { length } else { 1 };
        let mut put = |from: u32, to: u32| {
            let entry: &mut u64 = &mut matrix[from as usize][to as usize];
            *entry = length.min(*entry);
        };
        put(from, to);
        if !case.directed {
            put(to, from);
        }
    }
    let mut distances = matrix.clone();
    (0..n).for_each(|v| distances[v][v] = 0);
    for via in 0..n {
        for from in 0..n {
            for to in 0..n {
                distances[from][to] = distances[from][to].min(distances[from][via] + distances[via][to]);
            }
        }
    }
    let paths: Vec<Vec<f64>> = (0..n).map(|from| paths_from(from, &matrix, &distances)).collect();
    let mut betweenness = vec![0.0; n];
    for from in 0..n {
        for to in (0..n).filter(|&to| to != from && distances[from][to] < FAR) {
            for via in (0..n).filter(|&via| via != from && via != to) {
                if distances[from][via] + distances[via][to] == distances[from][to] {
                    betweenness[via] += paths[from][via] * paths[via][to] / paths[from][to];
                }
            }
        }
    }
    if !case.directed {
        betweenness.iter_mut().for_each(|score| *score /= 2.0);
    }
    Slow { distances, betweenness }
}

/// Returns the numbers of shortest paths from one vertex to each: nearest first, sums over the edges that reach it.
fn paths_from(from: usize, matrix: &[Vec<u64>], distances: &[Vec<u64>]) -> Vec<f64> {
    let n = matrix.len();
    let mut nearest: Vec<usize> = (0..n).filter(|&to| distances[from][to] < FAR).collect();
    nearest.sort_by_key(|&to| distances[from][to]);
    let mut paths = vec![0.0; n];
    paths[from] = 1.0;
    for to in nearest.into_iter().filter(|&to| to != from) {
        let last_steps = (0..n).filter(|&via| distances[from][via] + matrix[via][to] == distances[from][to]);
        paths[to] = last_steps.map(|via| paths[via]).sum();
    }
    paths
}

proptest! {
    #[test]
    fn both_kernels_agree_with_the_definition(case in cases(), weighted: bool) {
        let expected = slow(&case, weighted).betweenness;
        let found = values(&case.graph(weighted));
        for (vertex, (found, expected)) in found.iter().zip(&expected).enumerate() {
            prop_assert!((found - expected).abs() < 1e-9, "vertex {vertex}: {found} is not {expected}");
        }
    }

    #[test]
    fn the_sum_of_scores_is_the_sum_over_pairs_of_distance_minus_one(case in cases(), weighted: bool) {
        // With lengths the rule counts edges, which differ between equally long paths; so the test uses lengths of
        // one.
        let ones = Case { lengths: vec![1; case.ends.len()], ..case };
        let distances = slow(&ones, weighted).distances;
        let reached = distances.iter().flatten().filter(|&&far| far > 0 && far < FAR);
        let beyond: u64 = reached.map(|far| far - 1).sum();
        let expected = if ones.directed { beyond as f64 } else { beyond as f64 / 2.0 };
        let sum: f64 = values(&ones.graph(weighted)).iter().sum();
        prop_assert!((sum - expected).abs() < 1e-9, "{sum} is not {expected}");
    }

    #[test]
    fn lengths_of_one_give_the_bits_of_the_unweighted_kernel(case in cases()) {
        let ones = Case { lengths: vec![1; case.ends.len()], ..case };
        prop_assert_eq!(values(&ones.graph(true)), values(&ones.graph(false)));
    }

    #[test]
    fn any_distribution_of_sources_and_any_order_of_merging_give_the_same_bits(
        case in cases(),
        weighted: bool,
        places in vec(0usize..5, 14),
        order in Just(vec![0usize, 1, 2, 3, 4]).prop_shuffle(),
    ) {
        let graph = case.graph(weighted);
        let mut parts = vec![Scores::zero(); 5];
        for source in (0..graph.vertices()).rev() {
            parts[places[source as usize]].add_source(&graph, source);
        }
        let merged = order.iter().map(|&part| parts[part].clone()).fold(Scores::zero(), Scores::merge);
        prop_assert_eq!(merged, all(&graph));
    }

    #[test]
    fn counts_of_wide_range_change_nothing_where_floats_suffice(case in cases(), weighted: bool) {
        let graph = case.graph(weighted);
        for source in 0..graph.vertices() as u32 {
            prop_assert_eq!(dependencies::<f64>(&graph, source), dependencies::<WideFloat>(&graph, source));
        }
    }

    #[test]
    fn scores_survive_the_wire(case in cases()) {
        let scores = all(&case.graph(false));
        let bytes = postcard::to_allocvec(&scores).unwrap();
        prop_assert_eq!(postcard::from_bytes::<Scores>(&bytes).unwrap(), scores);
    }
}

fn dependencies<N: super::count::PathCount>(graph: &Graph, source: u32) -> Option<Vec<f64>> {
    let mut found = vec![0.0; graph.vertices() as usize];
    let add = |vertex: u32, dependency| found[vertex as usize] = dependency;
    let traversed = if graph.is_weighted() {
        dijkstra::add_source::<N>(graph, source, &mut Default::default(), add)
    } else {
        bfs::add_source::<N>(graph, source, &mut Default::default(), add)
    };
    traversed.map(|_| found)
}

#[test]
fn karate_has_its_published_scores() {
    let scores = values(&named("karate"));
    assert!((scores[0] - 231.0714285714).abs() < 1e-9, "vertex 0: {}", scores[0]);
    assert!((scores[33] - 160.5515873016).abs() < 1e-9, "vertex 33: {}", scores[33]);
}

#[test]
fn a_hundred_sources_of_the_power_grid_obey_the_sum_rule() {
    let graph = named("power");
    let mut scores = Scores::zero();
    let mut beyond = 0;
    for source in 0..100 {
        scores.add_source(&graph, source);
        beyond += distances(&graph, source as u32).iter().map(|far| far.saturating_sub(1)).sum::<u64>();
    }
    let sum: f64 = scores.values().sum();
    assert!((sum - beyond as f64 / 2.0).abs() < 1e-6, "{sum} is not half of {beyond}");
    assert_eq!(scores.edges_traversed(), 100 * graph.arcs(), "the grid is connected");
}

#[test]
#[ignore = "a second in a release build, ten in a debug build; for the long run"]
fn the_power_grid_has_the_scores_that_networkit_gives() {
    // NetworKit 11.2, Betweenness, halved to unordered pairs.
    let expected = [(4164, 3518477.343582243), (2543, 3436528.366715567), (1243, 3412093.918983211)];
    let top = all(&named("power")).top(3);
    for (ranked, (vertex, score)) in top.0.iter().zip(expected) {
        assert_eq!(ranked.vertex, vertex);
        assert!((ranked.score - score).abs() < 1e-6, "vertex {vertex}: {} is not {score}", ranked.score);
    }
}

/// Computes distances by relaxing until nothing changes; zero if unreachable.
fn distances(graph: &Graph, source: u32) -> Vec<u64> {
    let mut found = vec![FAR; graph.vertices() as usize];
    found[source as usize] = 0;
    let mut changed = true;
    while changed {
        changed = false;
        for vertex in 0..graph.vertices() as u32 {
            for &target in graph.neighbours(vertex) {
                let reach = found[vertex as usize] + 1;
                if reach < found[target as usize] {
                    found[target as usize] = reach;
                    changed = true;
                }
            }
        }
    }
    found.into_iter().map(|far| if far == FAR { 0 } else { far }).collect()
}

#[test]
fn small_graphs_have_the_scores_that_one_computes_by_hand() {
    assert_eq!(values(&undirected(5, &[(0, 1), (1, 2), (2, 3), (3, 4)])), [0.0, 3.0, 4.0, 3.0, 0.0]);
    assert_eq!(values(&undirected(4, &[(0, 1), (0, 2), (0, 3)])), [3.0, 0.0, 0.0, 0.0]);
    assert_eq!(values(&undirected(4, &[(0, 1), (1, 2), (2, 3), (3, 0)])), [0.5; 4]);
    assert_eq!(values(&undirected(1, &[])), [0.0]);
    let circle = Graph::from_edges(3, true, &[(0, 1), (1, 2), (2, 0)], None).unwrap();
    assert_eq!(values(&circle), [1.0; 3]);
}

#[test]
fn parallel_edges_count_once_and_self_loops_not_at_all() {
    let plain = values(&undirected(4, &[(0, 1), (1, 2), (2, 3), (3, 0)]));
    let doubled = values(&undirected(4, &[(0, 1), (1, 0), (0, 1), (1, 2), (2, 3), (3, 0), (2, 2)]));
    assert_eq!(doubled, plain);
    let light_way_round =
        Graph::from_edges(3, false, &[(0, 1), (1, 2), (0, 2), (0, 2)], Some(&[1.0, 1.0, 9.0, 2.5])).unwrap();
    assert_eq!(values(&light_way_round), [0.0, 1.0, 0.0]);
}

#[test]
fn lengths_too_small_to_change_a_distance_make_no_cycle() {
    // From 0, both 1 and 2 are at 1e20 in floats, each also reachable via the other; 1 is settled first, so the detour
    // counts only on the way to 2.
    let ends = [(0, 1), (0, 2), (1, 2), (2, 3)];
    let graph = Graph::from_edges(4, false, &ends, Some(&[1e20, 1e20, 1.0, 1e20])).unwrap();
    assert_eq!(values(&graph), [0.0, 1.0, 2.25, 0.0]);
}

/// Returns `length` squares in a row, each sharing a vertex with the next: each doubles the number of shortest paths.
fn squares(length: u32) -> Vec<(u32, u32)> {
    (0..length)
        .flat_map(|square| {
            let first = 3 * square;
            [(first, first + 1), (first, first + 2), (first + 1, first + 3), (first + 2, first + 3)]
        })
        .collect()
}

#[test]
fn path_counts_beyond_the_range_of_floats_still_give_exact_scores() {
    const SQUARES: u32 = 2_500;
    let vertices = 3 * SQUARES + 1;
    let ends = squares(SQUARES);
    let plain = undirected(u64::from(vertices), &ends);
    let weighted = plain.clone().with_weights(|_, _| 1.0).unwrap();
    for graph in [plain, weighted] {
        assert_eq!(dependencies::<f64>(&graph, 0), None, "2^{SQUARES} does not fit a float");
        let mut scores = Scores::zero();
        scores.add_source(&graph, 0);
        for (vertex, score) in scores.values().enumerate().skip(1) {
            let (square, corner) = ((vertex as u32 - 1) / 3, (vertex - 1) % 3);
            let beyond = f64::from(3 * (SQUARES - square - 1));
            // One source of an undirected graph counts half.
            let expected = if corner == 2 { beyond / 2.0 } else { (beyond + 1.0) / 4.0 };
            assert!((score - expected).abs() < 1e-6, "vertex {vertex}: {score} is not {expected}");
        }
    }
}

#[test]
fn working_memory_of_one_graph_serves_the_next() {
    let (karate, ring) =
        (named("karate"), undirected(40, &(0..40).map(|v| (v, (v + 1) % 40)).collect::<Vec<_>>()));
    let mut space = bfs::Workspace::<f64>::default();
    for graph in [&karate, &ring, &karate] {
        let mut found = vec![0.0; graph.vertices() as usize];
        bfs::add_source(graph, 3, &mut space, |vertex, dependency| found[vertex as usize] = dependency);
        assert_eq!(Some(found), dependencies::<f64>(graph, 3));
    }
}

#[test]
#[should_panic(expected = "source 34 of a graph with 34 vertices")]
fn a_source_that_does_not_exist_is_refused() {
    Scores::zero().add_source(&named("karate"), 34);
}

#[test]
#[should_panic(expected = "scores of different graphs cannot be merged")]
fn scores_of_different_graphs_are_refused() {
    let _ = all(&named("karate")).merge(all(&undirected(3, &[(0, 1)])));
}

#[test]
fn the_table_names_the_highest_first_and_of_equals_the_lower() {
    let top = all(&undirected(5, &[(0, 1), (1, 2), (2, 3), (3, 4)])).top(3);
    let expected = [
        "rank      vertex         betweenness",
        "   1           2              4.0000  ████████████████████",
        "   2           1              3.0000  ███████████████",
        "   3           3              3.0000  ███████████████",
    ];
    assert_eq!(top.to_string(), expected.join("\n"));
    assert_eq!(all(&named("karate")).top(99).0.len(), 34);
    assert_eq!(Scores::zero().top(3).0, []);
}

#[test]
fn csv_has_one_line_a_vertex() {
    let mut bytes = Vec::new();
    all(&undirected(4, &[(0, 1), (1, 2), (2, 3), (3, 0)])).write_csv(&mut bytes).unwrap();
    assert_eq!(String::from_utf8(bytes).unwrap(), "vertex,betweenness\n0,0.5\n1,0.5\n2,0.5\n3,0.5\n");
}

#[test]
fn json_reads_back_to_the_same_bits() {
    let scores = all(&named("karate"));
    let values: Vec<f64> = scores.values().collect();
    let text = serde_json::to_string(&BcFound::of(scores)).unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["sources"], 34);
    assert_eq!(document["edges_traversed"], 34 * 156);
    let read: Vec<f64> =
        document["betweenness"].as_array().unwrap().iter().map(|score| score.as_f64().unwrap()).collect();
    assert_eq!(read, values);
}

#[test]
fn a_full_disk_is_an_error_of_the_writer() {
    assert!(all(&named("karate")).write_csv(&mut [0u8; 20][..]).is_err());
}

#[test]
fn scores_of_another_graph_or_of_too_few_sources_are_refuted() {
    let karate = named("karate");
    let holds = |graph: &Graph, scores: &Scores| verify::by_definition(graph, scores).unwrap().holds;
    assert!(holds(&karate, &all(&karate)));
    let ends = |graph: &Graph| -> Vec<(u32, u32)> {
        let of = |from: u32| graph.neighbours(from).iter().map(move |&to| (from, to)).collect::<Vec<_>>();
        (0..graph.vertices() as u32).flat_map(of).filter(|(from, to)| from < to).collect()
    };
    let fewer = undirected(34, &ends(&karate)[1..]);
    assert!(!holds(&karate, &all(&fewer)));
    let mut scores = Scores::zero();
    (0..33).for_each(|source| scores.add_source(&karate, source));
    assert!(!holds(&karate, &scores));
}

proptest! {
    #[test]
    fn what_the_kernels_find_is_confirmed(case in cases(), weighted: bool) {
        let graph = case.graph(weighted);
        let verification = verify::by_definition(&graph, &all(&graph)).unwrap();
        prop_assert!(verification.holds, "{}", verification.text);
    }
}
