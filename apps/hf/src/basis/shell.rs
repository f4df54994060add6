//! Shells: the normalised contractions of the atoms of a molecule, with the functions that each represents.
//!
//! A shell has 2l + 1 spherical functions, or (l + 1)(l + 2) / 2 Cartesian ones. Spherical d functions are the real
//! solid harmonics in the order m = -2 .. 2 (xy, yz, z2, xz, x2-y2), p functions are x, y, z, as in PySCF; Cartesian
//! ones are xx, xy, xz, yy, yz, zz, each normalised to one. Invariant: every function of a shell has norm one.

use super::super::input_error::InputError;
use super::super::molecule::Molecule;
use super::BasisSet;
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// Most functions of a molecule: a square matrix of this size takes 200 MB.
pub const FUNCTIONS_MAX: usize = 5000;

/// One contraction at one atom.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shell {
    /// Angular momentum.
    pub momentum: usize,
    /// The position of the nucleus, in bohr.
    pub center: [f64; 3],
    /// Exponents in bohr^-2, with coefficients of plain primitives `exp(-a r^2)` times an unnormalised monomial; the
    /// angular part of the normalisation is in [`angular`].
    pub primitives: Vec<(f64, f64)>,
    /// The number of its first function.
    pub first: usize,
    /// Number of functions of the shell.
    pub functions: usize,
    /// The atom that it belongs to.
    pub atom: usize,
}

/// Returns the shells of a molecule, in order of the atoms.
///
/// # Errors
/// An element has no functions, or there are too many.
pub fn shells(molecule: &Molecule, basis: &BasisSet, is_cartesian: bool) -> Result<Vec<Shell>, InputError> {
    let (mut shells, mut first) = (Vec::new(), 0);
    for (index, atom) in molecule.atoms.iter().enumerate() {
        for contraction in basis.contractions(atom.element)? {
            let momentum = contraction.momentum;
            let functions = angular(momentum, is_cartesian).len();
            let primitives = normalised(momentum, &contraction.primitives);
            shells.push(Shell { momentum, center: atom.point, primitives, first, functions, atom: index });
            first += functions;
        }
    }
    if first > FUNCTIONS_MAX {
        let source = format!("{} with {}", molecule.name, basis.name);
        return Err(InputError::TooLarge { source, items: "functions", found: first, limit: FUNCTIONS_MAX });
    }
    Ok(shells)
}

/// Returns the radial integral of `r^(2l + 2) exp(-a r^2)` over all r.
fn radial(momentum: usize, exponent: f64) -> f64 {
    // Γ(l + 3/2) / (2 a^(l + 3/2)); Γ(3/2) = √π / 2, Γ(x + 1) = x Γ(x).
    let gamma = (0..momentum).fold(PI.sqrt() / 2.0, |gamma, step| gamma * (step as f64 + 1.5));
    gamma / (2.0 * exponent.powf(momentum as f64 + 1.5))
}

/// Converts published coefficients, of normalised primitives, to those of plain primitives; the sum has norm one.
fn normalised(momentum: usize, published: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let plain = |&(exponent, c): &(f64, f64)| (exponent, c / radial(momentum, 2.0 * exponent).sqrt());
    let plain: Vec<(f64, f64)> = published.iter().map(plain).collect();
    let pairs = plain.iter().flat_map(|one| plain.iter().map(move |other| (one, other)));
    let square: f64 = pairs.map(|((a, c), (b, d))| c * d * radial(momentum, a + b)).sum();
    plain.into_iter().map(|(exponent, c)| (exponent, c / square.sqrt())).collect()
}

/// Returns the monomials x^i y^j z^k of an angular momentum, those with more x first, then those with more y.
pub fn monomials(momentum: usize) -> impl Iterator<Item = [usize; 3]> {
    let row = move |x: usize| (0..=momentum - x).rev().map(move |y| [x, y, momentum - x - y]);
    (0..=momentum).rev().flat_map(row)
}

/// Returns the functions of a shell, each as a sum of monomials: their numbers and factors.
///
/// # Panics
/// If the angular momentum is above d.
pub fn angular(momentum: usize, is_cartesian: bool) -> Vec<Vec<(usize, f64)>> {
    // Real solid harmonics, for example in T. Helgaker, P. Jørgensen, J. Olsen, Molecular Electronic-Structure Theory,
    // section 6.4; the factors normalise them over the sphere.
    let root = |numerator: f64, denominator: f64| (numerator / (denominator * PI)).sqrt();
    match (momentum, is_cartesian) {
        (0, _) => vec![vec![(0, root(1.0, 4.0))]],
        (1, _) => (0..3).map(|axis| vec![(axis, root(3.0, 4.0))]).collect(),
        (2, false) => vec![
            vec![(1, root(15.0, 4.0))],
            vec![(4, root(15.0, 4.0))],
            vec![(0, -root(5.0, 16.0)), (3, -root(5.0, 16.0)), (5, 2.0 * root(5.0, 16.0))],
            vec![(2, root(15.0, 4.0))],
            vec![(0, root(15.0, 16.0)), (3, -root(15.0, 16.0))],
        ],
        (2, true) => [5.0, 15.0, 15.0, 5.0, 15.0, 5.0]
            .into_iter()
            .enumerate()
            .map(|(index, numerator)| vec![(index, root(numerator, 4.0))])
            .collect(),
        _ => unreachable!("no basis set has functions beyond d"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn monomials_go_from_x_to_z() {
        assert_eq!(monomials(0).collect::<Vec<_>>(), [[0, 0, 0]]);
        let d = [[2, 0, 0], [1, 1, 0], [1, 0, 1], [0, 2, 0], [0, 1, 1], [0, 0, 2]];
        assert_eq!(monomials(2).collect::<Vec<_>>(), d);
    }

    #[test]
    fn a_contraction_has_the_norm_one_whatever_its_coefficients() {
        for momentum in 0..3 {
            let primitives = normalised(momentum, &[(3.0, 0.2), (0.5, 7.0)]);
            let pairs = primitives.iter().flat_map(|one| primitives.iter().map(move |other| (one, other)));
            let square: f64 = pairs.map(|((a, c), (b, d))| c * d * radial(momentum, a + b)).sum();
            assert!((square - 1.0).abs() < 1e-14);
        }
        assert!((radial(1, 0.7) - 3.0 * PI.sqrt() / (8.0 * 0.7_f64.powf(2.5))).abs() < 1e-14);
    }
}
