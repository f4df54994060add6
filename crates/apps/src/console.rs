//! What is told to people: results on standard output, notices on standard error.
//!
//! Exists because `println!` panics where nobody can read. Knows how wide a terminal is. Formats nothing, and knows no
//! files. Invariant: a reader
//! that has gone away is no failure, of the run or of the command; any other failure of standard output is one.

use rustix::fd::AsFd;
use rustix::termios::tcgetwinsize;
use std::fmt::Display;
use std::io::{self, Write};

/// Columns of a terminal that does not say how many it has.
pub const COLUMNS: usize = 80;

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

/// Replaces the line of the terminal at standard error on which the cursor stands; it must fit.
pub fn redraw(line: &str) {
    // Back to the first column, the line, and nothing of the old one behind it.
    let mut out = io::stderr();
    let _ = write!(out, "\r{line}\x1b[K").and_then(|()| out.flush()); // there is nobody left to tell
}

/// How many columns `terminal` has: what `COLUMNS` says, else the terminal itself; none if it is no terminal.
pub fn columns(terminal: impl AsFd) -> Option<usize> {
    let said = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let own = || tcgetwinsize(terminal).ok().map(|size| usize::from(size.ws_col));
    said.or_else(own).filter(|columns| *columns > 0)
}
