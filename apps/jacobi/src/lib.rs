//! Jacobi's iteration for Laplace's equation on a square grid, with two kinds of memory.
//!
//! Each sweep sets every inner cell to the mean of its four neighbours; the cells on the edge keep their values. Rows
//! are distributed over places. `sweeps` has the arithmetic of a row, an array in parts with halo messages, and two
//! arrays that places share page by page; `run` is the application. Invariant: every cell is computed from the same
//! values in the same order, so both have the same bits for any number of places.

#![forbid(unsafe_code)]

mod run;
mod sweeps;

pub use run::Jacobi;

/// The `main` of the program.
pub fn main() -> std::process::ExitCode {
    isles_app::main::<Jacobi>()
}
