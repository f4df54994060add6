//! Chip files: TOML text to a checked [`Chip`], or every fault with its line.
//!
//! [`Chip::parse`] is pure: no file, no environment, no panic on any text. Faults are found in one pass, because a
//! person who writes a chip mends ten at once as easily as one; only what is no TOML at all stops the reading.
//!
//! `unit` reads quantities, `section` keys with source and error, `decode` the parts of a chip, `library` finds files.
//! `change` puts other constants in the place of those of a file.

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

/// The longest text that is read, in bytes: a hundred times what any chip needs.
pub const TEXT_BYTES_MAX: usize = 1 << 20;

/// One fault of a chip file, as one line: `FILE:LINE: what, and what is allowed`.
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

/// A constant of a chip as it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Constant {
    /// Its full name in the file.
    pub path: String,
    /// Its value, with the unit.
    pub value: String,
    /// Its error, as written.
    pub error: String,
    /// Its error, as read.
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
    /// Reads a chip file. `name` stands for the file in faults, and names the chip (without folders and `.toml`).
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
        // What follows the first one mostly follows from it.
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

/// Offset basis of FNV-1a with 128 bits.
const DIGEST_START: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
