//! Entry points for fuzzing: each takes arbitrary bytes and must return.
//!
//! They exist here so that a fuzz target is one line. They panic if a decoder accepts a graph that breaks the promises
//! of [`Graph`], which the fuzzer looks for. They are not part of any program.

use super::{
    Graph, GraphError, ReadOptions, Weights, dataset, edge_list, gt, matrix_market, metis, rmat::Rmat,
};

const OPTIONS: [ReadOptions; 2] = [
    ReadOptions { weights: Weights::Ignored, directed: false },
    ReadOptions { weights: Weights::Lengths, directed: true },
];

type Decoder = fn(&[u8], &ReadOptions) -> Result<Graph, GraphError>;

/// Runs the edge-list decoder.
pub fn edge_list(bytes: &[u8]) {
    run(edge_list::decode, bytes);
}

/// Runs the Matrix Market decoder.
pub fn matrix_market(bytes: &[u8]) {
    run(matrix_market::decode, bytes);
}

/// Runs the METIS decoder.
pub fn metis(bytes: &[u8]) {
    run(metis::decode, bytes);
}

/// Runs the graph-tool decoder.
pub fn gt(bytes: &[u8]) {
    run(gt::decode, bytes);
}

/// Runs format detection, decompression, and the selected decoder.
pub fn any(bytes: &[u8]) {
    run(Graph::decode, bytes);
}

/// Runs the parser of R-MAT parameters.
pub fn rmat(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = Rmat::parse(text).map(|parsed| parsed.map_err(|error| error.to_string()));
    }
}

/// Runs the parser of the list of data sets.
pub fn catalogue(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = dataset::parse(text);
    }
}

fn run(decode: Decoder, bytes: &[u8]) {
    for options in &OPTIONS {
        match decode(bytes, options) {
            Ok(graph) => check(&graph),
            Err(error) => assert!(!error.to_string().contains('\n'), "an error is one line"),
        }
    }
}

/// Panics if `graph` breaks a promise of [`Graph`].
pub(super) fn check(graph: &Graph) {
    let vertices = graph.vertices();
    assert!(vertices > 0, "a graph has vertices");
    let mut arcs = 0;
    for vertex in 0..vertices as u32 {
        let row = graph.neighbours(vertex);
        arcs += row.len() as u64;
        assert!(row.is_sorted_by(|a, b| a < b), "a row ascends without repeats");
        assert!(row.last().is_none_or(|&last| u64::from(last) < vertices), "targets exist");
        let lengths = graph.lengths(vertex).unwrap_or_default();
        assert!(lengths.iter().all(|length| *length > 0.0), "lengths are above zero");
        assert!(
            lengths.iter().all(|length| (length * vertices as f64).is_finite()),
            "paths have finite lengths"
        );
        for (slot, &target) in row.iter().enumerate().filter(|_| !graph.is_directed()) {
            let back =
                graph.neighbours(target).binary_search(&vertex).expect("an undirected edge stands twice");
            let there_and_back = graph.lengths(target).map(|lengths| lengths[back]);
            assert_eq!(there_and_back, graph.lengths(vertex).map(|lengths| lengths[slot]));
        }
    }
    assert_eq!(arcs, graph.arcs());
}
