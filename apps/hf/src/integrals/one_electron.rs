//! One-electron integrals: overlap, kinetic energy, attraction by the nuclei, dipole.
//!
//! Overlaps of monomials separate by axis and follow the recursion of S. Obara, A. Saika, J. Chem. Phys. 84, 3963
//! (1986), equation A2; kinetic energy and dipole are overlaps with other exponents. The attraction uses Hermite
//! charges, as repulsion does. Invariant: matrices are symmetric to the bit, because each pair of shells is computed
//! once.

use super::super::basis::shell::{Shell, angular, monomials};
use super::super::matrix::Matrix;
use super::super::molecule::Atom;
use super::boys::{Boys, ORDER_MAX};
use super::hermite::{INTEGRALS_MAX, Levels, below, level};
use super::pair::ShellPair;
use std::f64::consts::PI;

/// The integrals that separate by axis.
pub struct Moments {
    /// Overlap integrals of the functions.
    pub overlap: Matrix,
    /// Integrals of half the square of the momentum, in hartree.
    pub kinetic: Matrix,
    /// Integrals of x, y and z from the origin, in bohr.
    pub dipole: [Matrix; 3],
}

/// Computes overlap, kinetic energy and dipole of all functions.
pub fn moments(shells: &[Shell], is_cartesian: bool) -> Moments {
    let size = functions(shells);
    let zero = || Matrix::zero(size);
    let mut all = Moments { overlap: zero(), kinetic: zero(), dipole: [zero(), zero(), zero()] };
    for (index, one) in shells.iter().enumerate() {
        for other in &shells[..=index] {
            let block = monomial_moments(one, other);
            let [rows, columns] = [one, other].map(|shell| angular(shell.momentum, is_cartesian));
            for (row, first) in rows.iter().enumerate() {
                for (column, second) in columns.iter().enumerate() {
                    let mut sums = [0.0; 5];
                    for &(m, f) in first {
                        for &(n, g) in second {
                            let values = &block[m * level(other.momentum) + n];
                            sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += f * g * value);
                        }
                    }
                    let place = [one.first + row, other.first + column];
                    all.overlap.set_both(place, sums[0]);
                    all.kinetic.set_both(place, sums[1]);
                    all.dipole.iter_mut().zip(&sums[2..]).for_each(|(axis, sum)| axis.set_both(place, *sum));
                }
            }
        }
    }
    all
}

/// Computes overlap, kinetic energy and the three dipoles of each pair of monomials of two shells.
fn monomial_moments(one: &Shell, other: &Shell) -> Vec<[f64; 5]> {
    let mut block = vec![[0.0; 5]; level(one.momentum) * level(other.momentum)];
    for &(a, first) in &one.primitives {
        for &(b, second) in &other.primitives {
            let p = a + b;
            let distance: Vec<f64> = (0..3).map(|axis| one.center[axis] - other.center[axis]).collect();
            let square: f64 = distance.iter().map(|length| length * length).sum();
            let factor = first * second * (-a * b / p * square).exp() * (PI / p).powf(1.5);
            let tables = [0, 1, 2].map(|axis| overlaps(-b / p * distance[axis], a / p * distance[axis], p));
            let mut values = block.iter_mut();
            for i in monomials(one.momentum) {
                for j in monomials(other.momentum) {
                    let overlap = |axis: usize| tables[axis][i[axis]][j[axis]];
                    let kinetic = |axis: usize| {
                        // From -1/2 d²/dx² applied to x^j exp(-b x²).
                        let (row, j) = (&tables[axis][i[axis]], j[axis]);
                        let lower = if j > 1 { (j * (j - 1)) as f64 * row[j - 2] } else { 0.0 };
                        b * (2 * j + 1) as f64 * row[j] - 2.0 * b * b * row[j + 2] - 0.5 * lower
                    };
                    let position =
                        |axis: usize| tables[axis][i[axis] + 1][j[axis]] + one.center[axis] * overlap(axis);
                    let along = |axis: usize, value: f64| {
                        factor * value * overlap((axis + 1) % 3) * overlap((axis + 2) % 3)
                    };
                    let value = values.next().expect("a value for each pair of monomials");
                    value[0] += along(0, overlap(0));
                    value[1] += (0..3).map(|axis| along(axis, kinetic(axis))).sum::<f64>();
                    (0..3).for_each(|axis| value[2 + axis] += along(axis, position(axis)));
                }
            }
        }
    }
    block
}

/// Returns the overlaps along an axis relative to that of two s primitives, by the exponents of the first and the
/// second. `to_first` and `to_second` are the distances from the centers of the shells to that of the product.
fn overlaps(to_first: f64, to_second: f64, p: f64) -> [[f64; 5]; 4] {
    let half = 0.5 / p;
    let mut table = [[0.0; 5]; 4];
    table[0][0] = 1.0;
    for i in 0..4 {
        for j in 0..5 {
            let [by_i, by_j] = [i, j].map(|index| index as f64 * half);
            if i + 1 < 4 {
                let lower = if i > 0 { by_i * table[i - 1][j] } else { 0.0 };
                let across = if j > 0 { by_j * table[i][j - 1] } else { 0.0 };
                table[i + 1][j] = to_first * table[i][j] + lower + across;
            }
            if i == 0 && j + 1 < 5 {
                let lower = if j > 0 { by_j * table[0][j - 1] } else { 0.0 };
                table[0][j + 1] = to_second * table[0][j] + lower;
            }
        }
    }
    table
}

/// Returns the attraction of all functions by the nuclei, in hartree; the pairs may come in any order.
pub fn attraction(size: usize, pairs: &[ShellPair], atoms: &[Atom]) -> Matrix {
    let mut matrix = Matrix::zero(size);
    let (boys, mut levels, mut integrals) = (Boys::new(), Levels::new(), [0.0; INTEGRALS_MAX]);
    for pair in pairs {
        let mut sums = vec![0.0; pair.columns];
        for (primitive, scales) in pair.primitives.iter().zip(pair.scales.chunks_exact(pair.all_groups())) {
            let p = primitive.exponent;
            for atom in atoms {
                let point = [0, 1, 2].map(|axis| primitive.point[axis] - atom.point[axis]);
                let square: f64 = point.iter().map(|length| length * length).sum();
                let mut seeds = [0.0; ORDER_MAX + 1];
                boys.evaluate::<4>(p * square, &mut seeds);
                // 2 π / p; the scales already contain √2 π^(5/4) / p.
                let mut factor = -f64::from(atom.element.number()) * 2.0_f64.sqrt() / PI.powf(0.25);
                for seed in &mut seeds {
                    *seed *= factor;
                    factor *= -2.0 * p;
                }
                levels.integrals::<4>(point, &seeds, &mut integrals);
                let orders = pair.groups.iter().enumerate().flat_map(|(order, count)| vec![order; *count]);
                let mut sums = sums.as_mut_slice();
                for (order, scale) in orders.zip(scales) {
                    let (own, rest) = sums.split_at_mut(level(order));
                    let segment = &integrals[below(order)..][..level(order)];
                    own.iter_mut().zip(segment).for_each(|(sum, integral)| *sum += scale * integral);
                    sums = rest;
                }
            }
        }
        let mut block = vec![0.0; pair.components()];
        for cell in &pair.bra {
            block[usize::from(cell.component)] += cell.factor * sums[usize::from(cell.column)];
        }
        for (index, value) in block.iter().enumerate() {
            let (row, column) = (index / pair.functions[1], index % pair.functions[1]);
            matrix.set_both([pair.first[0] + row, pair.first[1] + column], *value);
        }
    }
    matrix
}

/// Returns the number of functions of the shells.
pub fn functions(shells: &[Shell]) -> usize {
    shells.iter().map(|shell| shell.functions).sum()
}
