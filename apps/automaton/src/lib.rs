//! A nine-point cellular automaton: a field in strips over places, which exchange edges with neighbours each step.
//!
//! [`rule`] has the rules of cells, [`pattern`] the initial contents of the field, both without places. [`strip`] is
//! the part of one place and its steps, `halo` the exchange of edges, `run` the application, `picture` the field as an
//! image. Invariant: the generations are those of a sequential run, for any number of places and any exchange.

#![forbid(unsafe_code)]

mod halo;
pub mod pattern;
mod picture;
pub mod rule;
mod run;
pub mod strip;

#[cfg(test)]
mod tests;

pub use run::Automaton;

/// The `main` of the program.
pub fn main() -> std::process::ExitCode {
    isles_app::main::<Automaton>()
}
