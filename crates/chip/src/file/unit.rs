//! Parses quantities of chip files: `"105 ns + 5 ns/hop"`, `"1600 MHz / 3"`, `"8 KiB"`.
//!
//! Each function takes a text and returns a typed quantity or a reason. A reason continues the sentence `KEY is VALUE;
//! `; the caller adds key, value and line. Nothing here panics on any text, and nothing rounds silently: a number finer
//! than the stored unit is an error.

use crate::cost::{Amount, Clocks, Cost};
use crate::quantity::{Bytes, Microvolts, Microwatts, PICOSECONDS_PER_SECOND, Rate};

/// Reason why a text is not a quantity of the wanted dimension.
pub type Reason = String;

/// Dimension of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    Time,
    Cycles,
    Size,
    Frequency,
    Voltage,
    Power,
}

/// All units: name, dimension, and size in the smallest unit of the dimension (ps, nanocycle, byte, hertz, µV, µW).
const UNITS: &[(&str, Dimension, u64)] = &[
    ("ps", Dimension::Time, 1),
    ("ns", Dimension::Time, 1_000),
    ("us", Dimension::Time, 1_000_000),
    ("ms", Dimension::Time, 1_000_000_000),
    ("s", Dimension::Time, PICOSECONDS_PER_SECOND),
    ("cycles", Dimension::Cycles, 1_000_000_000),
    ("cycle", Dimension::Cycles, 1_000_000_000),
    ("B", Dimension::Size, 1),
    ("KiB", Dimension::Size, 1 << 10),
    ("MiB", Dimension::Size, 1 << 20),
    ("GiB", Dimension::Size, 1 << 30),
    ("Hz", Dimension::Frequency, 1),
    ("kHz", Dimension::Frequency, 1_000),
    ("MHz", Dimension::Frequency, 1_000_000),
    ("GHz", Dimension::Frequency, 1_000_000_000),
    ("uV", Dimension::Voltage, 1),
    ("mV", Dimension::Voltage, 1_000),
    ("V", Dimension::Voltage, 1_000_000),
    ("uW", Dimension::Power, 1),
    ("mW", Dimension::Power, 1_000),
    ("W", Dimension::Power, 1_000_000),
];

impl Dimension {
    /// Returns the allowed form, with an example.
    pub const fn allowed(self) -> &'static str {
        match self {
            Self::Time => "a time in ps, ns, us, ms or s, such as \"105 ns\"",
            Self::Cycles => "cycles, such as \"45 cycles of core\"",
            Self::Size => "a size in B, KiB, MiB or GiB, such as \"8 KiB\"",
            Self::Frequency => "a frequency in Hz, kHz, MHz or GHz, such as \"1600 MHz / 3\"",
            Self::Voltage => "a voltage in uV, mV or V, such as \"1.1 V\"",
            Self::Power => "a power in uW, mW or W, such as \"23 W\"",
        }
    }

    const fn noun(self) -> &'static str {
        match self {
            Self::Time => "a time",
            Self::Cycles => "a number of cycles",
            Self::Size => "a size",
            Self::Frequency => "a frequency",
            Self::Voltage => "a voltage",
            Self::Power => "a power",
        }
    }
}

/// Allowed form of a cost.
pub(crate) const COST_ALLOWED: &str = "a sum of times (ps, ns, us, ms, s) and cycles of core, mesh or memory, \
     each once or for each hop, such as \"105 ns + 5 ns/hop\" or \"45 cycles of core + 8 cycles/hop of mesh\"";

/// A decimal number without sign, exact: `digits / 10^places`.
#[derive(Clone, Copy)]
struct Decimal {
    digits: u64,
    places: u32,
}

/// Text of the fault for a number below zero.
const NEGATIVE: &str = "it is negative, not zero or more";

impl Decimal {
    /// Returns the number as a whole multiple of a unit.
    fn of(self, unit: u64) -> Result<u64, Reason> {
        let scaled = u128::from(self.digits) * u128::from(unit);
        let divisor = 10_u128.pow(self.places);
        if !scaled.is_multiple_of(divisor) {
            return Err("it is finer than the model keeps".to_owned());
        }
        u64::try_from(scaled / divisor).map_err(|_| "it is too large".to_owned())
    }
}

/// Parses the number at the start of a text; returns it with the rest of the text.
fn number(text: &str) -> Result<(Decimal, &str), Reason> {
    let text = text.trim();
    if text.starts_with('-') {
        return Err(NEGATIVE.to_owned());
    }
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits: String = whole.chars().chain(part.chars()).filter(|c| *c != '_').collect();
    if whole.is_empty() || part.contains('.') || digits.is_empty() {
        return Err("it does not start with a number".to_owned());
    }
    let places = part.chars().filter(|c| *c != '_').count();
    match (digits.parse(), u32::try_from(places)) {
        (Ok(digits), Ok(places)) if places <= 18 => Ok((Decimal { digits, places }, rest.trim())),
        _ => Err("it has too many digits".to_owned()),
    }
}

/// Returns a unit by its name.
fn unit(name: &str) -> Result<(Dimension, u64), Reason> {
    if name.is_empty() {
        return Err("it has no unit".to_owned());
    }
    let found = UNITS.iter().find(|(unit, ..)| *unit == name);
    found.map(|(_, kind, size)| (*kind, *size)).ok_or_else(|| format!("unknown unit {name:?}"))
}

/// Parses a quantity of one dimension, in its smallest unit.
fn quantity(text: &str, wanted: Dimension) -> Result<u64, Reason> {
    let (number, name) = number(text)?;
    let (kind, size) = unit(name)?;
    if kind != wanted {
        return Err(format!("{name} measures {}", kind.noun()));
    }
    number.of(size)
}

/// Appends the allowed form to a reason.
fn allow(reason: Reason, allowed: &str) -> Reason {
    format!("{reason}; allowed: {allowed}")
}

/// Parses a size.
pub fn size(text: &str) -> Result<Bytes, Reason> {
    quantity(text, Dimension::Size).map(Bytes).map_err(|reason| allow(reason, Dimension::Size.allowed()))
}

/// Parses a power.
pub fn power(text: &str) -> Result<Microwatts, Reason> {
    quantity(text, Dimension::Power)
        .map(Microwatts)
        .map_err(|reason| allow(reason, Dimension::Power.allowed()))
}

/// Parses a voltage above zero, at most 4,294 V.
pub fn voltage(text: &str) -> Result<Microvolts, Reason> {
    let small = |volts| match u32::try_from(volts) {
        Ok(0) => Err("it is zero".to_owned()),
        Ok(volts) => Ok(Microvolts(volts)),
        Err(_) => Err("it is too large".to_owned()),
    };
    quantity(text, Dimension::Voltage)
        .and_then(small)
        .map_err(|reason| allow(reason, Dimension::Voltage.allowed()))
}

/// Parses a clock rate: a frequency, possibly divided by a whole number.
pub fn rate(text: &str) -> Result<Rate, Reason> {
    let (frequency, divider) = text.split_once('/').unwrap_or((text, "1"));
    let read = || {
        let hertz = quantity(frequency, Dimension::Frequency)?;
        let divider: u32 =
            divider.trim().parse().map_err(|_| "the divider is not a whole number".to_owned())?;
        Rate::new(hertz, divider).ok_or_else(|| {
            format!("it is zero, above {} Hz, or divided by more than {}", Rate::HERTZ_MAX, Rate::DIVIDER_MAX)
        })
    };
    read().map_err(|reason| allow(reason, Dimension::Frequency.allowed()))
}

/// Parses a cost. A time `of` a clock is converted to cycles of that clock at `clocks`; without `clocks` it is an
/// error.
pub fn cost(text: &str, clocks: Option<&Clocks>) -> Result<Cost, Reason> {
    sum(text, clocks).map_err(|reason| allow(reason, COST_ALLOWED))
}

/// Parses a cost; the reason lacks the allowed form.
fn sum(text: &str, clocks: Option<&Clocks>) -> Result<Cost, Reason> {
    let mut cost = Cost::default();
    for part in text.split('+') {
        term(part, clocks, &mut cost)?;
    }
    Ok(cost)
}

/// Parses a positive number of core cycles, in billionths, without times of other clocks.
pub fn core_cycles(text: &str) -> Result<u64, Reason> {
    let read = || {
        let cost = sum(text, None)?;
        let core_nanocycles = cost.near.core_nanocycles;
        let own = Amount { core_nanocycles, ..Amount::default() };
        match core_nanocycles {
            _ if cost != (Cost { near: own, ..Cost::default() }) => {
                Err("it is more than cycles of core".to_owned())
            }
            0 => Err("it is zero".to_owned()),
            _ => Ok(core_nanocycles),
        }
    };
    read().map_err(|reason| allow(reason, "cycles of core above zero, such as \"1.5 cycles of core\""))
}

/// Parses one term of a sum: `NUMBER UNIT[/hop] [of CLOCK]`.
fn term(text: &str, clocks: Option<&Clocks>, cost: &mut Cost) -> Result<(), Reason> {
    let (number, rest) = number(text)?;
    let (name, clock) = match rest.split_once(" of ") {
        Some((name, clock)) => (name.trim(), Some(clock.trim())),
        None => (rest, None),
    };
    let (name, amount) = match name.strip_suffix("/hop") {
        Some(name) => (name.trim(), &mut cost.hop),
        None => (name, &mut cost.near),
    };
    let (kind, size) = unit(name)?;
    match (kind, clock) {
        (Dimension::Time, None) => add(&mut amount.fixed.0, number.of(size)?),
        (Dimension::Time, Some(clock)) => {
            let (rate, cycles) = of_clock(clock, clocks, amount)?;
            let rate = rate.ok_or("a time in clock cycles is meaningful only inside a preset")?;
            add(cycles, nanocycles(number.of(size)?, rate)?)
        }
        (Dimension::Cycles, Some(clock)) => add(of_clock(clock, clocks, amount)?.1, number.of(size)?),
        (Dimension::Cycles, None) => Err("it does not name the clock of the cycles".to_owned()),
        _ => Err(format!("{name} measures {}", kind.noun())),
    }
}

/// Returns the rate of a clock, if the clocks are known, and the count of its cycles in `amount`.
fn of_clock<'a>(
    name: &str,
    clocks: Option<&Clocks>,
    amount: &'a mut Amount,
) -> Result<(Option<Rate>, &'a mut u64), Reason> {
    match name {
        "core" => Ok((clocks.map(|clocks| clocks.core), &mut amount.core_nanocycles)),
        "mesh" => Ok((clocks.map(|clocks| clocks.mesh), &mut amount.mesh_nanocycles)),
        "memory" => Ok((clocks.map(|clocks| clocks.memory), &mut amount.memory_nanocycles)),
        _ => Err(format!("unknown clock {name:?}")),
    }
}

/// Converts a time to billionths of a cycle, rounded to the nearest.
fn nanocycles(picoseconds: u64, rate: Rate) -> Result<u64, Reason> {
    let divisor = 1_000 * u128::from(rate.divider());
    let scaled = u128::from(picoseconds) * u128::from(rate.hertz());
    u64::try_from((scaled + divisor / 2) / divisor).map_err(|_| "it is too large".to_owned())
}

fn add(sum: &mut u64, more: u64) -> Result<(), Reason> {
    *sum = sum.checked_add(more).ok_or("it is too large")?;
    Ok(())
}

/// Parses a non-negative coefficient with exactly this unit; in floating point, as fits are.
pub fn coefficient(text: &str, unit: &str) -> Result<f64, Reason> {
    let allowed = || format!("a number with the unit {unit}, such as \"1.5e-3 {unit}\"");
    let (number, name) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
    let reason = match number.parse::<f64>() {
        Ok(number) if number < 0.0 => NEGATIVE.to_owned(),
        Ok(number) if !number.is_finite() => "it is not finite".to_owned(),
        Ok(number) if name.trim() == unit => return Ok(number),
        Ok(_) if name.is_empty() => "it has no unit".to_owned(),
        Ok(_) => format!("its unit is {name:?}"),
        Err(_) => "it does not start with a number".to_owned(),
    };
    Err(allow(reason, &allowed()))
}

/// Error of a constant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Band {
    /// Exact by construction of the hardware.
    Exact,
    /// Per cent in both directions.
    Percent(f64),
    /// Deviation in both directions, in the smallest unit of the constant's dimension.
    Absolute(u64),
    /// Smaller or larger by up to this factor.
    Factor(f64),
    /// Unknown error.
    Unknown,
}

/// Allowed forms of an error.
pub(crate) const BAND_ALLOWED: &str =
    "\"exact\", per cent such as \"5 %\", a quantity such as \"5 ns\", \"factor 9\" or \"unknown\"";

/// Parses the error of a constant measured in `kinds`.
pub fn band(text: &str, kinds: &[Dimension]) -> Result<Band, Reason> {
    let text = text.trim();
    let float = |number: &str| match number.trim().parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
        _ => Err(format!("{:?} is not a number of 0 or more", number.trim())),
    };
    let read = || match text {
        "exact" => Ok(Band::Exact),
        "unknown" => Ok(Band::Unknown),
        _ if text.starts_with("factor ") => match float(&text["factor ".len()..])? {
            factor if factor >= 1.0 => Ok(Band::Factor(factor)),
            _ => Err("a factor is at least 1".to_owned()),
        },
        _ => match text.strip_suffix('%') {
            Some(number) => float(number).map(Band::Percent),
            None => {
                let (number, name) = number(text)?;
                let (kind, size) = unit(name)?;
                if !kinds.contains(&kind) {
                    return Err(format!("{name} measures {}, not what the value is", kind.noun()));
                }
                number.of(size).map(Band::Absolute)
            }
        },
    };
    read().map_err(|reason| allow(reason, BAND_ALLOWED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::Picoseconds;

    fn clocks() -> Clocks {
        let rate = |hertz, divider| Rate::new(hertz, divider).unwrap();
        Clocks { core: rate(1_600_000_000, 3), mesh: rate(800_000_000, 1), memory: rate(800_000_000, 1) }
    }

    #[test]
    fn a_cost_is_read_as_the_papers_write_it() {
        let read = cost("105 ns + 5 ns/hop", None).unwrap();
        assert_eq!((read.near.fixed, read.hop.fixed), (Picoseconds(105_000), Picoseconds(5_000)));
        let read = cost("40 cycles of core + 8 cycles/hop of mesh + 46 cycles of memory", None).unwrap();
        assert_eq!(read.near.core_nanocycles, 40_000_000_000);
        assert_eq!(read.hop.mesh_nanocycles, 8_000_000_000);
        assert_eq!(read.near.memory_nanocycles, 46_000_000_000);
    }

    #[test]
    fn a_time_of_a_clock_becomes_its_cycles() {
        let read = cost("105 ns of core", Some(&clocks())).unwrap();
        assert_eq!(read.near.core_nanocycles, 56_000_000_000);
        assert_eq!(
            cost("145 ns of core", Some(&clocks())).unwrap().at(&clocks()).over(0),
            Picoseconds(145_000)
        );
        assert!(cost("105 ns of core", None).unwrap_err().contains("only inside a preset"));
    }

    #[test]
    fn each_thing_that_is_no_cost_says_why() {
        let cases = [
            ("105", "no unit"),
            ("", "does not start with a number"),
            ("-5 ns", "negative"),
            ("105 ns + -5 ns/hop", "negative"),
            ("8 KiB", "KiB measures a size"),
            ("8 parsecs", "unknown unit \"parsecs\""),
            ("45 cycles", "the clock of the cycles"),
            ("45 cycles of moon", "unknown clock \"moon\""),
            ("0.5 ps", "finer"),
            ("99999999999999999999 ns", "too many digits"),
            ("99999999999 s", "too large"),
            ("1.2.3 ns", "does not start with a number"),
        ];
        for (text, part) in cases {
            let reason = cost(text, Some(&clocks())).expect_err(text);
            assert!(reason.contains(part) && reason.contains("; allowed: "), "{text}: {reason}");
        }
    }

    #[test]
    fn rates_are_fractions() {
        assert_eq!(rate("1600 MHz / 3").unwrap(), Rate::new(1_600_000_000, 3).unwrap());
        for text in ["1600 MHz / 0", "1600 MHz / x", "0 MHz", "2 ns", "1600", "9999 GHz"] {
            assert!(rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn errors_have_four_forms_and_the_kind_of_their_value() {
        assert_eq!(band("5 %", &[Dimension::Time]), Ok(Band::Percent(5.0)));
        assert_eq!(band("5 ns", &[Dimension::Time]), Ok(Band::Absolute(5_000)));
        assert_eq!(band("factor 9", &[Dimension::Time]), Ok(Band::Factor(9.0)));
        assert_eq!(band("exact", &[]), Ok(Band::Exact));
        for text in ["5 W", "factor 0.5", "-1 %", "about", "5", "NaN %", "inf %"] {
            assert!(band(text, &[Dimension::Time]).is_err(), "{text}");
        }
    }

    #[test]
    fn a_coefficient_has_the_unit_of_its_formula() {
        assert_eq!(coefficient("2.015e-9 W/MHz^3", "W/MHz^3"), Ok(2.015e-9));
        for text in ["2.015e-9", "2 W", "-1 W/MHz^3", "inf W/MHz^3", "x W/MHz^3"] {
            assert!(coefficient(text, "W/MHz^3").is_err(), "{text}");
        }
    }
}
