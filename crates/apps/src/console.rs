//! What is told to people: results on standard output, notices on standard error.
//!
//! Exists because `println!` panics where nobody can read. Formats nothing, and knows no files. Invariant: a reader
//! that has gone away is no failure, of the run or of the command; any other failure of standard output is one.

use std::fmt::Display;
use std::io::{self, Write};

/// Writes `text` to standard output, to the last byte.
///
/// # Errors
/// What the system says, for example that a device is full; not that the reader of a pipe has gone away.
pub fn print(text: impl Display) -> io::Result<()> {
    write_to_stdout(|out| write!(out, "{text}"))
}

/// Lets `content` write to standard output; errors as those of [`print()`].
///
/// # Errors
/// What `content` gives, but for a closed pipe.
pub fn write_to_stdout(content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    isles::write_to_standard(content)
}

/// Writes a line to standard error, where it can be.
pub fn notice(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}"); // there is nobody left to tell
}
