//! Numbers of shortest paths: fast if they fit a float, otherwise with unlimited range.
//!
//! Path counts grow exponentially (a grid of 520 by 520 has more than 2^1024 between its corners), so the kernels run
//! with `f64` and repeat a source with [`WideFloat`] if a count came near the end of the range. Both have 53 bits of
//! precision. Invariant: a kernel uses only counts of at least one, their reciprocals, sums and products; it never
//! divides by zero.

/// Operations of the kernels on a number of paths.
pub(super) trait PathCount: Copy + Default {
    /// One path.
    const ONE: Self;
    /// Returns the sum.
    fn plus(self, other: Self) -> Self;
    /// Returns the sum if `take`, else `self`; without a branch where possible.
    fn plus_if(self, take: bool, other: Self) -> Self;
    /// Returns one divided by the count.
    fn reciprocal(self) -> Self;
    /// Returns the product, which the algorithm keeps below the number of vertices.
    fn times(self, other: Self) -> f64;
    /// Returns `true` if results with this count can be trusted.
    fn in_range(self) -> bool;
}

impl PathCount for f64 {
    const ONE: f64 = 1.0;

    #[inline(always)]
    fn plus(self, other: f64) -> f64 {
        self + other
    }

    #[inline(always)]
    fn plus_if(self, take: bool, other: f64) -> f64 {
        self + f64::from_bits(std::hint::select_unpredictable(take, other.to_bits(), 0))
    }

    #[inline(always)]
    fn reciprocal(self) -> f64 {
        1.0 / self
    }

    #[inline(always)]
    fn times(self, other: f64) -> f64 {
        self * other
    }

    /// Up to 2^1000 the reciprocal is a normal number with full precision.
    #[inline(always)]
    fn in_range(self) -> bool {
        const LIMIT: f64 = f64::from_bits((1000 + 1023) << 52);
        self < LIMIT
    }
}

/// A float with a 64-bit exponent: `mantissa * 2^exponent`, the mantissa in `[1, 2)`, or zero.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct WideFloat {
    mantissa: f64,
    exponent: i64,
}

impl WideFloat {
    /// Creates `mantissa * 2^exponent` from a normal positive `mantissa`.
    fn new(mantissa: f64, exponent: i64) -> WideFloat {
        let bits = mantissa.to_bits();
        let shift = (bits >> 52) as i64 - 1023;
        WideFloat {
            mantissa: f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52),
            exponent: exponent + shift,
        }
    }
}

impl PathCount for WideFloat {
    const ONE: WideFloat = WideFloat { mantissa: 1.0, exponent: 0 };

    fn plus(self, other: WideFloat) -> WideFloat {
        if self.mantissa == 0.0 || other.mantissa == 0.0 {
            return if self.mantissa == 0.0 { other } else { self };
        }
        let (large, small) = if self.exponent >= other.exponent { (self, other) } else { (other, self) };
        WideFloat::new(
            large.mantissa + small.mantissa * power_of_two(small.exponent - large.exponent),
            large.exponent,
        )
    }

    fn plus_if(self, take: bool, other: WideFloat) -> WideFloat {
        if take { self.plus(other) } else { self }
    }

    fn reciprocal(self) -> WideFloat {
        WideFloat::new(1.0 / self.mantissa, -self.exponent)
    }

    fn times(self, other: WideFloat) -> f64 {
        self.mantissa * other.mantissa * power_of_two(self.exponent + other.exponent)
    }

    fn in_range(self) -> bool {
        true
    }
}

/// Returns `2^exponent`; zero below the normal range, where it is negligible beside a number of at least one.
fn power_of_two(exponent: i64) -> f64 {
    match exponent {
        ..-1022 => 0.0,
        _ => f64::from_bits(((exponent.min(1023) + 1023) as u64) << 52),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn wide(value: f64) -> WideFloat {
        WideFloat::new(value, 0)
    }

    proptest! {
        #[test]
        fn wide_counts_compute_what_floats_compute(a in 1e-100..1e100, b in 1e-100..1e100) {
            prop_assert_eq!(wide(a).plus(wide(b)), wide(a + b));
            prop_assert_eq!(wide(a).reciprocal(), wide(1.0 / a));
            prop_assert_eq!(wide(a).times(wide(b)), a * b);
        }
    }

    #[test]
    fn wide_counts_go_on_where_floats_end() {
        let mut count = WideFloat::ONE;
        for _ in 0..100_000 {
            count = count.plus(count);
        }
        assert_eq!(count, WideFloat { mantissa: 1.0, exponent: 100_000 });
        assert_eq!(count.times(count.reciprocal()), 1.0);
        assert_eq!(count.plus(WideFloat::ONE), count);
        assert_eq!(WideFloat::default().plus(count), count);
    }

    #[test]
    fn a_float_near_the_end_of_its_range_is_not_trusted() {
        assert!(1e301.in_range());
        assert!(!1e302.in_range());
        assert!(!f64::INFINITY.in_range());
    }
}
