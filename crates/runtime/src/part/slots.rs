//! The entries of the parts that a place knows, in slots.
//!
//! A handle remembers the slot of its part, so operations on it need no lookup by id; an id that arrives is looked up
//! once. Ids are never reused, so the id in a slot is its generation: a handle notices that its slot now belongs to
//! another part, and looks its own up by id. Invariant: `names` has exactly the parts that are in slots.

use super::PartId;
use isles_protocol::PlaceId;
use slab::Slab;
use std::cell::Cell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Likely slot of the entry of a part.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotHint(u32);

#[cfg(test)]
impl SlotHint {
    pub(super) fn any(number: usize) -> SlotHint {
        SlotHint(number as u32)
    }
}

/// One entry for each part.
pub(super) struct PartSlots<E> {
    slots: Slab<(PartId, E)>,
    names: HashMap<PartId, u32, NumberHasherBuilder>,
    /// Ids that were looked up last, with their slots: streams of messages bring handles to a few parts. An id is at
    /// the index of its serial number, and stays until it is removed or replaced.
    recent: [Cell<(PartId, u32)>; RECENT],
}

/// Number of ids remembered; a power of two.
const RECENT: usize = 4;

/// Returns the entry for the index of `id` if nothing is remembered there: an id that belongs to another index.
fn vacant_entry(id: PartId) -> (PartId, u32) {
    (PartId { serial: id.serial.wrapping_add(1), ..id }, 0)
}

impl<E> Default for PartSlots<E> {
    fn default() -> Self {
        let id = |index| PartId { home: PlaceId(0), serial: index as u64 };
        let recent = std::array::from_fn(|index| Cell::new(vacant_entry(id(index))));
        PartSlots { slots: Slab::new(), names: HashMap::default(), recent }
    }
}

impl<E> PartSlots<E> {
    /// Returns the slot of `id`, if it has one.
    #[inline]
    fn find(&self, id: PartId) -> Option<usize> {
        let (recent, slot) = self.recent(id).get();
        if recent == id { Some(slot as usize) } else { self.search(id) }
    }

    /// Returns the cell that remembers `id`.
    #[inline]
    fn recent(&self, id: PartId) -> &Cell<(PartId, u32)> {
        &self.recent[id.serial as usize % RECENT]
    }

    #[cold]
    fn search(&self, id: PartId) -> Option<usize> {
        let slot = *self.names.get(&id)?;
        self.recent(id).set((id, slot));
        Some(slot as usize)
    }

    /// Returns the entry of `id`, if there is one.
    #[inline]
    pub(super) fn get(&self, id: PartId) -> Option<&E> {
        self.find(id).map(|slot| &self.slots[slot].1)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: PartId) -> Option<&mut E> {
        self.find(id).map(|slot| &mut self.slots[slot].1)
    }

    /// Returns the entry of `id`, which is most likely at `hint`.
    #[inline]
    pub(super) fn get_at(&mut self, hint: SlotHint, id: PartId) -> Option<&mut E> {
        let slot = hint.0 as usize;
        let is_there = self.slots.get(slot).is_some_and(|(name, _)| *name == id);
        if is_there { self.slots.get_mut(slot).map(|(_, entry)| entry) } else { self.get_mut(id) }
    }

    /// As [`PartSlots::get_at`], but makes the entry if there is none.
    #[inline]
    pub(super) fn entry_at(&mut self, hint: SlotHint, id: PartId) -> &mut E
    where
        E: Default,
    {
        let slot = hint.0 as usize;
        let is_there = self.slots.get(slot).is_some_and(|(name, _)| *name == id);
        if is_there { &mut self.slots[slot].1 } else { self.entry(id).1 }
    }

    /// Returns the entry of `id` with its slot, and makes the entry if there is none.
    #[inline]
    pub(super) fn entry(&mut self, id: PartId) -> (SlotHint, &mut E)
    where
        E: Default,
    {
        let slot = match self.find(id) {
            Some(slot) => slot,
            None => self.insert(id, E::default()).0 as usize,
        };
        (SlotHint(slot as u32), &mut self.slots[slot].1)
    }

    /// Adds a part that has no entry.
    pub(super) fn insert(&mut self, id: PartId, entry: E) -> SlotHint {
        let slot =
            u32::try_from(self.slots.insert((id, entry))).expect("a place knows fewer than 2^32 parts");
        let before = self.names.insert(id, slot);
        debug_assert!(before.is_none(), "a part has one entry");
        SlotHint(slot)
    }

    pub(super) fn remove(&mut self, id: PartId) -> Option<E> {
        let slot = self.names.remove(&id)?;
        if self.recent(id).get().0 == id {
            self.recent(id).set(vacant_entry(id));
        }
        Some(self.slots.remove(slot as usize).1)
    }

    /// Removes all of them.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = E> {
        self.names.clear();
        self.recent = Self::default().recent;
        std::mem::take(&mut self.slots).into_iter().map(|(_, (_, entry))| entry)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (PartId, &E)> {
        self.slots.iter().map(|(_, (id, entry))| (*id, entry))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (PartId, &mut E)> {
        self.slots.iter_mut().map(|(_, (id, entry))| (*id, entry))
    }

    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }
}

/// Builds the hasher of a table whose keys are a few numbers.
pub type NumberHasherBuilder = BuildHasherDefault<NumberHasher>;

/// Hashes numbers of 32 and 64 bits.
#[derive(Default)]
pub struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    /// Multiplies by 2^64 over the golden ratio; the table uses the high bits of the result (Knuth, volume 3, 6.4).
    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(26);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}
