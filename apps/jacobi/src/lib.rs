//! Jacobi's iteration for Laplace's equation on a square grid, by two kinds of memory.
//!
//! Each sweep makes every inner cell the mean of its four neighbours; the cells of the edge keep their values. Rows are
//! split over places. [`grid`] is the arithmetic, without places; `parts` has an array that lies in parts, whose halos
//! are messages; `pages` has two arrays that places share page by page. Invariant: every cell is computed from the same
//! values in the same order, so both have the same bits at any number of places.

#![forbid(unsafe_code)]

pub mod grid;
#[cfg(feature = "svm")]
mod pages;
mod parts;
mod run;

pub use run::Jacobi;

/// The `main` of the program.
pub fn main() -> std::process::ExitCode {
    isles_app::main::<Jacobi>()
}
