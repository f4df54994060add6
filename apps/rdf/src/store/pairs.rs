//! Sorted pairs of numbers, with each key stored once: one direction of the triples of a predicate.
//!
//! [`Pairs::cursor`] finds the values of a key. For ascending keys it advances linearly, so that a loop becomes a
//! merge join. Otherwise it uses an index of the keys: their ranks in a bit set if they are dense, else a table of the
//! upper bits. Invariant: keys are ascending, and so are the values of each key.

use super::arrays::{ArrayReader, ArrayWriter, Words};

/// Sorted pairs of a key and a value, without duplicates.
#[derive(Clone, Debug, Default)]
pub struct Pairs {
    keys: Words,
    /// Start of the values of each key, followed by the end of the last; empty if each key has one value.
    starts: Words,
    values: Words,
    index: Words,
    form: IndexForm,
}

/// Form of the index of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IndexForm {
    /// For each bucket the position of its first key; a key is in the bucket `key >> shift`.
    Buckets { shift: u32 },
    /// Three words per 64 numbers: a bit for each number, set if it is a key, and the count of preceding keys
    /// (Jacobson, "Space-efficient static trees and graphs", 1989).
    Ranks,
}

impl Default for IndexForm {
    fn default() -> IndexForm {
        IndexForm::Buckets { shift: 0 }
    }
}

/// Words per 64 numbers in [`IndexForm::Ranks`].
const RANK_WORDS: usize = 3;

/// The code of [`IndexForm::Ranks`] in a snapshot, which is not a valid shift.
const RANKS: u64 = 64;

impl Pairs {
    /// Creates pairs from words whose upper half is the key; sorts the words and drops duplicates.
    pub fn of(words: &mut Vec<u64>) -> Pairs {
        words.sort_unstable();
        words.dedup();
        let (mut keys, mut starts, mut values) = (Vec::new(), Vec::new(), Vec::with_capacity(words.len()));
        for (position, word) in words.iter().enumerate() {
            let key = (word >> 32) as u32;
            if keys.last() != Some(&key) {
                keys.push(key);
                starts.push(position as u32);
            }
            values.push(*word as u32);
        }
        starts.push(values.len() as u32);
        if keys.len() == values.len() {
            starts = Vec::new();
        }
        let (index, form) = index(&keys);
        Pairs { keys: keys.into(), starts: starts.into(), values: values.into(), index: index.into(), form }
    }

    /// Writes the pairs as part of a snapshot.
    pub fn write(&self, out: &mut ArrayWriter) {
        out.number(match self.form {
            IndexForm::Buckets { shift } => u64::from(shift),
            IndexForm::Ranks => RANKS,
        });
        [&self.keys, &self.starts, &self.values, &self.index].into_iter().for_each(|array| out.array(array));
    }

    /// Reads the output of [`Pairs::write`]; `None` if the bytes end too early.
    pub fn read(from: &mut ArrayReader) -> Option<Pairs> {
        let form = match from.number()? {
            RANKS => IndexForm::Ranks,
            shift => IndexForm::Buckets { shift: u32::try_from(shift).ok().filter(|shift| *shift < 32)? },
        };
        let [keys, starts, values, index] = [from.words()?, from.words()?, from.words()?, from.words()?];
        Some(Pairs { keys, starts, values, index, form })
    }

    /// Returns the number of pairs.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns `true` if there are no pairs.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the distinct keys, in order.
    pub fn keys(&self) -> &[u32] {
        &self.keys
    }

    /// Returns all values, those of the first key first.
    pub fn values(&self) -> &[u32] {
        &self.values
    }

    /// Returns the bytes of memory that the pairs use.
    pub fn memory(&self) -> u64 {
        4 * (self.keys.len() + self.starts.len() + self.values.len() + self.index.len()) as u64
    }

    /// Returns the values of `key`.
    pub fn get(&self, key: u32) -> &[u32] {
        match self.search(key) {
            Some(position) => self.at(position),
            None => &[],
        }
    }

    /// Returns `true` if `key` has this value.
    pub fn contains(&self, key: u32, value: u32) -> bool {
        has(self.get(key), value)
    }

    /// Returns the keys with their values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &[u32])> {
        self.keys.iter().enumerate().map(|(position, key)| (*key, self.at(position)))
    }

    /// Returns a cursor for finding the values of a sequence of keys.
    pub fn cursor(&self) -> PairCursor<'_> {
        PairCursor { pairs: self, keys: &self.keys, starts: &self.starts, values: &self.values, position: 0 }
    }

    fn at(&self, position: usize) -> &[u32] {
        values_at(&self.starts, &self.values, position)
    }

    /// Returns the position of `key`.
    fn search(&self, key: u32) -> Option<usize> {
        match self.form {
            IndexForm::Ranks => {
                let block = (key / 64) as usize * RANK_WORDS;
                let [low, high, before] = self.index.get(block..)?.first_chunk()?;
                let (bits, bit) = (u64::from(*high) << 32 | u64::from(*low), key % 64);
                let is_key = bits >> bit & 1 == 1;
                is_key.then(|| (before + (bits & !(u64::MAX << bit)).count_ones()) as usize)
            }
            IndexForm::Buckets { shift } => {
                let bucket = (key >> shift) as usize;
                let [low, high, ..] = self.index.get(bucket..)? else { return None };
                let within = &self.keys[*low as usize..*high as usize];
                within.binary_search(&key).ok().map(|position| *low as usize + position)
            }
        }
    }
}

/// Returns the values of the key at this position.
fn values_at<'a>(starts: &[u32], values: &'a [u32], position: usize) -> &'a [u32] {
    match starts.get(position..) {
        Some([start, end, ..]) => &values[*start as usize..*end as usize],
        _ => &values[position..=position],
    }
}

/// Returns `true` if the sorted `values` contain this one.
pub fn has(values: &[u32], value: u32) -> bool {
    match values {
        [] => false,
        [only] => *only == value,
        values if values.len() <= 16 => values.contains(&value),
        values => values.binary_search(&value).is_ok(),
    }
}

/// Returns the smaller of the two forms: ranks if at least three of 64 numbers are keys, else up to two buckets per
/// key.
fn index(keys: &[u32]) -> (Vec<u32>, IndexForm) {
    let Some(last) = keys.last() else { return (Vec::new(), IndexForm::default()) };
    let blocks = *last as usize / 64 + 1;
    if blocks * RANK_WORDS <= keys.len() {
        return (ranks(keys, blocks), IndexForm::Ranks);
    }
    let mut shift = 0;
    while (last >> shift) as usize > 2 * keys.len() {
        shift += 1;
    }
    let mut buckets = Vec::with_capacity((last >> shift) as usize + 2);
    for (position, key) in keys.iter().enumerate() {
        while buckets.len() <= (key >> shift) as usize {
            buckets.push(position as u32);
        }
    }
    buckets.push(keys.len() as u32);
    (buckets, IndexForm::Buckets { shift })
}

fn ranks(keys: &[u32], blocks: usize) -> Vec<u32> {
    let mut words = vec![0_u32; blocks * RANK_WORDS];
    for key in keys {
        let block = (*key / 64) as usize * RANK_WORDS;
        words[block + (key % 64 / 32) as usize] |= 1 << (key % 32);
    }
    let mut before = 0;
    for block in words.chunks_exact_mut(RANK_WORDS) {
        block[2] = before;
        before += block[0].count_ones() + block[1].count_ones();
    }
    words
}

/// A cursor over the values of keys; cheapest if the keys are ascending.
#[derive(Debug)]
pub struct PairCursor<'a> {
    pairs: &'a Pairs,
    keys: &'a [u32],
    starts: &'a [u32],
    values: &'a [u32],
    /// Position of the last requested key, or where it would be.
    position: usize,
}

/// Number of keys that a cursor examines before it uses the index.
const STEPS: usize = 4;

impl<'a> PairCursor<'a> {
    fn at(&self, position: usize) -> &'a [u32] {
        values_at(self.starts, self.values, position)
    }

    /// Returns the values of `key`.
    pub fn get(&mut self, key: u32) -> &'a [u32] {
        let next = self.keys.get(self.position..).unwrap_or_default();
        for (step, found) in next.iter().take(STEPS).enumerate() {
            if *found == key {
                self.position += step;
                return self.at(self.position);
            }
            if *found > key {
                if step == 0 {
                    break; // it may be one before
                }
                return &[];
            }
        }
        match self.pairs.search(key) {
            Some(position) => {
                self.position = position;
                self.at(position)
            }
            None => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_cursor_and_a_search_find_what_a_set_has() {
        let mut state = 1_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for (count, keys, values) in [
            (0, 1, 1),
            (1, 1, 1),
            (300, 40, 5),
            (5_000, 4_000_000_000, 9),
            (4_000, 900, 50),
            (4_000, 60_000, 2),
        ] {
            let all: BTreeSet<(u32, u32)> =
                (0..count).map(|_| (1 + random(keys) as u32, 1 + random(values) as u32)).collect();
            let mut words: Vec<u64> = all
                .iter()
                .chain(&all)
                .map(|(key, value)| u64::from(*key) << 32 | u64::from(*value))
                .collect();
            let pairs = Pairs::of(&mut words);
            assert_eq!(pairs.len(), all.len());
            let back: BTreeSet<(u32, u32)> = pairs
                .iter()
                .flat_map(|(key, values)| values.iter().map(move |value| (key, *value)))
                .collect();
            assert_eq!(back, all);
            let expected = |key: u32| -> Vec<u32> {
                all.range((key, 0)..=(key, u32::MAX)).map(|(_, value)| *value).collect()
            };
            let mut asked: Vec<u32> = all.iter().map(|(key, _)| *key).collect();
            asked.extend((0..500).map(|_| random(keys + 3) as u32));
            let (mut rising, mut cursor) = (pairs.cursor(), pairs.cursor());
            for key in &asked {
                assert_eq!(cursor.get(*key), expected(*key), "{key}");
                assert_eq!(pairs.get(*key), expected(*key), "{key}");
            }
            asked.sort_unstable();
            assert!(asked.iter().all(|key| rising.get(*key) == expected(*key)));
            assert!(all.iter().all(|(key, value)| pairs.contains(*key, *value)));
        }
    }
}
