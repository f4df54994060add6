//! Index spaces: indices that several mappings have in common, which grow with the space.
//!
//! A space knows the mappings that observe it by the ids of their objects. Invariant: while no task extends the space,
//! each of them has an element for every index below the reserve, and the reserve is not below the end. So a new index
//! changes only the space, until the reserve is used up; then all mappings grow by chunks.

use super::guard::ReadFuture;
use super::mapping::{CHUNK_BYTES, Mapping};
use super::message::ObjectId;
use super::table::Line;
use super::{Shared, SharedOptions};
use crate::shared::table::ObjectTable;
use crate::table::service::Service;
use bytemuck::{AnyBitPattern, NoUninit};
use isles_runtime::service::call;
use isles_runtime::{Local, Result};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::panic::Location;

/// Number of indices that mappings grow by at a time: one chunk of elements of eight bytes.
const RESERVED: usize = CHUNK_BYTES / 8;

/// Indices from zero to an end that grows, and the mappings keyed by them. The handle can be sent to any place.
///
/// ```ignore
/// let vertices = IndexSpace::new(34).await?;
/// let colours: Shared<Mapping<u32>> = vertices.mapping(SharedOptions::default()).await?;
/// let added = vertices.extend(2).await?; // 34..36, and `colours` has an element for each
/// ```
#[derive(Clone, Serialize, Deserialize)]
pub struct IndexSpace {
    indices: Shared<IndexRange>,
}

/// The indices of an [`IndexSpace`], as a guard shows them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct IndexRange {
    end: usize,
    /// Number of indices for which every observing mapping has an element; not below the end of the space.
    reserve: usize,
    observers: Vec<ObjectId>,
}

impl IndexRange {
    /// Returns the number of indices.
    pub fn len(&self) -> usize {
        self.end
    }

    /// Returns `true` if there are no indices.
    pub fn is_empty(&self) -> bool {
        self.end == 0
    }

    /// Returns the range of all indices.
    pub fn indices(&self) -> Range<usize> {
        0..self.end
    }
}

impl IndexSpace {
    /// Makes a space of `len` indices, for all places.
    ///
    /// # Errors
    /// A place is dead.
    #[track_caller]
    pub fn new(len: usize) -> impl Future<Output = Result<IndexSpace>> {
        IndexSpace::with(len, SharedOptions::default())
    }

    /// As [`IndexSpace::new`], with `options` for the object that holds the indices.
    ///
    /// # Errors
    /// As [`IndexSpace::new`].
    #[track_caller]
    pub fn with(len: usize, options: SharedOptions) -> impl Future<Output = Result<IndexSpace>> {
        let range = IndexRange { end: len, reserve: len.next_multiple_of(RESERVED), observers: Vec::new() };
        let made = Shared::with(range, options);
        async move { Ok(IndexSpace { indices: made.await? }) }
    }

    /// Waits for a guard to read the indices; mappings do not grow past the reserve meanwhile.
    ///
    /// # Errors
    /// As [`Shared::read`].
    #[track_caller]
    pub fn read(&self) -> ReadFuture<'_, IndexRange> {
        self.indices.read()
    }

    /// Makes a mapping with an element for each index, all zero, which grows with the space. It may have more elements
    /// than there are indices.
    ///
    /// # Errors
    /// As [`Shared::with`] and [`Shared::write`].
    #[track_caller]
    pub fn mapping<V: NoUninit + AnyBitPattern>(
        &self,
        options: SharedOptions,
    ) -> impl Future<Output = Result<Shared<Mapping<V>>>> {
        let line = Location::caller();
        call::called_at(line, async move {
            let len = self.indices.read().await?.reserve;
            let mapping = Shared::with(Mapping::new(len), options).await?;
            let mut range = self.indices.write().await?;
            range.observers.push(mapping.id());
            // Others may have extended the space meanwhile.
            range.reserve = range.reserve.min(len);
            let end = range.end;
            range.release().await;
            self.reserve(end, line).await?;
            Ok(mapping)
        })
    }

    /// Adds `count` indices, and returns them. When the reserve is used up, all mappings of the space grow, one after
    /// the other, each under a guard to write.
    ///
    /// # Errors
    /// As [`Shared::write`]: the task must not hold a guard of the space, or of a mapping of it.
    #[track_caller]
    pub fn extend(&self, count: usize) -> impl Future<Output = Result<Range<usize>>> {
        let line = Location::caller();
        call::called_at(line, async move {
            loop {
                let mut range = self.indices.write().await?;
                let added = range.end..range.end.saturating_add(count);
                if added.end <= range.reserve {
                    range.end = added.end;
                    range.release().await;
                    return Ok(added);
                }
                drop(range);
                self.reserve(added.end, line).await?;
            }
        })
    }

    /// Grows all mappings until they have an element for each index below `end`.
    async fn reserve(&self, end: usize, line: Line) -> Result<()> {
        loop {
            let known = self.indices.read().await?.clone();
            if known.reserve >= end {
                return Ok(());
            }
            let reserve = end.next_multiple_of(RESERVED);
            let mut alive = Vec::new();
            for id in &known.observers {
                // A mapping without handles is gone.
                if let Some(mapping) = Local::with(|local| ObjectTable::of(local).find(*id)) {
                    mapping.grow(reserve, line).await?;
                    alive.push(*id);
                }
            }
            let mut range = self.indices.write().await?;
            // A mapping that was added meanwhile must grow as well.
            if range.observers == known.observers {
                range.observers = alive;
                range.reserve = range.reserve.max(reserve);
            }
            range.release().await;
        }
    }
}
