//! JSON, as far as a summary needs it.
//!
//! Objects and lists with values that are written as they come; no reading. Invariant: what was begun and ended in
//! pairs is well formed.

use std::fmt::{Display, Write};

/// A text that becomes one JSON document, a member a line.
#[derive(Default)]
pub(super) struct Json {
    text: String,
    depth: usize,
    /// Whether the next member follows another one.
    follows: bool,
}

impl Json {
    /// Begins an object or a list; `key` is empty in a list and at the top.
    pub(super) fn begin(&mut self, key: &str, bracket: char) {
        self.key(key);
        self.text.push(bracket);
        self.depth += 1;
        self.follows = false;
    }

    /// Ends what was begun last.
    pub(super) fn end(&mut self, bracket: char) {
        self.depth -= 1;
        self.line();
        self.text.push(bracket);
        self.follows = true;
    }

    /// A number, or anything else that is JSON as it stands.
    pub(super) fn number(&mut self, key: &str, value: impl Display) {
        self.key(key);
        let _ = write!(self.text, "{value}"); // a string takes everything
        self.follows = true;
    }

    pub(super) fn string(&mut self, key: &str, value: &str) {
        self.key(key);
        self.quote(value);
        self.follows = true;
    }

    /// The document, with an end of line.
    pub(super) fn finish(mut self) -> String {
        self.text.push('\n');
        self.text
    }

    fn key(&mut self, key: &str) {
        if self.follows {
            self.text.push(',');
        }
        if self.depth > 0 {
            self.line();
        }
        if !key.is_empty() {
            self.quote(key);
            self.text.push_str(": ");
        }
    }

    fn line(&mut self) {
        self.text.push('\n');
        self.text.extend(std::iter::repeat_n("  ", self.depth));
    }

    fn quote(&mut self, value: &str) {
        self.text.push('"');
        for queued in value.chars() {
            match queued {
                '"' | '\\' => self.text.extend(['\\', queued]),
                queued if u32::from(queued) < 0x20 => {
                    let _ = write!(self.text, "\\u{:04x}", u32::from(queued)); // as above
                }
                queued => self.text.push(queued),
            }
        }
        self.text.push('"');
    }
}
