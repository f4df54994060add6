//! Conflicts between accesses to one part: the log of a window that checks.
//!
//! Two accesses of different places conflict if they overlap, no epoch orders them, and one is a put, or one changes
//! what the other reads. The accesses of one place are done in order. Invariant: the log holds exactly the accesses
//! that a later one may conflict with.

use crate::PlaceId;
use std::ops::Range;

/// Kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// Reads.
    Get,
    /// Writes.
    Put,
    /// Changes each element atomically: accumulate, fetch, compare and exchange.
    Update,
}

/// The epoch of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EpochTag {
    /// Between two fences.
    Fence,
    /// Between `start` and `complete`.
    Started,
    /// Under a lock.
    Locked,
}

/// An access; `L` is a line of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowAccess<L> {
    /// The place that accesses the part.
    pub origin: PlaceId,
    /// Kind of the access.
    pub kind: AccessKind,
    /// Epoch of the access.
    pub epoch: EpochTag,
    /// Number of fences of the window before it; a fence follows everything before it at all places, in any epoch.
    pub fences: u64,
    /// Ranges of elements, in order and disjoint.
    pub elements: Vec<Range<u64>>,
    /// Line of the program.
    pub line: L,
}

/// Two accesses that conflict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict<L> {
    /// The earlier access.
    pub first: WindowAccess<L>,
    /// The later access.
    pub second: WindowAccess<L>,
    /// The elements of their first overlap.
    pub overlap: Range<u64>,
}

/// The accesses of the epochs that are open at one part.
#[derive(Debug)]
pub struct AccessLog<L>(Vec<WindowAccess<L>>);

impl<L> Default for AccessLog<L> {
    fn default() -> Self {
        AccessLog(Vec::new())
    }
}

impl<L: Clone> AccessLog<L> {
    /// Records `access`.
    ///
    /// # Errors
    /// It conflicts with an earlier one, and is not recorded.
    pub fn note(&mut self, access: WindowAccess<L>) -> Result<(), Box<Conflict<L>>> {
        for first in &self.0 {
            if first.origin == access.origin || !is_conflict(first, &access) {
                continue;
            }
            if let Some(overlap) = overlap(&first.elements, &access.elements) {
                return Err(Box::new(Conflict { first: first.clone(), second: access, overlap }));
            }
        }
        self.0.push(access);
        Ok(())
    }

    /// Removes the accesses before the fence with this number.
    pub fn fenced(&mut self, number: u64) {
        self.0.retain(|access| access.fences >= number);
    }

    /// Removes the accesses of `origin` under its lock.
    pub fn unlocked(&mut self, origin: PlaceId) {
        self.0.retain(|access| access.origin != origin || access.epoch != EpochTag::Locked);
    }

    /// Removes the accesses of an exposure that has ended.
    pub fn waited(&mut self) {
        self.0.retain(|access| access.epoch != EpochTag::Started);
    }

    /// Removes a place that has died.
    pub fn place_died(&mut self, place: PlaceId) {
        self.0.retain(|access| access.origin != place);
    }
}

/// Returns `true` if two overlapping accesses of different places conflict.
fn is_conflict<L>(first: &WindowAccess<L>, second: &WindowAccess<L>) -> bool {
    // An access after a fence may arrive before the owner has passed the fence.
    first.fences == second.fences && (first.kind != second.kind || first.kind == AccessKind::Put)
}

/// Returns the first overlap of two lists of ranges in order.
fn overlap(first: &[Range<u64>], second: &[Range<u64>]) -> Option<Range<u64>> {
    let (mut i, mut j) = (0, 0);
    while let (Some(a), Some(b)) = (first.get(i), second.get(j)) {
        let both = a.start.max(b.start)..a.end.min(b.end);
        if both.start < both.end {
            return Some(both);
        }
        if a.end <= b.end { i += 1 } else { j += 1 }
    }
    None
}
