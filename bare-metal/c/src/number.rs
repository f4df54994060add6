//! Floating-point formatting as in C's `printf`: conversions f, e and g, exact to the last digit.

use core::fmt::{self, Write};

/// Text that is truncated at the end of its memory.
struct Text<'a> {
    bytes: &'a mut [u8],
    used: usize,
}

impl Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.len() - self.used;
        let count = text.len().min(room);
        self.bytes[self.used..self.used + count].copy_from_slice(&text.as_bytes()[..count]);
        self.used += count;
        Ok(())
    }
}

/// Longest text of a mantissa and exponent: a sign, 17 digits, and more if requested.
const SCIENTIFIC: usize = 160;

/// Writes `value` to `into` and returns the number of bytes. `conversion` is f, e or g, or its capital letter.
///
/// With `is_alternate` there is always a point, and conversion g keeps trailing zeros.
pub fn format(value: f64, conversion: u8, precision: usize, is_alternate: bool, into: &mut [u8]) -> usize {
    let mut text = Text { bytes: into, used: 0 };
    let precision = precision.min(120);
    let bits = value.to_bits();
    if bits >> 52 & 0x7ff == 0x7ff {
        let name = if bits << 12 != 0 { "nan" } else { "inf" };
        let sign = if bits >> 63 == 1 { "-" } else { "" };
        let _ = write!(text, "{sign}{name}"); // `write_str` above never fails
    } else {
        match conversion.to_ascii_lowercase() {
            b'f' => fixed(&mut text, value, precision, is_alternate),
            b'e' => scientific(&mut text, value, precision, is_alternate, false),
            _ => general(&mut text, value, precision.max(1), is_alternate),
        }
    }
    let used = text.used;
    if conversion.is_ascii_uppercase() {
        into[..used].make_ascii_uppercase();
    }
    used
}

fn fixed(text: &mut Text<'_>, value: f64, precision: usize, is_alternate: bool) {
    let point = if is_alternate && precision == 0 { "." } else { "" };
    let _ = write!(text, "{value:.precision$}{point}"); // as above
}

/// Returns the digits of `value`, rounded to `precision` digits after the first, and the exponent.
fn mantissa(value: f64, precision: usize, into: &mut [u8; SCIENTIFIC]) -> (&str, i32) {
    let mut text = Text { bytes: into, used: 0 };
    let _ = write!(text, "{value:.precision$e}"); // as above
    let used = text.used;
    let text = core::str::from_utf8(&into[..used]).unwrap_or_default();
    let (digits, exponent) = text.split_once('e').unwrap_or((text, "0"));
    (digits, exponent.parse().unwrap_or(0))
}

/// Writes the scientific form; `cuts_zeros` removes trailing zeros.
fn scientific(text: &mut Text<'_>, value: f64, precision: usize, is_alternate: bool, cuts_zeros: bool) {
    let mut memory = [0; SCIENTIFIC];
    let (digits, exponent) = mantissa(value, precision, &mut memory);
    let digits = if cuts_zeros { without_zeros(digits) } else { digits };
    let point = if is_alternate && precision == 0 { "." } else { "" };
    let sign = if exponent < 0 { '-' } else { '+' };
    let _ = write!(text, "{digits}{point}e{sign}{:02}", exponent.unsigned_abs()); // as above
}

fn general(text: &mut Text<'_>, value: f64, precision: usize, is_alternate: bool) {
    let (_, exponent) = mantissa(value, precision - 1, &mut [0; SCIENTIFIC]);
    if exponent < -4 || exponent >= precision as i32 {
        return scientific(text, value, precision - 1, is_alternate, !is_alternate);
    }
    let mut memory = [0; 2 * SCIENTIFIC];
    let mut whole = Text { bytes: &mut memory, used: 0 };
    fixed(&mut whole, value, (precision as i32 - 1 - exponent) as usize, is_alternate);
    let used = whole.used;
    let digits = core::str::from_utf8(&memory[..used]).unwrap_or_default();
    let _ = text.write_str(if is_alternate { digits } else { without_zeros(digits) }); // as above
}

fn without_zeros(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}
