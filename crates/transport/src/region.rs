//! Regions: pieces of the memory of a place that others can map.
//!
//! [`RegionTable`] is a transport's table of the regions that its place has allocated; the transport decides where the
//! memory is. Invariant: two allocated regions have no word in common.

use crate::{PlaceId, Ranges};
use isles_protocol::ordered::OrderedMap;

/// A piece of the memory of a place, as its owner describes it to others; see [`MappedMemory`](crate::MappedMemory).
///
/// It says where the words are but grants no right to them: any place may view all words that a place has for regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Region {
    /// Place that owns the memory.
    pub place: PlaceId,
    /// Index of its first word among the words that the place has for regions.
    pub start: u64,
    /// Number of words.
    pub words: u64,
}

/// The regions that a place has allocated.
#[derive(Debug)]
pub struct RegionTable {
    free: Ranges,
    /// Number of words of each region, by its first word.
    taken: OrderedMap<u64, u64>,
    /// Regions start at multiples of this.
    grain: u64,
}

impl RegionTable {
    /// Creates a table of `words` free words, of which each region takes a multiple of `grain`.
    ///
    /// # Panics
    /// `words` or `grain` is zero.
    pub fn new(words: u64, grain: u64) -> RegionTable {
        assert!(words.is_multiple_of(grain), "{words} words in regions of {grain}");
        let mut free = Ranges::default();
        free.add(0, words);
        RegionTable { free, taken: OrderedMap::new(), grain }
    }

    /// Allocates `words` words. Returns the index of the first and the number of words taken for them; `None` if there
    /// is no room.
    pub fn take(&mut self, words: u64) -> Option<(u64, u64)> {
        let taken = words.max(1).checked_next_multiple_of(self.grain)?;
        let start = self.free.take(taken)?;
        self.taken.insert(start, taken);
        Some((start, taken))
    }

    /// Frees the region at `start`. Returns the number of words that it took.
    ///
    /// # Panics
    /// No region is allocated there.
    pub fn give_back(&mut self, start: u64) -> u64 {
        let taken = self.taken.remove(start).unwrap_or_else(|| panic!("there is no region at word {start}"));
        self.free.add(start, taken);
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Allocated regions are disjoint and inside; when all are freed, all room is one piece again.
        #[test]
        fn regions_are_apart_and_all_room_comes_back(
            steps in prop::collection::vec((any::<bool>(), 0_u64..40), 1..60),
        ) {
            let mut table = RegionTable::new(64, 4);
            let mut out: Vec<(u64, u64)> = Vec::new();
            for (gives, number) in steps {
                if gives && !out.is_empty() {
                    let (start, taken) = out.swap_remove(number as usize % out.len());
                    prop_assert_eq!(table.give_back(start), taken);
                } else if let Some((start, taken)) = table.take(number) {
                    prop_assert!(taken >= number.max(1) && start.is_multiple_of(4) && start + taken <= 64);
                    prop_assert!(out.iter().all(|(other, len)| start + taken <= *other || other + len <= start));
                    out.push((start, taken));
                }
            }
            for (start, taken) in out {
                prop_assert_eq!(table.give_back(start), taken);
            }
            prop_assert_eq!(table.take(64), Some((0, 64)));
            prop_assert_eq!(table.take(0), None);
        }
    }

    #[test]
    fn lengths_that_no_memory_has_are_refused() {
        let mut table = RegionTable::new(64, 4);
        assert_eq!([65, u64::MAX - 1, u64::MAX].map(|words| table.take(words)), [None; 3]);
    }

    #[test]
    #[should_panic(expected = "there is no region at word 4")]
    fn what_is_not_out_cannot_come_back() {
        RegionTable::new(64, 4).give_back(4);
    }
}
