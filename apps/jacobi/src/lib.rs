//! Jacobi's iteration for Laplace's equation on a square grid, by two kinds of memory.
//!
//! Each sweep makes every inner cell the mean of its four neighbours; the cells of the edge keep their values. Rows are
//! split over places. `sweeps` has the arithmetic of a row, an array that lies in parts, whose halos are messages, and
//! two arrays that places share page by page; `run` is the application. Invariant: every cell is computed from the same
//! values in the same order, so both have the same bits at any number of places.

#![forbid(unsafe_code)]

mod run;
mod sweeps;

pub use run::Jacobi;

/// The `main` of the program.
pub fn main() -> std::process::ExitCode {
    isles_app::main::<Jacobi>()
}
