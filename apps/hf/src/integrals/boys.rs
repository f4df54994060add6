//! The Boys functions F_m(T), the integral of t^2m exp(-T t^2) over t from 0 to 1.
//!
//! Below [`TABLE_END`] each order comes from a Taylor series about the nearest tabulated point, because the derivative
//! of F_m is -F_(m+1): L. E. McMurchie, E. R. Davidson, J. Comput. Phys. 26, 218 (1978), section IV. Above it F_0 is
//! √(π/T)/2 to the last bit, and the others follow by upward recursion, which is stable there. Invariant: the relative
//! error is below 1e-14, for any argument from 0.

use std::f64::consts::PI;
use std::sync::LazyLock;

/// Highest order: that of four d functions.
pub const ORDER_MAX: usize = 8;

/// Terms of the series; at a distance of at most 1/32 the next one is below 4e-15 of the sum.
const TERMS: usize = 7;

/// Number of table points per unit of the argument.
const POINTS_PER_UNIT: f64 = 16.0;

/// End of the table; there exp(-T), which the recursion omits, is below 4e-19 of F_8.
const TABLE_END: f64 = 64.0;

/// Number of orders at a point.
const ROW: usize = ORDER_MAX + TERMS;

/// F_0 to F_14 at the points 0, 1/16, 2/16, .. 64.
static TABLE: LazyLock<Vec<[f64; ROW]>> = LazyLock::new(|| {
    let points = (TABLE_END * POINTS_PER_UNIT) as usize;
    (0..=points).map(|point| row(point as f64 / POINTS_PER_UNIT)).collect()
});

/// Returns all orders of a row: the highest by the series, the others by downward recursion, which is stable.
fn row(argument: f64) -> [f64; ROW] {
    let exponential = (-argument).exp();
    let mut values = [0.0; ROW];
    let (mut term, mut sum, mut divisor) = (1.0 / (2 * ROW - 1) as f64, 0.0, (2 * ROW - 1) as f64);
    while term > sum * 1e-18 {
        sum += term;
        divisor += 2.0;
        term *= 2.0 * argument / divisor;
    }
    values[ROW - 1] = exponential * sum;
    for order in (0..ROW - 1).rev() {
        values[order] = (2.0 * argument * values[order + 1] + exponential) / (2 * order + 1) as f64;
    }
    values
}

/// The Boys functions, ready to be evaluated.
#[derive(Clone, Copy)]
pub struct Boys {
    table: &'static [[f64; ROW]],
}

impl Boys {
    /// Creates the table on first use.
    pub fn new() -> Boys {
        Boys { table: &TABLE }
    }

    /// Computes F_0 to F_L at `argument`, which must not be negative, into the first L + 1 of `values`.
    #[inline(always)]
    pub fn evaluate<const L: usize>(self, argument: f64, values: &mut [f64; ORDER_MAX + 1]) {
        if argument < TABLE_END {
            let point = (argument * POINTS_PER_UNIT + 0.5) as i32; // one instruction each way, as with no other type
            let row = &self.table[point as usize];
            let distance = f64::from(point) * (1.0 / POINTS_PER_UNIT) - argument;
            let mut powers = [1.0; TERMS];
            for term in 1..TERMS {
                powers[term] = powers[term - 1] * distance * INVERSE[term];
            }
            for order in 0..=L {
                let mut sum = row[order];
                for term in 1..TERMS {
                    sum += powers[term] * row[order + term];
                }
                values[order] = sum;
            }
        } else {
            let inverse = 0.5 / argument;
            values[0] = (0.5 * PI * inverse).sqrt();
            for order in 0..L {
                values[order + 1] = (2 * order + 1) as f64 * inverse * values[order];
            }
        }
    }
}

/// Reciprocals of the term numbers.
const INVERSE: [f64; TERMS] = [1.0, 1.0, 1.0 / 2.0, 1.0 / 3.0, 1.0 / 4.0, 1.0 / 5.0, 1.0 / 6.0];

#[cfg(test)]
mod tests {
    use super::*;

    /// Computes F_m by the series in T, independently of the table; suitable for small arguments.
    fn by_series(order: usize, argument: f64) -> f64 {
        let (mut power, mut sum) = (1.0, 0.0);
        for term in 0..200 {
            sum += power / (2 * (order + term) + 1) as f64;
            power *= -argument / (term + 1) as f64;
        }
        sum
    }

    /// Computes F_m by Simpson's rule.
    fn by_quadrature(order: usize, argument: f64) -> f64 {
        const STEPS: usize = 20_000;
        let value = |step: usize| {
            let t = step as f64 / STEPS as f64;
            t.powi(2 * order as i32) * (-argument * t * t).exp()
        };
        let inner: f64 = (1..STEPS).map(|step| value(step) * if step % 2 == 1 { 4.0 } else { 2.0 }).sum();
        (value(0) + inner + value(STEPS)) / (3 * STEPS) as f64
    }

    fn all(argument: f64) -> [f64; ORDER_MAX + 1] {
        let mut values = [0.0; ORDER_MAX + 1];
        Boys::new().evaluate::<ORDER_MAX>(argument, &mut values);
        values
    }

    #[test]
    fn small_arguments_agree_with_the_series() {
        for step in 0..=400 {
            let argument = step as f64 * 0.007;
            for (order, value) in all(argument).into_iter().enumerate() {
                let expected = by_series(order, argument);
                assert!((value - expected).abs() < 2e-14 * expected, "F_{order}({argument}) is {value:e}");
            }
        }
    }

    #[test]
    fn large_arguments_agree_with_quadrature_on_both_sides_of_the_end_of_the_table() {
        for argument in [3.3, 11.03, 29.97, 63.9999, 64.0, 64.1, 150.0] {
            for (order, value) in all(argument).into_iter().enumerate() {
                let expected = by_quadrature(order, argument);
                assert!((value - expected).abs() < 1e-12 * expected, "F_{order}({argument}) is {value:e}");
            }
        }
    }

    #[test]
    fn fewer_orders_have_the_same_bits() {
        for argument in [0.0, 0.4, 17.7, 99.0] {
            let mut few = [0.0; ORDER_MAX + 1];
            Boys::new().evaluate::<2>(argument, &mut few);
            assert_eq!(few[..3], all(argument)[..3]);
        }
    }
}
