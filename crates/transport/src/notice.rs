//! Lines that Isles itself says on standard error, whichever layer says them.
//!
//! The macros of the standard library panic where standard error cannot be written to, for example because it is a pipe
//! that nobody reads any more, and a panic ends a place. So no layer uses them for what it says itself; `xtask tidy`
//! looks. What a program prints does not go this way. Invariant: a line that cannot be written changes nothing.

use std::fmt::Display;
use std::io::{self, Write};

/// Writes a line to standard error, where it can be.
pub fn notice(line: impl Display) {
    notice_text(&format!("{line}\n"));
}

/// Writes a text to standard error, where it can be, in one piece: other places may write there at the same time.
pub fn notice_text(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes()); // there is nobody left to tell
}
