//! Triple patterns against the triples of one graph at this place: as a table, or joined to each row of a table.
//!
//! A join looks up the bound parts of each row in the sorted pairs of the predicate; if the rows are in key order,
//! that is a merge join. It knows no other place. Invariant: a match found here is found at no other place, because
//! each triple is stored at one.

use super::table::{Table, VariableId};
use crate::store::pairs::{Pairs, has};
use crate::store::{Predicate, Store};

/// A part of a triple pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatternPart {
    /// The term with this number; [`UNBOUND`](crate::store::dictionary::UNBOUND) is a term that no place has.
    Term(u32),
    /// A variable.
    Variable(VariableId),
}

impl PatternPart {
    /// Returns the variable, if the part is one.
    pub fn variable(self) -> Option<VariableId> {
        match self {
            PatternPart::Variable(variable) => Some(variable),
            PatternPart::Term(_) => None,
        }
    }

    /// Returns the number of the term, if the part is one.
    pub fn term(self) -> Option<u32> {
        match self {
            PatternPart::Term(number) => Some(number),
            PatternPart::Variable(_) => None,
        }
    }
}

/// A triple pattern, of the default graph or of named ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Subject, predicate, object.
    pub parts: [PatternPart; 3],
    /// The name of the graph; `None` for the default graph. If it is a variable, it must not occur in the other parts.
    pub graph: Option<PatternPart>,
}

impl Pattern {
    /// Creates a pattern of the default graph.
    pub fn of(parts: [PatternPart; 3]) -> Pattern {
        Pattern { parts, graph: None }
    }

    /// Returns its variables, each once, in the order of its parts, with the graph last.
    pub fn variables(&self) -> Vec<VariableId> {
        let mut variables = Vec::with_capacity(4);
        for variable in self.parts.iter().chain(&self.graph).filter_map(|slot| slot.variable()) {
            if !variables.contains(&variable) {
                variables.push(variable);
            }
        }
        variables
    }

    /// Returns its terms; `None` for a variable.
    pub fn terms(&self) -> [Option<u32>; 3] {
        self.parts.map(PatternPart::term)
    }

    /// Returns the variable of its subject, if it is one.
    pub fn subject(&self) -> Option<VariableId> {
        self.parts[0].variable()
    }
}

/// Returns the matches of `pattern` in a graph at this place.
pub fn scan(store: &Store, pattern: &Pattern) -> Table {
    let variables = pattern.variables();
    let placed_by = pattern.subject().filter(|_| store.is_by_subject());
    let mut table = Table { placed_by, ..Table::empty(variables) };
    if let [subject, PatternPart::Term(number), object] = pattern.parts {
        let Some(predicate) = store.predicate(number) else { return table };
        match (subject, object) {
            (PatternPart::Variable(one), PatternPart::Variable(other)) if one != other => {
                let pairs = &predicate.by_subject;
                let mut subjects = Vec::with_capacity(pairs.len());
                pairs.iter().for_each(|(key, values)| subjects.extend(values.iter().map(|_| key)));
                table.columns = vec![subjects, pairs.values().to_vec()];
            }
            (PatternPart::Variable(_), PatternPart::Term(object)) => {
                table.columns = vec![predicate.by_object.get(object).to_vec()];
            }
            (PatternPart::Term(subject), PatternPart::Variable(_)) => {
                table.columns = vec![predicate.by_subject.get(subject).to_vec()];
            }
            _ => return scan_any(store, pattern, table),
        }
        table.rows = table.columns[0].len();
        return table;
    }
    scan_any(store, pattern, table)
}

/// Returns the matches of `pattern` in a graph at this place whose value of `variable` does not satisfy `stays`.
pub fn scan_leaving(
    store: &Store,
    pattern: &Pattern,
    variable: VariableId,
    stays: impl Fn(u32) -> bool,
) -> Table {
    if let [PatternPart::Variable(subject), PatternPart::Term(number), PatternPart::Variable(object)] =
        pattern.parts
        && subject != object
    {
        let mut table = Table::empty(pattern.variables());
        let Some(predicate) = store.predicate(number) else { return table };
        let by_subject = variable == subject;
        let pairs = if by_subject { &predicate.by_subject } else { &predicate.by_object };
        let (mut keys, mut others) = (Vec::new(), Vec::new());
        for (key, values) in pairs.iter().filter(|(key, _)| !stays(*key)) {
            keys.extend(values.iter().map(|_| key));
            others.extend_from_slice(values);
        }
        table.rows = keys.len();
        table.columns = if by_subject { vec![keys, others] } else { vec![others, keys] };
        return table;
    }
    let table = scan(store, pattern);
    let leaves = table.column(variable).map(|column| column.iter().map(|number| !stays(*number)).collect());
    Table { placed_by: None, ..table.filter(&leaves.unwrap_or_else(|| vec![true; table.rows])) }
}

fn scan_any(store: &Store, pattern: &Pattern, mut table: Table) -> Table {
    let positions = pattern.parts.map(|slot| slot.variable().and_then(|variable| table.position(variable)));
    store.visit(pattern.terms(), |triple| {
        let mut values = [0; 3];
        let mut fits = true;
        for (term, position) in triple.iter().zip(positions) {
            let Some(position) = position else { continue };
            fits &= values[position] == 0 || values[position] == *term; // a variable may stand there twice
            values[position] = *term;
        }
        if fits {
            table.rows += 1;
            table.columns.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
        }
    });
    table
}

/// A part of a pattern for a row: its required value, or the column for its value.
#[derive(Clone, Copy)]
enum RowPart<'a> {
    Term(u32),
    Column(&'a [u32]),
    /// The new column with this position.
    New(usize),
}

impl RowPart<'_> {
    fn at(self, row: usize) -> Option<u32> {
        match self {
            RowPart::Term(number) => Some(number),
            RowPart::Column(column) => Some(column[row]),
            RowPart::New(_) => None,
        }
    }
}

/// The joined rows of a table, and the new columns.
struct Matches {
    rows: Vec<u32>,
    columns: Vec<Vec<u32>>,
}

/// Joins each row of `table` to the matches of `pattern` in a graph at this place.
pub fn join_pattern(store: &Store, table: &Table, pattern: &Pattern) -> Table {
    let mut new: Vec<VariableId> = pattern.variables();
    new.retain(|variable| table.position(*variable).is_none());
    let parts = pattern.parts.map(|slot| match slot {
        PatternPart::Term(number) => RowPart::Term(number),
        PatternPart::Variable(variable) => match table.column(variable) {
            Some(column) => RowPart::Column(column),
            None => RowPart::New(new.iter().position(|own| *own == variable).unwrap_or_default()),
        },
    });
    let mut found = Matches { rows: Vec::new(), columns: vec![Vec::new(); new.len()] };
    let is_done = match parts {
        [subject, RowPart::Term(number), object] => match store.predicate(number) {
            Some(predicate) => join_predicate(predicate, table.rows, subject, object, &mut found),
            None => true,
        },
        _ => false,
    };
    if !is_done {
        join_any(store, table.rows, parts, &mut found);
    }
    let mut joined = table.pick(&found.rows);
    joined.variables.extend(new);
    joined.columns.append(&mut found.columns);
    joined
}

/// Joins rows to the triples of one predicate; returns `false` if it does not handle the case.
fn join_predicate(
    predicate: &Predicate,
    rows: usize,
    subject: RowPart<'_>,
    object: RowPart<'_>,
    found: &mut Matches,
) -> bool {
    let Predicate { by_subject, by_object, .. } = predicate;
    match (subject, object) {
        (RowPart::Column(column), RowPart::New(_)) => expand(by_subject, column, found),
        (RowPart::New(_), RowPart::Column(column)) => expand(by_object, column, found),
        (RowPart::Column(column), RowPart::Term(object)) => {
            let subjects = by_object.get(object);
            if subjects.len() <= by_subject.keys().len() / 8 {
                keep(column, |subject| has(subjects, subject), found);
            } else {
                let mut cursor = by_subject.cursor();
                keep(column, |subject| has(cursor.get(subject), object), found);
            }
        }
        (RowPart::Term(subject), RowPart::Column(column)) => {
            let objects = by_subject.get(subject);
            keep(column, |object| has(objects, object), found);
        }
        (RowPart::Column(subjects), RowPart::Column(objects)) => {
            let mut cursor = by_subject.cursor();
            for row in 0..rows {
                if has(cursor.get(subjects[row]), objects[row]) {
                    found.rows.push(row as u32);
                }
            }
        }
        _ => return false,
    }
    true
}

/// Adds a row for each value that the key of a row has.
fn expand(pairs: &Pairs, column: &[u32], found: &mut Matches) {
    let Matches { rows, columns } = found;
    let values = &mut columns[0];
    let mut cursor = pairs.cursor();
    for (row, key) in column.iter().enumerate() {
        let own = cursor.get(*key);
        rows.extend(std::iter::repeat_n(row as u32, own.len()));
        values.extend(own.iter()); // a loop: most keys have few values, and copying memory costs a call
    }
}

/// Adds the rows whose number satisfies `keep`.
fn keep(column: &[u32], mut keep: impl FnMut(u32) -> bool, found: &mut Matches) {
    found.rows.extend((0..column.len() as u32).filter(|row| keep(column[*row as usize])));
}

fn join_any(store: &Store, rows: usize, parts: [RowPart<'_>; 3], found: &mut Matches) {
    for row in 0..rows {
        store.visit(parts.map(|part| part.at(row)), |triple| {
            let mut values = [0; 3];
            let mut fits = true;
            for (term, part) in triple.iter().zip(parts) {
                if let RowPart::New(position) = part {
                    fits &= values[position] == 0 || values[position] == *term;
                    values[position] = *term;
                }
            }
            if fits {
                found.rows.push(row as u32);
                found.columns.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// A solution: the number of each variable that it binds.
    type Solution = BTreeMap<VariableId, u32>;

    fn solutions(table: &Table) -> Vec<Solution> {
        let one = |row| table.variables.iter().copied().zip(table.row(row)).collect();
        let mut all: Vec<Solution> = (0..table.rows).map(one).collect();
        all.sort();
        all
    }

    /// Extends a solution by a triple, following the definition.
    fn extended(solution: &Solution, pattern: &Pattern, triple: &[u32; 3]) -> Option<Solution> {
        let mut all = solution.clone();
        let fits = pattern.parts.iter().zip(triple).all(|(slot, term)| match slot {
            PatternPart::Term(number) => number == term,
            PatternPart::Variable(variable) => all.entry(*variable).or_insert(*term) == term,
        });
        fits.then_some(all)
    }

    #[test]
    fn each_form_of_pattern_is_scanned_and_joined_as_the_definition_says() {
        let triples: Vec<[u32; 3]> =
            (0..150_u32).map(|n| [1 + n * 7 % 23, 1 + n * 5 % 4, 1 + n * 11 % 29]).collect();
        let store = Store::of(&triples);
        let mut triples = triples;
        triples.sort_unstable();
        triples.dedup();
        let slots = |term| {
            [
                PatternPart::Term(term),
                PatternPart::Variable(0),
                PatternPart::Variable(1),
                PatternPart::Variable(2),
            ]
        };
        let start = Pattern::of([PatternPart::Variable(0), PatternPart::Term(2), PatternPart::Variable(1)]);
        let begin = scan(&store, &start);
        for subject in slots(8) {
            for predicate in slots(3) {
                for object in slots(12) {
                    let pattern = Pattern::of([subject, predicate, object]);
                    let by_definition = |from: &[Solution]| {
                        let pairs =
                            from.iter().flat_map(|one| triples.iter().map(move |triple| (one, triple)));
                        let mut all: Vec<Solution> =
                            pairs.filter_map(|(one, triple)| extended(one, &pattern, triple)).collect();
                        all.sort();
                        all
                    };
                    let scanned = scan(&store, &pattern);
                    assert_eq!(solutions(&scanned), by_definition(&[Solution::new()]), "{pattern:?}");
                    let joined = join_pattern(&store, &begin, &pattern);
                    assert_eq!(solutions(&joined), by_definition(&solutions(&begin)), "{pattern:?}");
                }
            }
        }
    }
}
