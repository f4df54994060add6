//! Betweenness centrality: the shares of shortest paths through each vertex.
//!
//! Brandes' algorithm (J. Math. Sociol. 25, 2001): one traversal per source, each adding its dependencies to the
//! scores. Sources are independent, so the parallel run distributes them. This module knows no places. Conventions: an
//! undirected graph counts each unordered pair once; end points do not count; no normalisation; parallel edges are one
//! edge (the lightest), self-loops lie on no shortest path. These are networkx's with `normalized=False`. Invariant:
//! scores depend on the graph and the set of sources, never on the distribution or order of sources.

#![forbid(unsafe_code)]

mod bfs;
mod cached_efforts;
mod count;
mod dijkstra;
mod effort;
mod run;
mod scores;
mod verify;

#[cfg(test)]
mod tests;

pub use run::Betweenness;
pub use scores::{Ranked, Scores, Top};

/// The `main` of the program.
pub fn main() -> std::process::ExitCode {
    isles_app::main::<Betweenness>()
}
