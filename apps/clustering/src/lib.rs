//! Modularity clustering by globally greedy vertex moving (Rotta and others, MARC 2012), over shared objects.
//!
//! [`graph`] is a weighted graph and what has none in a file, [`state`] who is in which cluster, [`search`] the best
//! move of a vertex, [`bounds`] that of many without a look at all; they know no places. `objects` is the same data as
//! objects that places share, `run` the application, `picture` the clusters as an image. Invariant: the moves are those
//! of one processor, whatever the number of places, the machine, the controller and the memory.

#![forbid(unsafe_code)]

pub mod bounds;
pub mod graph;
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
