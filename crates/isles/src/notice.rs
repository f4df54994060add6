//! What Isles itself says to people: lines on standard error, and texts that have a head.
//!
//! Applications and commands say theirs here, too, so that there is one place that knows how a line looks to who reads
//! it; the layers below say theirs by `isles_transport::notice`, which this uses, too. Files, JSON and CSV do not go
//! this way, nor what a program prints. Formats nothing. Invariant: what nobody can read any more changes nothing about
//! a run.

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
/// What the system says of standard output, for example that a device is full; nothing of standard error.
pub fn tell(stream: StandardStream, text: &str) -> io::Result<()> {
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
