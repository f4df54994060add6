//! Inputs in the text format of the suite.
//!
//! The first line is the number of nodes *n*; a root or the size *K* of committees follows for kernels that have one.
//! Then come *n* lines of *n* digits, 1 for an edge; parts after the matrix begin after a line with one blank. The
//! files of ring elections have identifiers only. Invariant: a fault names its line and the allowed text.

use super::super::kernel::KernelName;
use super::{Expected, Input, InputFault, InputSource, NO_EDGE, NODES_MAX};
use isles_app::input::{ReadFault, bytes_of};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Largest accepted file with few nodes, in bytes.
const BYTES_MAX: u64 = 16 << 20;

/// Bytes allowed per pair of nodes: a digit, and a weight of ten digits in a line, in UTF-16.
const PAIR_BYTES_MAX: u64 = 26;

/// Number of bytes within which the first line, the number of nodes, must end.
const FIRST_BYTES: u64 = 64;

/// Reads the input of `kernel` from a file; `seed` is that of the random numbers that the kernel draws.
///
/// # Errors
/// [`InputFault`]: the file cannot be read, has another form, or describes an input on which the kernel is not defined.
pub fn file(kernel: KernelName, path: &Path, seed: u64) -> Result<Input, InputFault> {
    let source = InputSource::File(path.display().to_string());
    let unreadable =
        |cause| InputFault { source: source.clone(), line: None, expected: Expected::Readable(cause) };
    let bytes = contents(path).map_err(unreadable)?;
    input(kernel, &isles_app::input::text(&bytes), seed, &source)
}

/// Reads a file, up to the largest size for the number of nodes in its first line; only the first bytes if that number
/// is invalid.
fn contents(path: &Path) -> Result<Vec<u8>, ReadFault> {
    let mut opened = File::open(path).map_err(ReadFault::Unreadable)?;
    let first = bytes_of(opened.by_ref().take(FIRST_BYTES), FIRST_BYTES)?;
    let line = isles_app::input::text(&first);
    let nodes = line.lines().next().and_then(|line| line.trim().parse::<u64>().ok());
    match nodes.filter(|nodes| *nodes <= NODES_MAX as u64) {
        Some(nodes) => {
            bytes_of(first.as_slice().chain(opened), BYTES_MAX.max(PAIR_BYTES_MAX * nodes * nodes))
        }
        None => Ok(first),
    }
}

/// Reads the input of `kernel` from `text`.
///
/// # Errors
/// As [`file()`].
pub fn input(kernel: KernelName, text: &str, seed: u64, source: &InputSource) -> Result<Input, InputFault> {
    let mut lines = Lines { source, rest: text.lines(), line: 0 };
    let size = lines.number("the number of nodes, 1 to 8192", 1, NODES_MAX as u64)? as usize;
    let last = size as u64 - 1;
    let mut input = Input { kernel, seed, ..Input::default() };
    if matches!(kernel, KernelName::BF | KernelName::DST | KernelName::VC) {
        input.root = lines.number(&format!("the root, 0 to {last}"), 0, last)? as u32;
    }
    if kernel == KernelName::KC {
        input.committee_max = lines.number(&format!("K, 1 to {size}"), 1, size as u64)? as u32;
    }
    if matches!(kernel, KernelName::HS | KernelName::LCR) {
        input.neighbours = super::generate::ring(size);
        input.identifiers = lines.numbers(size, "an identifier, a whole number", 0, i64::MAX as u64)?;
        lines.end()?;
        return input.checked(source);
    }
    input.neighbours = lines.matrix(size)?;
    match kernel {
        KernelName::BF | KernelName::DS | KernelName::DST | KernelName::MIS => {}
        KernelName::BY => {
            lines.separator()?;
            input.votes = lines.digits(size, "votes")?;
            lines.separator()?;
            input.traitors = lines.traitors(last)?;
        }
        KernelName::DP | KernelName::HS | KernelName::LCR => {
            lines.separator()?;
            input.identifiers = lines.numbers(size, "an identifier, a whole number", 0, i64::MAX as u64)?;
        }
        KernelName::KC => {
            lines.separator()?;
            input.ranks = lines.numbers(size, "an initial value, a whole number", 0, i64::MAX as u64)?;
        }
        KernelName::VC => {
            lines.separator()?;
            let parents = lines.numbers(size, &format!("a parent, 0 to {last}"), 0, last)?;
            input.parents = parents.into_iter().map(|parent| parent as u32).collect();
        }
        KernelName::DR | KernelName::MST => {
            lines.separator()?;
            input.weights = lines.weights(&input.neighbours)?;
        }
    }
    lines.end()?;
    input.checked(source)
}

/// The lines of a file, read in order.
struct Lines<'a> {
    source: &'a InputSource,
    rest: std::str::Lines<'a>,
    /// The number of the line read last.
    line: usize,
}

impl<'a> Lines<'a> {
    fn next(&mut self) -> Option<&'a str> {
        self.line += 1;
        self.rest.next()
    }

    /// Returns the fault of the line read last.
    fn fault(&self, found: Option<&str>, allowed: &str) -> InputFault {
        const SHOWN: usize = 40;
        let shortened = |text: &str| match text.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("{}..", &text[..end]),
            None => text.to_owned(),
        };
        let expected = Expected::Line { found: found.map(shortened), allowed: allowed.to_owned() };
        InputFault { source: self.source.clone(), line: Some(self.line), expected }
    }

    /// Parses the number in the next line.
    fn number(&mut self, allowed: &str, first: u64, last: u64) -> Result<u64, InputFault> {
        let found = self.next();
        let number = found.and_then(|text| text.trim().parse().ok());
        number.filter(|number| (first..=last).contains(number)).ok_or_else(|| self.fault(found, allowed))
    }

    fn numbers(
        &mut self,
        count: usize,
        allowed: &str,
        first: u64,
        last: u64,
    ) -> Result<Vec<u64>, InputFault> {
        (0..count).map(|_| self.number(allowed, first, last)).collect()
    }

    /// Parses the next line, with `count` digits 0 and 1.
    fn digits(&mut self, count: usize, expected: &str) -> Result<Vec<bool>, InputFault> {
        let found = self.next();
        let digits = found.map(str::trim_end).filter(|text| text.len() == count);
        let digits = digits.filter(|text| text.bytes().all(|byte| matches!(byte, b'0' | b'1')));
        let digits = digits.map(|text| text.bytes().map(|byte| byte == b'1').collect());
        digits.ok_or_else(|| self.fault(found, &format!("{count} {expected}, each 0 or 1")))
    }

    /// Parses the rows of an adjacency matrix, as lists of neighbours.
    fn matrix(&mut self, size: usize) -> Result<Vec<Vec<u32>>, InputFault> {
        let mut rows = Vec::with_capacity(size);
        for _ in 0..size {
            let row = self.digits(size, "entries of a row of the matrix")?;
            rows.push((0..size as u32).filter(|other| row[*other as usize]).collect());
        }
        Ok(rows)
    }

    fn separator(&mut self) -> Result<(), InputFault> {
        match self.next() {
            Some(" ") => Ok(()),
            found => Err(self.fault(found, "a line of one blank, which ends a part")),
        }
    }

    /// Parses the weights of the edges from a matrix with one entry per line.
    fn weights(&mut self, neighbours: &[Vec<u32>]) -> Result<Vec<Vec<u64>>, InputFault> {
        let size = neighbours.len();
        let mut weights: Vec<Vec<u64>> = Vec::with_capacity(size);
        for (node, row) in neighbours.iter().enumerate() {
            let mut own = Vec::with_capacity(row.len());
            for other in 0..size as u32 {
                if row.binary_search(&other).is_err() {
                    // Some files have weights here too; they are ignored.
                    self.number(&format!("a weight, 0 to {NO_EDGE}"), 0, NO_EDGE)?;
                    continue;
                }
                let allowed = format!("the weight of the edge {node} to {other}, 1 to {}", NO_EDGE - 1);
                let weight = self.number(&allowed, 1, NO_EDGE - 1)?;
                // If the other node is lower, its row has been read, and its weight counts for both.
                let before = weights.get(other as usize).map(|row: &Vec<u64>| {
                    let index = neighbours[other as usize].binary_search(&(node as u32));
                    index.ok().and_then(|index| row.get(index).copied())
                });
                match before.flatten() {
                    Some(before) if before != weight => {
                        let allowed = format!("{before}, as that of the edge {other} to {node}");
                        return Err(self.fault(Some(&weight.to_string()), &allowed));
                    }
                    _ => own.push(weight),
                }
            }
            weights.push(own);
        }
        Ok(weights)
    }

    /// Parses the traitors, up to the end of the file.
    fn traitors(&mut self, last: u64) -> Result<Vec<u32>, InputFault> {
        let allowed = format!("a traitor, 0 to {last}, each of them once");
        let mut traitors = Vec::new();
        while !self.is_over() {
            let traitor = self.number(&allowed, 0, last)? as u32;
            if traitors.contains(&traitor) {
                return Err(self.fault(Some(&traitor.to_string()), &allowed));
            }
            traitors.push(traitor);
        }
        traitors.sort_unstable();
        Ok(traitors)
    }

    /// Returns `true` if all remaining lines are empty.
    fn is_over(&self) -> bool {
        self.rest.clone().all(|text| text.trim().is_empty())
    }

    fn end(&mut self) -> Result<(), InputFault> {
        if self.is_over() {
            return Ok(());
        }
        let found = self.next();
        Err(self.fault(found, "the end of the file"))
    }
}
