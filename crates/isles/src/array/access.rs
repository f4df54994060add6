//! Elements from anywhere: one, or many at once with one message to each owner.
//!
//! Indices are checked before anything is sent. Elements travel as bytes, so nothing is asked of their type but that it
//! is plain. Invariant: what is read or written of one owner is read or written in one step of it.

use super::{DistArray, Element, misused};
use crate::Result;
use crate::prelude::*;
use isles_protocol::ordered::OrderedMap;
use isles_runtime::try_join_all;

/// Elements requested from each owner: their coordinates in its part, and their positions in the request.
type ByOwner = OrderedMap<usize, (Vec<[usize; 3]>, Vec<usize>)>;

impl<T: Element, const N: usize> DistArray<T, N> {
    /// Reads the element at `index`, wherever it lies.
    ///
    /// # Errors
    /// As [`DistArray`] says; there is no such element.
    pub async fn get(&self, index: [usize; N]) -> Result<T> {
        Ok(self.get_many(&[index]).await?[0])
    }

    /// Writes the element at `index`, wherever it lies; ends when it is written.
    ///
    /// # Errors
    /// As [`DistArray`] says; there is no such element.
    pub async fn set(&self, index: [usize; N], value: T) -> Result<()> {
        self.set_many(&[(index, value)]).await
    }

    /// Reads elements, in the order of their indices; one message to each owner and back, all at once.
    ///
    /// # Errors
    /// As [`DistArray`] says; there is no such element.
    pub async fn get_many(&self, indices: &[[usize; N]]) -> Result<Vec<T>> {
        let by_owner = self.by_owner(indices.iter())?;
        let asked = by_owner.iter().map(|(rank, (places, _))| self.get_of(rank, places)).collect();
        let mut found: Vec<T> = bytemuck::zeroed_vec(indices.len());
        for (bytes, (_, positions)) in try_join_all(asked).await?.iter().zip(by_owner.values()) {
            for (position, bytes) in positions.iter().zip(bytes.chunks_exact(size_of::<T>())) {
                found[*position] = bytemuck::pod_read_unaligned(bytes);
            }
        }
        Ok(found)
    }

    /// Writes elements, each at its index; one message to each owner, all at once. Ends when all are written. Of two
    /// for one index the last stays.
    ///
    /// # Errors
    /// As [`DistArray`] says; there is no such element, and then nothing is written.
    pub async fn set_many(&self, elements: &[([usize; N], T)]) -> Result<()> {
        let by_owner = self.by_owner(elements.iter().map(|(index, _)| index))?;
        let writes = by_owner.into_iter().map(|(rank, (places, positions))| {
            let values: Vec<T> = positions.into_iter().map(|position| elements[position].1).collect();
            self.set_of(rank, places, bytemuck::cast_slice::<T, u8>(&values).to_vec())
        });
        try_join_all(writes.collect()).await.map(drop)
    }

    /// The bytes of elements of one owner.
    async fn get_of(&self, rank: usize, places: &[[usize; 3]]) -> Result<Vec<u8>> {
        let (array, owner) = (self, self.team.place_of(rank));
        at!(owner, {
            let part = array.read();
            let elements: Vec<T> = places.iter().map(|at| part.values()[part.place_of(*at)]).collect();
            bytemuck::cast_slice::<T, u8>(&elements).to_vec()
        })
        .await
    }

    async fn set_of(&self, rank: usize, places: Vec<[usize; 3]>, bytes: Vec<u8>) -> Result<()> {
        let (array, owner) = (self, self.team.place_of(rank));
        at!(owner, {
            let mut part = array.lock();
            for (at, bytes) in places.iter().zip(bytes.chunks_exact(size_of::<T>())) {
                let place = part.place_of(*at);
                part.values_mut()[place] = bytemuck::pod_read_unaligned(bytes);
            }
        })
        .await
    }

    fn by_owner<'i>(&self, indices: impl Iterator<Item = &'i [usize; N]>) -> Result<ByOwner> {
        let mut by_owner = ByOwner::new();
        for (position, index) in indices.enumerate() {
            let (rank, place) = self.locate(*index).map_err(misused)?;
            let (places, positions) = by_owner.get_or_default(rank);
            places.push(place);
            positions.push(position);
        }
        Ok(by_owner)
    }
}
