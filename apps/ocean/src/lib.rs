//! A small ocean model in the manner of ROMS: split-explicit shallow water, with velocities and a tracer on levels.
//!
//! A fast external mode advances the free surface in many short steps; a slow internal mode advances the velocities
//! and the tracer of the levels in one long step (Shchepetkin and McWilliams, The regional oceanic modeling system,
//! 2005), on an Arakawa C-grid with a halo of 2. [`setup`] defines the case, `scheme` computes within a tile, `model`
//! has the arrays of all places and their exchanges, `records` the records of a run. `analytic` has the reference
//! solutions, `run` is the application, `netcdf` and `picture` write the results. Invariant: a field has the same bits
//! at every tiling, because each value is computed from the same inputs.

#![forbid(unsafe_code)]

mod analytic;
mod bathymetry;
mod model;
mod netcdf;
mod picture;
mod records;
mod run;
mod scheme;
pub mod setup;

#[cfg(test)]
mod tests;

pub use run::Ocean;

/// The `main` of the program.
pub fn main() -> std::process::ExitCode {
    isles_app::main::<Ocean>()
}
