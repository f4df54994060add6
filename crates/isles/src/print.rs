//! Text for people: the lines that Isles prints itself, and the printing macros of programs.
//!
//! Isles, its applications and its commands print notices on standard error, and texts with a headline, through this
//! module only, so that all are coloured alike. Layers below the façade use `isles_transport::notice`, as this module
//! does. Files, JSON and CSV do not go this way.
//!
//! `print!` and its relatives have the names of the standard library. A prelude cannot offer them, because a `println`
//! from a glob import is ambiguous with the standard one; a program imports them by name. Invariants: a notice that
//! cannot be written changes nothing about a run; the macros print the same text to the same stream as those of the
//! standard library.

use crate::output::write_to_standard;
use crate::settings::color;
use isles_transport::notice_text;
use std::fmt::Display;
use std::io;

/// One of the two standard streams for output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StandardStream {
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

/// Writes a line to standard error; a failure is ignored. An error begins with `error: `, a warning with `warning: `.
pub fn notice(line: impl Display) {
    let line = format!("{line}\n");
    let is_coloured = color::is_wanted(StandardStream::Error);
    notice_text(&if is_coloured { color::mark_word(&line) } else { line });
}

/// Writes a text whose first line is a headline, and flushes the stream.
///
/// # Errors
/// Standard output reports an error, for example a full device; errors of standard error are ignored.
pub fn print_text(stream: StandardStream, text: &str) -> io::Result<()> {
    let marked = color::is_wanted(stream).then(|| color::mark_head(text));
    let text = marked.as_deref().unwrap_or(text);
    match stream {
        StandardStream::Output => write_to_standard(|out| out.write_all(text.as_bytes())),
        StandardStream::Error => {
            notice_text(text);
            Ok(())
        }
    }
}

/// Prints to standard output, as [`std::print!`], and shows the text to observers of the run, at the place that printed
/// it.
///
/// ```
/// use isles::print;
///
/// print!("a line of place {}\n", 3);
/// ```
///
/// # Panics
/// If standard output cannot be written to.
#[macro_export]
macro_rules! print {
    ($($text:tt)*) => {
        $crate::__private::print($crate::__private::format_args!($($text)*))
    };
}

/// Prints a line to standard output, as [`std::println!`], and shows it to observers of the run, at the place that
/// printed it.
///
/// Importing it by name covers each `println!` of a file:
///
/// ```
/// use isles::prelude::*;
/// use isles::println;
///
/// # #[isles::main]
/// # async fn main() -> isles::Result<()> {
/// finish(async {
///     for place in places() {
///         spawn_at!(place, println!("hello from {}", here()));
///     }
/// })
/// .await
/// # }
/// ```
///
/// Text printed in other ways, for example by libraries, or by a thread that is not a place, is printed but not shown.
///
/// # Panics
/// If standard output cannot be written to.
#[macro_export]
macro_rules! println {
    () => {
        $crate::print!("\n")
    };
    ($($text:tt)*) => {
        $crate::print!("{}\n", $crate::__private::format_args!($($text)*))
    };
}

/// Prints to standard error, as [`std::eprint!`], and shows the text to observers of the run, at the place that printed
/// it.
///
/// # Panics
/// If standard error cannot be written to.
#[macro_export]
macro_rules! eprint {
    ($($text:tt)*) => {
        $crate::__private::eprint($crate::__private::format_args!($($text)*))
    };
}

/// Prints a line to standard error, as [`std::eprintln!`], and shows it to observers of the run, at the place that
/// printed it; [`println!`](crate::println) has an example.
///
/// # Panics
/// If standard error cannot be written to.
#[macro_export]
macro_rules! eprintln {
    () => {
        $crate::eprint!("\n")
    };
    ($($text:tt)*) => {
        $crate::eprint!("{}\n", $crate::__private::format_args!($($text)*))
    };
}
