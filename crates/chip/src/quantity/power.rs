//! Voltages, powers and energies.
//!
//! Invariant: energies are exact, so a sum does not depend on its order.

use super::time::Picoseconds;
use super::with_unit;
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};
use std::str::FromStr;

/// A supply voltage, in microvolts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Microvolts(pub u32);

impl Microvolts {
    /// Returns the voltage in volts.
    pub fn volts(self) -> f64 {
        f64::from(self.0) / 1e6
    }
}

impl fmt::Display for Microvolts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} V", self.volts())
    }
}

/// A power, in microwatts. Over picoseconds it gives energies that add up exactly, in any order, in a `u128`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Microwatts(pub u64);

impl Microwatts {
    /// Returns the power in watts.
    pub fn watts(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Returns the energy of this power over a time.
    pub const fn over(self, time: Picoseconds) -> Attojoules {
        Attojoules(self.0 as u128 * time.0 as u128)
    }
}

impl Add for Microwatts {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sum for Microwatts {
    fn sum<I: Iterator<Item = Self>>(powers: I) -> Self {
        powers.fold(Self::default(), Add::add)
    }
}

impl fmt::Display for Microwatts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} W", self.watts())
    }
}

impl FromStr for Microwatts {
    type Err = &'static str;

    /// Parses a power such as `60W`; chip files have their own parser.
    fn from_str(text: &str) -> Result<Self, &'static str> {
        let units = [("uW", 1.0), ("mW", 1e3), ("W", 1e6), ("kW", 1e9)];
        with_unit(text, &units).map(Self).ok_or("a power above zero such as 60W, 500mW or 1.5kW")
    }
}

/// The energy of a battery, in microjoules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Microjoules(pub u64);

impl Microjoules {
    /// Returns the energy in joules.
    pub fn joules(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl FromStr for Microjoules {
    type Err = &'static str;

    /// Parses an energy such as `200J` or `1800Wh`.
    fn from_str(text: &str) -> Result<Self, &'static str> {
        let units = [("mJ", 1e3), ("J", 1e6), ("kJ", 1e9), ("Wh", 3.6e9), ("kWh", 3.6e12)];
        with_unit(text, &units).map(Self).ok_or("an energy above zero such as 200J, 5kJ or 1800Wh")
    }
}

/// An energy, in attojoules: microwatts times picoseconds, exact. A megawatt over a year is 2^105 of them, so no sum of
/// a run overflows 128 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attojoules(pub u128);

impl Attojoules {
    /// No energy.
    pub const ZERO: Self = Self(0);

    /// Returns the energy in joules, for display.
    pub fn joules(self) -> f64 {
        self.0 as f64 / 1e18
    }

    /// Returns the mean power of this energy over a time, rounded down to a microwatt; 0 if the time is 0.
    pub const fn mean_over(self, time: Picoseconds) -> Microwatts {
        Microwatts(if time.0 == 0 { 0 } else { (self.0 / time.0 as u128) as u64 })
    }
}

impl Add for Attojoules {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Attojoules {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Attojoules {
    fn sum<I: Iterator<Item = Self>>(energies: I) -> Self {
        energies.fold(Self::ZERO, Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::PICOSECONDS_PER_SECOND;

    #[test]
    fn energies_add_up_exactly_in_any_order() {
        let pieces = [(109_345_678, 7), (1, 999_999_999_999), (30_400_000, 1)];
        let energy = |(power, time)| Microwatts(power).over(Picoseconds(time));
        let forth: Attojoules = pieces.into_iter().map(energy).sum();
        let back: Attojoules = pieces.into_iter().rev().map(energy).sum();
        assert_eq!(forth, back);
        assert_eq!(forth, Attojoules(109_345_678 * 7 + 999_999_999_999 + 30_400_000));
        let second = Picoseconds(PICOSECONDS_PER_SECOND);
        assert_eq!(Microwatts(48_500_000).over(second).joules(), 48.5);
        assert_eq!(Microwatts(48_500_000).over(second).mean_over(second), Microwatts(48_500_000));
        assert_eq!(Attojoules(5).mean_over(Picoseconds::ZERO), Microwatts(0));
    }
}
