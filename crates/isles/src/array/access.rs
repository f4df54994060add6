//! Access to elements of any owner: one at a time, or many with one message to each owner.
//!
//! Indices are checked before anything is sent. Elements travel as bytes, so their type only has to be plain data.
//! Invariant: each owner reads or writes all elements of a request in one step.

use super::{DistArray, Element, misused};
use crate::Result;
use crate::prelude::*;
use isles_protocol::ordered::OrderedMap;
use isles_runtime::try_join_all;

/// For each owner, the coordinates of the requested elements in its part, and their positions in the request.
type ByOwner = OrderedMap<usize, (Vec<[usize; 3]>, Vec<usize>)>;

impl<T: Element, const N: usize> DistArray<T, N> {
    /// Reads the element at `index`, from any owner.
    ///
    /// # Errors
    /// As [`DistArray`] says; also if `index` is out of bounds.
    pub async fn get(&self, index: [usize; N]) -> Result<T> {
        Ok(self.get_many(&[index]).await?[0])
    }

    /// Writes the element at `index`, at any owner, and waits until it is written.
    ///
    /// # Errors
    /// As [`DistArray`] says; also if `index` is out of bounds.
    pub async fn set(&self, index: [usize; N], value: T) -> Result<()> {
        self.set_many(&[(index, value)]).await
    }

    /// Returns the elements at `indices`, in that order; sends one request to each owner, all at once.
    ///
    /// # Errors
    /// As [`DistArray`] says; also if an index is out of bounds.
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

    /// Writes elements at their indices and waits until all are written; sends one message to each owner, all at once.
    /// If an index is repeated, its last element is kept.
    ///
    /// # Errors
    /// As [`DistArray`] says; also if an index is out of bounds, and then nothing is written.
    pub async fn set_many(&self, elements: &[([usize; N], T)]) -> Result<()> {
        let by_owner = self.by_owner(elements.iter().map(|(index, _)| index))?;
        let writes = by_owner.into_iter().map(|(rank, (places, positions))| {
            let values: Vec<T> = positions.into_iter().map(|position| elements[position].1).collect();
            self.set_of(rank, places, bytemuck::cast_slice::<T, u8>(&values).to_vec())
        });
        try_join_all(writes.collect()).await.map(drop)
    }

    /// Returns the bytes of elements of one owner.
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
