//! The layout of the table, and its operations on the slots of one stripe.
//!
//! A table is a number of stripes of equal size, each with a lock. The hash of a key determines its stripe and its
//! first slot; the key is in the first free slot from there, wrapping around in the stripe (linear probing: Knuth, The
//! Art of Computer Programming, volume 3, section 6.4, algorithm L). Invariants: a slot that has a key keeps it; no
//! stripe is full, because its size is at least twice the number of possible keys that belong to it.

use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A slot: the key plus 1, or 0 if it is free, and the value.
pub(super) type Slot = [u64; 2];

/// Number of slots of the smallest stripe: one page.
const STRIPE_MIN: usize = 256;

/// Returns a number whose bits all depend on those of `value` (splitmix64: Steele, Lea and Flood, OOPSLA 2014).
pub(super) fn mix(value: u64) -> u64 {
    let mixed = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}

/// The layout of a table for keys below a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TableLayout {
    /// Number of stripes; a power of two.
    pub(super) stripes: usize,
    /// Slots of a stripe; a power of two.
    pub(super) stripe_slots: usize,
}

impl TableLayout {
    /// Returns the layout with `stripes` stripes, a power of two, in which the keys below `keys` fill no stripe.
    pub(super) fn new(keys: u64, stripes: usize) -> TableLayout {
        let mut counts = vec![0; stripes];
        let layout = TableLayout { stripes, stripe_slots: 1 };
        (0..keys).for_each(|key| counts[layout.stripe(key)] += 1);
        let most: usize = counts.into_iter().max().unwrap_or_default();
        TableLayout { stripe_slots: (2 * most).next_power_of_two().max(STRIPE_MIN), ..layout }
    }

    /// Returns the number of slots.
    pub(super) fn slots(&self) -> usize {
        self.stripes * self.stripe_slots
    }

    /// Returns the stripe of a key, which is also the number of its lock.
    pub(super) fn stripe(&self, key: u64) -> usize {
        mix(key) as usize & (self.stripes - 1)
    }

    /// Returns the slots of a stripe.
    pub(super) fn range(&self, stripe: usize) -> Range<usize> {
        stripe * self.stripe_slots..(stripe + 1) * self.stripe_slots
    }

    /// Returns the slots that a look-up of `key` visits, in order.
    pub(super) fn probes(&self, key: u64) -> impl Iterator<Item = usize> {
        let (stripe, slots) = (self.stripe(key), self.stripe_slots);
        let first = (mix(key) >> 32) as usize;
        (0..slots).map(move |step| stripe * slots + ((first + step) & (slots - 1)))
    }
}

/// Result of examining one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probe {
    /// The key is here.
    Found(u64),
    /// The slot is free, so the table does not have the key.
    Free,
    /// Another key is here; the search continues.
    Other,
}

/// Returns the meaning of a slot for a key.
pub(super) fn probe(slot: Slot, key: u64) -> Probe {
    match slot[0] {
        0 => Probe::Free,
        held if held == key + 1 => Probe::Found(slot[1]),
        _ => Probe::Other,
    }
}

/// Returns a number that depends on a key and its value; the digest of a table is the sum of those of its entries.
pub(super) fn entry_digest(key: u64, value: u64) -> u64 {
    mix(mix(key) ^ value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Adds `value` to that of a key.
    fn add(slots: &mut [Slot], layout: &TableLayout, key: u64, value: u64) {
        for at in layout.probes(key) {
            match probe(slots[at], key) {
                Probe::Other => continue,
                Probe::Found(before) => slots[at][1] = before + value,
                Probe::Free => slots[at] = [key + 1, value],
            }
            return;
        }
        panic!("a stripe is full");
    }

    fn find(slots: &[Slot], layout: &TableLayout, key: u64) -> Option<u64> {
        let found = layout.probes(key).map(|at| probe(slots[at], key)).find(|probe| *probe != Probe::Other);
        match found {
            Some(Probe::Found(value)) => Some(value),
            _ => None,
        }
    }

    proptest! {
        #[test]
        fn a_table_has_what_a_map_has(
            keys in 1_u64..3_000,
            bits in 0_u32..7,
            steps in prop::collection::vec((any::<u64>(), 0_u64..1_000), 0..400),
        ) {
            let layout = TableLayout::new(keys, 1 << bits);
            let (mut slots, mut map) = (vec![[0; 2]; layout.slots()], BTreeMap::new());
            for (key, value) in steps {
                let key = key % keys;
                add(&mut slots, &layout, key, value);
                *map.entry(key).or_insert(0) += value;
            }
            for key in 0..keys {
                prop_assert_eq!(find(&slots, &layout, key), map.get(&key).copied());
            }
            prop_assert_eq!(slots.iter().filter(|slot| slot[0] > 0).count(), map.len());
        }

        #[test]
        fn no_stripe_is_more_than_half_full_of_all_keys(keys in 1_u64..20_000, bits in 0_u32..9) {
            let layout = TableLayout::new(keys, 1 << bits);
            let mut counts = vec![0; layout.stripes];
            (0..keys).for_each(|key| counts[layout.stripe(key)] += 1);
            prop_assert!(counts.into_iter().all(|count: usize| 2 * count <= layout.stripe_slots));
        }
    }

    #[test]
    fn a_search_visits_each_slot_of_the_stripe_once() {
        let layout = TableLayout::new(10_000, 4);
        let mut visited: Vec<usize> = layout.probes(77).collect();
        visited.sort_unstable();
        assert_eq!(visited, layout.range(layout.stripe(77)).collect::<Vec<_>>());
    }

    #[test]
    fn the_digest_tells_values_and_keys_apart() {
        assert_ne!(entry_digest(1, 2), entry_digest(2, 1));
        assert_ne!(entry_digest(1, 2), entry_digest(1, 3));
    }
}
