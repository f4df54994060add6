//! How many solutions a pattern has, and the order in which patterns are joined.
//!
//! The counts of a pattern by itself are exact, over all places; what a join comes to is estimated from the distinct
//! subjects and objects of its predicate. It joins nothing. Invariant: all places have the same counts, and so the same
//! order.

use super::scan::{Pattern, PatternPart};
use super::table::VariableId;
use crate::store::Store;

/// Exact counts of one pattern, of one place or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PatternCounts {
    /// Triples that have its terms.
    pub triples: u64,
    /// Distinct subjects of its predicate, or of all.
    pub subjects: u64,
    /// Distinct objects of its predicate, or of all, at each place.
    pub objects: u64,
}

/// How many numbers a [`PatternCounts`] is.
pub const COUNTS: usize = 3;

impl PatternCounts {
    /// Those of this place.
    pub fn of(store: &Store, pattern: &Pattern) -> PatternCounts {
        let triples = store.count(pattern.terms()) as u64;
        let (subjects, objects) = match pattern.0[1] {
            PatternPart::Term(number) => store.predicate(number).map_or((0, 0), |predicate| {
                (predicate.by_subject.keys().len(), predicate.by_object.keys().len())
            }),
            PatternPart::Variable(_) => store.distinct(),
        };
        PatternCounts { triples, subjects: subjects as u64, objects: objects as u64 }
    }

    /// As numbers to be added up over places.
    pub fn numbers(self) -> [u64; COUNTS] {
        [self.triples, self.subjects, self.objects]
    }

    /// Of the sums over all places.
    pub fn of_numbers(numbers: &[u64]) -> PatternCounts {
        PatternCounts { triples: numbers[0], subjects: numbers[1], objects: numbers[2] }
    }

    /// How many solutions `rows` solutions that bind `bound` have together with `pattern`.
    pub fn estimate(&self, pattern: &Pattern, rows: f64, bound: &[VariableId]) -> f64 {
        let Pattern([subject, _, object]) = pattern;
        let is_bound = |slot: &PatternPart| slot.variable().is_some_and(|variable| bound.contains(&variable));
        let mut estimate = rows * self.triples as f64;
        if is_bound(subject) {
            estimate /= self.subjects.max(1) as f64;
        }
        if is_bound(object) && subject != object {
            estimate /= self.objects.max(1) as f64;
        }
        estimate
    }
}

/// A pattern in the order in which they are joined.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlannedPattern {
    /// Its position among the patterns.
    pub pattern: usize,
    /// How many solutions there are after it, by estimate.
    pub estimate: f64,
}

/// The order whose intermediate solutions are fewest by estimate, among those that begin with any pattern and go on
/// with the one that leaves the fewest; from `rows` solutions that bind `bound`.
pub fn order(
    patterns: &[Pattern],
    counts: &[PatternCounts],
    rows: f64,
    bound: &[VariableId],
) -> Vec<PlannedPattern> {
    let greedy = |first: usize| {
        let mut bound = bound.to_vec();
        let (mut plan, mut rows, mut cost) = (Vec::with_capacity(patterns.len()), rows, 0.0);
        let mut left: Vec<usize> = (0..patterns.len()).collect();
        let mut next = Some(first);
        while !left.is_empty() {
            let pattern = next.take().unwrap_or_else(|| cheapest(&left, patterns, counts, (rows, &bound)));
            rows = counts[pattern].estimate(&patterns[pattern], rows, &bound);
            cost += rows;
            plan.push(PlannedPattern { pattern, estimate: rows });
            bound.extend(patterns[pattern].variables());
            left.retain(|other| *other != pattern);
        }
        (cost, plan)
    };
    // Of equal ones the first, so that all places take the same.
    let orders = (0..patterns.len()).map(greedy);
    let best = orders.reduce(|best, other| if other.0 < best.0 { other } else { best });
    best.map(|(_, plan)| plan).unwrap_or_default()
}

/// The pattern that leaves the fewest solutions; one that shares a variable comes before all that share none.
fn cheapest(
    left: &[usize],
    patterns: &[Pattern],
    counts: &[PatternCounts],
    (rows, bound): (f64, &[VariableId]),
) -> usize {
    let rank = |pattern: &usize| {
        let variables = patterns[*pattern].variables();
        let is_apart = !variables.is_empty() && !variables.iter().any(|variable| bound.contains(variable));
        (is_apart, counts[*pattern].estimate(&patterns[*pattern], rows, bound))
    };
    let less = |one: &usize, other: &usize| {
        let ((one_apart, one_rows), (other_apart, other_rows)) = (rank(one), rank(other));
        one_apart.cmp(&other_apart).then(one_rows.total_cmp(&other_rows))
    };
    left.iter().copied().min_by(|one, other| less(one, other)).unwrap_or_default()
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
            Pattern([A, PatternPart::Term(1), B]),
            Pattern([C, PatternPart::Term(2), PatternPart::Term(9)]),
            Pattern([B, PatternPart::Term(3), PatternPart::Term(9)]),
            Pattern([B, PatternPart::Term(4), C]),
        ];
        let counts = [(9000, 3000, 100), (50, 500, 5), (2, 100, 50), (400, 100, 400)]
            .map(|(triples, subjects, objects)| PatternCounts { triples, subjects, objects });
        let plan = order(&patterns, &counts, 1.0, &[]);
        let patterns_in_order: Vec<usize> = plan.iter().map(|step| step.pattern).collect();
        assert_eq!(patterns_in_order, [2, 3, 1, 0]);
        assert_eq!(plan[0].estimate, 2.0);
        assert_eq!(plan[1].estimate, 8.0);
        let seeded = order(&patterns[..1], &counts, 10.0, &[0]);
        assert_eq!(seeded[0].estimate, 30.0);
    }
}
