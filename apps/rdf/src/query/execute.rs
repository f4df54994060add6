//! Evaluates the algebra over all places: each keeps the rows that it finds, and rows are exchanged for joins.
//!
//! A triple is stored at the owner of its subject, so a pattern whose subject is bound is looked up after each row has
//! been sent to that owner. Otherwise the smaller side goes to all places, or both sides go to the owner of a shared
//! variable; the exact numbers of rows decide which is cheapest. Invariant: all places make the same decisions,
//! because these depend on sums over all of them.

use super::algebra::{BoundExpression, Node};
use super::join::{self, Matcher, RowPairs};
use super::quads::{join_pattern, scan, scan_leaving};
use super::scan::{Pattern, PatternPart};
use super::statistics::{COUNTS, PatternCounts, PlannedPattern, order};
use super::table::{Table, VariableId};
use super::trace::{OperatorTrace, QueryFault, QueryLimits, Trace};
use super::{canonical, evaluate};
use crate::peers::Peers;
use crate::store::dictionary::UNBOUND;
use crate::store::graphs::ActiveDataset;
use isles::prelude::{Cycles, work};
use std::collections::VecDeque;
use std::pin::Pin;

/// Evaluator of a query at one place.
pub struct PlaceEvaluator<'a> {
    /// The triples of this place.
    pub data: &'a ActiveDataset<'a>,
    /// The connections to the other places.
    pub peers: &'a Peers,
    /// The names of variables.
    pub variables: &'a [String],
    /// The terms of the query, encoded, and their numbers.
    pub terms: &'a [Vec<u8>],
    /// The number of each of these terms.
    pub numbers: Vec<u32>,
    /// Trace of the operators executed.
    pub trace: Trace,
    /// Limits of the query.
    pub limits: QueryLimits,
}

/// Cost of sending and receiving a number of a row (`MOVE`), and of inserting a row into a hash table or looking it up
/// (`LOOKUP`): about 12 and 45 ns on a host.
const MOVE: f64 = 12.0;
const LOOKUP: f64 = 45.0;

/// Minimum number of rows processed between two checks of the limits of a query.
const LOOKS: usize = 1 << 16;

/// Cycles of a modelled core for each row of an operator: a search in sorted keys, and copying its numbers. Assumed.
const ROW_CYCLES: u64 = 150;

/// Exchange of rows before a join of two tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowExchange {
    /// Rows of the left go to the owner of the subject, where the triples are.
    ToSubject(VariableId),
    /// Rows of the left go to the owner of the object, where the triples or copies of them are.
    ToObject(VariableId),
    /// Rows of the left go to all places.
    LeftToAll,
    /// Rows of the right go to all places.
    RightToAll,
    /// Both go to the owner of this variable.
    Both(VariableId),
}

impl RowExchange {
    fn name(self, variables: &[String]) -> String {
        match self {
            RowExchange::ToSubject(variable) | RowExchange::ToObject(variable) => {
                format!("rows to the owner of ?{}", variables[variable])
            }
            RowExchange::LeftToAll => "rows to all places".to_owned(),
            RowExchange::RightToAll => "the other side to all places".to_owned(),
            RowExchange::Both(variable) => format!("both sides to the owner of ?{}", variables[variable]),
        }
    }
}

/// Returns the later patterns with the subject of `pattern` whose other variables are bound by `table` or `pattern`;
/// empty if the table binds the subject. They reduce the rows, and their triples are at the same place as those of
/// `pattern`.
fn star(
    patterns: &[Pattern],
    later: &VecDeque<PlannedPattern>,
    pattern: &Pattern,
    table: &Table,
) -> Vec<usize> {
    let Some(subject) = pattern.subject().filter(|subject| table.position(*subject).is_none()) else {
        return Vec::new();
    };
    let own = pattern.variables();
    let is_bound = |variable: &VariableId| own.contains(variable) || table.variables.contains(variable);
    let fits = |other: &Pattern| other.subject() == Some(subject) && other.variables().iter().all(is_bound);
    later.iter().map(|step| step.pattern).filter(|position| fits(&patterns[*position])).collect()
}

type Evaluation<'a> = Pin<Box<dyn Future<Output = Result<Table, QueryFault>> + 'a>>;

impl<'a> PlaceEvaluator<'a> {
    /// Returns this place's share of the solutions of a node.
    pub fn evaluate<'b>(&'b self, node: &'b Node) -> Evaluation<'b> {
        Box::pin(async move {
            self.trace.enter();
            let table = match node {
                Node::Triples { patterns, filters } => self.triples(patterns, filters, None).await?,
                Node::Join(left, right) => {
                    let (left, right) = (self.evaluate(left).await?, self.evaluate(right).await?);
                    self.join(left, right).await?
                }
                Node::LeftJoin { left, right, filter } => {
                    let (left, right) = (self.evaluate(left).await?, self.evaluate(right).await?);
                    self.left_join(left, right, filter.as_ref()).await?
                }
                Node::Union(left, right) => {
                    let table = self.evaluate(left).await?.union(self.evaluate(right).await?);
                    self.recorded("union", None, table).await?
                }
                Node::Minus(left, right) => {
                    let (left, right) = (self.evaluate(left).await?, self.evaluate(right).await?);
                    self.minus(left, right).await?
                }
                Node::Filter(inner, filter) => {
                    let inner = self.evaluate(inner).await?;
                    self.filter(inner, filter).await?
                }
                Node::Extend { inner, variable, value } => {
                    let inner = self.evaluate(inner).await?;
                    self.extend(inner, *variable, value).await?
                }
                Node::Graphs(name) => self.graph_names(*name).await?,
                Node::Values { variables, rows } => self.values(variables, rows).await?,
                Node::Project(inner, variables) => {
                    let inner = match inner.as_ref() {
                        Node::Triples { patterns, filters } => {
                            self.triples(patterns, filters, Some(variables)).await?
                        }
                        inner => self.evaluate(inner).await?,
                    };
                    inner.project(variables)
                }
                Node::Distinct(inner) => {
                    let inner = self.evaluate(inner).await?;
                    self.distinct(inner).await?
                }
                Node::Count { inner, keys, counts } => {
                    let inner = self.evaluate(inner).await?;
                    self.count(inner, keys, counts).await?
                }
                Node::Slice { inner, start, length } => {
                    let inner = self.evaluate(inner).await?;
                    self.slice(inner, *start, *length).await?
                }
            };
            self.trace.leave();
            Ok(table)
        })
    }

    /// Records the result of an operator, over all places, and checks the limits.
    pub(super) async fn recorded(
        &self,
        operator: impl Into<String>,
        estimate: Option<f64>,
        table: Table,
    ) -> Result<Table, QueryFault> {
        let own = (table.rows * table.columns.len() * 4) as u64;
        work(Cycles(ROW_CYCLES * table.rows as u64));
        let mut sums = [table.rows as u64, own, u64::from(self.limits.is_over_time())];
        self.peers.sum(&mut sums).await?;
        self.trace.note(OperatorTrace::new(operator.into(), estimate, sums[0]), self.peers.sent());
        self.limits.check(sums[1], sums[2] > 0)?;
        Ok(table)
    }

    /// Calls `part` with its start row until it has reached the end of `rows` rows; `part` returns its end row, and
    /// the bytes produced so far. The calls stop once this place exceeds a limit, which [`PlaceEvaluator::check`] or
    /// [`PlaceEvaluator::recorded`] then reports.
    fn in_parts(&self, rows: usize, mut part: impl FnMut(usize) -> (usize, usize)) {
        let (mut end, mut bytes) = part(0);
        while end < rows && !self.limits.is_exceeded(bytes as u64) {
            (end, bytes) = part(end);
        }
    }

    /// Returns the number of rows that a part examines: all of them if the query has no limits.
    fn looks(&self) -> usize {
        if self.limits.is_free() { usize::MAX } else { LOOKS }
    }

    /// Returns the table of the parts that `join` produces from some rows each; see [`PlaceEvaluator::in_parts`].
    fn bounded(&self, rows: usize, mut join: impl FnMut(usize) -> (Table, usize)) -> Table {
        let mut all: Option<Table> = None;
        self.in_parts(rows, |from| {
            let (part, end) = join(from);
            let all = match &mut all {
                Some(all) => {
                    all.append(&part);
                    all
                }
                none => none.insert(part),
            };
            (end, all.rows * all.columns.len() * 4)
        });
        all.unwrap_or_default()
    }

    /// Same as `bounded`, for a function of a table with some of the rows, few at first.
    fn bounded_by_rows(&self, table: &Table, join: impl Fn(&Table) -> Table) -> Table {
        if self.limits.is_free() {
            return join(table);
        }
        let mut size = 1;
        self.bounded(table.rows, |from| {
            let end = table.rows.min(from + size);
            let rows: Vec<u32> = (from as u32..end as u32).collect();
            let part = join(&table.pick(&rows));
            size = if part.rows < LOOKS / 2 { size * 2 } else { (size / 2).max(1) };
            (part, end)
        })
    }

    /// Checks the limits, with `bytes` produced by this place within an operator.
    async fn check(&self, bytes: usize) -> Result<(), QueryFault> {
        if self.limits.is_free() {
            return Ok(());
        }
        let mut sums = [bytes as u64, u64::from(self.limits.is_over_time())];
        self.peers.sum(&mut sums).await?;
        self.limits.check(sums[0], sums[1] > 0)
    }

    /// Evaluates a basic graph pattern, applying filters as soon as their variables are bound. If only some variables
    /// are `wanted`, columns that are no longer needed are dropped, so that they do not move with their rows.
    async fn triples(
        &self,
        patterns: &[Pattern],
        filters: &[BoundExpression],
        wanted: Option<&[VariableId]>,
    ) -> Result<Table, QueryFault> {
        let number = |slot| match slot {
            PatternPart::Term(position) => PatternPart::Term(self.numbers[position as usize]),
            variable @ PatternPart::Variable(_) => variable,
        };
        let patterns: Vec<Pattern> = patterns
            .iter()
            .map(|own| Pattern { parts: own.parts.map(number), graph: own.graph.map(number) })
            .collect();
        let counts = self.counts(&patterns).await?;
        let mut plan = VecDeque::from(order(&patterns, &counts));
        // One solution of the whole pattern, without variables: it exists at one place only.
        let mut table = if self.peers.rank() == 0 { Table::unit() } else { Table::empty(Vec::new()) };
        let mut left: Vec<&BoundExpression> = filters.iter().collect();
        let mut is_begun = false;
        while let Some(step) = plan.pop_front() {
            let (pattern, count) = (&patterns[step.pattern], counts[step.pattern]);
            let mut star = star(&patterns, &plan, pattern, &table);
            star.retain(|_| self.data.is_by_subject());
            table = if !is_begun {
                let table = scan(self.data, pattern);
                self.recorded(self.described("scan", pattern, None), Some(step.estimate), table).await?
            } else if self.is_smaller(&patterns, &counts, step, &star) {
                plan.retain(|other| !star.contains(&other.pattern));
                let star = star.iter().map(|position| patterns[*position]);
                self.join_star(table, pattern, star.collect()).await?
            } else {
                self.join_triples(table, pattern, count, step.estimate).await?
            };
            is_begun = true;
            let binds = |filter: &BoundExpression| {
                filter.variables.iter().all(|(_, variable)| table.variables.contains(variable))
            };
            let (ready, later): (Vec<_>, Vec<_>) = left.into_iter().partition(|filter| binds(filter));
            left = later;
            for filter in ready {
                table = self.filter(table, filter).await?;
            }
            if let Some(wanted) = wanted {
                let later = plan.iter().flat_map(|step| patterns[step.pattern].variables());
                let of_filters = left.iter().flat_map(|filter| &filter.variables);
                let needed: Vec<VariableId> = later
                    .chain(of_filters.map(|(_, variable)| *variable))
                    .chain(wanted.iter().copied())
                    .collect();
                let kept: Vec<VariableId> =
                    table.variables.iter().copied().filter(|own| needed.contains(own)).collect();
                table = table.project(&kept);
            }
        }
        for filter in left {
            table = self.filter(table, filter).await?;
        }
        Ok(table)
    }

    /// Returns `true` if a pattern with its star has fewer solutions than the pattern joined to the rows so far.
    fn is_smaller(
        &self,
        patterns: &[Pattern],
        counts: &[PatternCounts],
        step: PlannedPattern,
        star: &[usize],
    ) -> bool {
        let positions = [&[step.pattern], star].concat();
        let own: Vec<Pattern> = positions.iter().map(|position| patterns[*position]).collect();
        let own_counts: Vec<PatternCounts> = positions.iter().map(|position| counts[*position]).collect();
        let alone = order(&own, &own_counts).last().map_or(f64::INFINITY, |last| last.estimate);
        !star.is_empty() && alone < step.estimate
    }

    /// Joins rows to the solutions of a pattern and its star, which each place finds without the others.
    async fn join_star(
        &self,
        table: Table,
        pattern: &Pattern,
        star: Vec<Pattern>,
    ) -> Result<Table, QueryFault> {
        let mut own = scan(self.data, pattern);
        own = self.recorded(self.described("scan", pattern, None), None, own).await?;
        for other in &star {
            own = join_pattern(self.data, &own, other);
            own = self.recorded(self.described("join", other, None), None, own).await?;
        }
        self.join(table, own).await
    }

    async fn counts(&self, patterns: &[Pattern]) -> Result<Vec<PatternCounts>, QueryFault> {
        let own = patterns.iter().map(|pattern| PatternCounts::of(self.data, pattern));
        let mut numbers: Vec<u64> = own.flat_map(PatternCounts::numbers).collect();
        self.peers.sum(&mut numbers).await?;
        Ok(numbers.chunks(COUNTS).map(PatternCounts::of_numbers).collect())
    }

    fn described(&self, verb: &str, pattern: &Pattern, exchange: Option<RowExchange>) -> String {
        let slot = |slot: &PatternPart| match slot {
            PatternPart::Variable(variable) => format!("?{}", self.variables[*variable]),
            PatternPart::Term(number) => {
                let known = self.numbers.iter().position(|own| own == number);
                let bytes = known.map(|position| &self.terms[position]);
                bytes.map_or_else(|| "?".to_owned(), |bytes| crate::store::term::decode(bytes).to_string())
            }
        };
        let parts: Vec<String> = pattern.parts.iter().map(slot).collect();
        let graph = pattern.graph.map_or(String::new(), |graph| format!(" in {}", slot(&graph)));
        let how = exchange.filter(|_| self.peers.size() > 1);
        let how = how.map_or(String::new(), |how| format!("; {}", how.name(self.variables)));
        format!("{verb} {}{graph}{how}", parts.join(" "))
    }

    /// Joins rows to the triples of a pattern, wherever they are stored.
    async fn join_triples(
        &self,
        table: Table,
        pattern: &Pattern,
        counts: PatternCounts,
        estimate: f64,
    ) -> Result<Table, QueryFault> {
        let (exchange, leaving) = self.exchange_for(&table, pattern, counts).await?;
        let joined = match exchange {
            RowExchange::ToSubject(subject) => {
                let table = self.peers.redistribute_some(table, subject, leaving).await?;
                self.bounded_by_rows(&table, |rows| join_pattern(self.data, rows, pattern))
            }
            RowExchange::ToObject(object) => {
                let table = self.peers.redistribute_some(table, object, leaving).await?;
                let join = |data: &ActiveDataset<'_>, rows: &Table| join_pattern(data, rows, pattern);
                self.bounded_by_rows(&table, |rows| {
                    let mut joined = join(self.data, rows);
                    self.data.copies.iter().for_each(|copies| joined.append(&join(copies, rows)));
                    joined
                })
            }
            RowExchange::LeftToAll => {
                let table = self.peers.replicate(table).await?;
                let joined = self.bounded_by_rows(&table, |rows| join_pattern(self.data, rows, pattern));
                Table { placed_by: pattern.subject().filter(|_| self.data.is_by_subject()), ..joined }
            }
            RowExchange::RightToAll => {
                let matches = self.peers.replicate(scan(self.data, pattern)).await?;
                self.joined(&table, &matches)
            }
            RowExchange::Both(variable) => {
                let table = self.peers.redistribute_some(table, variable, leaving).await?;
                // Matches that stay are looked up in place; the others form a table at the place that they move to.
                let leaving = scan_leaving(self.data, pattern, variable, self.peers.owns());
                let arrived = self.peers.redistribute(leaving, variable).await?;
                let mut joined = self.bounded_by_rows(&table, |rows| join_pattern(self.data, rows, pattern));
                if arrived.rows > 0
                    && !self.limits.is_exceeded((joined.rows * joined.columns.len() * 4) as u64)
                {
                    joined.append(&self.joined(&table, &arrived));
                }
                joined
            }
        };
        self.recorded(self.described("join", pattern, Some(exchange)), Some(estimate), joined).await
    }

    /// Returns the exchange for which a place handles, sends and receives the fewest rows, and the number of rows that
    /// then leave this place if they go to an owner.
    async fn exchange_for(
        &self,
        table: &Table,
        pattern: &Pattern,
        counts: PatternCounts,
    ) -> Result<(RowExchange, u64), QueryFault> {
        let places = self.peers.size() as f64;
        let shared: Vec<VariableId> =
            pattern.variables().into_iter().filter(|variable| table.variables.contains(variable)).collect();
        if places == 1.0 {
            let any = shared.first();
            return Ok((any.map_or(RowExchange::LeftToAll, |any| RowExchange::ToSubject(*any)), 0));
        }
        let own = self.leaving(&[table], &shared);
        let mut counted = own.clone();
        self.peers.sum(&mut counted).await?;
        let (rows, leaving) = (counted[0] as f64, &counted[1..]);
        let moved = MOVE * table.columns.len() as f64;
        let of_match = MOVE * pattern.variables().len() as f64 + LOOKUP;
        let mut best = ((moved + LOOKUP) * rows, RowExchange::LeftToAll, 0);
        let mut offer = |cost: f64, exchange, leaving| {
            if cost < best.0 {
                best = (cost, exchange, leaving);
            }
        };
        offer(of_match * counts.triples as f64 + LOOKUP * rows / places, RowExchange::RightToAll, 0);
        for ((variable, leaving), own) in shared.into_iter().zip(leaving).zip(&own[1..]) {
            let handled = LOOKUP * rows + moved * *leaving as f64;
            if pattern.subject() == Some(variable) && self.data.is_by_subject() {
                offer(handled / places, RowExchange::ToSubject(variable), *own);
                continue;
            }
            let is_object = pattern.parts[2].variable() == Some(variable);
            if is_object && self.data.copies.is_some() {
                // Two lookups, but only the rows move.
                offer((handled + LOOKUP * rows) / places, RowExchange::ToObject(variable), *own);
            } else {
                let others = counts.triples as f64 * (places - 1.0) / places;
                let matches = if is_object { counts.foreign_objects as f64 } else { others };
                offer((handled + of_match * matches) / places, RowExchange::Both(variable), *own);
            }
        }
        Ok((best.1, best.2))
    }

    /// Returns, for each table, its rows at this place, and how many of them would leave it if they went to the owner
    /// of each variable.
    fn leaving(&self, tables: &[&Table], variables: &[VariableId]) -> Vec<u64> {
        let mut numbers = Vec::with_capacity(tables.len() * (1 + variables.len()));
        for table in tables {
            numbers.push(table.rows as u64);
            numbers.extend(variables.iter().map(|variable| {
                let column = table.column(*variable).filter(|_| table.placed_by != Some(*variable));
                // Joined variables are bound in each row.
                column.map_or(0, |column| self.peers.numbering().count_elsewhere(column, self.peers.rank()))
            }));
        }
        numbers
    }

    /// Redistributes the rows of two tables so that matching ones meet; with `keeps_left` each row of the left exists
    /// at one place only.
    async fn colocate(
        &self,
        left: Table,
        right: Table,
        keeps_left: bool,
    ) -> Result<(Table, Table, RowExchange), QueryFault> {
        let places = self.peers.size() as f64;
        if places == 1.0 {
            return Ok((left, right, RowExchange::RightToAll));
        }
        let (strict, _) = join::shared(&left, &right);
        let own = self.leaving(&[&left, &right], &strict);
        let mut counted = own.clone();
        self.peers.sum(&mut counted).await?;
        let (of_left, of_right) = counted.split_at(1 + strict.len());
        let [left_rows, right_rows] = [of_left[0], of_right[0]].map(|rows| rows as f64);
        let moved = |table: &Table| MOVE * table.columns.len() as f64 + LOOKUP;
        let to_all = |table: &Table, rows: f64, others: f64| moved(table) * rows + LOOKUP * others / places;
        let mut best = (to_all(&right, right_rows, left_rows), RowExchange::RightToAll);
        let left_to_all = to_all(&left, left_rows, right_rows);
        if !keeps_left && left_to_all < best.0 {
            best = (left_to_all, RowExchange::LeftToAll);
        }
        for (at, variable) in strict.iter().copied().enumerate() {
            let handled = |table: &Table, counted: &[u64]| {
                LOOKUP * counted[0] as f64 + MOVE * (table.columns.len() as u64 * counted[1 + at]) as f64
            };
            let cost = (handled(&left, of_left) + handled(&right, of_right)) / places;
            if cost < best.0 {
                best = (cost, RowExchange::Both(variable));
            }
        }
        Ok(match best.1 {
            RowExchange::LeftToAll => (self.peers.replicate(left).await?, right, best.1),
            RowExchange::Both(variable) => {
                let at = 1 + strict.iter().position(|own| *own == variable).unwrap_or_default();
                let left = self.peers.redistribute_some(left, variable, own[at]).await?;
                let of_right = own[1 + strict.len() + at];
                (left, self.peers.redistribute_some(right, variable, of_right).await?, best.1)
            }
            how => (left, self.peers.replicate(right).await?, how),
        })
    }

    fn with_exchange(&self, operator: &str, exchange: RowExchange) -> String {
        let how = exchange.name(self.variables);
        if self.peers.size() > 1 { format!("{operator}; {how}") } else { operator.to_owned() }
    }

    async fn join(&self, left: Table, right: Table) -> Result<Table, QueryFault> {
        let (left, right, exchange) = self.colocate(left, right, false).await?;
        let mut joined = self.joined(&left, &right);
        if exchange == RowExchange::LeftToAll {
            joined.placed_by = right.placed_by;
        }
        self.recorded(self.with_exchange("join", exchange), None, joined).await
    }

    async fn left_join(
        &self,
        left: Table,
        right: Table,
        filter: Option<&BoundExpression>,
    ) -> Result<Table, QueryFault> {
        let (left, right, exchange) = self.colocate(left, right, true).await?;
        let matcher = Matcher::new(&left, &right);
        let joined = if let Some(filter) = filter {
            let pairs = self.pairs_passing(&matcher, &left, &right, filter).await?;
            join::left_joined(&left, 0..left.rows, &right, &pairs)
        } else {
            self.bounded(left.rows, |from| {
                let (pairs, end) = matcher.pairs(from, self.looks());
                (join::left_joined(&left, from..end, &right, &pairs), end)
            })
        };
        self.recorded(self.with_exchange("left join", exchange), None, joined).await
    }

    /// Returns the compatible pairs of rows of two tables whose solutions pass a filter.
    async fn pairs_passing(
        &self,
        matcher: &Matcher<'_>,
        left: &Table,
        right: &Table,
        filter: &BoundExpression,
    ) -> Result<RowPairs, QueryFault> {
        let mut pairs = RowPairs::default();
        // A pair becomes a row over the variables of both.
        let cells = left.columns.len() + right.columns.len();
        self.in_parts(left.rows, |from| {
            let (part, end) = matcher.pairs(from, self.looks());
            pairs.left.extend(part.left);
            pairs.right.extend(part.right);
            (end, pairs.left.len() * cells * 4)
        });
        self.check(pairs.left.len() * cells * 4).await?;
        let keep = self.passes(&join::merged(left, right, &pairs), filter).await?;
        let kept =
            |rows: &[u32]| rows.iter().zip(&keep).filter(|(_, keep)| **keep).map(|(row, _)| *row).collect();
        Ok(RowPairs { left: kept(&pairs.left), right: kept(&pairs.right) })
    }

    async fn minus(&self, left: Table, right: Table) -> Result<Table, QueryFault> {
        let (left, right, exchange) = self.colocate(left, right, true).await?;
        let matcher = Matcher::new(&left, &right);
        let mut keep = vec![true; left.rows];
        self.in_parts(left.rows, |from| (matcher.exclude(from, self.looks(), &mut keep), 0));
        self.recorded(self.with_exchange("minus", exchange), None, left.filter(&keep)).await
    }

    /// Returns the joined solutions of both tables at this place.
    fn joined(&self, left: &Table, right: &Table) -> Table {
        let matcher = Matcher::new(left, right);
        self.bounded(left.rows, |from| matcher.join(from, self.looks()))
    }

    async fn passes(&self, table: &Table, filter: &BoundExpression) -> Result<Vec<bool>, QueryFault> {
        let terms = self.peers.fetch(evaluate::used(table, filter)).await?;
        Ok(evaluate::passes(table, filter, self.peers, &terms))
    }

    async fn filter(&self, table: Table, filter: &BoundExpression) -> Result<Table, QueryFault> {
        let keep = self.passes(&table, filter).await?;
        self.recorded(format!("filter {}", filter.text), None, table.filter(&keep)).await
    }

    async fn extend(
        &self,
        mut table: Table,
        variable: VariableId,
        value: &BoundExpression,
    ) -> Result<Table, QueryFault> {
        let column = match (&value.expression, value.variables.as_slice()) {
            // The value of a plain variable keeps its lexical form.
            (sparopt::algebra::Expression::Variable(_), [(_, other)]) => {
                table.column(*other).map_or_else(|| vec![UNBOUND; table.rows], <[u32]>::to_vec)
            }
            _ => {
                let terms = self.peers.fetch(evaluate::used(&table, value)).await?;
                let values = evaluate::values(&table, value, self.peers, &terms);
                self.numbered(values).await?
            }
        };
        let mut unbound = [column.iter().filter(|number| **number == UNBOUND).count() as u64];
        self.peers.sum(&mut unbound).await?;
        table.variables.push(variable);
        table.columns.push(column);
        table.optional.extend((unbound[0] > 0).then_some(variable));
        self.recorded(format!("bind ?{} to {}", self.variables[variable], value.text), None, table).await
    }

    /// Returns the numbers of values that may be new terms.
    pub(super) async fn numbered(&self, values: Vec<Option<Vec<u8>>>) -> Result<Vec<u32>, QueryFault> {
        let mut distinct: Vec<Vec<u8>> = values.iter().flatten().cloned().collect();
        distinct.sort_unstable();
        distinct.dedup();
        let numbers = self.peers.intern(&distinct).await?;
        let number = |value: Vec<u8>| distinct.binary_search(&value).map_or(UNBOUND, |at| numbers[at]);
        Ok(values.into_iter().map(|value| value.map_or(UNBOUND, number)).collect())
    }

    /// Returns the named graphs of the dataset, or one solution if the graph with a constant name exists.
    async fn graph_names(&self, name: PatternPart) -> Result<Table, QueryFault> {
        let name = match name {
            PatternPart::Term(position) => PatternPart::Term(self.numbers[position as usize]),
            variable => variable,
        };
        // At one place, so that each solution exists once.
        let graphs = if self.peers.rank() == 0 { self.data.graphs(name.term()) } else { &[] };
        let names = graphs.iter().map(|graph| graph.name).collect();
        let mut table = Table::empty(name.variable().into_iter().collect());
        table.columns.iter_mut().for_each(|column| column.clone_from(&names));
        table.rows = graphs.len();
        self.recorded("graphs", None, table).await
    }

    async fn values(&self, variables: &[VariableId], rows: &[Vec<Option<u32>>]) -> Result<Table, QueryFault> {
        // At one place, so that each solution exists once.
        let own = if self.peers.rank() == 0 { rows } else { &[] };
        let mut table = Table::empty(variables.to_vec());
        for (at, column) in table.columns.iter_mut().enumerate() {
            let term = |row: &Vec<Option<u32>>| row[at].map(|position| self.terms[position as usize].clone());
            *column = self.numbered(own.iter().map(term).collect()).await?;
        }
        let is_optional = |at: &usize| rows.iter().any(|row| row[*at].is_none());
        table.optional = (0..variables.len()).filter(is_optional).map(|at| variables[at]).collect();
        table.rows = own.len();
        self.recorded("values", None, table).await
    }

    async fn distinct(&self, table: Table) -> Result<Table, QueryFault> {
        let mut own = join::distinct(&table);
        let is_together = own.placed_by.is_some() || self.peers.size() == 1;
        if !is_together {
            let all = own.variables.clone();
            own = join::distinct(&self.peers.redistribute_by(own, &all).await?);
        }
        self.recorded("distinct", None, own).await
    }

    async fn slice(&self, table: Table, start: usize, length: Option<usize>) -> Result<Table, QueryFault> {
        let gathered = self.peers.gather(table).await?;
        let order = canonical::order(&gathered, self.peers).await?;
        let end = length.map_or(order.len(), |length| start.saturating_add(length).min(order.len()));
        let table = gathered.pick(order.get(start..end).unwrap_or_default());
        self.recorded(format!("slice from {start}"), None, table).await
    }
}
