//! Sorted pairs of numbers with their keys once each: one direction of the triples of a predicate.
//!
//! [`Pairs::cursor`] finds the values of a key. Where the keys that are asked for rise it walks along, which makes a
//! merge join of a loop; else it goes by a table of the upper bits, to a few keys among which it searches. Invariant:
//! keys rise, and the values of each key rise.

use super::arrays::{ArrayReader, ArrayWriter, Words};

/// Pairs of a key and a value, sorted, without repetition.
#[derive(Clone, Debug, Default)]
pub struct Pairs {
    keys: Words,
    /// Start of the values of each key, followed by the end of the last; empty if each key has one value.
    starts: Words,
    values: Words,
    /// Keys that are `bucket << shift` or more start at this position.
    buckets: Words,
    shift: u32,
}

impl Pairs {
    /// Pairs out of words whose upper half is the key; they are sorted, and what repeats counts once.
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
        let (buckets, shift) = buckets(&keys);
        Pairs {
            keys: keys.into(),
            starts: starts.into(),
            values: values.into(),
            buckets: buckets.into(),
            shift,
        }
    }

    /// Writes them as part of a snapshot.
    pub fn write(&self, out: &mut ArrayWriter) {
        out.number(u64::from(self.shift));
        [&self.keys, &self.starts, &self.values, &self.buckets]
            .into_iter()
            .for_each(|array| out.array(array));
    }

    /// Reads what [`Pairs::write`] wrote; `None` if the bytes end before.
    pub fn read(from: &mut ArrayReader) -> Option<Pairs> {
        let shift = u32::try_from(from.number()?).ok()?;
        let [keys, starts, values, buckets] = [from.words()?, from.words()?, from.words()?, from.words()?];
        Some(Pairs { keys, starts, values, buckets, shift })
    }

    /// Returns the number of pairs.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns `true` if there are no pairs.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The keys, each once, in order.
    pub fn keys(&self) -> &[u32] {
        &self.keys
    }

    /// All values, those of the first key first.
    pub fn values(&self) -> &[u32] {
        &self.values
    }

    /// Bytes of memory that they hold.
    pub fn memory(&self) -> u64 {
        4 * (self.keys.len() + self.starts.len() + self.values.len() + self.buckets.len()) as u64
    }

    /// The values of `key`.
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

    /// The keys with their values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &[u32])> {
        self.keys.iter().enumerate().map(|(position, key)| (*key, self.at(position)))
    }

    /// Returns a cursor that finds the values of one key after the other.
    pub fn cursor(&self) -> PairCursor<'_> {
        PairCursor { pairs: self, keys: &self.keys, starts: &self.starts, values: &self.values, position: 0 }
    }

    fn at(&self, position: usize) -> &[u32] {
        values_at(&self.starts, &self.values, position)
    }

    /// The position of `key`.
    fn search(&self, key: u32) -> Option<usize> {
        let bucket = (key >> self.shift) as usize;
        let (low, high) = (*self.buckets.get(bucket)?, *self.buckets.get(bucket + 1)?);
        let within = &self.keys[low as usize..high as usize];
        within.binary_search(&key).ok().map(|position| low as usize + position)
    }
}

/// The values of the key at this position.
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

/// Mean number of keys in a bucket, at least: they lie in one cache line, and a bucket takes as much memory as a key.
const KEYS_PER_BUCKET: usize = 2;

/// Returns buckets over the range of the keys, and the shift from a key to its bucket.
fn buckets(keys: &[u32]) -> (Vec<u32>, u32) {
    let Some(last) = keys.last() else { return (Vec::new(), 0) };
    let mut shift = 0;
    let most = (keys.len() / KEYS_PER_BUCKET).max(1);
    while (last >> shift) as usize > most {
        shift += 1;
    }
    let mut buckets = Vec::with_capacity((last >> shift) as usize + 2);
    for (position, key) in keys.iter().enumerate() {
        while buckets.len() <= (key >> shift) as usize {
            buckets.push(position as u32);
        }
    }
    buckets.push(keys.len() as u32);
    (buckets, shift)
}

/// Finds values of keys; cheapest for keys that rise.
#[derive(Debug)]
pub struct PairCursor<'a> {
    pairs: &'a Pairs,
    keys: &'a [u32],
    starts: &'a [u32],
    values: &'a [u32],
    /// Position of the key last asked for, or at which it would be.
    position: usize,
}

/// Number of keys a cursor examines before it uses the buckets.
const STEPS: usize = 4;

impl<'a> PairCursor<'a> {
    fn at(&self, position: usize) -> &'a [u32] {
        values_at(self.starts, self.values, position)
    }

    /// The values of `key`.
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
        for (count, keys, values) in
            [(0, 1, 1), (1, 1, 1), (300, 40, 5), (5_000, 4_000_000_000, 9), (4_000, 900, 50)]
        {
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
