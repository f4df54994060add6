//! The dictionary of a place: maps each number to the bytes of a term, and these bytes to the number.
//!
//! The numbers of a place are dense from 0; [`Numbering`] makes them globally unique. It knows no triples. Invariant:
//! a term has one number, and a number is never reused until [`Dictionary::truncate`] revokes it.

use super::arrays::{ArrayReader, ArrayWriter};
use super::term;

/// The number of an unbound variable; no term has it.
pub const UNBOUND: u32 = 0;

/// Numbering of the terms of all places: the term with index `i` at place `p` has the number `1 + i × places + p`.
#[derive(Clone, Copy, Debug)]
pub struct Numbering {
    places: u32,
    /// 2^64 / `places`, rounded up: with it a remainder costs two multiplications and no division (Lemire, Kaser and
    /// Kurz, "Faster remainder by direct computation", 2019).
    inverse: u64,
}

impl Numbering {
    /// Returns the numbering for this number of places.
    pub fn new(places: usize) -> Numbering {
        let places = u32::try_from(places.max(1)).unwrap_or(u32::MAX);
        Numbering { places, inverse: (u64::MAX / u64::from(places)).wrapping_add(1) }
    }

    /// Returns the number of the term with this index at that place; `None` if there are more terms than numbers.
    pub fn number(self, index: usize, place: usize) -> Option<u32> {
        let index = u32::try_from(index).ok()?;
        index.checked_mul(self.places)?.checked_add(1)?.checked_add(u32::try_from(place).ok()?)
    }

    /// Returns the place that owns the term with this number, which must not be [`UNBOUND`].
    pub fn place(self, number: u32) -> usize {
        let fraction = self.inverse.wrapping_mul(u64::from(number - 1));
        ((u128::from(fraction) * u128::from(self.places)) >> 64) as usize
    }

    /// Returns how many of these terms, none of which may be [`UNBOUND`], belong to places other than `place`.
    pub fn count_elsewhere(self, numbers: &[u32], place: usize) -> u64 {
        let (mask, here) = (self.places - 1, place as u32);
        if self.places.is_power_of_two() {
            // A loop that compilers can vectorise.
            return numbers.iter().map(|number| u64::from((number - 1) & mask != here)).sum();
        }
        numbers.iter().map(|number| u64::from(self.place(*number) != place)).sum()
    }

    /// Returns the index at its place of the term with this number, which must not be [`UNBOUND`].
    pub fn index(self, number: u32) -> usize {
        if self.places == 1 { number as usize - 1 } else { ((number - 1) / self.places) as usize }
    }
}

/// Terms in a mapped file, in the layout of [`Dictionary`].
#[derive(Debug, Default)]
struct MappedTerms {
    bytes: &'static [u8],
    ends: &'static [u64],
    slots: &'static [u64],
}

/// The terms of a place.
#[derive(Debug, Default)]
pub struct Dictionary {
    /// The first terms, if they come from a snapshot.
    mapped: MappedTerms,
    bytes: Vec<u8>,
    /// End of each term.
    ends: Vec<usize>,
    /// An open-addressing table with a power of two slots, at most three quarters full: the upper half of the hash,
    /// and the index plus one; 0 is an empty slot.
    slots: Vec<u64>,
}

const SLOTS_MIN: usize = 64;

impl Dictionary {
    /// Returns the number of terms.
    pub fn len(&self) -> usize {
        self.mapped.ends.len() + self.ends.len()
    }

    /// Returns `true` if there are no terms.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes of memory that it uses.
    pub fn memory(&self) -> u64 {
        let MappedTerms { bytes, ends, slots } = &self.mapped;
        let mapped = bytes.len() + 8 * (ends.len() + slots.len());
        (mapped + self.bytes.capacity() + 8 * (self.ends.capacity() + self.slots.capacity())) as u64
    }

    /// Returns the bytes of the term with this index.
    pub fn bytes(&self, index: usize) -> &[u8] {
        let MappedTerms { bytes, ends, .. } = &self.mapped;
        if index < ends.len() {
            let start = if index == 0 { 0 } else { ends[index - 1] };
            return &bytes[start as usize..ends[index] as usize];
        }
        let index = index - ends.len();
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[start..self.ends[index]]
    }

    /// Returns the index of a term, if it has one.
    pub fn find(&self, term: &[u8]) -> Option<u32> {
        let hash = term::hash(term);
        let found = self.find_in(self.mapped.slots, term, hash);
        found.or_else(|| self.find_in(&self.slots, term, hash))
    }

    fn find_in(&self, slots: &[u64], term: &[u8], hash: u64) -> Option<u32> {
        if slots.is_empty() { None } else { self.probe(slots, term, hash).ok() }
    }

    /// Writes the terms as part of a snapshot.
    pub fn write(&self, out: &mut ArrayWriter) {
        let MappedTerms { bytes, ends, slots } = &self.mapped;
        if !ends.is_empty() {
            // Terms added by queries have been revoked.
            out.array(bytes);
            out.array(ends);
            out.array(slots);
            return;
        }
        out.array(&self.bytes);
        out.array(&self.ends.iter().map(|end| *end as u64).collect::<Vec<u64>>());
        out.array(&self.slots);
    }

    /// Reads the output of [`Dictionary::write`]; `None` if the bytes end too early.
    pub fn read(from: &mut ArrayReader) -> Option<Dictionary> {
        let mapped = MappedTerms { bytes: from.array()?, ends: from.array()?, slots: from.array()? };
        Some(Dictionary { mapped, ..Dictionary::default() })
    }

    /// Returns the index of a term; adds the term if it is new.
    pub fn intern(&mut self, term: &[u8]) -> u32 {
        self.intern_hashed(term, term::hash(term))
    }

    /// Same as [`Dictionary::intern`], if the hash of the term is known.
    fn intern_hashed(&mut self, term: &[u8], hash: u64) -> u32 {
        if let Some(index) = self.find_in(self.mapped.slots, term, hash) {
            return index;
        }
        if (self.ends.len() + 1) * 4 > self.slots.len() * 3 {
            self.grow();
        }
        match self.probe(&self.slots, term, hash) {
            Ok(index) => index,
            Err(slot) => {
                let index = self.len() as u32;
                self.bytes.extend_from_slice(term);
                self.ends.push(self.bytes.len());
                self.slots[slot] = (hash >> 32 << 32) | u64::from(index + 1);
                index
            }
        }
    }

    /// Revokes all numbers from `len` on; those of a snapshot remain.
    pub fn truncate(&mut self, len: usize) {
        let mask = self.slots.len().wrapping_sub(1);
        for index in (len.max(self.mapped.ends.len())..self.len()).rev() {
            let mut slot = (term::hash(self.bytes(index)) >> 32) as usize & mask;
            while self.slots[slot] as u32 != index as u32 + 1 {
                slot = (slot + 1) & mask;
            }
            self.empty_slot(slot);
            self.ends.pop();
            self.bytes.truncate(self.ends.last().copied().unwrap_or(0));
        }
    }

    /// Empties a slot, and moves back the entries that it had displaced.
    fn empty_slot(&mut self, mut hole: usize) {
        let mask = self.slots.len() - 1;
        let mut slot = hole;
        loop {
            slot = (slot + 1) & mask;
            let entry = self.slots[slot];
            if entry == 0 {
                self.slots[hole] = 0;
                return;
            }
            let first = (entry >> 32) as usize & mask;
            if slot.wrapping_sub(first) & mask >= slot.wrapping_sub(hole) & mask {
                self.slots[hole] = entry;
                hole = slot;
            }
        }
    }

    /// Returns the index of the term, or as the error the slot where it would be inserted.
    fn probe(&self, slots: &[u64], term: &[u8], hash: u64) -> Result<u32, usize> {
        let mask = slots.len() - 1;
        let (upper, mut slot) = (hash >> 32, (hash >> 32) as usize & mask);
        loop {
            let entry = slots[slot];
            if entry == 0 {
                return Err(slot);
            }
            let index = entry as u32 - 1;
            if entry >> 32 == upper && self.bytes(index as usize) == term {
                return Ok(index);
            }
            slot = (slot + 1) & mask;
        }
    }

    fn grow(&mut self) {
        let slots = (self.slots.len() * 2).max(SLOTS_MIN);
        let old = std::mem::replace(&mut self.slots, vec![0; slots]);
        for entry in old.into_iter().filter(|entry| *entry != 0) {
            let mut slot = (entry >> 32) as usize & (slots - 1);
            while self.slots[slot] != 0 {
                slot = (slot + 1) & (slots - 1);
            }
            self.slots[slot] = entry;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_term_keeps_its_number_while_the_table_grows_and_shrinks() {
        let mut dictionary = Dictionary::default();
        let name = |number: u32| format!("i{}", number.wrapping_mul(2_654_435_761)).into_bytes();
        assert_eq!(dictionary.find(b"i0"), None);
        for number in 0..10_000 {
            assert_eq!(dictionary.intern(&name(number)), number);
        }
        for kept in [9_000, 100, 0] {
            dictionary.truncate(kept);
            for number in 0..10_000_u32 {
                let expected = (number < kept as u32).then_some(number);
                assert_eq!(dictionary.find(&name(number)), expected, "{kept}");
            }
        }
        assert_eq!((dictionary.intern(b"i"), dictionary.bytes(0)), (0, &b"i"[..]));
    }

    #[test]
    fn a_dictionary_of_a_snapshot_finds_its_terms_and_takes_new_ones() {
        let name = |number: u32| format!("i{}", number.wrapping_mul(2_654_435_761)).into_bytes();
        let mut written = Dictionary::default();
        (0..1_000).for_each(|number| _ = written.intern(&name(number)));
        let mut out = ArrayWriter::default();
        written.write(&mut out);
        let words: &'static [u64] = bytemuck::pod_collect_to_vec(&out.into_bytes()).leak();
        let mut read = Dictionary::read(&mut ArrayReader::new(bytemuck::cast_slice(words))).unwrap();
        for round in 0..2 {
            assert_eq!(read.len(), 1_000, "{round}");
            assert!((0..2_000).all(|number| read.intern(&name(number)) == number));
            assert!((0..2_000).all(|number| read.bytes(number as usize) == name(number)));
            read.truncate(0);
            assert!((0..2_000).all(|number| read.find(&name(number)) == (number < 1_000).then_some(number)));
        }
    }

    #[test]
    fn numbers_of_all_places_say_place_and_index() {
        for places in [1, 2, 3, 7, 48, 1_000] {
            let numbering = Numbering::new(places);
            let last = (u32::MAX as usize - places) / places - 1;
            for (index, place) in [(0, 0), (0, places - 1), (3_000_000, places / 2), (last, places - 1)] {
                let number = numbering.number(index, place).unwrap();
                assert_eq!((numbering.index(number), numbering.place(number)), (index, place));
            }
        }
        assert_eq!(Numbering::new(2).number(1 << 31, 0), None);
    }
}
