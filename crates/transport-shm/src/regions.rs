//! Regions: memory of a place that others map, beside the arena.
//!
//! They are not part of the arena, because a block is read and written as plain bytes, and any place may view any word
//! of a region at any time. The memory of a freed region goes back to the system, so that the next one is zero.
//! Invariant: this part of the segment is viewed as atomic words only.

use crate::layout::PAGE_BYTES;
use crate::segment::Segment;
use isles_transport::{PlaceId, Region, RegionTable};
use std::cell::RefCell;
use std::sync::atomic::AtomicU64;

/// Bytes of a word.
const WORD_BYTES: u64 = size_of::<AtomicU64>() as u64;

/// The regions that a place has allocated.
pub(crate) struct Regions {
    here: PlaceId,
    table: RefCell<RegionTable>,
}

impl Regions {
    /// Creates the table of `here`, without regions.
    pub fn new(segment: &Segment, here: PlaceId) -> Regions {
        let words = segment.geometry().arena_bytes / WORD_BYTES;
        Regions { here, table: RefCell::new(RegionTable::new(words, PAGE_BYTES / WORD_BYTES)) }
    }

    /// As [`isles_transport::MappedMemory::allocate`].
    pub fn allocate(&self, segment: &Segment, words: u64) -> Option<Region> {
        let mut table = self.table.borrow_mut();
        let (start, taken) = table.take(words)?;
        let (offset, len) = (self.offset(segment) + start * WORD_BYTES, taken * WORD_BYTES);
        if !segment.mapping().populate(offset, len) {
            segment.mapping().release(offset, len);
            table.give_back(start);
            return None;
        }
        Some(Region { place: self.here, start, words })
    }

    /// As [`isles_transport::MappedMemory::free`].
    pub fn free(&self, segment: &Segment, region: Region) {
        assert_eq!(region.place, self.here, "a region of {} is given back by {}", region.place, self.here);
        let taken = self.table.borrow_mut().give_back(region.start);
        segment.mapping().release(self.offset(segment) + region.start * WORD_BYTES, taken * WORD_BYTES);
    }

    fn offset(&self, segment: &Segment) -> u64 {
        segment.layout().regions(self.here).expect("this place exists")
    }
}

/// As [`isles_transport::MappedMemory::view`].
pub(crate) fn view(segment: &Segment, region: Region) -> Option<&[AtomicU64]> {
    let start = segment.layout().regions(region.place)?;
    let most = segment.geometry().arena_bytes / WORD_BYTES;
    region.start.checked_add(region.words).filter(|end| *end <= most)?;
    Some(segment.mapping().words_at(start + region.start * WORD_BYTES, region.words as usize))
}
