//! Restricted Hartree-Fock: the energy of a molecule with closed shells, its orbitals and its dipole.
//!
//! The places share the two-electron part of the Fock matrix, which takes nearly all of the time: each computes the
//! integrals of its units and sums them in fixed point. The chemistry is in [`molecule`], [`basis`], [`integrals`],
//! [`fock`] and [`scf`], none of which knows places. Invariant: energies have the same bits for any number of places.

#![forbid(unsafe_code)]

pub mod basis;
mod effort;
pub mod element;
pub mod fock;
pub mod input_error;
pub mod integrals;
pub mod matrix;
pub mod molecule;
mod report;
mod run;
pub mod scf;
mod shared_build;
pub mod verify;

#[cfg(test)]
mod tests;

pub use run::HartreeFock;

/// The `main` of the program.
pub fn main() -> std::process::ExitCode {
    isles_app::main::<HartreeFock>()
}
