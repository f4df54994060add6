//! Lines that Isles itself prints on standard error, in any layer.
//!
//! The macros of the standard library panic if standard error cannot be written, for example because it is a closed
//! pipe, and a panic ends a place. No layer may use them for its own messages; `xtask tidy` checks this. The output of
//! programs does not go through these functions. Invariant: a line that cannot be written has no effect.

use std::fmt::Display;
use std::io::{self, Write};

/// Writes a line to standard error, if that is possible.
pub fn notice(line: impl Display) {
    notice_text(&format!("{line}\n"));
}

/// Writes a text to standard error, if that is possible, in one piece, because other places may write at the same time.
pub fn notice_text(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes()); // there is nobody left to tell
}
