//! The Unbalanced Tree Search: nodes of a tree that nobody can count beforehand, balanced over all places.
//!
//! [`tree`] has the published trees and knows no places, [`bag`] makes a tree a bag of `isles::glb`, `run` is the
//! application. Invariant: the size that is found is that of the tree, whoever visits which node.

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
