//! Integrals over contracted Gaussian functions: s, p and d, spherical or Cartesian.
//!
//! Data of two shells alone is prepared once, in [`ShellPair`]s. This module knows no density and no places.
//! Invariant: an integral depends on the shells alone, so any place that computes it gets the same bits.

mod boys;
mod expansion;
mod hermite;
pub mod one_electron;
mod pair;
mod repulsion;

#[cfg(test)]
mod tests;

pub use pair::ShellPair;
pub use repulsion::{Operations, PRIMITIVES_MIN, Repulsion};

use super::basis::shell::Shell;

/// Returns all pairs of shells, the first not before the second, each with its bound for repulsion integrals, and the
/// operations for the bounds.
///
/// By Schwarz's inequality no integral (ij|kl) exceeds the product of the square roots of (ij|ij) and (kl|kl).
pub fn pairs(shells: &[Shell], is_cartesian: bool) -> (Vec<ShellPair>, Operations) {
    // The product of two small charges does not indicate the effect of one of them on a large charge, so all are
    // computed.
    let mut repulsion = Repulsion::new(0.0);
    let mut all = Operations::default();
    let numbers = (0..shells.len()).flat_map(|one| (0..=one).map(move |other| [one, other]));
    let pairs = numbers.map(|numbers| {
        let mut pair = ShellPair::new(shells, numbers, is_cartesian);
        let (block, operations) = repulsion.block(&pair, &pair);
        let diagonal = block.iter().step_by(pair.components() + 1);
        pair.bound = diagonal.fold(0.0_f64, |bound, value| bound.max(*value)).sqrt();
        all.add(operations);
        pair
    });
    (pairs.collect(), all)
}
