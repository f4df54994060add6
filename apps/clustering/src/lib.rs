//! Modularity clustering over shared objects: by globally greedy vertex moving (Rotta and others, MARC 2012), or by a
//! multilevel method.
//!
//! These modules know no places: [`graph`] is a weighted graph, [`state`] the cluster of each vertex, [`search`] the
//! best move of one vertex, [`bounds`] the best move of many vertices, [`multilevel`] the multilevel method. `objects`
//! has graph and clusters as objects that places share, `levels` the multilevel method over places, `run` the
//! application, `picture` the clusters as an image. Invariant: the moves do not depend on the number of places, the
//! machine, the controller and the memory.

#![forbid(unsafe_code)]

pub mod bounds;
pub mod graph;
mod levels;
pub mod multilevel;
mod objects;
mod picture;
mod run;
pub mod search;
pub mod state;

#[cfg(test)]
mod tests;

pub use run::Modularity;

/// The `main` of the program.
pub fn main() -> std::process::ExitCode {
    isles_app::main::<Modularity>()
}
