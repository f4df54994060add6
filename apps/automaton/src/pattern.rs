//! Reader of patterns in RLE, the run-length format of Golly and other programs for Life.
//!
//! A file has a line `x = 36, y = 9, rule = B3/S23`, followed by runs: a number, omitted if it is 1, and `b` or `.`
//! for dead cells, `o`, `A`, or a letter from `p` to `y` for living ones, `$` for the end of a row, `!` for the end.
//! Lines that begin with `#` may appear anywhere; `#r` names the rule. The sizes in the first line place the pattern,
//! which may be larger, and the line may be missing. Invariant: any text yields a pattern, or an error with line and
//! column.

use crate::rule::{self, Rule};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Most rows and columns of a pattern.
pub const SIDE_MAX: u32 = 1 << 16;

/// Built-in patterns.
pub const BUILT_IN: [(&str, &str); 3] = [
    ("glider", include_str!("patterns/glider.rle")),
    ("gosper-gun", include_str!("patterns/gosper-gun.rle")),
    ("breeder", include_str!("patterns/breeder.rle")),
];

/// Living cells, stored as runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pattern {
    /// Number of columns.
    pub columns: u32,
    /// Number of rows.
    pub rows: u32,
    /// Row, first column and length of each run, in order.
    pub runs: Vec<(u32, u32, u32)>,
}

/// An error in a pattern: its position, the text there, and the allowed text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternFault {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
    found: String,
    allowed: String,
}

impl fmt::Display for PatternFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PatternFault { line, column, found, allowed } = self;
        write!(f, "line {line}, column {column}: {found}; allowed: {allowed}")
    }
}

impl std::error::Error for PatternFault {}

/// A position in a text: line and column, from 1.
#[derive(Clone, Copy, Default)]
struct TextPosition {
    line: usize,
    column: usize,
}

impl TextPosition {
    fn new(line: usize, column: usize) -> TextPosition {
        TextPosition { line, column }
    }
}

fn fault(at: TextPosition, found: impl Into<String>, allowed: impl Into<String>) -> PatternFault {
    let TextPosition { line, column } = at;
    PatternFault { line, column, found: found.into(), allowed: allowed.into() }
}

/// Reads a pattern, and its rule if one is given.
///
/// # Errors
/// [`PatternFault`]: the first error.
pub fn read(text: &str) -> Result<(Pattern, Option<Rule>), PatternFault> {
    let mut reader = PatternReader::default();
    for (number, line) in (1..).zip(text.lines()) {
        if reader.read_line(number, line)? {
            return Ok((reader.pattern, reader.rule));
        }
    }
    let end = if reader.has_begun { reader.at } else { TextPosition::new(text.lines().count().max(1), 1) };
    Err(fault(end, "the end of the file", if reader.has_begun { END } else { HEAD }))
}

/// The expected first line, for error messages.
const HEAD: &str = "a line such as `x = 36, y = 9, rule = B3/S23`";

/// The expected end of the last line.
const END: &str = "a `!` at the end of the runs";

/// The expected parts of a run.
const RUN: &str = "a number, b, o, $ or !";

/// Reader of a text, with the part read so far.
#[derive(Default)]
struct PatternReader {
    pattern: Pattern,
    rule: Option<Rule>,
    /// `true` once the first line, or a run, has been read.
    has_begun: bool,
    /// Position of the next cell.
    row: u32,
    column: u32,
    /// The number before a run.
    count: Option<u32>,
    at: TextPosition,
}

impl PatternReader {
    /// Reads a line; returns whether it ends the pattern.
    fn read_line(&mut self, number: usize, line: &str) -> Result<bool, PatternFault> {
        let plain = line.trim();
        if let Some(comment) = plain.strip_prefix('#') {
            if let Some(rule) = comment.strip_prefix('r') {
                self.rule = Some(rule_at(TextPosition::new(number, 1), rule)?);
            }
            return Ok(false);
        }
        if plain.is_empty() {
            return Ok(false);
        }
        if !self.has_begun {
            (self.has_begun, self.at) = (true, TextPosition::new(number, 1));
            let after = plain.strip_prefix('x').map(str::trim_start);
            if after.is_some_and(|after| after.starts_with('=')) {
                self.read_head(number, line)?;
                return Ok(false);
            }
            // Another format must not be read as a pattern: in plain text, `!` begins a comment.
            let is_run = |character: char| {
                character.is_ascii_digit() || character.is_whitespace() || "bo$!".contains(character)
            };
            if plain.starts_with('!') || !plain.chars().all(is_run) {
                return Err(fault(TextPosition::new(number, 1), format!("{:?}", excerpt(line)), HEAD));
            }
        }
        self.read_runs(number, line)
    }

    fn read_head(&mut self, number: usize, line: &str) -> Result<(), PatternFault> {
        let (mut columns, mut rows) = (None, None);
        let mut column = 1;
        // Some writers end the line with a comma.
        for field in line.trim_end().trim_end_matches(',').split(',') {
            let at = TextPosition::new(number, column + field.len() - field.trim_start().len());
            column += field.len() + 1;
            let (name, value) = field.split_once('=').unwrap_or((field, ""));
            match (name.trim(), value.trim()) {
                ("x", value) => columns = Some(side(at, "x", value)?),
                ("y", value) => rows = Some(side(at, "y", value)?),
                ("rule", value) => self.rule = Some(rule_at(at, value)?),
                _ => return Err(fault(at, format!("{:?}", excerpt(field.trim())), HEAD)),
            }
        }
        let (Some(columns), Some(rows)) = (columns, rows) else {
            return Err(fault(TextPosition::new(number, 1), format!("{:?}", excerpt(line)), HEAD));
        };
        (self.pattern.columns, self.pattern.rows) = (columns, rows);
        Ok(())
    }

    fn read_runs(&mut self, number: usize, line: &str) -> Result<bool, PatternFault> {
        let mut letters = line.chars().enumerate().peekable();
        while let Some((index, character)) = letters.next() {
            self.at = TextPosition::new(number, index + 1);
            match character {
                character if character.is_whitespace() => continue,
                '0'..='9' => {
                    self.read_digit(character)?;
                    continue;
                }
                'b' | '.' => self.column = self.column.saturating_add(self.count.unwrap_or(1)),
                'o' | 'A' => self.add_run()?,
                'p'..='y' => match letters.peek() {
                    Some((_, 'A'..='X')) => return Err(self.state_fault(character)),
                    _ => self.add_run()?,
                },
                'B'..='X' => return Err(self.state_fault(character)),
                '$' => (self.row, self.column) = (self.row.saturating_add(self.count.unwrap_or(1)), 0),
                '!' => return Ok(true),
                other => return Err(fault(self.at, format!("{other:?}"), RUN)),
            }
            self.count = None;
        }
        Ok(false)
    }

    fn read_digit(&mut self, digit: char) -> Result<(), PatternFault> {
        let digit = digit.to_digit(10).unwrap_or_default();
        let next = self.count.unwrap_or(0).saturating_mul(10).saturating_add(digit);
        if next == 0 || next > SIDE_MAX {
            return Err(fault(self.at, format!("a run of {next}"), format!("1 to {SIDE_MAX}")));
        }
        self.count = Some(next);
        Ok(())
    }

    /// Adds a run of living cells, and enlarges the pattern if needed.
    fn add_run(&mut self) -> Result<(), PatternFault> {
        let run = self.count.unwrap_or(1);
        let end = self.column.saturating_add(run);
        if self.row >= SIDE_MAX || end > SIDE_MAX {
            let found = format!("a cell in column {end} of row {}", u64::from(self.row) + 1);
            return Err(fault(self.at, found, format!("{SIDE_MAX} columns and rows")));
        }
        self.pattern.runs.push((self.row, self.column, run));
        self.pattern.rows = self.pattern.rows.max(self.row + 1);
        self.pattern.columns = self.pattern.columns.max(end);
        self.column = end;
        Ok(())
    }

    fn state_fault(&self, character: char) -> PatternFault {
        fault(self.at, format!("{character:?}, a cell of a state above 1"), "living and dead cells: b and o")
    }
}

fn rule_at(at: TextPosition, text: &str) -> Result<Rule, PatternFault> {
    let text = text.trim();
    text.parse().map_err(|_| fault(at, format!("the rule {text:?}"), rule::ALLOWED))
}

fn side(at: TextPosition, name: &str, value: &str) -> Result<u32, PatternFault> {
    let number = value.parse::<u32>().ok().filter(|number| *number <= SIDE_MAX);
    number.ok_or_else(|| fault(at, format!("{name} is {:?}", excerpt(value)), format!("0 to {SIDE_MAX}")))
}

fn excerpt(text: &str) -> String {
    text.chars().take(30).collect()
}
