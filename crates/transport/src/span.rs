//! Spans: named intervals of a program's time, for the trace of a machine.
//!
//! This file only has the types; the layers above an endpoint decide which intervals are spans. Invariant: a span is
//! begun and ended by its own place; spans of one place may overlap in any way.

use isles_protocol::PlaceId;
use std::panic::Location;

/// Name of a span, and its source location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// One or two words. All spans of a kind use the same static text, because its address identifies the kind.
    pub name: &'static str,
    /// The other place, whose name follows.
    pub other: Option<PlaceId>,
    /// Source location of the span; `None` if no line of the program opens it.
    pub source: Option<Source>,
}

/// A line of a program's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// The file, as the compiler was given it.
    pub file: &'static str,
    /// The line, from 1 on; 0 if it is not known.
    pub line: u32,
}

/// Number of an open span, unique among the open spans of its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanId(pub u32);

impl Source {
    /// Parses `file:line:column`; any other text becomes the file.
    pub fn of_text(text: &'static str) -> Source {
        let mut parts = text.rsplitn(3, ':');
        let (_column, line, file) = (parts.next(), parts.next(), parts.next());
        let known = file.zip(line.and_then(|line| line.parse().ok()));
        known.map_or(Source { file: text, line: 0 }, |(file, line)| Source { file, line })
    }

    /// Returns the line of a caller.
    pub fn of_caller(caller: &'static Location<'static>) -> Source {
        Source { file: caller.file(), line: caller.line() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_read_from_its_text() {
        assert_eq!(Source::of_text("src/a.rs:12:5"), Source { file: "src/a.rs", line: 12 });
        assert_eq!(Source::of_text(r"C:\a.rs:3:1"), Source { file: r"C:\a.rs", line: 3 });
        assert_eq!(Source::of_text("isles"), Source { file: "isles", line: 0 });
        assert_eq!(Source::of_text("a:b:c"), Source { file: "a:b:c", line: 0 });
        let here = Location::caller();
        assert_eq!(Source::of_caller(here), Source { file: file!(), line: here.line() });
    }
}
