//! Betweenness of one graph in one thread, without any place: the base line of the parallel run.
//!
//! `cargo run --release -p isles-bc --example sequential_bc -- power 5` prints the seconds of five runs,
//! their median, edges traversed a second, and the ten most central vertices. `weighted` as third argument
//! reads the weights.

use isles_bc::Scores;
use isles_graph::{ReadOptions, Weights, open};
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let name = arguments.first().map_or("power", String::as_str);
    let runs = arguments.get(1).map_or(Ok(3), |runs| runs.parse::<usize>())?.max(1);
    let weighted = arguments.get(2).is_some_and(|word| word == "weighted");
    let weights = if weighted { Weights::Lengths } else { Weights::Ignored };
    let graph = open(name, &ReadOptions { weights, directed: false })?;
    println!(
        "{name}: {} vertices, {} edges, weighted: {}",
        graph.vertices(),
        graph.edges(),
        graph.is_weighted()
    );
    let mut seconds = Vec::new();
    let mut scores = Scores::zero();
    for _ in 0..runs {
        let start = Instant::now();
        scores = Scores::zero();
        for source in 0..graph.vertices() {
            scores.add_source(&graph, source);
        }
        seconds.push(start.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    let median = seconds[runs / 2];
    let speed = scores.edges_traversed() as f64 / median / 1e6;
    println!("seconds: {seconds:.4?}, median {median:.4}, {speed:.1} million edges a second");
    println!("{}", scores.top(10));
    Ok(())
}
