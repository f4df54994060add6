//! Expansion of a product of two shells in Hermite Gaussians, as a polynomial with separate factors.
//!
//! The coefficients E of McMurchie and Davidson combine data of each pair of primitives with data that all pairs of
//! two shells share: the vector between the nuclei. Here each is a sum of products (a/p)^i (b/p)^j (1/2p)^k X^x Y^y
//! Z^z with p = a + b and (X, Y, Z) = A - B. So Hermite integrals are summed over primitives, with the first three
//! factors, before any function is formed: the early contraction of P. M. W. Gill, J. A. Pople, Int. J. Quantum Chem.
//! 40, 753 (1991). This module knows no exponents and no points. Invariant: columns are ordered by group, groups by
//! order.

use super::super::basis::shell::monomials;
use super::hermite::level;

/// Hermite Gaussians of one order with the same primitive factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Group {
    /// t + u + v.
    pub(super) order: usize,
    /// Exponents of a/p, b/p and 1/2p.
    pub(super) powers: [usize; 3],
}

/// One product in the expansion of a pair of monomials.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExpandedProduct {
    /// The pair of monomials: that of the first shell times the number of monomials of the second, plus that of the
    /// second.
    pub(super) pair: usize,
    /// The group, and the position of the Hermite Gaussian in it.
    pub(super) group: usize,
    pub(super) hermite: usize,
    /// The numerical factor of the product, and the exponents of X, Y and Z.
    pub(super) factor: f64,
    pub(super) distance: [usize; 3],
}

/// The expansion for two angular momenta.
#[derive(Clone, Debug)]
pub(super) struct Expansion {
    pub(super) groups: Vec<Group>,
    pub(super) entries: Vec<ExpandedProduct>,
}

/// A product along one axis.
#[derive(Clone, Copy)]
struct Term {
    t: usize,
    distance: usize,
    powers: [usize; 3],
    factor: f64,
}

impl Expansion {
    /// Creates the expansion for the angular momenta of the first and the second shell.
    pub(super) fn new(first: usize, second: usize) -> Expansion {
        let axis = |i, j| along_axis(i, j);
        let mut products = Vec::new();
        for (row, [ix, iy, iz]) in monomials(first).enumerate() {
            for (column, [jx, jy, jz]) in monomials(second).enumerate() {
                let pair = row * level(second) + column;
                for x in axis(ix, jx) {
                    for y in axis(iy, jy) {
                        for z in axis(iz, jz) {
                            products.push(product(pair, [x, y, z]));
                        }
                    }
                }
            }
        }
        let mut groups: Vec<Group> = products.iter().map(|(group, _)| *group).collect();
        groups.sort_unstable();
        groups.dedup();
        let place = |group: &Group| groups.binary_search(group).expect("all groups are among them");
        let entries =
            products.iter().map(|(group, entry)| ExpandedProduct { group: place(group), ..*entry }).collect();
        Expansion { groups, entries }
    }
}

/// Returns the product of terms along the three axes; its group is not numbered yet.
fn product(pair: usize, terms: [Term; 3]) -> (Group, ExpandedProduct) {
    let sum = |index: usize| terms.iter().map(|term| term.powers[index]).sum();
    let order = terms.iter().map(|term| term.t).sum();
    let index = [terms[0].t, terms[1].t, terms[2].t];
    let hermite = monomials(order).position(|triple| triple == index);
    let entry = ExpandedProduct {
        pair,
        group: 0,
        hermite: hermite.expect("each triple is in its level"),
        factor: terms.iter().map(|term| term.factor).product(),
        distance: terms.map(|term| term.distance),
    };
    (Group { order, powers: [sum(0), sum(1), sum(2)] }, entry)
}

/// Returns E_t^ij for all t: from E_0^00 = 1, i and then j are raised by one, each by E_t = (1/2p) E_(t-1) + s E_t +
/// (t + 1) E_(t+1) with s = P - A = -(b/p) X, or P - B = (a/p) X.
fn along_axis(i: usize, j: usize) -> Vec<Term> {
    let mut terms = vec![Term { t: 0, distance: 0, powers: [0; 3], factor: 1.0 }];
    for step in 0..i + j {
        let (ratio, sign) = if step < i { (1, -1.0) } else { (0, 1.0) };
        let mut raised: Vec<Term> = Vec::new();
        let mut add = |term: Term| {
            let key = |term: &Term| (term.t, term.distance, term.powers);
            match raised.iter_mut().find(|other| key(other) == key(&term)) {
                Some(other) => other.factor += term.factor,
                None => raised.push(term),
            }
        };
        for term in &terms {
            let [mut half, mut shift] = [term.powers; 2];
            half[2] += 1;
            shift[ratio] += 1;
            add(Term { t: term.t + 1, powers: half, ..*term });
            add(Term { distance: term.distance + 1, powers: shift, factor: sign * term.factor, ..*term });
            if term.t > 0 {
                add(Term { t: term.t - 1, factor: term.t as f64 * term.factor, ..*term });
            }
        }
        terms = raised;
    }
    terms
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computes E_t^ij by the numerical recursion.
    fn published(i: usize, j: usize, t: isize, numbers: [f64; 3]) -> f64 {
        let [half, to_first, to_second] = numbers;
        if t < 0 || t as usize > i + j {
            return 0.0;
        }
        let (one, other, shift) = match (i, j) {
            (0, 0) => return 1.0,
            (0, _) => (0, j - 1, to_second),
            _ => (i - 1, j, to_first),
        };
        let lower = |t| published(one, other, t, numbers);
        half * lower(t - 1) + shift * lower(t) + (t + 1) as f64 * lower(t + 1)
    }

    #[test]
    fn terms_along_an_axis_sum_up_to_the_published_coefficients() {
        let (a, b, distance): (f64, f64, f64) = (0.8, 1.7, 0.6);
        let ratios = [a / (a + b), b / (a + b), 0.5 / (a + b)];
        let numbers = [ratios[2], -ratios[1] * distance, ratios[0] * distance];
        for (i, j) in [(0, 0), (1, 0), (0, 2), (1, 1), (2, 1), (2, 2)] {
            for t in 0..=i + j {
                let value = |term: &Term| {
                    let powers =
                        ratios.iter().zip(term.powers).map(|(ratio, power)| ratio.powi(power as i32));
                    term.factor * distance.powi(term.distance as i32) * powers.product::<f64>()
                };
                let terms = along_axis(i, j);
                let sum: f64 = terms.iter().filter(|term| term.t == t).map(value).sum();
                let expected = published(i, j, t as isize, numbers);
                assert!((sum - expected).abs() < 1e-15, "E_{t}^{i}{j}: {sum} is not {expected}");
            }
        }
    }

    #[test]
    fn two_p_shells_have_five_groups() {
        let groups = Expansion::new(1, 1).groups;
        let orders: Vec<usize> = groups.iter().map(|group| group.order).collect();
        assert_eq!(orders, [0, 0, 1, 1, 2]);
    }
}
