//! Two-electron repulsion integrals over the functions of two pairs of shells.
//!
//! The method of L. E. McMurchie, E. R. Davidson, J. Comput. Phys. 26, 218 (1978), with early contraction (see
//! `expansion`). For each pair of primitives of the bra the Hermite integrals with all primitives of the ket are
//! summed, group by group; these sums are scaled and added to sums over the bra's primitives; only then are functions
//! formed, once per quartet. So the innermost loops are a table look-up, a recursion of fixed length, and additions of
//! contiguous memory. Their sizes are known at compile time: the orders of bra and ket are parameters of the code.
//! Invariant: nothing is allocated for a quartet, and its integrals depend on the two pairs only.

use super::boys::{Boys, ORDER_MAX};
use super::hermite::{INTEGRALS_MAX, Levels, SUMS, below, level};
use super::pair::{Cell, ORDERS, ShellPair};

/// Bound below which a quartet of primitives is negligible.
pub const PRIMITIVES_MIN: f64 = 1e-15;

/// Most sums over the ket's primitives: two pairs of d shells, with groups of 5, 4, 4, 2 and 1 for each order.
const KET_SUMS_MAX: usize = 5 * 35 + 4 * 55 + 4 * 80 + 2 * 110 + 145;

/// Most columns of a pair, and most products of its functions.
const COLUMNS_MAX: usize = 5 + 4 * 3 + 4 * 6 + 2 * 10 + 15;
const COMPONENTS_MAX: usize = 36;

/// Working memory for repulsion integrals; it keeps the last results.
pub struct Repulsion {
    /// Quartets of primitives with a bound below this are left out.
    primitives_min: f64,
    boys: Boys,
    levels: Levels,
    integrals: [f64; INTEGRALS_MAX],
    /// Sums over the ket's primitives: for each ket group, Hermite integrals of the group's order up to that plus the
    /// bra's.
    ket_sums: Vec<f64>,
    /// Sums over all primitives: for each pair of groups, the Hermite integrals of the sum of their orders.
    sums: Vec<f64>,
    /// The same sums by columns of the ket, then of the bra.
    columns: Vec<f64>,
    /// Functions of the ket by columns of the bra, and transposed.
    half: Vec<f64>,
    turned: Vec<f64>,
    block: Vec<f64>,
}

impl Repulsion {
    /// Creates working memory for all pairs. Quartets of primitives with a bound below `primitives_min` are neglected:
    /// with [`PRIMITIVES_MIN`] integrals are exact to 1e-13 hartree or better; with zero the error is relative.
    pub fn new(primitives_min: f64) -> Repulsion {
        Repulsion {
            primitives_min,
            boys: Boys::new(),
            levels: Levels::new(),
            integrals: [0.0; INTEGRALS_MAX],
            ket_sums: vec![0.0; KET_SUMS_MAX],
            sums: vec![0.0; COLUMNS_MAX * COLUMNS_MAX],
            columns: vec![0.0; COLUMNS_MAX * COLUMNS_MAX],
            half: vec![0.0; COMPONENTS_MAX * COLUMNS_MAX],
            turned: vec![0.0; COMPONENTS_MAX * COLUMNS_MAX],
            block: vec![0.0; COMPONENTS_MAX * COMPONENTS_MAX],
        }
    }

    /// Returns the integrals (bra|ket), by function pairs of the bra, then of the ket, and the operations spent.
    pub fn block(&mut self, bra: &ShellPair, ket: &ShellPair) -> (&[f64], Operations) {
        macro_rules! orders {
            ($($bra:literal: $(($ket:literal, $sum:literal))*;)*) => {
                match (bra.order, ket.order) {
                    $($(($bra, $ket) => self.sum::<$bra, $ket, $sum>(bra, ket),)*)*
                    _ => unreachable!("no basis set has functions beyond d"),
                }
            };
        }
        let operations = orders! {
            0: (0, 0) (1, 1) (2, 2) (3, 3) (4, 4);
            1: (0, 1) (1, 2) (2, 3) (3, 4) (4, 5);
            2: (0, 2) (1, 3) (2, 4) (3, 5) (4, 6);
            3: (0, 3) (1, 4) (2, 5) (3, 6) (4, 7);
            4: (0, 4) (1, 5) (2, 6) (3, 7) (4, 8);
        };
        self.form(bra, ket);
        let cells = ket.ket.len() * bra.columns + bra.bra.len() * ket.components();
        let operations = Operations { floats: operations.floats + 2 * cells as u64, ..operations };
        (&self.block[..bra.components() * ket.components()], operations)
    }

    /// Sums over all primitives, for a bra of the order B and a ket of the order K, with L their sum.
    fn sum<const B: usize, const K: usize, const L: usize>(
        &mut self,
        bra: &ShellPair,
        ket: &ShellPair,
    ) -> Operations {
        const { assert!(B + K == L) };
        let segment = |order: usize| below(B + order + 1) - below(order);
        let ket_length: usize = (0..=K).map(|order| ket.groups[order] * segment(order)).sum();
        let length = |m: usize| (0..=K).map(|n| ket.groups[n] * level(m + n)).sum::<usize>();
        let all_length: usize = (0..=B).map(|order| bra.groups[order] * length(order)).sum();
        self.sums[..all_length].fill(0.0);
        let ket_groups = ket.all_groups();
        let bra_groups = bra.all_groups();
        let (mut quartets, mut rows) = (0, 0);
        for (one, scales) in bra.primitives.iter().zip(bra.scales.chunks_exact(bra_groups)) {
            let others =
                ket.primitives.iter().take_while(|other| one.bound * other.bound >= self.primitives_min);
            let before = quartets;
            self.ket_sums[..ket_length].fill(0.0);
            for (other, ket_scales) in others.zip(ket.scales.chunks_exact(ket_groups)) {
                let inverse = 1.0 / (one.exponent + other.exponent);
                let reduced = one.exponent * other.exponent * inverse;
                let point = [0, 1, 2].map(|axis| one.point[axis] - other.point[axis]);
                let square = point[0] * point[0] + point[1] * point[1] + point[2] * point[2];
                let mut seeds = [0.0; ORDER_MAX + 1];
                self.boys.evaluate::<L>(reduced * square, &mut seeds);
                let mut factor = inverse.sqrt();
                for seed in &mut seeds[..=L] {
                    *seed *= factor;
                    factor *= -2.0 * reduced;
                }
                self.levels.integrals::<L>(point, &seeds, &mut self.integrals);
                add_ket::<B, K>(&mut self.ket_sums, ket, ket_scales, &self.integrals);
                quartets += 1;
            }
            if quartets == before {
                break;
            }
            add_bra::<B, K>(&mut self.sums, &self.ket_sums, [bra, ket], scales);
            rows += 1;
        }
        let floats = quartets * (primitive_floats(L) + 2 * ket_length as u64) + rows * 2 * all_length as u64;
        Operations { quartets, floats }
    }

    /// Computes the integrals over functions from the sums.
    fn form(&mut self, bra: &ShellPair, ket: &ShellPair) {
        let Repulsion { sums, columns, half, turned, block, .. } = self;
        let (bra_components, ket_components) = (bra.components(), ket.components());
        spread(sums, columns, bra, ket);
        apply(&ket.ket, columns, half, ket_components, bra.columns);
        for (component, row) in half.chunks_exact(bra.columns).take(ket_components).enumerate() {
            for (column, value) in row.iter().enumerate() {
                turned[column * ket_components + component] = *value;
            }
        }
        apply(&bra.bra, turned, block, bra_components, ket_components);
    }
}

/// Operations of the integrals, counted in the code above; an addition with a multiplication counts as two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operations {
    /// Quartets of primitives; each has a division and a square root.
    pub quartets: u64,
    /// Additions and multiplications of floating-point numbers.
    pub floats: u64,
}

impl Operations {
    /// Adds the operations of `other`.
    pub fn add(&mut self, other: Operations) {
        self.quartets += other.quartets;
        self.floats += other.floats;
    }
}

/// Returns the additions and multiplications for the Hermite integrals of a quartet of primitives, up to an order.
const fn primitive_floats(order: usize) -> u64 {
    // The charges and their distance, the powers of the series, its terms, the seeds.
    let mut floats = 16 + 14 + 12 * (order + 1) + 2 * order + 2;
    let mut raised = 1;
    while raised <= order {
        // A level at each auxiliary order that is needed: a product each, and a second one where an index is above
        // one.
        let second = if raised > 1 { 2 * (level(raised - 2) + raised) } else { 0 };
        floats += (order + 1 - raised) * (level(raised) + second);
        raised += 1;
    }
    floats as u64
}

/// Adds the Hermite integrals of one pair of primitives of the ket to the sums over them, for each group up to the
/// order that its partners need.
#[inline(always)]
fn add_ket<const B: usize, const K: usize>(
    sums: &mut [f64],
    ket: &ShellPair,
    scales: &[f64],
    integrals: &[f64; INTEGRALS_MAX],
) {
    let (mut sums, mut scales) = (sums, scales);
    macro_rules! add {
        ($($order:literal)*) => {
            $(if K + 1 > $order {
                let segment = const { below(B + $order + 1) - below($order) };
                let (own, rest) = scales.split_at(ket.groups[$order]);
                for scale in own {
                    let (target, others) = std::mem::take(&mut sums).split_at_mut(segment);
                    for (sum, integral) in target.iter_mut().zip(&integrals[below($order)..][..segment]) {
                        *sum += scale * integral;
                    }
                    sums = others;
                }
                scales = rest;
            })*
        };
    }
    add!(0 1 2 3 4);
    debug_assert!(scales.is_empty());
}

/// Adds the sums over the ket's primitives, for one pair of primitives of the bra, to the sums over all.
#[inline(always)]
fn add_bra<const B: usize, const K: usize>(
    sums: &mut [f64],
    ket_sums: &[f64],
    [bra, ket]: [&ShellPair; 2],
    scales: &[f64],
) {
    let (mut sums, mut scales) = (sums, scales);
    for m in 0..=B {
        let (own, rest) = scales.split_at(bra.groups[m]);
        for scale in own {
            let mut from = ket_sums;
            for n in 0..=K {
                let (start, length) = (below(m + n) - below(n), level(m + n));
                let segment = below(B + n + 1) - below(n);
                for _ in 0..ket.groups[n] {
                    let (target, others) = std::mem::take(&mut sums).split_at_mut(length);
                    for (sum, part) in target.iter_mut().zip(&from[start..start + length]) {
                        *sum += scale * part;
                    }
                    (sums, from) = (others, &from[segment..]);
                }
            }
        }
        scales = rest;
    }
}

/// Arranges the sums as a matrix: by Hermite Gaussians of the ket, group by group, then of the bra.
fn spread(sums: &[f64], columns: &mut [f64], bra: &ShellPair, ket: &ShellPair) {
    let (width, mut sums, mut bra_start) = (bra.columns, sums, 0);
    for m in 0..=bra.order.min(ORDERS - 1) {
        for _ in 0..bra.groups[m] {
            let mut ket_start = 0;
            for n in 0..=ket.order.min(ORDERS - 1) {
                let places = &SUMS[m][n];
                let (rows, others) = (level(m), level(n));
                for _ in 0..ket.groups[n] {
                    for row in 0..rows {
                        for (other, place) in places[row * others..][..others].iter().enumerate() {
                            columns[(ket_start + other) * width + bra_start + row] =
                                sums[usize::from(*place)];
                        }
                    }
                    sums = &sums[level(m + n)..];
                    ket_start += others;
                }
            }
            bra_start += level(m);
        }
    }
}

/// Multiplies rows of `width` numbers by a matrix: row `component` of the product is the sum of rows `column`.
fn apply(cells: &[Cell], from: &[f64], to: &mut [f64], components: usize, width: usize) {
    to[..components * width].fill(0.0);
    for Cell { column, component, factor } in cells {
        let source = &from[usize::from(*column) * width..][..width];
        let target = &mut to[usize::from(*component) * width..][..width];
        for (target, source) in target.iter_mut().zip(source) {
            *target += factor * source;
        }
    }
}
