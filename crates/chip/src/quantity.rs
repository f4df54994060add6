//! Quantities with their units: times, clock rates, sizes, voltages, powers.
//!
//! A number without its unit is the oldest fault of a machine model, so each quantity here is a type of its own
//! and can be mixed up with no other. All are integers: the clock of a modelled chip must not drift. A clock rate
//! is a fraction (`1600 MHz / 3`), because 533 MHz is not what the hardware runs at.
//!
//! It does not parse units (`file::unit`) and does not know what the quantities are for.

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

/// A count of clock cycles; of which clock, the place where it stands says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cycles(pub u64);

/// A size in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        match UNITS.into_iter().find(|(size, _)| self.0 >= *size && self.0.is_multiple_of(*size)) {
            Some((size, unit)) => write!(out, "{} {unit}", self.0 / size),
            None => write!(out, "{} B", self.0),
        }
    }
}

/// A data rate, in bytes a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BytesPerSecond(pub u64);

impl fmt::Display for BytesPerSecond {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 2] = [(1_000_000_000, "GB/s"), (1_000_000, "MB/s")];
        match UNITS.into_iter().find(|(size, _)| self.0 >= *size) {
            Some((size, unit)) => write!(out, "{} {unit}", self.0 as f64 / size as f64),
            None => write!(out, "{} B/s", self.0),
        }
    }
}

/// A supply voltage, in microvolts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Microvolts(pub u32);

impl Microvolts {
    /// The voltage in volts.
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
    /// The power in watts.
    pub fn watts(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

/// Reads a number above zero with one of some units behind it, blanks between them or not.
fn with_unit(text: &str, units: &[(&str, f64)]) -> Option<u64> {
    let start = text.find(|letter: char| letter.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(start);
    let (_, size) = units.iter().find(|(name, _)| *name == unit)?;
    let plain = |letter: char| letter.is_ascii_digit() || letter == '.';
    let number = number.trim();
    let number: f64 = number.parse().ok().filter(|_| number.chars().all(plain))?;
    let scaled = (number * size).round();
    (scaled >= 1.0 && scaled < u64::MAX as f64).then_some(scaled as u64)
}

impl FromStr for Microwatts {
    type Err = &'static str;

    /// A power that somebody asks for, such as `60W`; powers of chip files are read elsewhere.
    fn from_str(text: &str) -> Result<Self, &'static str> {
        let units = [("uW", 1.0), ("mW", 1e3), ("W", 1e6), ("kW", 1e9)];
        with_unit(text, &units).map(Self).ok_or("a power above zero such as 60W, 500mW or 1.5kW")
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

impl Microwatts {
    /// The energy of this power over a time.
    pub const fn over(self, time: Picoseconds) -> Attojoules {
        Attojoules(self.0 as u128 * time.0 as u128)
    }
}

/// An energy, in attojoules: microwatts times picoseconds, exact. A megawatt over a year is 2^105 of them, so no
/// sum of a run reaches the end of 128 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attojoules(pub u128);

impl Attojoules {
    /// No energy.
    pub const ZERO: Self = Self(0);

    /// The energy in joules, for people to read.
    pub fn joules(self) -> f64 {
        self.0 as f64 / 1e18
    }

    /// The constant power that gives this energy over a time, cut to a microwatt; none over no time.
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

/// The rate of a clock, exact: so many hertz, divided by a whole number.
///
/// The SCC's tiles run at 1,600 MHz divided by 2 to 16; "533 MHz" is a third of it.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    hertz: u64,
    divider: u32,
}

impl Rate {
    /// The fastest rate that there may be, in hertz: one cycle a picosecond.
    pub const HERTZ_MAX: u64 = PICOSECONDS_PER_SECOND;

    /// The largest divider.
    pub const DIVIDER_MAX: u32 = 1 << 16;

    /// `hertz / divider`; nothing if that is no rate (a zero) or beyond [`Rate::HERTZ_MAX`] or
    /// [`Rate::DIVIDER_MAX`].
    pub const fn new(hertz: u64, divider: u32) -> Option<Self> {
        if hertz == 0 || hertz > Self::HERTZ_MAX || divider == 0 || divider > Self::DIVIDER_MAX {
            return None;
        }
        Some(Self { hertz, divider })
    }

    /// The hertz before they are divided.
    pub const fn hertz(self) -> u64 {
        self.hertz
    }

    /// What the hertz are divided by.
    pub const fn divider(self) -> u32 {
        self.divider
    }

    /// The rate divided once more.
    pub const fn divided_by(self, divider: u32) -> Option<Self> {
        match self.divider.checked_mul(divider) {
            Some(divider) => Self::new(self.hertz, divider),
            None => None,
        }
    }

    /// The rate in megahertz, rounded as floating point does: for power models and for people.
    pub fn megahertz(self) -> f64 {
        self.hertz as f64 / f64::from(self.divider) / 1e6
    }

    /// The length of a cycle, if it is a whole number of picoseconds.
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

/// A number with four digits or so and a prefix of its unit; for people.
pub fn scaled(number: f64, unit: &str) -> String {
    if number == 0.0 {
        return format!("0 {unit}");
    }
    const PREFIXES: [(f64, &str); 5] = [(1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"), (1e-12, "p")];
    let (size, prefix) =
        PREFIXES.into_iter().find(|(size, _)| number >= *size).unwrap_or(PREFIXES[PREFIXES.len() - 1]);
    let number = number / size;
    let digits = if number >= 100.0 {
        1
    } else if number >= 10.0 {
        2
    } else {
        3
    };
    format!("{number:.digits$} {prefix}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_prefix_that_fits() {
        assert_eq!(scaled(123.45, "J"), "123.5 J");
        assert_eq!(scaled(0.01234, "J"), "12.34 mJ");
        assert_eq!(scaled(0.001, "J"), "1.000 mJ");
        assert_eq!(scaled(2.5e-13, "J s"), "0.250 pJ s");
        assert_eq!(scaled(0.0, "J"), "0 J");
    }

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

    #[test]
    fn powers_and_times_that_somebody_asks_for_have_units() {
        assert_eq!("60W".parse(), Ok(Microwatts(60_000_000)));
        assert_eq!(("0.5 kW".parse(), "1uW".parse()), (Ok(Microwatts(500_000_000)), Ok(Microwatts(1))));
        assert_eq!("90s".parse(), Ok(Picoseconds(90_000_000_000_000)));
        assert_eq!(
            ("1.5 ms".parse(), "2min".parse()),
            (Ok(Picoseconds(1_500_000_000)), Ok(Picoseconds(120_000_000_000_000)))
        );
        for bad in
            ["", "60", "W", "0W", "-1W", "1e3W", "60w", "60 V", "NaNW", "infW", "60W x", "1e30kW", "0.1uW"]
        {
            assert!(bad.parse::<Microwatts>().is_err(), "{bad}");
        }
        for bad in ["", "90", "s", "0s", "-1s", "90 sec", "90S", "99999999999999min", "1h"] {
            assert!(bad.parse::<Picoseconds>().is_err(), "{bad}");
        }
    }

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

    #[test]
    fn quantities_are_written_in_the_unit_that_fits() {
        assert_eq!(Picoseconds(105_000).to_string(), "105 ns");
        assert_eq!(Picoseconds(16_500_000_000).to_string(), "16.5 ms");
        assert_eq!(Picoseconds(625).to_string(), "625 ps");
        assert_eq!(Picoseconds(256_000_000).to_string(), "256 µs", "as of joules, whose prefix is µ");
        assert_eq!(Bytes(8192).to_string(), "8 KiB");
        assert_eq!(BytesPerSecond(425_000_000).to_string(), "425 MB/s");
        assert_eq!(Microvolts(856_250).to_string(), "0.85625 V");
        assert_eq!(Rate::new(1_600_000_000, 3).unwrap().to_string(), "533.33 MHz");
    }
}
