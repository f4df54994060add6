//! A cellular automaton with nine points: a field in strips over places, whose edges go to the neighbours each step.
//!
//! [`rule`] says what becomes of a cell, [`pattern`] what the field holds at first, both without places. [`strip`] is
//! the part of one place and what a step does to it, `halo` how edges travel, `run` the application, `picture` the
//! field as an image. Invariant: the generations are those of one processor, however many places and however edges
//! travel.

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
