//! Queries over the triples of all places, with the answer at the first place.
//!
//! `algebra` has the operations of all places together, `rest` those of the first place alone, `statistics` the order
//! of joins, `execute` the operators over places, `scan` and `join` those within a place, `canonical` the order that
//! SPARQL leaves open. Invariant: an answer has each solution with the multiplicity that SPARQL defines, on any number
//! of places.

pub mod algebra;
mod canonical;
mod count;
mod evaluate;
mod execute;
mod join;
mod quads;
pub mod rest;
mod scan;
mod statistics;
pub mod table;
pub mod trace;

use crate::answer::{Answer, Solutions};
use crate::nesting;
use crate::peers::Peers;
use crate::store::dictionary::UNBOUND;
use crate::store::graphs::{ActiveDataset, GraphStore};
use crate::store::term;
use algebra::Translation;
use execute::PlaceEvaluator;
use oxrdf::{Term, Variable};
use rest::split;
use rustc_hash::FxHashMap;
use spargebra::algebra::{GraphPattern, QueryDataset};
use spargebra::term::{NamedNodePattern, TermPattern, TriplePattern};
use spargebra::{Query, SparqlParser};
use std::collections::BTreeSet;
use table::Table;
use trace::{OperatorTrace, QueryFault, QueryLimits, Trace};

/// An answer, at the first place, and the trace of its evaluation.
#[derive(Debug)]
pub struct Answered {
    /// The answer; `None` at other places.
    pub answer: Option<Answer>,
    /// Work of the operators, over all places.
    pub operators: Vec<OperatorTrace>,
}

/// Parses a query; its relative IRIs are resolved against `base`, if given.
///
/// # Errors
/// One line that describes and locates the error, or names an unsupported feature.
pub fn parse(text: &str, base: Option<&str>) -> Result<Query, String> {
    nesting::check(text).map_err(|fault| fault.to_string())?;
    let mut parser = SparqlParser::new();
    if let Some(base) = base {
        parser = parser.with_base_iri(base).map_err(|error| format!("{base}: {error}"))?;
    }
    let query = parser.parse_query(text).map_err(|error| located(&error.to_string(), text))?;
    let (Query::Select { pattern, .. }
    | Query::Ask { pattern, .. }
    | Query::Construct { pattern, .. }
    | Query::Describe { pattern, .. }) = &query;
    match split::Needs::of(pattern, &mut Translation::default()).unsupported {
        Some(reason) => Err(reason.to_owned()),
        None => Ok(query),
    }
}

/// Maximum length of a parser's expectation in an error message, in characters.
const EXPECTED_MAX: usize = 100;

/// Returns the message of the parser, `error at LINE:COLUMN: expected ..`, with the text found there.
fn located(message: &str, text: &str) -> String {
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let parts = message.strip_prefix("error at ").and_then(|rest| rest.split_once(": "));
    let place = parts.and_then(|(place, _)| place.split_once(':'));
    let (Some((_, expected)), Some((line, column))) = (parts, place) else { return message };
    let (Ok(row), Ok(character)) = (line.parse::<usize>(), column.parse::<usize>()) else { return message };
    let whole = text.lines().nth(row.saturating_sub(1)).unwrap_or_default();
    let before: String = whole.chars().take(character.saturating_sub(1)).collect();
    let behind: String = whole.chars().skip(character.saturating_sub(1)).collect();
    let at = format!("line {line}, column {column}");
    if expected.contains("Prefix not found")
        && let Some(name) = before.split_whitespace().next_back().filter(|name| name.contains(':'))
    {
        return format!("{at}: unknown prefix in `{name}`");
    }
    let found = match behind.trim() {
        "" => "the end of the line".to_owned(),
        rest => format!("`{rest}`"),
    };
    let expected = if expected.len() <= EXPECTED_MAX { format!("; {expected}") } else { String::new() };
    format!("{at}: {found} is not SPARQL there{expected}")
}

/// Evaluator of queries at a place.
pub struct Queries<'a> {
    /// The triples of this place.
    pub graphs: &'a GraphStore,
    /// Peers of the place.
    pub peers: &'a Peers,
}

/// Evaluator of one query at a place.
struct QueryRun<'a> {
    /// The dataset of the query.
    data: ActiveDataset<'a>,
    /// Peers of the place.
    peers: &'a Peers,
}

impl Queries<'_> {
    /// Answers a query; all places call it with the same query.
    ///
    /// # Errors
    /// The query exceeds a limit or needs an unsupported feature, or a place has died.
    pub async fn answer(&self, query: &Query, limits: QueryLimits) -> Result<Answered, QueryFault> {
        let terms = self.peers.dictionary().len();
        let run = QueryRun { data: self.dataset(query.dataset()).await?, peers: self.peers };
        let answered = run.answer(query, limits).await;
        self.peers.discard_terms(terms); // what was computed has no number any more
        answered
    }

    /// Returns the dataset that a query specifies.
    async fn dataset(&self, chosen: Option<&QueryDataset>) -> isles::Result<ActiveDataset<'_>> {
        let Some(QueryDataset { default, named }) = chosen else { return Ok(self.graphs.whole()) };
        let named = named.as_deref().unwrap_or_default();
        let names = default.iter().chain(named).map(|name| term::encoded(name.as_ref().into()));
        let numbers = self.peers.find(&names.collect::<Vec<_>>()).await?;
        let (default, named) = numbers.split_at(default.len());
        Ok(self.graphs.chosen(default, named))
    }
}

impl QueryRun<'_> {
    async fn answer(&self, query: &Query, limits: QueryLimits) -> Result<Answered, QueryFault> {
        let (Query::Select { pattern, .. }
        | Query::Ask { pattern, .. }
        | Query::Construct { pattern, .. }
        | Query::Describe { pattern, .. }) = query;
        let mut found = self.solutions(query, pattern, limits).await?;
        let answer = match query {
            Query::Select { .. } => found.solutions.map(Answer::Solutions),
            Query::Ask { .. } => found.solutions.map(|solutions| Answer::Boolean(solutions.rows > 0)),
            Query::Construct { template, .. } => {
                found.solutions.map(|solutions| Answer::Graph(constructed(solutions, template)))
            }
            Query::Describe { .. } => self.described(found.solutions).await?.map(Answer::Graph),
        };
        let mut bytes: Vec<u64> = found.operators.iter().map(|operator| operator.bytes).collect();
        self.peers.sum(&mut bytes).await?;
        found.operators.iter_mut().zip(bytes).for_each(|(operator, bytes)| operator.bytes = bytes);
        Ok(Answered { answer, operators: found.operators })
    }

    /// Returns the encoded names of all named graphs, if the pattern may need them.
    async fn graph_names(&self, pattern: &GraphPattern) -> Result<Option<Vec<Vec<u8>>>, QueryFault> {
        if !pattern.to_string().contains("GRAPH") {
            return Ok(None);
        }
        let names = self.data.named.iter().map(|graph| graph.name);
        let terms = self.peers.fetch(names.clone()).await?;
        let dictionary = self.peers.dictionary();
        let bytes = |number| terms.bytes(number, self.peers.numbering(), &dictionary).to_vec();
        Ok(Some(names.map(bytes).collect()))
    }

    /// Returns the solutions of the pattern of a query, at the first place.
    async fn solutions(
        &self,
        query: &Query,
        pattern: &GraphPattern,
        limits: QueryLimits,
    ) -> Result<FoundSolutions, QueryFault> {
        let mut translation = Translation::default();
        translation.graph_names = self.graph_names(pattern).await?;
        let needs = split::Needs::of(pattern, &mut translation);
        let parts = split::parts(pattern, &mut translation);
        let is_whole = translation.node(pattern).is_some();
        let numbers = self.peers.find(&translation.terms).await?;
        let executor = PlaceEvaluator {
            data: &self.data,
            peers: self.peers,
            variables: &translation.variables,
            terms: &translation.terms,
            numbers,
            trace: Trace::new(self.peers.sent()),
            limits,
        };
        if let [node] = parts.as_slice()
            && is_whole
        {
            let mut table = executor.evaluate(node).await?;
            if matches!(query, Query::Ask { .. }) {
                table = table.project(&[]);
            }
            let solutions = self.gathered(table, &translation.variables).await?;
            return Ok(FoundSolutions { solutions, operators: executor.trace.into_operators() });
        }
        let mut tables = Vec::with_capacity(parts.len());
        for node in &parts {
            tables.push(executor.evaluate(node).await?);
        }
        let operators = executor.trace.into_operators();
        let rest = rest::Rest { query, pattern, needs: &needs, tables };
        let solutions = self.evaluate_rest(rest, &mut translation, limits).await?;
        Ok(FoundSolutions { solutions, operators })
    }

    /// Returns the rows of all places, with their terms, at the first one. Each place sends the terms along with its
    /// rows, so that the first one has nothing to look up.
    async fn gathered(&self, table: Table, names: &[String]) -> Result<Option<Solutions>, QueryFault> {
        let terms = self.peers.fetch(table.columns.iter().flatten().copied()).await?;
        let mut own = Solutions {
            variables: table.variables.iter().map(|variable| names[*variable].clone()).collect(),
            rows: table.rows,
            ..Solutions::default()
        };
        {
            let dictionary = self.peers.dictionary();
            let mut add = |number| own.terms.push(terms.bytes(number, self.peers.numbering(), &dictionary));
            own.columns = renumbered(&table, &mut add);
        }
        Ok(self.peers.gather_solutions(own).await?)
    }

    /// Returns the triples whose subject is in the solutions, and those of the blank nodes reachable from them.
    async fn described(
        &self,
        solutions: Option<Solutions>,
    ) -> Result<Option<BTreeSet<[Vec<u8>; 3]>>, QueryFault> {
        let mut next: BTreeSet<Vec<u8>> = BTreeSet::new();
        if let Some(solutions) = &solutions {
            let cells = (0..solutions.rows).flat_map(|row| {
                (0..solutions.columns.len()).filter_map(move |column| solutions.bytes(row, column))
            });
            next.extend(cells.map(<[u8]>::to_vec));
        }
        let mut seen = next.clone();
        let mut graph = BTreeSet::new();
        loop {
            let asked: Vec<Vec<u8>> = std::mem::take(&mut next).into_iter().collect();
            let numbers = self.peers.intern(&asked).await?;
            let mut count = [numbers.len() as u64];
            self.peers.sum(&mut count).await?;
            if count[0] == 0 {
                return Ok(solutions.map(|_| graph));
            }
            let subjects = Table { rows: numbers.len(), columns: vec![numbers], ..Table::empty(vec![0]) };
            let subjects = self.peers.replicate(subjects).await?;
            let mut triples = Table::empty(vec![0, 1, 2]);
            for subject in &subjects.columns[0] {
                self.data.default.visit([Some(*subject), None, None], |triple| {
                    triples.rows += 1;
                    triples.columns.iter_mut().zip(triple).for_each(|(column, number)| column.push(number));
                });
            }
            let triples = self.peers.gather(triples).await?;
            let terms = self.peers.fetch(triples.columns.iter().flatten().copied()).await?;
            let dictionary = self.peers.dictionary();
            let bytes = |number| terms.bytes(number, self.peers.numbering(), &dictionary).to_vec();
            for row in 0..triples.rows {
                let triple = [0, 1, 2].map(|part| bytes(triples.columns[part][row]));
                let is_blank = matches!(term::decode(&triple[2]), Term::BlankNode(_));
                if is_blank && seen.insert(triple[2].clone()) {
                    next.insert(triple[2].clone());
                }
                graph.insert(triple);
            }
        }
    }
}

/// Solutions at the first place, and the trace of their evaluation.
struct FoundSolutions {
    solutions: Option<Solutions>,
    operators: Vec<OperatorTrace>,
}

/// Returns the columns with each number replaced by one more than the position that `add` assigns to its term, at its
/// first occurrence.
fn renumbered(table: &Table, add: &mut impl FnMut(u32) -> u32) -> Vec<Vec<u32>> {
    let cells: usize = table.columns.iter().map(Vec::len).sum();
    let most = table.columns.iter().flatten().copied().max().unwrap_or(0) as usize;
    if most / 8 <= cells {
        // A slot for each number costs less than hashing that many.
        let mut positions = vec![UNBOUND; most + 1];
        let mut position = |number: &u32| {
            let known = &mut positions[*number as usize];
            if *known == UNBOUND && *number != UNBOUND {
                *known = 1 + add(*number);
            }
            *known
        };
        return table.columns.iter().map(|column| column.iter().map(&mut position).collect()).collect();
    }
    let mut positions: FxHashMap<u32, u32> = FxHashMap::default();
    let mut position = |number: &u32| match *number {
        UNBOUND => UNBOUND,
        number => *positions.entry(number).or_insert_with(|| 1 + add(number)),
    };
    table.columns.iter().map(|column| column.iter().map(&mut position).collect()).collect()
}

/// Returns the triples of a template for each solution; each solution gets its own blank nodes.
fn constructed(mut solutions: Solutions, template: &[TriplePattern]) -> BTreeSet<[Vec<u8>; 3]> {
    solutions.sort(); // so that blank nodes have the same names on any number of places
    let column = |variable: &Variable| solutions.variables.iter().position(|own| own == variable.as_str());
    let value = |row: usize, variable: &Variable| {
        column(variable).and_then(|column| solutions.bytes(row, column)).map(<[u8]>::to_vec)
    };
    let part = |row: usize, part: &TermPattern| match part {
        TermPattern::NamedNode(node) => Some(term::encoded(node.as_ref().into())),
        TermPattern::Literal(literal) => Some(term::encoded(literal.as_ref().into())),
        TermPattern::BlankNode(node) => {
            let name = format!("row{row}.{}", node.as_str());
            Some(term::encoded(oxrdf::BlankNodeRef::new_unchecked(&name).into()))
        }
        TermPattern::Variable(variable) => value(row, variable),
    };
    let mut graph = BTreeSet::new();
    for row in 0..solutions.rows {
        for TriplePattern { subject, predicate, object } in template {
            let predicate = match predicate {
                NamedNodePattern::NamedNode(node) => Some(term::encoded(node.as_ref().into())),
                NamedNodePattern::Variable(variable) => value(row, variable),
            };
            let (Some(subject), Some(predicate), Some(object)) =
                (part(row, subject), predicate, part(row, object))
            else {
                continue;
            };
            let triple = [subject, predicate, object];
            if crate::answer::triple(&triple).is_some() {
                graph.insert(triple);
            }
        }
    }
    graph
}
