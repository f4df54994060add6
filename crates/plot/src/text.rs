//! Measurement and formatting of text: estimated widths, numbers, units and their prefixes.
//!
//! The fonts of the reader are not known, so widths are estimates, taken from DejaVu Sans, which is wider than most
//! others: what fits by the estimate fits in the picture. Invariant: every cut text ends with an ellipsis.

/// The ellipsis of a cut text.
const ELLIPSIS: char = '…';

/// Width of a character as a share of the size of its font, by DejaVu Sans.
fn share(character: char) -> f64 {
    match character {
        'i' | 'j' | 'l' | 'I' | '|' | '\'' | '.' | ',' | ' ' | ':' | ';' | '·' => 0.34,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '-' | '/' | '!' => 0.41,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '×' | '=' | '+' | '±' | '<' | '>' => 0.92,
        '⁰'..='⁹' | '⁻' | '¹' | '²' | '³' => 0.42,
        'A'..='Z' => 0.74,
        '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{ffdc}' | '\u{1f000}'.. => 1.1,
        _ => 0.64,
    }
}

/// Estimated width of a text in a font of that size.
pub fn width(text: &str, size: f64) -> f64 {
    text.chars().map(share).sum::<f64>() * size
}

/// The text, or its beginning with an ellipsis if it is wider than `room`.
pub fn fit(text: &str, size: f64, room: f64) -> String {
    if width(text, size) <= room {
        return text.to_owned();
    }
    let mut used = share(ELLIPSIS) * size;
    let mut kept = String::new();
    for character in text.chars() {
        used += share(character) * size;
        if used > room {
            break;
        }
        kept.push(character);
    }
    kept.truncate(kept.trim_end().len());
    kept + "…"
}

/// The text in lines of at most that width, broken between words; the last line is cut if there would be more than
/// `lines_max`.
pub fn wrap(text: &str, size: f64, room: f64, lines_max: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line, size) + width(" ", size) + width(word, size) <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    if lines.len() > lines_max {
        let rest = lines.split_off(lines_max.saturating_sub(1)).join(" ");
        lines.push(rest);
    }
    lines.iter().map(|line| fit(line, size, room)).collect()
}

/// Returns a number with at most `significant` significant digits: grouped by commas from 10,000 on, with a power of
/// ten from 10⁷ on and below 0.0001.
pub fn number(value: f64, significant: usize) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let scientific = format!("{value:.*e}", significant.saturating_sub(1));
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..7).contains(&exponent) {
        let decimals = (significant as i32 - 1 - exponent).max(0) as usize;
        let rounded: f64 = scientific.parse().unwrap_or(value);
        return grouped(&trimmed(&format!("{rounded:.decimals$}")));
    }
    let (mantissa, power) = (trimmed(mantissa), superscript(exponent));
    match mantissa.as_str() {
        "1" => format!("10{power}"),
        "-1" => format!("-10{power}"),
        _ => format!("{mantissa}×10{power}"),
    }
}

/// Returns a decimal number without trailing zeros.
fn trimmed(text: &str) -> String {
    if !text.contains('.') {
        return text.to_owned();
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A decimal number with commas between thousands, if it has five digits or more before the point.
fn grouped(text: &str) -> String {
    let (sign, rest) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (whole, fraction) = rest.split_once('.').map_or((rest, ""), |(whole, fraction)| (whole, fraction));
    let mut shown = String::from(sign);
    for (place, digit) in whole.chars().enumerate() {
        let left = whole.len() - place;
        if place > 0 && left % 3 == 0 && whole.len() > 4 {
            shown.push(',');
        }
        shown.push(digit);
    }
    if fraction.is_empty() { shown } else { format!("{shown}.{fraction}") }
}

fn superscript(exponent: i32) -> String {
    let raised = |digit: char| match digit {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        digit => digit.to_digit(10).and_then(|digit| char::from_u32(0x2070 + digit)).unwrap_or(digit),
    };
    exponent.to_string().chars().map(raised).collect()
}

/// A unit of measurement, and how its values are shown.
#[derive(Clone, Debug, PartialEq)]
pub enum DisplayUnit {
    /// One that takes prefixes; a value times `factor` is in `base`.
    Prefixed { factor: f64, base: &'static str },
    /// Bytes, which are shown in KiB and MiB; a value times `factor` is in bytes.
    Bytes { factor: f64 },
    /// Any other, or none.
    Plain(String),
}

/// The units that take prefixes.
const BASES: [&str; 7] = ["flop/s", "B/s", "J s", "Hz", "J", "W", "s"];

/// The prefixes, with their factors.
const PREFIXES: [(&str, f64); 9] = [
    ("p", 1e-12),
    ("n", 1e-9),
    ("µ", 1e-6),
    ("m", 1e-3),
    ("", 1.0),
    ("k", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("T", 1e12),
];

const BINARY: [(&str, f64); 5] = [
    ("B", 1.0),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
];

impl DisplayUnit {
    /// Parses a unit in a common spelling: `µs`, `MB/s`, `KiB`.
    pub fn of(text: &str) -> DisplayUnit {
        if let Some((_, factor)) = BINARY.iter().find(|(name, _)| *name == text) {
            return DisplayUnit::Bytes { factor: *factor };
        }
        let known = BASES.into_iter().find_map(|base| {
            let prefix = text.strip_suffix(base)?;
            // The ASCII spelling.
            let prefix = if prefix == "u" { "µ" } else { prefix };
            let (_, factor) = PREFIXES.iter().find(|(name, _)| *name == prefix)?;
            Some(DisplayUnit::Prefixed { factor: *factor, base })
        });
        known.unwrap_or_else(|| DisplayUnit::Plain(text.to_owned()))
    }

    /// Returns a value with its unit and a suitable prefix.
    pub fn show(&self, value: f64, significant: usize) -> String {
        match self {
            DisplayUnit::Plain(unit) => {
                format!("{} {unit}", number(value, significant)).trim_end().to_owned()
            }
            DisplayUnit::Prefixed { factor, base } => {
                let (prefix, scale) = prefix_for(value * factor);
                format!("{} {prefix}{base}", number(value * factor / scale, significant))
            }
            DisplayUnit::Bytes { factor } => {
                let bytes = value * factor;
                let fits = |(_, scale): &&(&str, f64)| bytes.abs() >= *scale;
                let (name, scale) = BINARY.iter().rev().find(fits).unwrap_or(&BINARY[0]);
                format!("{} {name}", number(bytes / scale, significant))
            }
        }
    }
}

/// The prefix that leaves one to three digits before the point, and its factor.
pub fn prefix_for(value: f64) -> (&'static str, f64) {
    // A value a thousandth short of a prefix takes it: 999.9 ms are shown as 1 s.
    let fits = |(_, factor): &&(&str, f64)| value.abs() >= *factor * 0.999_5;
    let found = PREFIXES.iter().rev().find(fits);
    let (name, factor) = match found {
        Some(found) => *found,
        None if value == 0.0 => ("", 1.0),
        None => PREFIXES[0],
    };
    (name, factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_exact_enough() {
        let shown = [0.0, 1.0, 0.1 + 0.2, -2.5, 9999.0, 10_000.0, 1_234_567.0, 1e7, 2.5e-5, -1e-9];
        let expected = ["0", "1", "0.3", "-2.5", "9999", "10,000", "1,235,000", "10⁷", "2.5×10⁻⁵", "-10⁻⁹"];
        assert_eq!(shown.map(|value| number(value, 4)), expected);
        assert_eq!(number(1.000_01, 6), "1.00001");
    }

    #[test]
    fn a_value_takes_the_prefix_that_suits_it() {
        let shown = |unit: &str, value| DisplayUnit::of(unit).show(value, 3);
        assert_eq!(shown("µs", 2.7), "2.7 µs");
        assert_eq!(shown("µs", 184_164.0), "184 ms");
        assert_eq!(shown("us", 2.7), "2.7 µs");
        assert_eq!(shown("s", 0.999_9), "1 s");
        assert_eq!(shown("MB/s", 2702.0), "2.7 GB/s");
        assert_eq!(shown("B", 262_144.0), "256 KiB");
        assert_eq!(shown("places", 48.0), "48 places");
        assert_eq!(shown("", 1.5), "1.5");
        assert_eq!(shown("ps", 0.0), "0 s");
    }

    #[test]
    fn text_is_cut_with_a_sign_and_broken_between_words() {
        assert_eq!(fit("short", 12.0, 100.0), "short");
        let cut = fit("a text that is much too long", 12.0, 80.0);
        assert!(cut.ends_with('…') && width(&cut, 12.0) <= 80.0, "{cut}");
        let lines = wrap("one two three four five six seven", 12.0, 70.0, 2);
        assert_eq!(lines.len(), 2);
        assert!(lines[1].ends_with('…') && lines.iter().all(|line| width(line, 12.0) <= 70.0), "{lines:?}");
        assert!(wrap("", 12.0, 70.0, 2).is_empty());
    }
}
