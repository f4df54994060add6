//! Quantities with their units: times, clock rates, sizes, voltages, powers.
//!
//! Each quantity is a type of its own, so that units cannot be mixed up. All are integers, because the clock of a
//! modelled chip must not drift. A clock rate is a fraction (`1600 MHz / 3`), because the hardware does not run at 533
//! MHz.
//!
//! This file has sizes, and numbers with units as text. Chip files have a parser of their own (`file::unit`).
//! Invariants: a quantity has one unit everywhere in the code; parsed quantities have a unit and are above zero.

mod power;
mod time;

pub use power::{Attojoules, Microjoules, Microvolts, Microwatts};
pub use time::{Cycles, PICOSECONDS_PER_SECOND, Picoseconds, Rate};

use std::fmt;

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

/// A data rate, in bytes per second.
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

/// Formats a number with about four digits and a prefix of its unit.
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

/// Parses a number above zero followed by one of some units, with or without blanks in between.
fn with_unit(text: &str, units: &[(&str, f64)]) -> Option<u64> {
    let start = text.find(|character: char| character.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(start);
    let (_, size) = units.iter().find(|(name, _)| *name == unit)?;
    let plain = |character: char| character.is_ascii_digit() || character == '.';
    let number = number.trim();
    let number: f64 = number.parse().ok().filter(|_| number.chars().all(plain))?;
    let scaled = (number * size).round();
    (scaled >= 1.0 && scaled < u64::MAX as f64).then_some(scaled as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn numbers_have_the_prefix_that_fits() {
        assert_eq!(scaled(123.45, "J"), "123.5 J");
        assert_eq!(scaled(0.01234, "J"), "12.34 mJ");
        assert_eq!(scaled(0.001, "J"), "1.000 mJ");
        assert_eq!(scaled(2.5e-13, "J s"), "0.250 pJ s");
        assert_eq!(scaled(0.0, "J"), "0 J");
    }
}
