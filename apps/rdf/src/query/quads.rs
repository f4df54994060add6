//! Patterns of any graph against the dataset of a query at this place, graph by graph.
//!
//! Each function extends the one of the same name in `scan` from patterns of the default graph to any [`Pattern`]; a
//! named graph is a store of its own. If the name is a variable, it becomes one more column. It knows no other place.
//! Invariant: a table has the same columns, in the same order, whichever graphs exist.

use super::scan::{self, Pattern, PatternPart};
use super::table::{Table, VariableId};
use super::{join, statistics::PatternCounts};
use crate::store::Store;
use crate::store::graphs::ActiveDataset;
use rustc_hash::FxHashMap;

/// Rows of a table per graph above which the matches of all graphs are joined by hash.
const ROWS_PER_MATCH: u64 = 4;

/// Returns the matches of `pattern` at this place.
pub fn scan(data: &ActiveDataset<'_>, pattern: &Pattern) -> Table {
    match pattern.graph {
        None => scan::scan(&data.default, pattern),
        Some(graph) => of_graphs(data, graph, |store| scan::scan(store, &Pattern::of(pattern.parts))),
    }
}

/// Returns the matches of `pattern` at this place whose value of `variable` does not satisfy `stays`.
pub fn scan_leaving(
    data: &ActiveDataset<'_>,
    pattern: &Pattern,
    variable: VariableId,
    stays: impl Fn(u32) -> bool,
) -> Table {
    if pattern.graph.is_none() {
        return scan::scan_leaving(&data.default, pattern, variable, stays);
    }
    let table = scan(data, pattern);
    let column = table.column(variable).unwrap_or_default();
    let leaves: Vec<bool> = column.iter().map(|number| !stays(*number)).collect();
    Table { placed_by: None, ..table.filter(&leaves) }
}

/// Joins each row of `table` to the matches of `pattern` at this place.
pub fn join_pattern(data: &ActiveDataset<'_>, table: &Table, pattern: &Pattern) -> Table {
    let parts = Pattern::of(pattern.parts);
    let of_store = |store: &Store, rows: &Table| scan::join_pattern(store, rows, &parts);
    match pattern.graph {
        None => of_store(&data.default, table),
        Some(PatternPart::Variable(variable)) => match table.column(variable) {
            Some(names) => {
                let mut rows: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
                (0..).zip(names).for_each(|(row, name)| rows.entry(*name).or_default().push(row));
                let mut all = of_store(&Store::default(), table);
                for graph in data.named.iter().filter(|graph| rows.contains_key(&graph.name)) {
                    all.append(&of_store(&graph.store, &table.pick(&rows[&graph.name])));
                }
                all
            }
            None if is_expensive(data, table, pattern) => join::join(table, &scan(data, pattern)),
            None => of_graphs(data, PatternPart::Variable(variable), |store| of_store(store, table)),
        },
        Some(graph) => of_graphs(data, graph, |store| of_store(store, table)),
    }
}

/// Returns `true` if looking up each row in each graph costs more than scanning all matches.
fn is_expensive(data: &ActiveDataset<'_>, table: &Table, pattern: &Pattern) -> bool {
    let lookups = table.rows as u64 * data.named.len() as u64;
    lookups > ROWS_PER_MATCH * PatternCounts::of(data, pattern).triples
}

/// Concatenates the tables of all graphs that `graph` stands for, with a column of their names if it is a variable.
fn of_graphs(data: &ActiveDataset<'_>, graph: PatternPart, of_store: impl Fn(&Store) -> Table) -> Table {
    let of_graph = |store: &Store, name: u32| {
        let mut table = of_store(store);
        if let Some(variable) = graph.variable() {
            table.variables.push(variable);
            table.columns.push(vec![name; table.rows]);
        }
        table
    };
    let placed = Store::placed_as(&data.default);
    let mut all = of_graph(&placed, 0);
    data.graphs(graph.term()).iter().for_each(|graph| all.append(&of_graph(&graph.store, graph.name)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::graphs::GraphStore;
    use std::collections::BTreeSet;

    fn rows(table: &Table, variables: &[VariableId]) -> BTreeSet<Vec<u32>> {
        let table = table.clone().project(variables);
        let all: BTreeSet<_> = (0..table.rows).map(|row| table.row(row).collect()).collect();
        assert_eq!(all.len(), table.rows, "each row once");
        all
    }

    #[test]
    fn each_form_of_graph_is_scanned_and_joined_as_a_list_of_quads_says() {
        let quads: Vec<[u32; 4]> =
            (0..150_u32).map(|n| [90 + n % 3, 1 + n * 7 % 23, 1 + n * 5 % 4, 1 + n * 11 % 29]).collect();
        let quads: Vec<[u32; 4]> = quads.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
        let all = GraphStore::of(Store::of(&[[1, 1, 1]]), &[90, 91, 92, 93], quads.clone(), Store::of);
        let data = all.whole();
        let [s, o, g] = [0, 1, 2].map(PatternPart::Variable);
        for predicate in 1..5 {
            for graph in [PatternPart::Term(91), PatternPart::Term(93), PatternPart::Term(7), g] {
                let pattern = Pattern { parts: [s, PatternPart::Term(predicate), o], graph: Some(graph) };
                let fits = |quad: &&[u32; 4]| {
                    quad[2] == predicate && graph.term().is_none_or(|name| name == quad[0])
                };
                let own = |quad: &[u32; 4]| match graph.variable() {
                    Some(_) => vec![quad[1], quad[3], quad[0]],
                    None => vec![quad[1], quad[3]],
                };
                let expected: BTreeSet<_> = quads.iter().filter(fits).map(own).collect();
                let variables = pattern.variables();
                let scanned = scan(&data, &pattern);
                assert_eq!(rows(&scanned, &variables), expected, "{pattern:?}");
                assert_eq!(PatternCounts::of(&data, &pattern).triples, expected.len() as u64);
                // Rows that bind the subject, the graph, both, or neither.
                for bound in [vec![], vec![0], vec![2], vec![0, 2], vec![3]] {
                    let some = |variable: &VariableId| match variable {
                        2 => vec![92, 91, 7],
                        _ => vec![3, 9, 15],
                    };
                    let table =
                        Table { columns: bound.iter().map(some).collect(), rows: 3, ..Table::empty(bound) };
                    let joined = join_pattern(&data, &table, &pattern);
                    let by_hash = join::join(&table, &scanned);
                    let all: Vec<VariableId> = by_hash.variables.clone();
                    assert_eq!(joined.rows, by_hash.rows, "{pattern:?}, {:?}", table.variables);
                    let set = |table: &Table| -> BTreeSet<Vec<u32>> {
                        let table = table.clone().project(&all);
                        (0..table.rows).map(|row| table.row(row).collect()).collect()
                    };
                    assert_eq!(set(&joined), set(&by_hash), "{pattern:?}, {:?}", table.variables);
                }
                let leaving = scan_leaving(&data, &pattern, 0, |number| number % 2 == 0);
                let odd: BTreeSet<_> = expected.iter().filter(|row| row[0] % 2 == 1).cloned().collect();
                assert_eq!(rows(&leaving, &variables), odd);
            }
        }
    }
}
