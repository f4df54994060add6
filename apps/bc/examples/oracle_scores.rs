//! The side of this project in the comparison with networkx (`tests/oracle.py`).
//!
//! Reads lines `FILE directed|undirected weighted|unweighted` and answers each with the scores of all vertices in one
//! line. For this comparison only.

use isles_bc::Scores;
use isles_graph::{Graph, ReadOptions, Weights};
use std::io::{BufRead, Write};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let &[file, direction, weighting] = words.as_slice() else {
            return Err(format!("bad request: {line}").into());
        };
        let weights = if weighting == "weighted" { Weights::Lengths } else { Weights::Ignored };
        let graph = Graph::read_with(file, &ReadOptions { weights, directed: direction == "directed" })?;
        let mut scores = Scores::zero();
        (0..graph.vertices()).for_each(|source| scores.add_source(&graph, source));
        let line: Vec<String> = scores.values().map(|score| score.to_string()).collect();
        writeln!(out, "{}", line.join(" "))?;
        out.flush()?;
    }
    Ok(())
}
