//! Estimates of the number of solutions of a pattern, and the order in which patterns are joined.
//!
//! The counts of a single pattern are exact, over all places; the size of a join is estimated from the distinct
//! subjects and objects of its predicate. It joins nothing. Invariant: all places have the same counts, and so the
//! same order.

use super::scan::{Pattern, PatternPart};
use super::table::VariableId;
use crate::store::graphs::ActiveDataset;
use crate::store::{Predicate, Store};
use rustc_hash::FxHashMap;

/// Exact counts of one pattern, at one place or over all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PatternCounts {
    /// Triples that match its terms.
    pub triples: u64,
    /// Distinct subjects of its predicate, or of all predicates.
    pub subjects: u64,
    /// Distinct objects of its predicate, or of all predicates, summed over places.
    pub objects: u64,
    /// Approximate number of these triples whose object another place owns.
    pub foreign_objects: u64,
}

/// Number of values that make up a [`PatternCounts`].
pub const COUNTS: usize = 4;

impl PatternCounts {
    /// Returns the counts of this place, over all graphs that the pattern covers.
    pub fn of(data: &ActiveDataset<'_>, pattern: &Pattern) -> PatternCounts {
        let Some(graph) = pattern.graph else { return PatternCounts::of_graph(&data.default, pattern) };
        let mut sums = [0; COUNTS];
        for graph in data.graphs(graph.term()) {
            let own = PatternCounts::of_graph(&graph.store, pattern).numbers();
            sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
        }
        PatternCounts::of_numbers(&sums)
    }

    fn of_graph(store: &Store, pattern: &Pattern) -> PatternCounts {
        let triples = store.count(pattern.terms()) as u64;
        let of_predicate = |predicate: &Predicate| {
            let Predicate { by_subject, by_object, foreign_objects, .. } = predicate;
            ((by_subject.keys().len(), by_object.keys().len()), *foreign_objects, by_subject.len())
        };
        let ((subjects, objects), foreign, all) = match pattern.parts[1] {
            PatternPart::Term(number) => store.predicate(number).map_or(((0, 0), 0, 0), of_predicate),
            PatternPart::Variable(_) => (store.distinct(), store.foreign_objects(), store.len()),
        };
        let foreign_objects = triples * foreign as u64 / all.max(1) as u64;
        PatternCounts { triples, subjects: subjects as u64, objects: objects as u64, foreign_objects }
    }

    /// Returns the counts as numbers to be summed over places.
    pub fn numbers(self) -> [u64; COUNTS] {
        [self.triples, self.subjects, self.objects, self.foreign_objects]
    }

    /// Returns the counts from the sums over all places.
    pub fn of_numbers(numbers: &[u64]) -> PatternCounts {
        let [triples, subjects, objects, foreign_objects] = [0, 1, 2, 3].map(|at| numbers[at]);
        PatternCounts { triples, subjects, objects, foreign_objects }
    }

    /// Returns the number of distinct values of a variable of `pattern` in its triples.
    fn distinct(&self, pattern: &Pattern, variable: VariableId) -> f64 {
        let [subject, predicate, object] = &pattern.parts;
        let is = |part: &PatternPart| part.variable() == Some(variable);
        if pattern.graph.as_ref().is_some_and(is) {
            return self.triples.clamp(1, GRAPHS) as f64;
        }
        // With the other part fixed, each triple has a different value.
        let most = match (subject.term(), object.term()) {
            (None, None) if is(subject) => self.subjects,
            (None, None) if is(object) => self.objects,
            _ if is(predicate) => self.triples.min(PREDICATES),
            _ => self.triples,
        };
        most.min(self.triples).max(1) as f64
    }
}

/// Assumed number of predicates, for patterns with a variable predicate.
const PREDICATES: u64 = 50;

/// Assumed number of named graphs with matches of a pattern, if the name of the graph is a variable.
const GRAPHS: u64 = 20;

/// An estimate of solutions: their number, and the number of distinct values of each variable.
#[derive(Clone, Debug, Default)]
struct CardinalityEstimate {
    rows: f64,
    distinct: FxHashMap<VariableId, f64>,
}

impl CardinalityEstimate {
    /// Returns the number of distinct values of a variable; `None` if it is not bound.
    fn distinct(&self, variable: VariableId) -> Option<f64> {
        self.distinct.get(&variable).copied()
    }

    /// Returns the number of rows of the join with a pattern. The values of a shared variable on the side with fewer
    /// are assumed to be a subset of the other side's.
    fn rows_joined(&self, pattern: &Pattern, counts: &PatternCounts) -> f64 {
        let own = |variable| counts.distinct(pattern, variable);
        let shared = pattern
            .variables()
            .into_iter()
            .filter_map(|variable| self.distinct(variable).map(|distinct| distinct.max(own(variable))));
        shared.fold(self.rows * counts.triples as f64, |rows, distinct| rows / distinct)
    }

    /// Updates the estimate for the join with a pattern.
    fn join(&mut self, pattern: &Pattern, counts: &PatternCounts) {
        let rows = self.rows_joined(pattern, counts);
        for variable in pattern.variables() {
            let own = counts.distinct(pattern, variable);
            let distinct = self.distinct(variable).map_or(own, |distinct| distinct.min(own));
            self.distinct.insert(variable, distinct);
        }
        self.rows = rows;
        self.distinct.values_mut().for_each(|distinct| *distinct = distinct.min(rows.max(1.0)));
    }
}

/// A pattern of a join order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlannedPattern {
    /// Its position among the patterns.
    pub pattern: usize,
    /// The estimated number of solutions after it.
    pub estimate: f64,
}

/// Most patterns in all tried orders together; an order takes time quadratic in its patterns.
const TRIED_MAX: usize = 4_096;

/// Returns the greedy order with the fewest estimated intermediate solutions. Every pattern is tried as the first one
/// (of more than 64, those with the fewest matches); each next pattern leaves the fewest solutions.
pub fn order(patterns: &[Pattern], counts: &[PatternCounts]) -> Vec<PlannedPattern> {
    let greedy = |first: usize| {
        let mut found = CardinalityEstimate { rows: 1.0, ..CardinalityEstimate::default() };
        let (mut plan, mut cost) = (Vec::with_capacity(patterns.len()), 0.0);
        let mut left: Vec<usize> = (0..patterns.len()).collect();
        let mut next = Some(first);
        while !left.is_empty() {
            let pattern = next.take().unwrap_or_else(|| cheapest(&left, patterns, counts, &found));
            found.join(&patterns[pattern], &counts[pattern]);
            cost += found.rows;
            plan.push(PlannedPattern { pattern, estimate: found.rows });
            left.retain(|other| *other != pattern);
        }
        (cost, plan)
    };
    // Ties go to the first, so that all places choose the same.
    let mut firsts: Vec<usize> = (0..patterns.len()).collect();
    firsts.sort_by_key(|pattern| counts[*pattern].triples);
    firsts.truncate((TRIED_MAX / patterns.len().max(1)).max(1));
    firsts.sort_unstable();
    let orders = firsts.into_iter().map(greedy);
    let best = orders.reduce(|best, other| if other.0 < best.0 { other } else { best });
    best.map(|(_, plan)| plan).unwrap_or_default()
}

/// Returns the pattern that leaves the fewest solutions; patterns that share a variable precede those that share none.
fn cheapest(
    left: &[usize],
    patterns: &[Pattern],
    counts: &[PatternCounts],
    found: &CardinalityEstimate,
) -> usize {
    let rank = |pattern: &usize| {
        let variables = patterns[*pattern].variables();
        let shares = variables.iter().any(|variable| found.distinct(*variable).is_some());
        let is_apart = !variables.is_empty() && !shares;
        (is_apart, found.rows_joined(&patterns[*pattern], &counts[*pattern]), *pattern)
    };
    let ranked = left.iter().map(rank);
    let best = ranked.min_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
    best.map_or(0, |(.., pattern)| pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: PatternPart = PatternPart::Variable(0);
    const B: PatternPart = PatternPart::Variable(1);
    const C: PatternPart = PatternPart::Variable(2);

    #[test]
    fn a_selective_pattern_comes_first_and_joined_ones_before_a_product() {
        let patterns = [
            Pattern::of([A, PatternPart::Term(1), B]),
            Pattern::of([C, PatternPart::Term(2), PatternPart::Term(9)]),
            Pattern::of([B, PatternPart::Term(3), PatternPart::Term(9)]),
            Pattern::of([B, PatternPart::Term(4), C]),
        ];
        let counts = [(9000, 3000, 100), (50, 500, 5), (2, 100, 50), (400, 100, 400)].map(
            |(triples, subjects, objects)| PatternCounts { foreign_objects: 0, triples, subjects, objects },
        );
        let plan = order(&patterns, &counts);
        let patterns_in_order: Vec<usize> = plan.iter().map(|step| step.pattern).collect();
        // 50 of C; 50 × 400 / 400 with B; 50 × 2 / 50 of these; 2 × 9000 / 100 with A. From 2 on it would be 720.
        assert_eq!(patterns_in_order, [1, 3, 2, 0]);
        assert_eq!(plan.iter().map(|step| step.estimate).collect::<Vec<_>>(), [50.0, 50.0, 2.0, 180.0]);
    }

    /// The longest path accepted in a query.
    #[test]
    fn a_chain_of_a_thousand_patterns_is_joined_from_its_smallest_on() {
        let step = |at: usize| {
            Pattern::of([PatternPart::Variable(at), PatternPart::Term(1), PatternPart::Variable(at + 1)])
        };
        let patterns: Vec<Pattern> = (0..1_000).map(step).collect();
        let mut counts =
            vec![PatternCounts { triples: 50, subjects: 50, objects: 50, foreign_objects: 0 }; 1_000];
        counts[700].triples = 3;
        let plan = order(&patterns, &counts);
        assert_eq!(plan[0].pattern, 700);
        let mut all: Vec<usize> = plan.iter().map(|step| step.pattern).collect();
        for end in 1..all.len() {
            let (joined, next) = (&all[..end], all[end]);
            assert!(joined.iter().any(|other| other.abs_diff(next) == 1), "{next} is joined by a variable");
        }
        all.sort_unstable();
        assert_eq!(all, (0..1_000).collect::<Vec<_>>());
    }

    /// A class contains few of the subjects of `type`, but all that teach are in it.
    #[test]
    fn a_class_does_not_thin_out_subjects_that_may_all_be_in_it() {
        let patterns = [
            Pattern::of([A, PatternPart::Term(1), B]),
            Pattern::of([A, PatternPart::Term(2), PatternPart::Term(9)]),
        ];
        let counts = [(21_000, 7_000, 21_000), (7_000, 240_000, 20)].map(|(triples, subjects, objects)| {
            PatternCounts { foreign_objects: 0, triples, subjects, objects }
        });
        let plan = order(&patterns, &counts);
        assert_eq!(plan.iter().map(|step| step.estimate).collect::<Vec<_>>(), [7_000.0, 21_000.0]);
    }
}
