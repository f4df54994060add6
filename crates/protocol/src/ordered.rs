//! Ordered maps and sets whose keys are numbers, with one search tree for all of them.
//!
//! Places walk over their tables in the order of keys, so that a seeded world has one outcome. The compiler
//! instantiates a `BTreeMap` of the standard library for each pair of types, some ten thousand lines of LLVM IR each:
//! fifty of them were a quarter of all code generated for a first run. Here the tree has no type parameters: it finds
//! the slot of a number of 128 bits, and the values are in slots. Keys that are longer, or are texts, stay with
//! `BTreeMap`. Invariant: the slots in the tree are exactly the occupied ones, each once.

use crate::PlaceId;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use slab::Slab;
use std::collections::{BTreeMap, btree_map};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::ops::{Bound, RangeInclusive};

/// A key: a number of at most 128 bits; keys have the order of their numbers.
pub trait OrderedKey: Copy {
    /// Largest number of bits in the number.
    const BITS: u32;

    /// Returns the number, below 2^[`BITS`](OrderedKey::BITS).
    fn to_number(self) -> u128;

    /// Returns the key of a number that [`OrderedKey::to_number`] returned.
    fn from_number(number: u128) -> Self;
}

/// Implements `OrderedKey` for types that hold one key, or are an integer.
#[macro_export]
macro_rules! ordered_keys {
    ($($key:ty: $bits:literal, $to:expr, $from:expr;)*) => {$(
        impl $crate::ordered::OrderedKey for $key {
            const BITS: u32 = $bits;

            #[inline]
            fn to_number(self) -> u128 {
                let to: fn($key) -> u128 = $to;
                to(self)
            }

            #[inline]
            fn from_number(number: u128) -> Self {
                let from: fn(u128) -> $key = $from;
                from(number)
            }
        }
    )*};
}

ordered_keys! {
    u8: 8, u128::from, |number| number as u8;
    u32: 32, u128::from, |number| number as u32;
    u64: 64, u128::from, |number| number as u64;
    usize: 64, |key| key as u128, |number| number as usize;
    PlaceId: 32, |place| u128::from(place.0), |number| PlaceId(number as u32);
}

impl<A: OrderedKey, B: OrderedKey> OrderedKey for (A, B) {
    const BITS: u32 = {
        assert!(A::BITS + B::BITS <= u128::BITS, "both keys together have more than 128 bits");
        A::BITS + B::BITS
    };

    #[inline]
    fn to_number(self) -> u128 {
        const { assert!(Self::BITS <= u128::BITS) };
        self.0.to_number() << B::BITS | self.1.to_number()
    }

    #[inline]
    fn from_number(number: u128) -> Self {
        (A::from_number(number >> B::BITS), B::from_number(number & ((1 << B::BITS) - 1)))
    }
}

/// The slots of numbers; without type parameters, so that it is compiled once.
#[derive(Clone, Debug, Default)]
struct NumberIndex(BTreeMap<u128, usize>);

impl NumberIndex {
    fn find(&self, number: u128) -> Option<usize> {
        self.0.get(&number).copied()
    }

    /// Returns the slot of the number; sets it to `slot` if it had none.
    fn find_or_add(&mut self, number: u128, slot: usize) -> usize {
        *self.0.entry(number).or_insert(slot)
    }

    fn remove(&mut self, number: u128) -> Option<usize> {
        self.0.remove(&number)
    }

    fn pop_first(&mut self) -> Option<(u128, usize)> {
        self.0.pop_first()
    }

    fn last(&self) -> Option<(u128, usize)> {
        self.0.last_key_value().map(|(number, slot)| (*number, *slot))
    }

    /// Returns the first number from this one on.
    fn from(&self, number: u128) -> Option<(u128, usize)> {
        self.0.range(number..).next().map(|(number, slot)| (*number, *slot))
    }

    /// Returns the last number before this one.
    fn before(&self, number: u128) -> Option<(u128, usize)> {
        self.0.range(..number).next_back().map(|(number, slot)| (*number, *slot))
    }

    /// Returns the first number after this one.
    fn after(&self, number: u128) -> Option<(u128, usize)> {
        let range = (Bound::Excluded(number), Bound::Unbounded);
        self.0.range(range).next().map(|(number, slot)| (*number, *slot))
    }

    fn steps(&self) -> Steps<'_> {
        Steps(self.0.iter())
    }

    fn between(&self, first: u128, last: u128) -> StepsBetween<'_> {
        StepsBetween(self.0.range(first..=last))
    }
}

/// All numbers and slots, in order.
#[derive(Clone)]
struct Steps<'a>(btree_map::Iter<'a, u128, usize>);

impl Iterator for Steps<'_> {
    type Item = (u128, usize);

    fn next(&mut self) -> Option<(u128, usize)> {
        self.0.next().map(|(number, slot)| (*number, *slot))
    }
}

/// The numbers of a range and their slots, in order.
struct StepsBetween<'a>(btree_map::Range<'a, u128, usize>);

impl Iterator for StepsBetween<'_> {
    type Item = (u128, usize);

    fn next(&mut self) -> Option<(u128, usize)> {
        self.0.next().map(|(number, slot)| (*number, *slot))
    }
}

/// Values by key, in the order of keys.
#[derive(Clone)]
pub struct OrderedMap<K, V> {
    index: NumberIndex,
    values: Slab<V>,
    keys: PhantomData<fn() -> K>,
}

impl<K, V> Default for OrderedMap<K, V> {
    fn default() -> Self {
        OrderedMap { index: NumberIndex::default(), values: Slab::new(), keys: PhantomData }
    }
}

impl<K: OrderedKey, V> OrderedMap<K, V> {
    /// Makes an empty map.
    pub const fn new() -> Self {
        OrderedMap { index: NumberIndex(BTreeMap::new()), values: Slab::new(), keys: PhantomData }
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns `true` if there are no values.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns `true` if `key` has a value.
    pub fn contains_key(&self, key: K) -> bool {
        self.index.find(key.to_number()).is_some()
    }

    /// Returns the value of `key`.
    pub fn get(&self, key: K) -> Option<&V> {
        self.index.find(key.to_number()).map(|slot| &self.values[slot])
    }

    /// Returns the value of `key`, mutably.
    pub fn get_mut(&mut self, key: K) -> Option<&mut V> {
        self.index.find(key.to_number()).map(|slot| &mut self.values[slot])
    }

    /// Returns the value of `key`; inserts the result of `make` if there is none.
    pub fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        let number = key.to_number();
        // `make` may panic, so it runs before anything changes.
        let slot = self.index.find(number).unwrap_or_else(|| {
            let slot = self.values.insert(make());
            self.index.find_or_add(number, slot)
        });
        &mut self.values[slot]
    }

    /// Returns the value of `key`; inserts the default one if there is none.
    pub fn get_or_default(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        self.get_or_insert_with(key, V::default)
    }

    /// Sets the value of `key`; returns the previous one.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let vacant = self.values.vacant_key();
        let slot = self.index.find_or_add(key.to_number(), vacant);
        if slot == vacant {
            self.values.insert(value);
            return None;
        }
        Some(std::mem::replace(&mut self.values[slot], value))
    }

    /// Removes the value of `key` and returns it.
    pub fn remove(&mut self, key: K) -> Option<V> {
        self.index.remove(key.to_number()).map(|slot| self.values.remove(slot))
    }

    /// Removes the least key and returns it with its value.
    pub fn pop_first(&mut self) -> Option<(K, V)> {
        self.index.pop_first().map(|(number, slot)| (K::from_number(number), self.values.remove(slot)))
    }

    /// Returns the least key and its value.
    pub fn first(&self) -> Option<(K, &V)> {
        self.index.from(0).map(|(number, slot)| (K::from_number(number), &self.values[slot]))
    }

    /// Returns the greatest key and its value.
    pub fn last(&self) -> Option<(K, &V)> {
        self.index.last().map(|(number, slot)| (K::from_number(number), &self.values[slot]))
    }

    /// Returns the least key from `key` on, and its value.
    pub fn first_from(&self, key: K) -> Option<(K, &V)> {
        self.index.from(key.to_number()).map(|(number, slot)| (K::from_number(number), &self.values[slot]))
    }

    /// Returns the greatest key before `key`, and its value.
    pub fn last_before(&self, key: K) -> Option<(K, &V)> {
        self.index.before(key.to_number()).map(|(number, slot)| (K::from_number(number), &self.values[slot]))
    }

    /// Returns the keys and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (K, &V)> + Clone {
        self.index.steps().map(|(number, slot)| (K::from_number(number), &self.values[slot]))
    }

    /// Returns the keys and values of a range, in order.
    pub fn range(&self, range: RangeInclusive<K>) -> impl Iterator<Item = (K, &V)> {
        let steps = self.index.between(range.start().to_number(), range.end().to_number());
        steps.map(|(number, slot)| (K::from_number(number), &self.values[slot]))
    }

    /// Returns the keys, in order.
    pub fn keys(&self) -> impl Iterator<Item = K> + Clone {
        self.index.steps().map(|(number, _)| K::from_number(number))
    }

    /// Returns the values, in the order of their keys.
    pub fn values(&self) -> impl Iterator<Item = &V> + Clone {
        self.index.steps().map(|(_, slot)| &self.values[slot])
    }

    /// Keeps the values for which `keep`, which may change them, returns `true`; called in the order of keys.
    pub fn retain(&mut self, mut keep: impl FnMut(K, &mut V) -> bool) {
        let mut next = self.index.from(0);
        while let Some((number, slot)) = next {
            if !keep(K::from_number(number), &mut self.values[slot]) {
                self.index.remove(number);
                self.values.remove(slot);
            }
            next = self.index.after(number);
        }
    }

    /// Calls `change` on each value, in the order of keys.
    pub fn for_each_mut(&mut self, mut change: impl FnMut(K, &mut V)) {
        self.index.steps().for_each(|(number, slot)| change(K::from_number(number), &mut self.values[slot]));
    }

    /// Removes all values.
    pub fn clear(&mut self) {
        *self = OrderedMap::default();
    }
}

impl<K: OrderedKey + 'static, V> IntoIterator for OrderedMap<K, V> {
    type Item = (K, V);
    type IntoIter = IntoValues<K, V>;

    fn into_iter(self) -> IntoValues<K, V> {
        IntoValues(self)
    }
}

/// The keys and values of a consumed map, in order.
pub struct IntoValues<K, V>(OrderedMap<K, V>);

impl<K: OrderedKey, V> Iterator for IntoValues<K, V> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        self.0.pop_first()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.0.len(), Some(self.0.len()))
    }
}

impl<K: OrderedKey, V> Extend<(K, V)> for OrderedMap<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, values: I) {
        for (key, value) in values {
            self.insert(key, value);
        }
    }
}

impl<K: OrderedKey, V> FromIterator<(K, V)> for OrderedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(values: I) -> Self {
        let mut map = OrderedMap::default();
        map.extend(values);
        map
    }
}

impl<K: OrderedKey + fmt::Debug, V: fmt::Debug> fmt::Debug for OrderedMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: OrderedKey, V: PartialEq> PartialEq for OrderedMap<K, V> {
    fn eq(&self, other: &Self) -> bool {
        let (own, others) = (self.index.0.keys(), other.index.0.keys());
        own.eq(others) && self.values().eq(other.values())
    }
}

impl<K: OrderedKey, V: Eq> Eq for OrderedMap<K, V> {}

impl<K: OrderedKey, V: Hash> Hash for OrderedMap<K, V> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.len().hash(state);
        self.index.steps().for_each(|(number, slot)| (number, &self.values[slot]).hash(state));
    }
}

impl<K: OrderedKey + Serialize, V: Serialize> Serialize for OrderedMap<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.iter().collect::<Vec<_>>().serialize(serializer)
    }
}

impl<'de, K: OrderedKey + Deserialize<'de>, V: Deserialize<'de>> Deserialize<'de> for OrderedMap<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(|values| values.into_iter().collect())
    }
}

/// Keys, in order.
#[derive(Clone)]
pub struct OrderedSet<K> {
    index: NumberIndex,
    keys: PhantomData<fn() -> K>,
}

impl<K> Default for OrderedSet<K> {
    fn default() -> Self {
        OrderedSet { index: NumberIndex::default(), keys: PhantomData }
    }
}

impl<K: OrderedKey> OrderedSet<K> {
    /// Makes an empty set.
    pub const fn new() -> Self {
        OrderedSet { index: NumberIndex(BTreeMap::new()), keys: PhantomData }
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.index.0.len()
    }

    /// Returns `true` if there are no keys.
    pub fn is_empty(&self) -> bool {
        self.index.0.is_empty()
    }

    /// Returns `true` if `key` is in the set.
    pub fn contains(&self, key: K) -> bool {
        self.index.find(key.to_number()).is_some()
    }

    /// Adds `key`; returns whether it was absent.
    pub fn insert(&mut self, key: K) -> bool {
        let before = self.len();
        self.index.find_or_add(key.to_number(), 0);
        self.len() > before
    }

    /// Removes `key`; returns whether it was present.
    pub fn remove(&mut self, key: K) -> bool {
        self.index.remove(key.to_number()).is_some()
    }

    /// Removes the least key and returns it.
    pub fn pop_first(&mut self) -> Option<K> {
        self.index.pop_first().map(|(number, _)| K::from_number(number))
    }

    /// Returns the least key.
    pub fn first(&self) -> Option<K> {
        self.first_number_from(0)
    }

    /// Returns the least key from `key` on.
    pub fn first_from(&self, key: K) -> Option<K> {
        self.first_number_from(key.to_number())
    }

    fn first_number_from(&self, number: u128) -> Option<K> {
        self.index.from(number).map(|(number, _)| K::from_number(number))
    }

    /// Returns the keys, in order.
    pub fn iter(&self) -> impl Iterator<Item = K> + Clone {
        self.index.steps().map(|(number, _)| K::from_number(number))
    }

    /// Returns the keys up to and including `last`, in order.
    pub fn up_to(&self, last: K) -> impl Iterator<Item = K> {
        self.index.between(0, last.to_number()).map(|(number, _)| K::from_number(number))
    }

    /// Returns `true` if all keys are in `other`.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.index.steps().all(|(number, _)| other.index.find(number).is_some())
    }

    /// Keeps the keys for which `keep` returns `true`.
    pub fn retain(&mut self, mut keep: impl FnMut(K) -> bool) {
        let mut next = self.index.from(0);
        while let Some((number, _)) = next {
            if !keep(K::from_number(number)) {
                self.index.remove(number);
            }
            next = self.index.after(number);
        }
    }
}

impl<K: OrderedKey> Extend<K> for OrderedSet<K> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        for key in keys {
            self.insert(key);
        }
    }
}

impl<K: OrderedKey> FromIterator<K> for OrderedSet<K> {
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> Self {
        let mut set = OrderedSet::default();
        set.extend(keys);
        set
    }
}

impl<K: OrderedKey + fmt::Debug> fmt::Debug for OrderedSet<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl<K> PartialEq for OrderedSet<K> {
    fn eq(&self, other: &Self) -> bool {
        self.index.0 == other.index.0
    }
}

impl<K> Eq for OrderedSet<K> {}

impl<K> Hash for OrderedSet<K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.index.0.hash(state);
    }
}

impl<K: OrderedKey + Serialize> Serialize for OrderedSet<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.iter().collect::<Vec<K>>().serialize(serializer)
    }
}

impl<'de, K: OrderedKey + Deserialize<'de>> Deserialize<'de> for OrderedSet<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::<K>::deserialize(deserializer).map(|keys| keys.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    type Key = (PlaceId, u8);

    #[derive(Clone, Debug)]
    enum Step {
        Insert(Key, u32),
        Remove(Key),
        Add(Key),
        PopFirst,
        Retain(u32),
        ClearAndRefill,
    }

    fn key() -> impl Strategy<Value = Key> {
        (0..6_u32, any::<u8>()).prop_map(|(place, minor)| (PlaceId(place * 0x3333_3333), minor & 3))
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => (key(), any::<u32>()).prop_map(|(key, value)| Step::Insert(key, value)),
            4 => key().prop_map(Step::Remove),
            4 => key().prop_map(Step::Add),
            2 => Just(Step::PopFirst),
            1 => (2..5_u32).prop_map(Step::Retain),
            1 => Just(Step::ClearAndRefill),
        ]
    }

    proptest! {
        #[test]
        fn maps_and_sets_are_those_of_the_standard_library(steps in proptest::collection::vec(step(), 0..80)) {
            let (mut map, mut model) = (OrderedMap::<Key, u32>::new(), BTreeMap::new());
            let (mut set, mut model_set) = (OrderedSet::<Key>::new(), BTreeSet::new());
            for step in steps {
                match step {
                    Step::Insert(key, value) => {
                        prop_assert_eq!(map.insert(key, value), model.insert(key, value));
                        prop_assert_eq!(set.insert(key), model_set.insert(key));
                    }
                    Step::Remove(key) => {
                        prop_assert_eq!(map.remove(key), model.remove(&key));
                        prop_assert_eq!(set.remove(key), model_set.remove(&key));
                    }
                    Step::Add(key) => {
                        *map.get_or_default(key) ^= 5;
                        *model.entry(key).or_default() ^= 5;
                        prop_assert_eq!(map.get(key), model.get(&key));
                        let from = model.range(key..).next().map(|(key, value)| (*key, value));
                        prop_assert_eq!(map.first_from(key), from);
                        let before = model.range(..key).next_back().map(|(key, value)| (*key, value));
                        prop_assert_eq!(map.last_before(key), before);
                        prop_assert_eq!(set.first_from(key), model_set.range(key..).next().copied());
                    }
                    Step::PopFirst => {
                        prop_assert_eq!(map.first(), model.first_key_value().map(|(key, value)| (*key, value)));
                        prop_assert_eq!(map.pop_first(), model.pop_first());
                        prop_assert_eq!(set.pop_first(), model_set.pop_first());
                    }
                    Step::Retain(divisor) => {
                        map.retain(|key, value| (key.0.0 ^ std::mem::replace(value, 7)) % divisor != 0);
                        model.retain(|key, value| (key.0.0 ^ std::mem::replace(value, 7)) % divisor != 0);
                        set.retain(|key| u32::from(key.1) % divisor != 0);
                        model_set.retain(|key| u32::from(key.1) % divisor != 0);
                    }
                    Step::ClearAndRefill => {
                        let all: Vec<_> = std::mem::take(&mut map).into_iter().collect();
                        map.extend(all);
                        map.for_each_mut(|key, value| *value ^= key.0.0);
                        model.iter_mut().for_each(|(key, value)| *value ^= key.0.0);
                    }
                }
                prop_assert!(map.iter().eq(model.iter().map(|(key, value)| (*key, value))));
                prop_assert!(set.iter().eq(model_set.iter().copied()));
                let (first, last) = ((PlaceId(0x3333_3333), 1), (PlaceId(0x9999_9999), 2));
                let within = model.range(first..=last).map(|(key, value)| (*key, value));
                prop_assert!(map.range(first..=last).eq(within));
                prop_assert_eq!((map.len(), set.len()), (model.len(), model_set.len()));
                prop_assert_eq!(map.last(), model.last_key_value().map(|(key, value)| (*key, value)));
            }
        }

        #[test]
        fn a_key_comes_back_from_its_number_in_its_order(one in any::<(u64, u64)>(), other in any::<(u64, u64)>()) {
            prop_assert_eq!(<(u64, u64)>::from_number(one.to_number()), one);
            prop_assert_eq!(one.to_number().cmp(&other.to_number()), one.cmp(&other));
        }
    }

    #[test]
    fn what_was_written_is_read_again() {
        let map = OrderedMap::from_iter([((PlaceId(3), 1_u64), 7_u32), ((PlaceId(1), 2), 9)]);
        let bytes = postcard::to_allocvec(&map).expect("it is written");
        assert_eq!(postcard::from_bytes::<OrderedMap<(PlaceId, u64), u32>>(&bytes), Ok(map));
        let set = OrderedSet::from_iter([PlaceId(4), PlaceId(2)]);
        let bytes = postcard::to_allocvec(&set).expect("it is written");
        assert_eq!(postcard::from_bytes::<OrderedSet<PlaceId>>(&bytes), Ok(set));
    }
}
