//! The Unbalanced Tree Search: an unpredictable tree whose nodes are balanced over all places.
//!
//! [`tree`] has the published trees and knows no places, [`bag`] makes a tree a bag of `isles::glb`, `run` is the
//! application. Invariant: the counted size does not depend on the distribution of nodes.

#![forbid(unsafe_code)]

pub mod bag;
mod run;
pub mod tree;

#[cfg(test)]
mod tests;

pub use run::TreeSearch;

/// The `main` of the program.
pub fn main() -> std::process::ExitCode {
    isles_app::main::<TreeSearch>()
}
