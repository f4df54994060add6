//! The triples of one place and some tables as a dataset that `spareval` evaluates queries over.
//!
//! A table looks like triples: each cell is a triple from its row, by an IRI that names the column, to the value. So
//! results of all places can be part of a query that one place evaluates. It exchanges nothing. Invariant: a term has
//! one internal form, so that two are equal if and only if the terms are.

use crate::query::table::Table;
use crate::store::Store;
use crate::store::dictionary::{Dictionary, Numbering, UNBOUND};
use crate::store::graphs::ActiveDataset;
use crate::store::term;
use oxrdf::{BlankNode, NamedNode, Term};
use spareval::{InternalQuad, QueryableDataset};
use std::convert::Infallible;

/// Prefix of the IRIs of columns; no data set contains it, because readers reject it as an IRI.
const COLUMN: &str = "isles table ";

/// Returns the name of a column, given its position and that of its table; without a column, the name for the table's
/// rows.
pub fn column_name(table: usize, column: Option<usize>) -> NamedNode {
    let column = column.map_or(String::new(), |column| column.to_string());
    NamedNode::new_unchecked(format!("{COLUMN}{table} {column}"))
}

/// Prefix of the IRIs that stand for blank nodes; no data set contains it either.
const BLANK: &str = "isles blank ";

/// Returns the IRI of a term that names a graph, as a constant of a query; that of a blank node is read as the node.
pub fn constant_name(term: &Term) -> Option<NamedNode> {
    match term {
        Term::NamedNode(name) => Some(name.clone()),
        Term::BlankNode(node) => Some(NamedNode::new_unchecked(format!("{BLANK}{}", node.as_str()))),
        _ => None,
    }
}

/// Triples and tables with all their terms in one dictionary.
pub struct Dataset<'a> {
    /// The triples.
    pub data: &'a ActiveDataset<'a>,
    /// The terms of both.
    pub dictionary: &'a Dictionary,
    /// The tables.
    pub tables: &'a [Table],
}

/// A term of a [`Dataset`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DatasetTerm {
    /// A term of the dictionary, by its number.
    Number(u32),
    /// A row of a table.
    Row { table: u32, row: u32 },
    /// The name of a column, or of the rows of a table.
    Column { table: u32, column: Option<u32> },
    /// A term that is not in the dictionary.
    Other(Term),
}

fn numbering() -> Numbering {
    Numbering::new(1)
}

type Quads<'a> = Box<dyn Iterator<Item = Result<InternalQuad<DatasetTerm>, Infallible>> + 'a>;

fn quad(
    subject: DatasetTerm,
    predicate: DatasetTerm,
    object: DatasetTerm,
    graph_name: Option<DatasetTerm>,
) -> Result<InternalQuad<DatasetTerm>, Infallible> {
    Ok(InternalQuad { subject, predicate, object, graph_name })
}

/// Returns the number of a part of a pattern; the inner value is `None` if no triple can have the part.
fn number(part: Option<&DatasetTerm>) -> Option<Option<u32>> {
    match part {
        None => Some(None),
        Some(DatasetTerm::Number(number)) => Some(Some(*number)),
        Some(_) => None,
    }
}

/// Returns the quads of one graph with these parts; `None` matches any.
fn quads_of<'a>(
    store: &'a Store,
    [subject, predicate, object]: [Option<&DatasetTerm>; 3],
    graph: Option<DatasetTerm>,
) -> Quads<'a> {
    let parts = (number(subject), number(predicate), number(object));
    let (Some(subject), Some(predicate), Some(object)) = parts else {
        return Box::new(std::iter::empty());
    };
    let as_quad = move |triple: [u32; 3]| {
        let [subject, predicate, object] = triple.map(DatasetTerm::Number);
        quad(subject, predicate, object, graph.clone())
    };
    if let (None, Some(predicate), None) = (subject, predicate, object) {
        // Only this form may have many results; a query may need just a few of them.
        let pairs = store.predicate(predicate).into_iter().flat_map(|own| own.by_subject.iter());
        let triples = pairs.flat_map(move |(subject, objects)| {
            objects.iter().map(move |object| [subject, predicate, *object])
        });
        return Box::new(triples.map(as_quad));
    }
    let mut found = Vec::new();
    store.visit([subject, predicate, object], |triple| found.push(triple));
    Box::new(found.into_iter().map(as_quad))
}

impl<'a> Dataset<'a> {
    /// Returns the quads of the default graph and the tables with these parts.
    fn default_quads(&self, parts: [Option<&DatasetTerm>; 3]) -> Quads<'a> {
        let [subject, predicate, object] = parts;
        if let Some(DatasetTerm::Column { table, column }) = predicate {
            return self.cells(*table, *column, subject, object);
        }
        let data: &'a ActiveDataset<'a> = self.data;
        quads_of(&data.default, parts, None)
    }

    /// Returns the cells of a column, or the rows of a table, that match a pattern.
    fn cells(
        &self,
        table: u32,
        column: Option<u32>,
        subject: Option<&DatasetTerm>,
        object: Option<&DatasetTerm>,
    ) -> Quads<'a> {
        let own: &'a Table = &self.tables[table as usize];
        let rows = match subject {
            None => 0..own.rows as u32,
            Some(DatasetTerm::Row { table: other, row }) if *other == table => *row..*row + 1,
            Some(_) => 0..0,
        };
        let name = DatasetTerm::Column { table, column };
        let wanted = object.cloned();
        let cell = move |row: u32| {
            let subject = DatasetTerm::Row { table, row };
            let object = match column {
                None => subject.clone(),
                Some(column) => match own.columns[column as usize][row as usize] {
                    UNBOUND => return None,
                    number => DatasetTerm::Number(number),
                },
            };
            let is_wanted = wanted.as_ref().is_none_or(|wanted| *wanted == object);
            is_wanted.then(|| quad(subject, name.clone(), object, None))
        };
        Box::new(rows.filter_map(cell))
    }
}

impl<'a> QueryableDataset<'a> for &'a Dataset<'a> {
    type InternalTerm = DatasetTerm;
    type Error = Infallible;

    fn internal_quads_for_pattern(
        &self,
        subject: Option<&DatasetTerm>,
        predicate: Option<&DatasetTerm>,
        object: Option<&DatasetTerm>,
        graph_name: Option<Option<&DatasetTerm>>,
    ) -> impl Iterator<Item = Result<InternalQuad<DatasetTerm>, Infallible>> + use<'a> {
        let data: &'a ActiveDataset<'a> = self.data;
        let parts = [subject, predicate, object];
        let name = match graph_name {
            None => None,
            Some(Some(DatasetTerm::Number(name))) => Some(*name),
            Some(Some(_)) => return Box::new(std::iter::empty()) as Quads<'a>,
            Some(None) => return self.default_quads(parts),
        };
        let graphs = data.graphs(name).iter();
        let parts = parts.map(|part| part.cloned());
        Box::new(graphs.flat_map(move |graph| {
            quads_of(
                &graph.store,
                parts.each_ref().map(Option::as_ref),
                Some(DatasetTerm::Number(graph.name)),
            )
        }))
    }

    fn internal_named_graphs(&self) -> impl Iterator<Item = Result<DatasetTerm, Infallible>> + use<'a> {
        let data: &'a ActiveDataset<'a> = self.data;
        data.named.iter().map(|graph| Ok(DatasetTerm::Number(graph.name)))
    }

    fn contains_internal_graph_name(&self, name: &DatasetTerm) -> Result<bool, Infallible> {
        Ok(matches!(name, DatasetTerm::Number(name) if self.data.graph(*name).is_some()))
    }

    fn internalize_term(&self, term: Term) -> Result<DatasetTerm, Infallible> {
        if let Term::NamedNode(name) = &term
            && let Some(column) = name.as_str().strip_prefix(COLUMN)
            && let Some((table, column)) = column.split_once(' ')
        {
            let table = table.parse().unwrap_or_default();
            return Ok(DatasetTerm::Column { table, column: column.parse().ok() });
        }
        let term = match &term {
            Term::NamedNode(name) => name.as_str().strip_prefix(BLANK).map(BlankNode::new_unchecked),
            _ => None,
        }
        .map_or(term, Term::from);
        let found = self.dictionary.find(&term::encoded(term.as_ref()));
        let number = found.and_then(|index| numbering().number(index as usize, 0));
        Ok(number.map_or(DatasetTerm::Other(term), DatasetTerm::Number))
    }

    fn externalize_term(&self, term: DatasetTerm) -> Result<Term, Infallible> {
        Ok(match term {
            DatasetTerm::Number(number) => term::decode(self.dictionary.bytes(numbering().index(number))),
            DatasetTerm::Other(term) => term,
            DatasetTerm::Column { table, column } => {
                column_name(table as usize, column.map(|column| column as usize)).into()
            }
            DatasetTerm::Row { table, row } => {
                NamedNode::new_unchecked(format!("{COLUMN}{table} row {row}")).into()
            }
        })
    }
}
