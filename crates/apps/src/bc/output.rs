//! Scores as files: CSV for tables, JSON for programs.
//!
//! Writes to any [`Write`]; opening, naming and announcing files is the caller's. Numbers are the shortest
//! decimals that read back to the same bits. Invariant: the same scores give the same bytes.

use super::Scores;
use crate::frame::write_json as write_document;
use serde::Serialize;
use std::io::{self, Write};

/// Writes a line `vertex,betweenness` and one line a vertex.
///
/// # Errors
/// What `out` returns.
pub fn write_csv(mut out: impl Write, scores: &Scores) -> io::Result<()> {
    writeln!(out, "vertex,betweenness")?;
    for (vertex, score) in scores.values().enumerate() {
        writeln!(out, "{vertex},{score}")?;
    }
    out.flush()
}

/// The JSON document.
#[derive(Serialize)]
struct Document<'a, A> {
    run: &'a A,
    sources: u64,
    edges_traversed: u64,
    betweenness: Vec<f64>,
}

/// Writes one object: `run` (whatever the caller says of the run), `sources`, `edges_traversed`, and
/// `betweenness` with one number a vertex.
///
/// # Errors
/// What `out` returns, or what serialising `run` gives.
pub fn write_json(out: impl Write, scores: &Scores, run: &impl Serialize) -> io::Result<()> {
    let betweenness = scores.values().collect();
    let (sources, edges_traversed) = (scores.sources(), scores.edges_traversed());
    write_document(out, &Document { run, sources, edges_traversed, betweenness })
}
