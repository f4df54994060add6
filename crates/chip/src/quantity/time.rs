//! Lengths of modelled time, cycles, and clock rates as fractions.
//!
//! Invariants: lengths are whole picoseconds, so sums are exact; a rate is above zero and has at most one cycle per
//! picosecond.

use super::with_unit;
use std::cmp::Ordering;
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub};
use std::str::FromStr;

/// Picoseconds in a second.
pub const PICOSECONDS_PER_SECOND: u64 = 1_000_000_000_000;

/// A length of modelled time, in picoseconds; 2^64 of them are 213 days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Picoseconds(pub u64);

impl Picoseconds {
    /// No time.
    pub const ZERO: Self = Self(0);

    /// Returns the length in nanoseconds, for display.
    pub fn nanoseconds(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// Returns the sum; saturates.
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Add for Picoseconds {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Picoseconds {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Picoseconds {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Mul<u64> for Picoseconds {
    type Output = Self;
    fn mul(self, times: u64) -> Self {
        Self(self.0 * times)
    }
}

impl Sum for Picoseconds {
    fn sum<I: Iterator<Item = Self>>(lengths: I) -> Self {
        lengths.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Picoseconds {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 4] =
            [(PICOSECONDS_PER_SECOND, "s"), (1_000_000_000, "ms"), (1_000_000, "µs"), (1_000, "ns")];
        match UNITS.into_iter().find(|(size, _)| self.0 >= *size) {
            Some((size, unit)) => write!(out, "{} {unit}", self.0 as f64 / size as f64),
            None => write!(out, "{} ps", self.0),
        }
    }
}

impl FromStr for Picoseconds {
    type Err = &'static str;

    /// Parses a time such as `90s`; chip files have their own parser.
    fn from_str(text: &str) -> Result<Self, &'static str> {
        let units = [("ns", 1e3), ("us", 1e6), ("ms", 1e9), ("s", 1e12), ("min", 6e13)];
        with_unit(text, &units).map(Self).ok_or("a time above zero such as 90s, 5ms or 2min")
    }
}

/// A number of cycles of a clock that the context determines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cycles(pub u64);

/// Rate of a clock, exact: hertz divided by a whole number.
///
/// The SCC's tiles run at 1,600 MHz divided by 2 to 16; "533 MHz" is a third of it.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    hertz: u64,
    divider: u32,
}

impl Rate {
    /// The fastest allowed rate in hertz: one cycle per picosecond.
    pub const HERTZ_MAX: u64 = PICOSECONDS_PER_SECOND;

    /// The largest divider.
    pub const DIVIDER_MAX: u32 = 1 << 16;

    /// Returns `hertz / divider`; `None` if that is not a rate (a zero) or beyond [`Rate::HERTZ_MAX`] or
    /// [`Rate::DIVIDER_MAX`].
    pub const fn new(hertz: u64, divider: u32) -> Option<Self> {
        if hertz == 0 || hertz > Self::HERTZ_MAX || divider == 0 || divider > Self::DIVIDER_MAX {
            return None;
        }
        Some(Self { hertz, divider })
    }

    /// Returns the hertz before the division.
    pub const fn hertz(self) -> u64 {
        self.hertz
    }

    /// Returns the divider of the hertz.
    pub const fn divider(self) -> u32 {
        self.divider
    }

    /// Returns the rate divided by another divider.
    pub const fn divided_by(self, divider: u32) -> Option<Self> {
        match self.divider.checked_mul(divider) {
            Some(divider) => Self::new(self.hertz, divider),
            None => None,
        }
    }

    /// Returns the rate in megahertz as a floating-point number, for power models and display.
    pub fn megahertz(self) -> f64 {
        self.hertz as f64 / f64::from(self.divider) / 1e6
    }

    /// Returns the length of a cycle, if it is a whole number of picoseconds.
    pub const fn period(self) -> Option<Picoseconds> {
        let length = PICOSECONDS_PER_SECOND * self.divider as u64;
        if length.is_multiple_of(self.hertz) { Some(Picoseconds(length / self.hertz)) } else { None }
    }
}

impl Ord for Rate {
    fn cmp(&self, other: &Self) -> Ordering {
        let cross = |rate: &Self, by: &Self| u128::from(rate.hertz) * u128::from(by.divider);
        cross(self, other).cmp(&cross(other, self))
    }
}

impl PartialOrd for Rate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Rate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Rate {}

impl fmt::Display for Rate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rounded = (self.megahertz() * 100.0).round() / 100.0;
        write!(out, "{rounded} MHz")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_divider_of_the_scc_gives_whole_picoseconds() {
        let source = Rate::new(1_600_000_000, 1).unwrap();
        for divider in 2..=16 {
            let period = source.divided_by(divider).unwrap().period();
            assert_eq!(period, Some(Picoseconds(625 * u64::from(divider))));
        }
    }

    #[test]
    fn a_divided_rate_can_be_divided_again() {
        let half = Rate::new(1_600_000_000, 2).unwrap();
        assert_eq!(half.divided_by(2), Rate::new(400_000_000, 1));
        assert_eq!(half.divided_by(u32::MAX), None);
    }

    #[test]
    fn a_rate_whose_period_is_not_whole_says_so() {
        assert_eq!(Rate::new(850_000_000, 1).unwrap().period(), None);
    }

    #[test]
    fn rates_compare_by_value_and_not_by_how_they_are_written() {
        let half = Rate::new(1_600_000_000, 2).unwrap();
        assert_eq!(half, Rate::new(800_000_000, 1).unwrap());
        assert!(Rate::new(1_600_000_000, 3).unwrap() > Rate::new(533_000_000, 1).unwrap());
    }

    #[test]
    fn zeros_and_giants_are_no_rates() {
        assert!(Rate::new(0, 1).is_none() && Rate::new(1, 0).is_none());
        assert!(Rate::new(Rate::HERTZ_MAX + 1, 1).is_none() && Rate::new(1, Rate::DIVIDER_MAX + 1).is_none());
        assert!(Rate::new(Rate::HERTZ_MAX, Rate::DIVIDER_MAX).is_some());
    }
}
