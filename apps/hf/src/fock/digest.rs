//! Contributions of the integrals of one quartet to the Fock matrix.
//!
//! A quartet (ij|kl) represents up to eight equal ones, so it contributes to six blocks of the matrix: the Coulomb
//! blocks ij and kl, and the exchange blocks ik, il, jk, jl. Those with i or j go to panels of the bra, which a unit
//! keeps; kl occurs once in a unit. This module knows neither units nor fixed point. Invariant: all sums are formed in
//! one fixed order.

use super::super::integrals::ShellPair;
use super::super::matrix::Matrix;

/// Most functions of a shell.
const FUNCTIONS_MAX: usize = 6;

/// Partial sums of a unit while it processes its kets.
#[derive(Clone, Debug, Default)]
pub(super) struct Panels {
    /// Exchange rows for the functions of the bra's first and second shell, with all columns.
    pub(super) exchange: [Vec<f64>; 2],
    /// The Coulomb block of the bra.
    pub(super) coulomb: Vec<f64>,
    /// The Coulomb block of the last ket.
    pub(super) ket: Vec<f64>,
}

impl Panels {
    /// Resets the sums for a bra.
    pub(super) fn clear(&mut self, bra: &ShellPair, size: usize) {
        for (rows, functions) in self.exchange.iter_mut().zip(bra.functions) {
            rows.clear();
            rows.resize(functions * size, 0.0);
        }
        self.coulomb.clear();
        self.coulomb.resize(bra.components(), 0.0);
        self.ket.resize(FUNCTIONS_MAX * FUNCTIONS_MAX, 0.0);
    }

    /// Adds the integrals of a quartet, times `factor`, each multiplied by its elements of the density.
    pub(super) fn add(
        &mut self,
        integrals: &[f64],
        factor: f64,
        [bra, ket]: [&ShellPair; 2],
        density: &Matrix,
    ) {
        macro_rules! functions {
            ($($third:literal: $($fourth:literal)*;)*) => {
                match ket.functions {
                    $($([$third, $fourth] => self.sum::<$third, $fourth>(integrals, factor, [bra, ket], density),)*)*
                    _ => unreachable!("a shell has 1, 3, 5 or 6 functions"),
                }
            };
        }
        functions! { 1: 1 3 5 6; 3: 1 3 5 6; 5: 1 3 5 6; 6: 1 3 5 6; }
    }

    /// Same as [`Panels::add`], for shells of C and D functions in the ket.
    fn sum<const C: usize, const D: usize>(
        &mut self,
        integrals: &[f64],
        factor: f64,
        [bra, ket]: [&ShellPair; 2],
        density: &Matrix,
    ) {
        let size = density.size();
        let [third, fourth] = ket.first;
        let segment = |row: usize| -> ([f64; C], [f64; D]) {
            let row = density.row(row);
            (copied(&row[third..]), copied(&row[fourth..]))
        };
        let ket_density: [[f64; D]; C] = std::array::from_fn(|c| segment(third + c).1);
        let mut ket_sum = [[0.0; D]; C];
        let mut integrals = integrals.chunks_exact(C * D);
        let [first_rows, second_rows] = &mut self.exchange;
        let mut coulomb = self.coulomb.iter_mut();
        for a in 0..bra.functions[0] {
            let (a_third, a_fourth) = segment(bra.first[0] + a);
            let (mut first_third, mut first_last) = ([0.0; C], [0.0; D]);
            for b in 0..bra.functions[1] {
                let own = density.get(bra.first[0] + a, bra.first[1] + b);
                let (b_third, b_fourth) = segment(bra.first[1] + b);
                let (mut sum, mut second_third, mut second_last) = (0.0, [0.0; C], [0.0; D]);
                let block = integrals.next().expect("a block for each pair of the bra");
                for c in 0..C {
                    for d in 0..D {
                        let value = factor * block[c * D + d];
                        sum += value * ket_density[c][d];
                        ket_sum[c][d] += value * own;
                        first_third[c] += value * b_fourth[d];
                        first_last[d] += value * b_third[c];
                        second_third[c] += value * a_fourth[d];
                        second_last[d] += value * a_third[c];
                    }
                }
                *coulomb.next().expect("an element for each pair of the bra") += sum;
                add(&mut second_rows[b * size + third..], &second_third);
                add(&mut second_rows[b * size + fourth..], &second_last);
            }
            add(&mut first_rows[a * size + third..], &first_third);
            add(&mut first_rows[a * size + fourth..], &first_last);
        }
        self.ket[..C * D].copy_from_slice(ket_sum.as_flattened());
    }
}

/// Returns the first numbers of a segment.
fn copied<const N: usize>(segment: &[f64]) -> [f64; N] {
    std::array::from_fn(|index| segment[index])
}

/// Adds to the first numbers of a segment.
fn add<const N: usize>(segment: &mut [f64], addends: &[f64; N]) {
    segment[..N].iter_mut().zip(addends).for_each(|(sum, addend)| *sum += addend);
}
