//! Values of expressions for the rows of a table, at this place.
//!
//! `spareval` evaluates an expression once for each combination of the terms that it uses. Nothing is exchanged: the
//! terms have been fetched. Invariant: an expression without a value is an error in the sense of SPARQL, which no
//! filter passes.

use super::algebra::BoundExpression;
use super::table::Table;
use crate::peers::{Peers, Terms};
use crate::store::dictionary::UNBOUND;
use crate::store::term;
use oxrdf::Term;
use rustc_hash::FxHashMap;
use spareval::QueryEvaluator;

/// Returns the numbers of all terms that an expression uses in the rows of a table.
pub fn used<'a>(table: &'a Table, expression: &'a BoundExpression) -> impl Iterator<Item = u32> + 'a {
    let variables = expression.variables.iter();
    variables.filter_map(|(_, variable)| table.column(*variable)).flatten().copied()
}

/// Returns, for each row, `true` if it passes a filter.
pub fn passes(table: &Table, filter: &BoundExpression, peers: &Peers, terms: &Terms) -> Vec<bool> {
    let evaluator = QueryEvaluator::new();
    let value = |bound: Vec<_>| {
        evaluator.evaluate_effective_boolean_value_expression(&filter.expression, bound) == Some(true)
    };
    each_row(table, filter, peers, terms, value)
}

/// Returns, for each row, the value of an expression, encoded.
pub fn values(
    table: &Table,
    expression: &BoundExpression,
    peers: &Peers,
    terms: &Terms,
) -> Vec<Option<Vec<u8>>> {
    let evaluator = QueryEvaluator::new();
    let value = |bound: Vec<_>| {
        let value = evaluator.evaluate_expression(&expression.expression, bound);
        value.map(|value| term::encoded(value.as_ref()))
    };
    each_row(table, expression, peers, terms, value)
}

fn each_row<'e, V: Clone>(
    table: &Table,
    expression: &'e BoundExpression,
    peers: &Peers,
    terms: &Terms,
    value: impl Fn(Vec<(&'e oxrdf::Variable, Term)>) -> V,
) -> Vec<V> {
    let dictionary = peers.dictionary();
    let used = expression.variables.iter();
    let columns: Vec<_> =
        used.filter_map(|(variable, number)| Some((variable, table.column(*number)?))).collect();
    let mut known: FxHashMap<Vec<u32>, V> = FxHashMap::default();
    let mut key = Vec::with_capacity(columns.len());
    let mut all = Vec::with_capacity(table.rows);
    for row in 0..table.rows {
        key.clear();
        key.extend(columns.iter().map(|(_, column)| column[row]));
        if let Some(value) = known.get(&key) {
            all.push(value.clone());
            continue;
        }
        let bound = columns.iter().zip(&key).filter(|(_, number)| **number != UNBOUND);
        let bound = bound.map(|((variable, _), number)| {
            let bytes = terms.bytes(*number, peers.numbering(), &dictionary);
            (*variable, term::decode(bytes))
        });
        let found = value(bound.collect());
        known.insert(key.clone(), found.clone());
        all.push(found);
    }
    all
}
