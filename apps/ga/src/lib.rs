//! A genetic algorithm on islands that exchange their best individuals over channels.
//!
//! A population that searches for a given text is split over islands, which evolve separately and regularly send
//! migrants to their neighbours in a line. [`evolution`] has the rules and knows no places, [`island`] is one island,
//! `links` are the channels between islands. Invariant: the generation that finds the text, and all individuals before
//! it, depend on the arguments only, not on the places or the order in which tasks run.

#![forbid(unsafe_code)]

pub mod evolution;
pub mod island;
mod links;
mod run;
mod sequential;

#[cfg(test)]
mod tests;

pub use run::GeneticAlgorithm;

/// The `main` of the program.
pub fn main() -> std::process::ExitCode {
    isles_app::main::<GeneticAlgorithm>()
}
