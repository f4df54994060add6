//! Numbers with units, as people write and read them.
//!
//! Chip files have a reader of their own (`file::unit`). Invariant: what is read has a unit and is above zero.

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

/// Reads a number above zero with one of some units behind it, blanks between them or not.
pub(super) fn with_unit(text: &str, units: &[(&str, f64)]) -> Option<u64> {
    let start = text.find(|letter: char| letter.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(start);
    let (_, size) = units.iter().find(|(name, _)| *name == unit)?;
    let plain = |letter: char| letter.is_ascii_digit() || letter == '.';
    let number = number.trim();
    let number: f64 = number.parse().ok().filter(|_| number.chars().all(plain))?;
    let scaled = (number * size).round();
    (scaled >= 1.0 && scaled < u64::MAX as f64).then_some(scaled as u64)
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
}
