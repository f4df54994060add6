//! The rest of a query at the first place: over the tables that all places have computed, and the triples it needs.
//!
//! Tables and triples are sent there with their terms, and `spareval` evaluates the rest. On one place nothing moves.
//! Invariant: all triples that the rest can ask for are there, so its answers are complete.

use super::algebra::Translation;
mod dataset;
pub(super) mod split;

use super::table::Table;
use super::trace::{QueryFault, QueryLimits};
use super::{QueryRun, canonical, constructed, renumbered};
use crate::answer::{Answer, Solutions, TermList};
use crate::store::dictionary::{Dictionary, UNBOUND};
use crate::store::graphs::{GraphStore, Quad};
use crate::store::{Store, Triple, term};
use dataset::Dataset;
use oxrdf::{NamedNode, NamedNodeRef, Term};
use rustc_hash::FxHashMap;
use spareval::{CancellationToken, QueryEvaluator, QueryResults, QuerySolution};
use spargebra::Query;
use spargebra::algebra::{GraphPattern, QueryDataset};
use split::Needs;
use std::collections::BTreeSet;
use std::time::Instant;

/// The part of a query that is left for one place.
pub(super) struct Rest<'a> {
    /// The query, for its base.
    pub query: &'a Query,
    /// Its pattern.
    pub pattern: &'a GraphPattern,
    /// The triples that it asks for.
    pub needs: &'a Needs,
    /// Results of the parts already evaluated: the rows of this place.
    pub tables: Vec<Table>,
}

/// Number of solutions between two checks of the clock.
const ROWS_PER_CHECK: usize = 1024;

impl QueryRun<'_> {
    /// Returns the solutions of the rest, at the first place.
    pub(super) async fn evaluate_rest(
        &self,
        rest: Rest<'_>,
        translation: &mut Translation,
        limits: QueryLimits,
    ) -> Result<Option<Solutions>, QueryFault> {
        let Rest { query, pattern, needs, tables } = rest;
        let mut gathered = Vec::with_capacity(tables.len());
        for table in tables {
            let table = self.peers.gather(table).await?;
            let rows = canonical::order(&table, self.peers).await?;
            gathered.push(table.pick(&rows));
        }
        if self.peers.size() == 1 {
            let pattern = split::rest(pattern, translation, &gathered);
            let dictionary = self.peers.dictionary();
            let dataset = Dataset { data: &self.data, dictionary: &dictionary, tables: &gathered };
            return evaluated(query, pattern, &dataset, limits).map(Some);
        }
        let mut quads = self.needed(needs).await?;
        let mut names = Table::empty(vec![0]);
        if needs.graphs && self.peers.rank() == 0 {
            names.columns[0].extend(self.data.named.iter().map(|graph| graph.name));
            names.rows = names.columns[0].len();
        }
        let mut dictionary = Dictionary::default();
        for table in gathered.iter_mut().chain([&mut quads, &mut names]) {
            self.intern_at_first(table, &mut dictionary).await?;
        }
        let own = if self.peers.rank() == 0 {
            let graphs = graphs_of(&quads, std::mem::take(&mut names.columns[0]));
            let pattern = split::rest(pattern, translation, &gathered);
            let data = graphs.whole();
            let dataset = Dataset { data: &data, dictionary: &dictionary, tables: &gathered };
            evaluated(query, pattern, &dataset, limits).map(Some)
        } else {
            Ok(None)
        };
        // The other places learn of a fault, so that all abort the query.
        let mut failed = [u64::from(own.is_err())];
        self.peers.sum(&mut failed).await?;
        match own {
            Ok(_) if failed[0] > 0 => {
                Err(QueryFault::Unsupported("the first place has given it up".to_owned()))
            }
            own => own,
        }
    }

    /// Returns the quads that the rest needs, at the first place; those of the default graph have an unbound name.
    async fn needed(&self, needs: &Needs) -> Result<Table, QueryFault> {
        let names = needs.predicates.iter();
        let names: Vec<Vec<u8>> =
            names.map(|name| term::encoded(NamedNodeRef::new_unchecked(name).into())).collect();
        let numbers = self.peers.find(&names).await?;
        let mut quads = Table { optional: vec![0], ..Table::empty(vec![0, 1, 2, 3]) };
        let mut add = |name: u32, store: &Store| {
            let mut add = |[subject, predicate, object]: Triple| {
                quads.rows += 1;
                let quad = [name, subject, predicate, object];
                quads.columns.iter_mut().zip(quad).for_each(|(column, number)| column.push(number));
            };
            if needs.all {
                store.visit([None; 3], &mut add);
            } else {
                numbers.iter().for_each(|number| store.visit([None, Some(*number), None], &mut add));
            }
        };
        add(UNBOUND, &self.data.default);
        if needs.graphs {
            self.data.named.iter().for_each(|graph| add(graph.name, &graph.store));
        }
        Ok(self.peers.gather(quads).await?)
    }

    /// Renumbers the terms of a table at the first place with numbers of `dictionary`.
    async fn intern_at_first(
        &self,
        table: &mut Table,
        dictionary: &mut Dictionary,
    ) -> Result<(), QueryFault> {
        let terms = self.peers.fetch(table.columns.iter().flatten().copied()).await?;
        let own = self.peers.dictionary();
        let mut add = |number| dictionary.intern(terms.bytes(number, self.peers.numbering(), &own));
        table.columns = renumbered(table, &mut add);
        Ok(()) // their numbers by the numbering of one place, in which the first has number 1
    }
}

/// Returns the graphs of a table of quads, and of these names, some of which may have no quads.
fn graphs_of(quads: &Table, mut names: Vec<u32>) -> GraphStore {
    let quad = |row: usize| -> Quad { [0, 1, 2, 3].map(|part| quads.columns[part][row]) };
    let (default, named): (Vec<Quad>, Vec<Quad>) =
        (0..quads.rows).map(quad).partition(|quad| quad[0] == UNBOUND);
    let triples: Vec<Triple> = default.into_iter().map(|[_, triple @ ..]| triple).collect();
    names.sort_unstable();
    GraphStore::of(Store::of(&triples), &names, named, Store::of)
}

/// Reference answer by `spareval` over the triples of one place.
#[derive(Debug)]
pub enum Reference {
    /// An answer that must be equal to that of this program.
    Answer(Answer),
    /// Number of solutions, for a query that leaves open which solutions it returns.
    Rows(u64),
}

/// Answers a query by `spareval` alone, over triples that are all at this place.
///
/// # Errors
/// The query has no answer.
pub fn reference(
    query: &Query,
    graphs: &GraphStore,
    dictionary: &Dictionary,
) -> Result<Reference, QueryFault> {
    let (Query::Select { pattern, .. }
    | Query::Ask { pattern, .. }
    | Query::Construct { pattern, .. }
    | Query::Describe { pattern, .. }) = query;
    let data = match query.dataset() {
        Some(QueryDataset { default, named }) => {
            let number = |name: &NamedNode| dictionary.find(&term::encoded(name.as_ref().into()));
            let numbers =
                |names: &[NamedNode]| names.iter().filter_map(number).map(|index| index + 1).collect();
            let (default, named): (Vec<u32>, Vec<u32>) =
                (numbers(default), numbers(named.as_deref().unwrap_or_default()));
            graphs.chosen(&default, &named)
        }
        None => graphs.whole(),
    };
    let dataset = Dataset { data: &data, dictionary, tables: &[] };
    if let Query::Describe { pattern, base_iri, .. } = query {
        let failed = |error: spareval::QueryEvaluationError| QueryFault::Unsupported(error.to_string());
        let evaluator = QueryEvaluator::new();
        let (pattern, base_iri) = (pattern.clone(), base_iri.clone());
        let whole = Query::Describe { dataset: None, pattern, base_iri };
        let results = evaluator.prepare(&whole).execute(&dataset).map_err(failed)?;
        let QueryResults::Graph(triples) = results else { return Ok(Reference::Rows(0)) };
        let mut graph = BTreeSet::new();
        for triple in triples {
            let triple = triple.map_err(failed)?;
            let parts = [triple.subject.into(), triple.predicate.into(), triple.object];
            graph.insert(parts.map(|part: Term| term::encoded(part.as_ref())));
        }
        return Ok(Reference::Answer(Answer::Graph(graph)));
    }
    let is_open = split::has_unordered_limit(pattern);
    let names: Vec<Vec<u8>> =
        data.named.iter().map(|graph| dictionary.bytes(graph.name as usize - 1).to_vec()).collect();
    let whole = split::ordered(&split::by_graph(pattern, &names));
    let solutions = evaluated(query, whole, &dataset, QueryLimits::default())?;
    let answer = match query {
        Query::Ask { .. } => Answer::Boolean(solutions.rows > 0),
        Query::Construct { template, .. } => Answer::Graph(constructed(solutions, template)),
        _ => Answer::Solutions(Solutions { is_ordered: split::is_ordered(pattern), ..solutions }),
    };
    Ok(if is_open { Reference::Rows(answer.rows()) } else { Reference::Answer(answer) })
}

/// Returns the solutions of a pattern over a dataset, by `spareval`.
fn evaluated(
    query: &Query,
    pattern: GraphPattern,
    dataset: &Dataset<'_>,
    limits: QueryLimits,
) -> Result<Solutions, QueryFault> {
    let is_ordered = split::is_ordered(&pattern);
    let query = Query::Select { dataset: None, pattern, base_iri: query.base_iri().cloned() };
    let token = CancellationToken::new();
    let evaluator = QueryEvaluator::new().with_cancellation_token(token.clone());
    let failed = |error: spareval::QueryEvaluationError| match limits.time {
        Some((allowed, begin)) if begin.elapsed() > allowed => QueryFault::Time { allowed },
        _ => QueryFault::Unsupported(error.to_string()),
    };
    let _watch = limits.time.map(|(allowed, begin)| TimeoutWatch::start(token, begin + allowed));
    let results = evaluator.prepare(&query).execute(dataset).map_err(failed)?;
    let QueryResults::Solutions(results) = results else {
        return Err(QueryFault::Unsupported("no solutions".to_owned()));
    };
    let mut solutions = SolutionsWriter::new(results.variables(), is_ordered);
    for (count, solution) in results.enumerate() {
        solutions.add(&solution.map_err(failed)?);
        if count % ROWS_PER_CHECK == 0 {
            limits.check(solutions.memory(), limits.is_over_time())?;
        }
    }
    Ok(solutions.solutions)
}

/// Aborts an evaluation at a deadline, from its own thread, unless dropped before.
struct TimeoutWatch(std::sync::mpsc::Sender<()>);

impl TimeoutWatch {
    fn start(token: CancellationToken, end: Instant) -> TimeoutWatch {
        let (sender, ended) = std::sync::mpsc::channel::<()>();
        std::thread::spawn(move || {
            let left = end.saturating_duration_since(Instant::now());
            if ended.recv_timeout(left) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                token.cancel();
            }
        });
        TimeoutWatch(sender)
    }
}

impl Drop for TimeoutWatch {
    fn drop(&mut self) {
        let _ = self.0.send(()); // it may have ended
    }
}

/// Collects solutions with their terms.
struct SolutionsWriter {
    solutions: Solutions,
    known: FxHashMap<Vec<u8>, u32>,
    bytes: u64,
}

impl SolutionsWriter {
    fn new(variables: &[oxrdf::Variable], is_ordered: bool) -> SolutionsWriter {
        let variables: Vec<String> = variables.iter().map(|variable| variable.as_str().to_owned()).collect();
        let columns = vec![Vec::new(); variables.len()];
        let solutions = Solutions { variables, rows: 0, columns, terms: TermList::default(), is_ordered };
        SolutionsWriter { solutions, known: FxHashMap::default(), bytes: 0 }
    }

    fn add(&mut self, solution: &QuerySolution) {
        let Solutions { rows, columns, terms, .. } = &mut self.solutions;
        *rows += 1;
        for (column, value) in columns.iter_mut().zip(solution.values()) {
            let Some(value) = value else {
                column.push(0);
                continue;
            };
            let bytes = term::encoded(value.as_ref());
            let position = match self.known.get(&bytes) {
                Some(position) => *position,
                None => {
                    let position = terms.push(&bytes);
                    self.bytes += bytes.len() as u64;
                    self.known.insert(bytes, position);
                    position
                }
            };
            column.push(1 + position);
        }
        self.bytes += 4 * columns.len() as u64;
    }

    fn memory(&self) -> u64 {
        self.bytes
    }
}
