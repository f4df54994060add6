//! Text about a run for people: the lines of Isles itself, and the macros by which a program prints.
//!
//! Isles says lines on standard error, and texts that have a head. Applications and commands say theirs here, too, so
//! that there is one place that knows how a line looks to who reads it; the layers below say theirs by
//! `isles_transport::notice`, which this uses, too. Files, JSON and CSV do not go this way. Formats nothing.
//!
//! `print!` and its like have the names of the standard library. A prelude cannot offer them, because the compiler
//! refuses a glob that says `println` beside the standard one; a program names them. Invariants: what Isles says and
//! nobody can read any more changes nothing about a run; what the macros print, and where to, is what those of the
//! standard library print.

use crate::output::write_to_standard;
use crate::settings::color;
use isles_transport::notice_text;
use std::fmt::Display;
use std::io;

/// One of the two streams that people read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StandardStream {
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

/// Writes a line to standard error, where it can be. An error begins with `error: `, a warning with `warning: `.
pub fn notice(line: impl Display) {
    let line = format!("{line}\n");
    let is_coloured = color::is_wanted(StandardStream::Error);
    notice_text(&if is_coloured { color::mark_word(&line) } else { line });
}

/// Writes a text whose first line is the head of what follows, to its last byte.
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

/// Prints to standard output, as [`std::print!`], and shows it in the view of the place to those who watch the run.
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

/// Prints a line to standard output, as [`std::println!`], and shows it in the view of the place to those who watch
/// the run.
///
/// A program that imports it by its name has each `println!` of the file shown:
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
/// Text printed in other ways, by libraries for example, is printed but not shown. So is the text of a thread that is
/// not a place.
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

/// Prints to standard error, as [`std::eprint!`], and shows it in the view of the place to those who watch the run.
///
/// # Panics
/// If standard error cannot be written to.
#[macro_export]
macro_rules! eprint {
    ($($text:tt)*) => {
        $crate::__private::eprint($crate::__private::format_args!($($text)*))
    };
}

/// Prints a line to standard error, as [`std::eprintln!`], and shows it in the view of the place to those who watch
/// the run; [`println!`](crate::println) has an example.
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
