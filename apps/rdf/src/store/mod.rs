//! The triples of one graph at one place, sorted by subject and by object for each predicate; and the place's terms.
//!
//! Triples are grouped by predicate, because nearly all patterns have a constant one; two further lists have the
//! predicates of each subject and object, for patterns that do not. It knows no other place and no query. Invariant: a
//! triple is stored once, in both directions.

pub mod arrays;
pub mod dictionary;
pub mod graphs;
pub mod pairs;
pub mod term;

use arrays::{ArrayReader, ArrayWriter};
use pairs::Pairs;
use rustc_hash::FxHashMap;

/// A triple of term numbers: subject, predicate, object.
pub type Triple = [u32; 3];

/// The triples of one predicate.
#[derive(Clone, Debug)]
pub struct Predicate {
    /// Its number.
    pub number: u32,
    /// Pairs of subject and object.
    pub by_subject: Pairs,
    /// Pairs of object and subject.
    pub by_object: Pairs,
    /// Number of triples whose object another place owns.
    pub foreign_objects: usize,
}

/// The triples of a place; immutable.
#[derive(Clone, Debug, Default)]
pub struct Store {
    /// Predicates, by number.
    predicates: Vec<Predicate>,
    /// Pairs of subject and predicate.
    of_subject: Pairs,
    /// Pairs of object and predicate.
    of_object: Pairs,
    len: usize,
    /// `true` if all triples of a subject are at the place that owns it.
    is_by_subject: bool,
}

fn word(upper: u32, lower: u32) -> u64 {
    u64::from(upper) << 32 | u64::from(lower)
}

impl Store {
    /// Sorts `triples`, an arbitrary subset: other triples of the same subjects may be elsewhere.
    pub fn of_any(triples: &[Triple]) -> Store {
        Store { is_by_subject: false, ..Store::of(triples) }
    }

    /// Creates an empty store with the same placement of triples as `other`.
    pub fn placed_as(other: &Store) -> Store {
        Store { is_by_subject: other.is_by_subject, ..Store::default() }
    }

    /// Returns `true` if all triples of a subject are at the place that owns it.
    pub fn is_by_subject(&self) -> bool {
        self.is_by_subject
    }

    /// Sorts `triples`, which must include all triples of their subjects; duplicates count once.
    pub fn of(triples: &[Triple]) -> Store {
        let mut positions: FxHashMap<u32, usize> = FxHashMap::default();
        let mut by_predicate: Vec<(u32, Vec<u64>)> = Vec::new();
        for [subject, predicate, object] in triples {
            let position = *positions.entry(*predicate).or_insert(by_predicate.len());
            if position == by_predicate.len() {
                by_predicate.push((*predicate, Vec::new()));
            }
            by_predicate[position].1.push(word(*subject, *object));
        }
        by_predicate.sort_unstable_by_key(|(number, _)| *number);
        let (mut of_subject, mut of_object) = (Vec::new(), Vec::new());
        let mut predicates = Vec::with_capacity(by_predicate.len());
        for (number, mut words) in by_predicate {
            let by_subject = Pairs::of(&mut words);
            words.iter_mut().for_each(|word| *word = word.rotate_left(32));
            let by_object = Pairs::of(&mut words);
            of_subject.extend(by_subject.keys().iter().map(|subject| word(*subject, number)));
            of_object.extend(by_object.keys().iter().map(|object| word(*object, number)));
            predicates.push(Predicate { number, by_subject, by_object, foreign_objects: 0 });
        }
        let len = predicates.iter().map(|predicate| predicate.by_subject.len()).sum();
        Store {
            predicates,
            of_subject: Pairs::of(&mut of_subject),
            of_object: Pairs::of(&mut of_object),
            len,
            is_by_subject: true,
        }
    }

    /// Writes the store as part of a snapshot.
    pub fn write(&self, out: &mut ArrayWriter) {
        out.number(u64::from(self.is_by_subject));
        out.number(self.predicates.len() as u64);
        for predicate in &self.predicates {
            out.number(u64::from(predicate.number));
            out.number(predicate.foreign_objects as u64);
            predicate.by_subject.write(out);
            predicate.by_object.write(out);
        }
        self.of_subject.write(out);
        self.of_object.write(out);
    }

    /// Reads the output of [`Store::write`]; `None` if the bytes end too early.
    pub fn read(from: &mut ArrayReader) -> Option<Store> {
        let is_by_subject = from.number()? != 0;
        let mut predicates = Vec::new();
        for _ in 0..from.size()? {
            let number = u32::try_from(from.number()?).ok()?;
            let foreign_objects = from.size()?;
            let (by_subject, by_object) = (Pairs::read(from)?, Pairs::read(from)?);
            predicates.push(Predicate { number, by_subject, by_object, foreign_objects });
        }
        let len = predicates.iter().map(|predicate| predicate.by_subject.len()).sum();
        let (of_subject, of_object) = (Pairs::read(from)?, Pairs::read(from)?);
        Some(Store { predicates, of_subject, of_object, len, is_by_subject })
    }

    /// Counts the objects owned by other places; `is_own` is `true` for the number of a term that this place owns.
    pub fn count_foreign_objects(&mut self, is_own: impl Fn(u32) -> bool) {
        for predicate in &mut self.predicates {
            let foreign = predicate.by_object.iter().filter(|(object, _)| !is_own(*object));
            predicate.foreign_objects = foreign.map(|(_, subjects)| subjects.len()).sum();
        }
    }

    /// Returns the number of triples.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns `true` if there are no triples.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the bytes of memory that it uses.
    pub fn memory(&self) -> u64 {
        let predicates = self.predicates.iter();
        let pairs = predicates.flat_map(|predicate| [&predicate.by_subject, &predicate.by_object]);
        pairs.chain([&self.of_subject, &self.of_object]).map(Pairs::memory).sum()
    }

    /// Returns the triples of the predicate with this number, if there are any here.
    pub fn predicate(&self, number: u32) -> Option<&Predicate> {
        let found = self.predicates.binary_search_by_key(&number, |predicate| predicate.number);
        found.ok().map(|position| &self.predicates[position])
    }

    /// Returns the number of triples whose object another place owns.
    pub fn foreign_objects(&self) -> usize {
        self.predicates.iter().map(|predicate| predicate.foreign_objects).sum()
    }

    /// Returns the numbers of distinct subjects and objects.
    pub fn distinct(&self) -> (usize, usize) {
        (self.of_subject.keys().len(), self.of_object.keys().len())
    }

    /// Calls `found` with each triple that has these parts; `None` matches any.
    pub fn visit(&self, pattern: [Option<u32>; 3], mut found: impl FnMut(Triple)) {
        let [subject, predicate, object] = pattern;
        let one;
        let numbers = match (subject, predicate, object) {
            (_, Some(number), _) => {
                one = [number];
                &one
            }
            (Some(subject), None, _) => self.of_subject.get(subject),
            (None, None, Some(object)) => self.of_object.get(object),
            (None, None, None) => {
                for predicate in &self.predicates {
                    visit_predicate(predicate, subject, object, &mut found);
                }
                return;
            }
        };
        for predicate in numbers.iter().filter_map(|number| self.predicate(*number)) {
            visit_predicate(predicate, subject, object, &mut found);
        }
    }

    /// Returns the number of triples that have these parts; `None` matches any.
    pub fn count(&self, pattern: [Option<u32>; 3]) -> usize {
        match pattern {
            [None, None, None] => self.len,
            [subject, Some(number), object] => {
                let Some(predicate) = self.predicate(number) else { return 0 };
                match (subject, object) {
                    (None, None) => predicate.by_subject.len(),
                    (Some(subject), None) => predicate.by_subject.get(subject).len(),
                    (None, Some(object)) => predicate.by_object.get(object).len(),
                    (Some(subject), Some(object)) => {
                        usize::from(predicate.by_subject.contains(subject, object))
                    }
                }
            }
            pattern => {
                let mut count = 0;
                self.visit(pattern, |_| count += 1);
                count
            }
        }
    }
}

fn visit_predicate(
    predicate: &Predicate,
    subject: Option<u32>,
    object: Option<u32>,
    found: &mut impl FnMut(Triple),
) {
    let number = predicate.number;
    match (subject, object) {
        (Some(subject), Some(object)) => {
            if predicate.by_subject.contains(subject, object) {
                found([subject, number, object]);
            }
        }
        (Some(subject), None) => {
            predicate.by_subject.get(subject).iter().for_each(|object| found([subject, number, *object]));
        }
        (None, Some(object)) => {
            predicate.by_object.get(object).iter().for_each(|subject| found([*subject, number, object]));
        }
        (None, None) => {
            for (subject, objects) in predicate.by_subject.iter() {
                objects.iter().for_each(|object| found([subject, number, *object]));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pattern_finds_the_triples_that_a_list_has() {
        let mut triples: Vec<Triple> =
            (0..400_u32).map(|n| [1 + n * 7 % 31, 50 + n * 5 % 6, 1 + n * 11 % 45]).collect();
        triples.extend_from_within(..100);
        let store = Store::of(&triples);
        triples.sort_unstable();
        triples.dedup();
        assert_eq!(store.len(), triples.len());
        let some = |number: u32| [None, Some(number), Some(number + 1), Some(999)];
        for subject in some(3) {
            for predicate in some(50) {
                for object in some(12) {
                    let pattern = [subject, predicate, object];
                    let fits = |triple: &&Triple| {
                        pattern
                            .iter()
                            .zip(triple.iter())
                            .all(|(part, term)| part.is_none_or(|part| part == *term))
                    };
                    let expected: Vec<Triple> = triples.iter().filter(fits).copied().collect();
                    let mut found = Vec::new();
                    store.visit(pattern, |triple| found.push(triple));
                    found.sort_unstable();
                    assert_eq!(found, expected, "{pattern:?}");
                    assert_eq!(store.count(pattern), expected.len(), "{pattern:?}");
                }
            }
        }
    }
}
