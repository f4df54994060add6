//! Lengths of modelled time, and cycles.
//!
//! It does not know when anything happens, nor what a cycle lasts. Invariant: whole picoseconds, so lengths add up
//! exactly.

use super::text::with_unit;
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

    /// The length in nanoseconds, for people to read.
    pub fn nanoseconds(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// The sum, or the longest length there is.
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

    /// A time that somebody asks for, such as `90s`; times of chip files are read elsewhere.
    fn from_str(text: &str) -> Result<Self, &'static str> {
        let units = [("ns", 1e3), ("us", 1e6), ("ms", 1e9), ("s", 1e12), ("min", 6e13)];
        with_unit(text, &units).map(Self).ok_or("a time above zero such as 90s, 5ms or 2min")
    }
}

/// A count of clock cycles; of which clock, the place where it stands says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cycles(pub u64);
