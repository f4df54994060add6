//! Chip files: TOML text to a checked [`Chip`], or every fault with its line.
//!
//! [`Chip::parse`] is pure: no file, no environment, no panic on any text. All faults are reported in one pass, because
//! ten are fixed at once as easily as one; only invalid TOML stops the reading.
//!
//! `unit` reads quantities, `section` keys with source and error, `decode` the parts of a chip, `library` finds files.
//! `change` overrides constants of a file.

mod change;
mod decode;
mod library;
mod power;
mod preset;
mod section;
#[cfg(test)]
mod tests;
mod unit;

pub use change::ChangeError;
pub use library::{BUILT_IN, FindError, is_path};
pub use unit::Band;

use crate::chip::{Chip, digest};
use section::{Findings, Section};
use std::fmt;
use std::ops::Range;
use toml::de::DeTable;

/// Maximum size of a chip file in bytes: a hundred times what any chip needs.
pub const TEXT_BYTES_MAX: usize = 1 << 20;

/// A fault of a chip file, displayed as one line: `FILE:LINE: fault; allowed: values`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The name of the file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// Description of the fault and of the allowed values, without a line break.
    pub text: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, text } = self;
        write!(out, "{file}:{line}: ")?;
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).try_for_each(|c| write!(out, "{c}"))
    }
}

impl std::error::Error for Fault {}

/// A constant of a chip as written in its file.
#[derive(Clone, Debug, PartialEq)]
pub struct Constant {
    /// Its full name in the file.
    pub path: String,
    /// Its value, with the unit.
    pub value: String,
    /// Its error, as written.
    pub error: String,
    /// Its error, as parsed.
    pub band: Band,
    /// The short name of its source.
    pub source: String,
    /// Note on the constant, if any.
    pub note: Option<String>,
    /// The line of the file.
    pub line: usize,
    /// Range of the value in the text of the file.
    pub(crate) at: Range<usize>,
}

impl Chip {
    /// Parses a chip file. `name` is the file in faults, and (without folders and `.toml`) the name of the chip.
    ///
    /// # Errors
    /// All faults of the text, in the order of their lines; at least one.
    pub fn parse(name: &str, text: &str) -> Result<Self, Vec<Fault>> {
        let mut findings = Findings::new(name, text);
        if text.len() > TEXT_BYTES_MAX {
            findings
                .fault(0, format!("the file has {} bytes; allowed: at most {TEXT_BYTES_MAX}", text.len()));
            return Err(findings.into_faults());
        }
        let (table, errors) = DeTable::parse_recoverable(text);
        // Later errors mostly result from the first one.
        if let Some(error) = errors.first() {
            let at = error.span().map_or(0, |span| span.start);
            findings.fault(at, format!("this is not TOML: {}", error.message()));
        }
        let chip = if errors.is_empty() {
            decode::chip(name, Section::root(table.get_ref()), &mut findings)
        } else {
            None
        };
        match chip {
            Some(chip) if findings.is_clean() => Ok(Self {
                constants: std::mem::take(&mut findings.constants),
                sources: std::mem::take(&mut findings.sources),
                fingerprint: digest(DIGEST_START, text),
                text: text.into(),
                ..chip
            }),
            _ => Err(findings.into_faults()),
        }
    }
}

/// Offset basis of the 128-bit FNV-1a.
const DIGEST_START: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
