//! The twelve kernels of IMSuite: distributed algorithms on networks of nodes, from leader election to spanning trees.
//!
//! IMSuite (S. Gupta and V. K. Nandivada, Journal of Parallel and Distributed Computing 75, 2015) has algorithms in
//! which nodes that know only their neighbours exchange messages in rounds. Here nodes are distributed over places by
//! blocks, rounds are phases of a phaser, and messages are calls to the place of the node. [`kernel`] defines a
//! kernel, `place_task` the work of a place in one, [`input`] has the networks, and [`ship`] the data that calls
//! carry, which the suite was used to measure. Invariant: the result depends on the input only, not on the places.

#![forbid(unsafe_code)]

pub mod block;
pub mod input;
pub mod kernel;
mod kernels;
mod place_task;
mod run;
pub mod ship;

#[cfg(test)]
mod tests;

pub use kernels::verify;
pub use place_task::KernelOutcome;
pub use run::{ImSuite, ImSuiteFound};

/// The `main` of the program.
pub fn main() -> std::process::ExitCode {
    isles_app::main::<ImSuite>()
}
