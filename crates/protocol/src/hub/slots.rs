//! Tables indexed by small numbers: a place's hubs and tasks, and its requests that have not returned.
//!
//! A lookup is an index into a vector: a kernel makes a dozen of them for each request.

/// Values by number, for some of the numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct IndexTable<V>(Vec<Option<V>>);

impl<V> FromIterator<Option<V>> for IndexTable<V> {
    fn from_iter<I: IntoIterator<Item = Option<V>>>(values: I) -> Self {
        IndexTable(values.into_iter().collect())
    }
}

impl<V> IndexTable<V> {
    #[inline]
    pub(super) fn get(&self, index: u32) -> Option<&V> {
        self.0.get(index as usize)?.as_ref()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, index: u32) -> Option<&mut V> {
        self.0.get_mut(index as usize)?.as_mut()
    }

    /// Returns the values, in the order of their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &V)> {
        (0..).zip(&self.0).filter_map(|(index, value)| Some((index, value.as_ref()?)))
    }
}

/// Number of bits of a request's number that hold its slot: 2^16 requests of one place may wait at a time.
const SLOT_BITS: u32 = 16;

/// Values by the number of a request. A number consists of a slot and a count of earlier requests; so it is unique, and
/// stays short.
#[derive(Clone, Debug)]
pub struct RequestTable<V> {
    slots: Vec<Option<(u64, V)>>,
    free: Vec<u32>,
    count: u64,
}

impl<V> RequestTable<V> {
    /// Largest number of values.
    pub const LEN_MAX: usize = 1 << SLOT_BITS;

    /// Returns the number of values.
    #[inline]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns `true` if there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<V> Default for RequestTable<V> {
    fn default() -> Self {
        RequestTable { slots: Vec::new(), free: Vec::new(), count: 0 }
    }
}

impl<V> RequestTable<V> {
    /// Adds a value; returns its number.
    ///
    /// # Panics
    /// If the table has [`LEN_MAX`](RequestTable::LEN_MAX) values.
    #[inline]
    pub fn insert(&mut self, value: V) -> u64 {
        let slot = self.free.pop().unwrap_or(self.slots.len() as u32);
        assert!((slot as usize) < Self::LEN_MAX, "at most 65,536 requests of a place wait at a time");
        let number = self.count << SLOT_BITS | u64::from(slot);
        self.count += 1;
        let entry = Some((number, value));
        match self.slots.get_mut(slot as usize) {
            Some(free) => *free = entry,
            None => self.slots.push(entry),
        }
        number
    }

    /// Returns a number that no value has, or will have.
    #[inline]
    pub(super) fn spare_number(&mut self) -> u64 {
        let number = self.count << SLOT_BITS;
        self.count += 1;
        number
    }

    /// Returns the value of a number.
    #[inline]
    pub fn get(&self, number: u64) -> Option<&V> {
        let entry = self.slots.get(slot_of(number))?.as_ref();
        entry.filter(|(own, _)| *own == number).map(|(_, value)| value)
    }

    /// Returns the value of a number, mutably.
    #[inline]
    pub fn get_mut(&mut self, number: u64) -> Option<&mut V> {
        let entry = self.slots.get_mut(slot_of(number))?.as_mut();
        entry.filter(|(own, _)| *own == number).map(|(_, value)| value)
    }

    /// Removes the value of a number and returns it.
    #[inline]
    pub fn remove(&mut self, number: u64) -> Option<V> {
        let slot = self.slots.get_mut(slot_of(number))?;
        let (_, value) = slot.take_if(|(own, _)| *own == number)?;
        self.free.push(slot_of(number) as u32);
        Some(value)
    }

    /// Returns the values with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &V)> {
        self.slots.iter().flatten().map(|(number, value)| (*number, value))
    }
}

#[inline]
fn slot_of(number: u64) -> usize {
    (number & ((1 << SLOT_BITS) - 1)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_given_once_though_slots_are_used_again() {
        let mut table = RequestTable::default();
        let first = table.insert('a');
        assert_eq!(table.get(first), Some(&'a'));
        assert_eq!([table.remove(first), table.remove(first)], [Some('a'), None]);
        let second = table.insert('b');
        assert_eq!((slot_of(first), first == second, table.get(first)), (slot_of(second), false, None));
        let spare = table.spare_number();
        assert!(![first, second, table.insert('c')].contains(&spare) && table.get(spare).is_none());
    }
}
