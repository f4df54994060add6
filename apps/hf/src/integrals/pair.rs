//! Pairs of shells: precomputed data of two shells for integrals.
//!
//! Each pair of primitives is one Gaussian charge at its own point; `scales` are its factors in the sums over
//! primitives, one for each group of the expansion, and `bra` and `ket` convert such sums to integrals over the
//! functions of the pair. With a single pair of primitives the groups need not be separate, so they are merged by
//! order. Invariant: primitives are ordered by `bound`, largest first, so that a loop over them can stop at the first
//! negligible one.

use super::super::basis::shell::{Shell, angular, monomials};
use super::expansion::Expansion;
use super::hermite::level;
use std::f64::consts::PI;
use std::sync::LazyLock;

/// Pairs of primitives with a smaller charge are neglected; the largest charges are some hundreds.
const CHARGE_MIN: f64 = 1e-18;

/// Number of orders of Hermite Gaussians of a pair: that of two d functions.
pub(super) const ORDERS: usize = 5;

/// The expansions of all pairs of angular momenta, by first and second.
static EXPANSIONS: LazyLock<[[Expansion; 3]; 3]> =
    LazyLock::new(|| [0, 1, 2].map(|first| [0, 1, 2].map(|second| Expansion::new(first, second))));

/// A pair of primitives.
#[derive(Clone, Copy, Debug)]
pub struct PairPrimitive {
    /// The sum of both exponents.
    pub exponent: f64,
    /// Center of the product, in bohr.
    pub point: [f64; 3],
    /// The largest of its scales.
    pub bound: f64,
}

/// An element of the sparse matrix from sums to functions.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// Index of the sum: Hermite Gaussians, group by group.
    pub column: u16,
    /// Index of the first shell's function, times the number of functions of the second, plus the index of the
    /// second's.
    pub component: u16,
    /// The value of the element.
    pub factor: f64,
}

/// A pair of shells.
#[derive(Clone, Debug)]
pub struct ShellPair {
    /// The numbers of the shells.
    pub shells: [usize; 2],
    /// The number of the first function of each.
    pub first: [usize; 2],
    /// Number of functions of each shell.
    pub functions: [usize; 2],
    /// The sum of both angular momenta.
    pub order: usize,
    /// Number of groups of each order.
    pub groups: [usize; ORDERS],
    /// Number of sums.
    pub columns: usize,
    /// The pairs of primitives.
    pub primitives: Vec<PairPrimitive>,
    /// The factors of each pair of primitives in the sums, group by group. They contain √2 π^(5/4) / p, the part of a
    /// charge in the factor of a repulsion integral.
    pub scales: Vec<f64>,
    /// The matrix for the first of two charges.
    pub bra: Vec<Cell>,
    /// The matrix for the second, with the sign of derivatives at the other end.
    pub ket: Vec<Cell>,
    /// The square root of the largest repulsion of the pair with itself (Schwarz).
    pub bound: f64,
}

impl ShellPair {
    /// Creates the pair of two shells, given by their numbers.
    pub fn new(shells: &[Shell], numbers: [usize; 2], is_cartesian: bool) -> ShellPair {
        let [one, other] = numbers.map(|number| &shells[number]);
        let distance = [0, 1, 2].map(|axis| one.center[axis] - other.center[axis]);
        let expansion = &EXPANSIONS[one.momentum][other.momentum];
        let mut charges = charges(one, other, &distance);
        let order = one.momentum + other.momentum;
        let is_merged = charges.len() == 1;
        // For each group of the expansion: the group of this pair, and its factor in the matrix.
        let mut groups = [0; ORDERS];
        let mut places: Vec<(usize, f64)> = Vec::new();
        for group in &expansion.groups {
            let place = if is_merged { group.order } else { places.len() };
            let factor = if is_merged { charges[0].product(group.powers) } else { 1.0 };
            groups[group.order] = if is_merged { 1 } else { groups[group.order] + 1 };
            places.push((place, factor));
        }
        let powers = |charge: &Charge| -> Vec<f64> {
            match is_merged {
                true => vec![charge.charge; order + 1],
                false => expansion
                    .groups
                    .iter()
                    .map(|group| charge.charge * charge.product(group.powers))
                    .collect(),
            }
        };
        let bound = |scales: &[f64]| scales.iter().fold(0.0_f64, |bound, scale| bound.max(scale.abs()));
        charges.sort_by(|one, other| bound(&powers(other)).total_cmp(&bound(&powers(one))));
        let scales: Vec<Vec<f64>> = charges.iter().map(powers).collect();
        let primitives = charges.iter().zip(&scales);
        let primitives = primitives.map(|(charge, scales)| PairPrimitive {
            exponent: charge.exponent,
            point: charge.point,
            bound: bound(scales),
        });
        let orders: Vec<usize> =
            groups.iter().enumerate().flat_map(|(order, count)| vec![order; *count]).collect();
        let starts: Vec<usize> = orders
            .iter()
            .scan(0, |start, order| {
                *start += level(*order);
                Some(*start - level(*order))
            })
            .collect();
        let columns = orders.iter().map(|order| level(*order)).sum();
        let monomial = monomial_matrix(expansion, &places, &starts, columns, &distance);
        let bra = function_matrix([one.momentum, other.momentum], is_cartesian, &monomial, columns);
        let column_order: Vec<usize> = orders.iter().flat_map(|order| vec![*order; level(*order)]).collect();
        let ket = bra.iter().map(|cell| {
            let sign = if column_order[usize::from(cell.column)] % 2 == 1 { -1.0 } else { 1.0 };
            Cell { factor: sign * cell.factor, ..*cell }
        });
        ShellPair {
            shells: numbers,
            first: [one.first, other.first],
            functions: [one.functions, other.functions],
            order,
            groups,
            columns,
            primitives: primitives.collect(),
            scales: scales.concat(),
            ket: ket.collect(),
            bra,
            bound: f64::INFINITY,
        }
    }

    /// Returns the number of products of functions.
    pub fn components(&self) -> usize {
        self.functions[0] * self.functions[1]
    }

    /// Returns the bytes that a quartet with this ket reads from it.
    pub fn bytes(&self) -> u64 {
        let bytes = size_of_val(&*self.primitives) + size_of_val(&*self.scales) + size_of_val(&*self.ket);
        bytes as u64
    }

    /// Returns the number of groups of all orders.
    pub fn all_groups(&self) -> usize {
        self.groups.iter().sum()
    }
}

/// The product of two primitives.
struct Charge {
    exponent: f64,
    point: [f64; 3],
    charge: f64,
    /// a/p, b/p and 1/2p.
    ratios: [f64; 3],
}

impl Charge {
    fn product(&self, powers: [usize; 3]) -> f64 {
        self.ratios.iter().zip(powers).map(|(ratio, power)| ratio.powi(power as i32)).product()
    }
}

/// Returns the products of the primitives of two shells that are not negligible.
fn charges(one: &Shell, other: &Shell, distance: &[f64; 3]) -> Vec<Charge> {
    let square: f64 = distance.iter().map(|length| length * length).sum();
    let mut charges = Vec::new();
    for &(a, first) in &one.primitives {
        for &(b, second) in &other.primitives {
            let p = a + b;
            let overlap = (-a * b / p * square).exp();
            let charge = first * second * overlap * 2.0_f64.sqrt() * PI.powf(1.25) / p;
            if charge.abs() >= CHARGE_MIN {
                let point = [0, 1, 2].map(|axis| (a * one.center[axis] + b * other.center[axis]) / p);
                charges.push(Charge { exponent: p, point, charge, ratios: [a / p, b / p, 0.5 / p] });
            }
        }
    }
    charges
}

/// Returns the matrix from sums to pairs of monomials, by row.
fn monomial_matrix(
    expansion: &Expansion,
    places: &[(usize, f64)],
    starts: &[usize],
    columns: usize,
    distance: &[f64; 3],
) -> Vec<f64> {
    let rows = expansion.entries.iter().map(|entry| entry.pair + 1).max().unwrap_or_default();
    let mut matrix = vec![0.0; rows * columns];
    for entry in &expansion.entries {
        let (place, factor) = places[entry.group];
        let lengths = distance.iter().zip(entry.distance).map(|(length, power)| length.powi(power as i32));
        let column = starts[place] + entry.hermite;
        matrix[entry.pair * columns + column] += entry.factor * factor * lengths.product::<f64>();
    }
    matrix
}

/// Returns the matrix from sums to functions, without zeros.
fn function_matrix(momenta: [usize; 2], is_cartesian: bool, monomial: &[f64], columns: usize) -> Vec<Cell> {
    let [first, second] = momenta.map(|momentum| angular(momentum, is_cartesian));
    let width = monomials(momenta[1]).count();
    let mut cells = Vec::new();
    for (row, one) in first.iter().enumerate() {
        for (index, other) in second.iter().enumerate() {
            let component = (row * second.len() + index) as u16;
            for column in 0..columns {
                let products = one.iter().flat_map(|&(m, f)| {
                    other.iter().map(move |&(n, g)| f * g * monomial[(m * width + n) * columns + column])
                });
                let factor: f64 = products.sum();
                if factor != 0.0 {
                    cells.push(Cell { column: column as u16, component, factor });
                }
            }
        }
    }
    cells
}
