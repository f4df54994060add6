//! What a check reports: a place in the tree and one sentence.
//!
//! The message says what is wrong and what to do instead; it never only names a rule.

use std::fmt;

/// One fault to fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// File, relative to the root of the tree.
    pub path: String,
    /// Line, counted from 1; 0 where the whole file is meant.
    pub line: usize,
    /// Description of the fault and its remedy.
    pub message: String,
}

impl Finding {
    /// A finding at `line` of `path`.
    pub fn new(path: &str, line: usize, message: impl Into<String>) -> Finding {
        Finding { path: path.to_string(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}
