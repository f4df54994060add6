//! Spans: stretches of a program's time with a name, for a machine that draws what happened when.
//!
//! Words only: whoever sits on an endpoint says what has a name and what that is. Invariant: a span is begun and ended
//! by the place that it belongs to; spans of one place may overlap in any way.

use isles_protocol::PlaceId;
use std::panic::Location;

/// Name of a span, and its source location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// In a word or two. One text for all spans of a kind, because they are told apart by where it lies.
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

/// A span that has begun, by a number that no other open one of its place has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanId(pub u32);

impl Source {
    /// The line of `file:line:column`; of any other text, that text as a file.
    pub fn of_text(text: &'static str) -> Source {
        let mut parts = text.rsplitn(3, ':');
        let (_column, line, file) = (parts.next(), parts.next(), parts.next());
        let known = file.zip(line.and_then(|line| line.parse().ok()));
        known.map_or(Source { file: text, line: 0 }, |(file, line)| Source { file, line })
    }

    /// The line of a caller.
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
