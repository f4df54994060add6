//! Hermite Coulomb integrals R_tuv: derivatives of the field between two Gaussian charges.
//!
//! The recursion of McMurchie and Davidson (J. Comput. Phys. 26, 218 (1978), equations 4.6 to 4.8) raises one index at
//! a time, from derivatives of higher auxiliary order. Integrals of one order t + u + v are adjacent, those with more
//! t first, then with more u; so raising t covers a whole order at once, except those with t = 0. Invariant: the order
//! of integrals within a level is that of the monomials of a shell.

use super::boys::ORDER_MAX;

/// Returns the number of integrals of an order.
pub const fn level(order: usize) -> usize {
    (order + 1) * (order + 2) / 2
}

/// Returns the number of integrals of lower orders, which is the index at which this order begins.
pub const fn below(order: usize) -> usize {
    order * (order + 1) * (order + 2) / 6
}

/// Number of integrals up to the highest order.
pub const INTEGRALS_MAX: usize = below(ORDER_MAX + 1);

/// Room for all auxiliary orders of one level; at most 3 times 28 are used.
const LEVEL_ROOM: usize = 96;

/// The exponents t of an order's integrals, in their order.
const T_FACTORS: [[f64; level(ORDER_MAX)]; ORDER_MAX + 1] = {
    let mut factors = [[0.0; level(ORDER_MAX)]; ORDER_MAX + 1];
    let mut order = 0;
    while order <= ORDER_MAX {
        let (mut t, mut index) = (order + 1, 0);
        while t > 0 {
            t -= 1;
            let mut u = 0;
            while u + t <= order {
                factors[order][index] = t as f64;
                index += 1;
                u += 1;
            }
        }
        order += 1;
    }
    factors
};

/// Index, in the level of order m + n, of the sum of two index triples: rows are triples of order m, columns those of
/// order n.
pub static SUMS: [[[u8; SUM_ROOM]; 5]; 5] = {
    let mut sums = [[[0; SUM_ROOM]; 5]; 5];
    let mut m = 0;
    while m < 5 {
        let mut n = 0;
        while n < 5 {
            let mut row = 0;
            while row < level(m) {
                let mut column = 0;
                while column < level(n) {
                    let ([_, u, v], [_, other_u, other_v]) = (triple(m, row), triple(n, column));
                    sums[m][n][row * level(n) + column] = place(u + other_u, v + other_v) as u8;
                    column += 1;
                }
                row += 1;
            }
            n += 1;
        }
        m += 1;
    }
    sums
};

/// Room for the pairs of two levels.
const SUM_ROOM: usize = level(4) * level(4);

/// Returns the index in its level of the triple with these u and v. It follows all triples with more t, which
/// correspond to the orders below u + v of two indices, and those with the same t and more u.
const fn place(u: usize, v: usize) -> usize {
    (u + v) * (u + v + 1) / 2 + v
}

/// Returns the triple at an index of a level.
const fn triple(order: usize, index: usize) -> [usize; 3] {
    let (mut rest, mut start) = (0, 0);
    while start + rest < index {
        start += rest + 1;
        rest += 1;
    }
    let v = index - start;
    [order - rest, rest - v, v]
}

/// Working memory, reused so that no integral clears or allocates any.
pub struct Levels([[f64; LEVEL_ROOM]; ORDER_MAX + 1]);

impl Levels {
    /// Creates working memory; its contents are arbitrary.
    pub fn new() -> Levels {
        Levels([[0.0; LEVEL_ROOM]; ORDER_MAX + 1])
    }

    /// Returns all integrals up to the order L, from the auxiliary ones of order zero: `seeds[j]` is (-2α)^j F_j.
    #[inline(always)]
    pub fn integrals<const L: usize>(
        &mut self,
        point: [f64; 3],
        seeds: &[f64; ORDER_MAX + 1],
        integrals: &mut [f64; INTEGRALS_MAX],
    ) {
        integrals[0] = seeds[0];
        self.0[0][..=L].copy_from_slice(&seeds[..=L]);
        macro_rules! raise {
            ($($order:literal)*) => { $(if L > $order { self.raise::<L, $order>(point, integrals); })* };
        }
        raise!(0 1 2 3 4 5 6 7);
    }

    /// Computes the level above the order N, at all auxiliary orders that are still needed; the lowest is the result.
    #[inline(always)]
    fn raise<const L: usize, const N: usize>(
        &mut self,
        [x, y, z]: [f64; 3],
        integrals: &mut [f64; INTEGRALS_MAX],
    ) {
        let (lower, upper) = self.0.split_at_mut(N + 1);
        let upper = &mut upper[0];
        let (own, next) = (level(N), level(N + 1));
        let before = if N > 0 { level(N - 1) } else { 0 };
        for auxiliary in 0..L - N {
            let source = &lower[N][(auxiliary + 1) * own..][..own];
            let second = &lower[N.saturating_sub(1)][(auxiliary + 1) * before..][..before];
            let target = match auxiliary {
                0 => &mut integrals[below(N + 1)..][..next],
                _ => &mut upper[auxiliary * next..][..next],
            };
            for index in 0..before {
                target[index] = x * source[index] + T_FACTORS[N][index] * second[index];
            }
            for index in before..own {
                target[index] = x * source[index];
            }
            // Integrals with t = 0: from the last N + 1 of the level below, and the last N of the one below that.
            let (source, target) = (&source[own - N - 1..], &mut target[own..]);
            for index in 0..N {
                target[index] = y * source[index] + (N - index) as f64 * second[before - N + index];
            }
            target[N] = y * source[N];
            target[N + 1] = z * source[N];
            if N > 0 {
                target[N + 1] += N as f64 * second[before - 1];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computes R_tuv at an auxiliary order by the published recursion, one integral at a time.
    fn published([t, u, v]: [usize; 3], order: usize, point: [f64; 3], seeds: &[f64; ORDER_MAX + 1]) -> f64 {
        let index = [t, u, v];
        let Some(axis) = index.iter().rposition(|&exponent| exponent > 0) else { return seeds[order] };
        let lowered = |steps: usize| {
            let mut lowered = index;
            lowered[axis] -= steps;
            published(lowered, order + 1, point, seeds)
        };
        let second = if index[axis] > 1 { (index[axis] - 1) as f64 * lowered(2) } else { 0.0 };
        point[axis] * lowered(1) + second
    }

    #[test]
    fn each_integral_is_that_of_the_published_recursion() {
        let (point, seeds) = ([0.3, -0.7, 1.1], [1.0, -0.9, 0.7, -0.8, 0.6, -0.4, 0.5, -0.3, 0.2]);
        let mut integrals = [0.0; INTEGRALS_MAX];
        Levels::new().integrals::<ORDER_MAX>(point, &seeds, &mut integrals);
        for order in 0..=ORDER_MAX {
            for (index, found) in integrals[below(order)..below(order + 1)].iter().enumerate() {
                let expected = published(triple(order, index), 0, point, &seeds);
                assert!((found - expected).abs() < 1e-13, "{:?}", triple(order, index));
            }
        }
    }

    #[test]
    fn a_sum_of_triples_is_found_in_its_level() {
        for (m, n) in [(0, 3), (2, 2), (4, 1), (4, 4)] {
            for (row, column) in [(0, 0), (level(m) - 1, 0), (level(m) / 2, level(n) - 1)] {
                let (one, other) = (triple(m, row), triple(n, column));
                let sum = [0, 1, 2].map(|axis| one[axis] + other[axis]);
                let place = usize::from(SUMS[m][n][row * level(n) + column]);
                assert_eq!(triple(m + n, place), sum);
            }
        }
    }
}
