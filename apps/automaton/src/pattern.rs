//! What the field holds at first: patterns in RLE, the form in which people of Life pass them on.
//!
//! A file has lines of comment that begin with `#`, a line `x = 36, y = 9, rule = B3/S23`, and then runs: a number, if
//! it is not 1, and `b` for dead cells, `o` for living ones, `$` for the end of a row, `!` for the end. Invariant: any
//! text gives a pattern or an error that names line and column.

use crate::rule::{self, Rule};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Most rows and columns of a pattern.
pub const SIDE_MAX: u32 = 1 << 16;

/// Patterns that are built in.
pub const BUILT_IN: [(&str, &str); 3] = [
    ("glider", include_str!("patterns/glider.rle")),
    ("gosper-gun", include_str!("patterns/gosper-gun.rle")),
    ("breeder", include_str!("patterns/breeder.rle")),
];

/// Living cells, in runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pattern {
    /// How many columns it has.
    pub columns: u32,
    /// How many rows.
    pub rows: u32,
    /// Row, first column and length of each run, in order.
    pub runs: Vec<(u32, u32, u32)>,
}

/// A fault of a pattern: where, what stands there, what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternFault {
    /// From 1.
    pub line: usize,
    /// From 1.
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
type At = (usize, usize);

fn fault((line, column): At, found: impl Into<String>, allowed: impl Into<String>) -> PatternFault {
    PatternFault { line, column, found: found.into(), allowed: allowed.into() }
}

/// Reads a pattern, and its rule if it names one.
///
/// # Errors
/// [`PatternFault`]: the first one.
pub fn read(text: &str) -> Result<(Pattern, Option<Rule>), PatternFault> {
    let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    let head = lines.by_ref().find(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let end = (text.lines().count().max(1), 1);
    let (number, line) = head.ok_or_else(|| fault(end, "the end of the file", HEAD))?;
    let (columns, rows, rule) = read_head(number, line)?;
    let mut pattern = Pattern { columns, rows, runs: Vec::new() };
    read_runs(&mut pattern, lines, (number, 1))?;
    Ok((pattern, rule))
}

/// What the first line is.
const HEAD: &str = "a line such as `x = 36, y = 9, rule = B3/S23`";

fn read_head(number: usize, line: &str) -> Result<(u32, u32, Option<Rule>), PatternFault> {
    let (mut columns, mut rows, mut rule) = (None, None, None);
    let mut column = 1;
    for field in line.split(',') {
        let at = (number, column + field.len() - field.trim_start().len());
        column += field.len() + 1;
        let (name, value) = field.split_once('=').unwrap_or((field, ""));
        match (name.trim(), value.trim()) {
            ("x", value) => columns = Some(side(at, "x", value)?),
            ("y", value) => rows = Some(side(at, "y", value)?),
            ("rule", value) => {
                let refused = |_| fault(at, format!("the rule {value:?}"), rule::ALLOWED);
                rule = Some(value.parse().map_err(refused)?);
            }
            _ => return Err(fault(at, format!("{:?}", excerpt(field.trim())), HEAD)),
        }
    }
    match (columns, rows) {
        (Some(columns), Some(rows)) => Ok((columns, rows, rule)),
        _ => Err(fault((number, 1), format!("{:?}", excerpt(line)), HEAD)),
    }
}

fn side(at: At, name: &str, value: &str) -> Result<u32, PatternFault> {
    let number = value.parse::<u32>().ok().filter(|number| (1..=SIDE_MAX).contains(number));
    number.ok_or_else(|| fault(at, format!("{name} is {:?}", excerpt(value)), format!("1 to {SIDE_MAX}")))
}

fn excerpt(text: &str) -> String {
    text.chars().take(30).collect()
}

fn read_runs<'t>(
    pattern: &mut Pattern,
    lines: impl Iterator<Item = (usize, &'t str)>,
    start: At,
) -> Result<(), PatternFault> {
    let (mut row, mut column, mut count, mut at) = (0_u32, 0_u32, None::<u32>, start);
    for (number, line) in lines {
        for (index, letter) in line.chars().enumerate() {
            at = (number, index + 1);
            let run = count.unwrap_or(1);
            match letter {
                letter if letter.is_whitespace() => continue,
                '0'..='9' => {
                    let digit = letter.to_digit(10).unwrap_or_default();
                    let next = count.unwrap_or(0).saturating_mul(10).saturating_add(digit);
                    if next == 0 || next > SIDE_MAX {
                        return Err(fault(at, format!("a run of {next}"), format!("1 to {SIDE_MAX}")));
                    }
                    count = Some(next);
                    continue;
                }
                'b' | '.' | 'o' | 'A' => {
                    let end = column + run;
                    if row >= pattern.rows || end > pattern.columns {
                        let found = format!("a cell in column {end} of row {}", row + 1);
                        let allowed = format!(
                            "{} columns and {} rows, as the head says",
                            pattern.columns, pattern.rows
                        );
                        return Err(fault(at, found, allowed));
                    }
                    if matches!(letter, 'o' | 'A') {
                        pattern.runs.push((row, column, run));
                    }
                    column = end;
                }
                '$' => (row, column) = (row.saturating_add(run), 0),
                '!' => return Ok(()),
                other => return Err(fault(at, format!("{other:?}"), "a number, b, o, $ or !")),
            }
            count = None;
        }
    }
    Err(fault(at, "the end of the file", "a `!` at the end of the runs"))
}
