//! The answer to a query together with its terms, so that it is valid outside its places.
//!
//! It formats nothing. Invariant: the order after [`Solutions::sort`], and that of the triples of a graph, depends on
//! the terms alone.

use crate::store::term;
use oxrdf::{Term, Triple};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Terms stored consecutively.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TermList {
    bytes: Vec<u8>,
    ends: Vec<u64>,
}

impl TermList {
    /// Appends a term; returns its position.
    pub fn push(&mut self, term: &[u8]) -> u32 {
        self.bytes.extend_from_slice(term);
        self.ends.push(self.bytes.len() as u64);
        self.ends.len() as u32 - 1
    }

    /// Appends terms of these lengths, stored consecutively in `bytes`; returns the position of the first.
    pub fn append(&mut self, bytes: &[u8], lengths: &[u32]) -> u32 {
        let first = self.ends.len() as u32;
        let mut end = self.bytes.len() as u64;
        self.bytes.extend_from_slice(bytes);
        self.ends.extend(lengths.iter().map(|length| {
            end += u64::from(*length);
            end
        }));
        first
    }

    /// Returns the bytes of all terms, and the length of each.
    pub fn parts(&self) -> (&[u8], Vec<u32>) {
        let starts = std::iter::once(&0).chain(&self.ends);
        (&self.bytes, self.ends.iter().zip(starts).map(|(end, start)| (end - start) as u32).collect())
    }

    /// Reserves room for `terms` more terms with `bytes` bytes in all.
    pub fn reserve(&mut self, terms: usize, bytes: usize) {
        self.ends.reserve(terms);
        self.bytes.reserve(bytes);
    }

    /// Returns the bytes of the term at a position.
    pub fn bytes(&self, position: u32) -> &[u8] {
        let position = position as usize;
        let start = if position == 0 { 0 } else { self.ends[position - 1] as usize };
        &self.bytes[start..self.ends[position] as usize]
    }
}

/// The solutions of a `SELECT`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Solutions {
    /// The variables, in the order of the query.
    pub variables: Vec<String>,
    /// The number of solutions.
    pub rows: usize,
    /// For each variable a number per row: the position of a term plus one, or 0 if unbound.
    pub columns: Vec<Vec<u32>>,
    /// The terms.
    pub terms: TermList,
    /// `true` if the query orders its solutions.
    pub is_ordered: bool,
}

impl Solutions {
    /// Returns the bytes of a term; empty if the variable is unbound.
    pub fn bytes(&self, row: usize, column: usize) -> Option<&[u8]> {
        match self.columns[column][row] {
            0 => None,
            number => Some(self.terms.bytes(number - 1)),
        }
    }

    /// Returns the terms of a row.
    pub fn row(&self, row: usize) -> impl Iterator<Item = Option<Term>> + '_ {
        (0..self.columns.len()).map(move |column| self.bytes(row, column).map(term::decode))
    }

    /// Sorts the solutions by their terms unless the query has ordered them.
    pub fn sort(&mut self) {
        if self.is_ordered {
            return;
        }
        let mut rows: Vec<u32> = (0..self.rows as u32).collect();
        let own = &*self;
        let key = |row: u32| (0..own.columns.len()).map(move |column| own.bytes(row as usize, column));
        rows.sort_by(|one, other| key(*one).cmp(key(*other)));
        for column in &mut self.columns {
            *column = rows.iter().map(|row| column[*row as usize]).collect();
        }
        self.is_ordered = true;
    }
}

/// The answer to a query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// Answer to `SELECT`.
    Solutions(Solutions),
    /// Answer to `ASK`.
    Boolean(bool),
    /// Answer to `CONSTRUCT` and `DESCRIBE`: encoded triples, each once.
    Graph(BTreeSet<[Vec<u8>; 3]>),
}

impl Answer {
    /// Returns the number of solutions or triples; 1 for a truth value.
    pub fn rows(&self) -> u64 {
        match self {
            Answer::Solutions(solutions) => solutions.rows as u64,
            Answer::Boolean(_) => 1,
            Answer::Graph(triples) => triples.len() as u64,
        }
    }

    /// Sorts unordered solutions, so that they are the same for any number of places.
    pub fn sort(&mut self) {
        if let Answer::Solutions(solutions) = self {
            solutions.sort();
        }
    }

    /// Returns a hash of the answer after [`Answer::sort`], in hexadecimal; of solutions it covers variables and rows
    /// in order.
    pub fn digest(&self) -> String {
        let mut state = 0;
        let mut add = |bytes: &[u8]| {
            state = term::hash(bytes) ^ u64::rotate_left(state, 13).wrapping_mul(0x100_0000_01b3)
        };
        match self {
            Answer::Solutions(solutions) => {
                solutions.variables.iter().for_each(|name| add(name.as_bytes()));
                if solutions.variables.is_empty() {
                    add(&(solutions.rows as u64).to_le_bytes()); // rows have no bytes of their own
                }
                for row in 0..solutions.rows {
                    for column in 0..solutions.columns.len() {
                        add(solutions.bytes(row, column).unwrap_or_default());
                    }
                }
            }
            Answer::Boolean(truth) => add(&[u8::from(*truth)]),
            Answer::Graph(triples) => triples.iter().flatten().for_each(|bytes| add(bytes)),
        }
        let mut text = String::new();
        let _ = write!(text, "{state:016x}"); // a string takes all that is written
        text
    }
}

/// Returns the triple of these encoded terms, if they form one.
pub fn triple([subject, predicate, object]: &[Vec<u8>; 3]) -> Option<Triple> {
    let subject = match term::decode(subject) {
        Term::NamedNode(node) => node.into(),
        Term::BlankNode(node) => oxrdf::NamedOrBlankNode::from(node),
        Term::Literal(_) => return None,
    };
    let Term::NamedNode(predicate) = term::decode(predicate) else { return None };
    Some(Triple::new(subject, predicate, term::decode(object)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_solutions_that_bind_nothing_is_in_their_digest() {
        let digest = |rows| Answer::Solutions(Solutions { rows, ..Solutions::default() }).digest();
        assert!(digest(0) != digest(1) && digest(1) != digest(3_000));
    }

    #[test]
    fn solutions_without_an_order_have_the_same_digest_however_they_were_found() {
        let solutions = |order: &[u32], is_ordered| {
            let mut terms = TermList::default();
            let positions: Vec<u32> =
                order.iter().map(|n| 1 + terms.push(format!("s{n}").as_bytes())).collect();
            let columns = vec![positions, vec![0; order.len()]];
            let variables = vec!["x".to_owned(), "y".to_owned()];
            Answer::Solutions(Solutions { variables, rows: order.len(), columns, terms, is_ordered })
        };
        let digest = |mut answer: Answer| {
            answer.sort();
            answer.digest()
        };
        let one = digest(solutions(&[3, 1, 2, 1], false));
        assert_eq!(one, digest(solutions(&[1, 1, 3, 2], false)));
        assert_ne!(one, digest(solutions(&[1, 2, 3], false)));
        assert_ne!(one, digest(solutions(&[3, 1, 2, 1], true)));
    }
}
