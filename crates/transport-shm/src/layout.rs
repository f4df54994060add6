//! Layout of the segment.
//!
//! The only file that derives sizes and offsets. `docs/design/shm-layout.md` describes the layout in prose; any change
//! here needs a new [`VERSION`] and a change there. It maps nothing and touches no memory.
//!
//! All offsets are bytes from the start of the segment, all integers little-endian. Every part is a table with one
//! entry for each place or ordered pair of places, so an offset takes one multiplication.

use crate::arena::CACHED_BYTES_MAX;
use crate::endpoint::BATCH;
use crate::parking::{Doorbell, PLACES_MAX};
use crate::ring::{Credit, GRAIN, HEADER_BYTES, payload_max};
use isles_transport::{Class, PlaceId};
use std::mem::{align_of, offset_of, size_of};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// First word of every segment: `ISLESSHM` as bytes in memory.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"ISLESSHM");

/// Version of this layout; attaching to another one is refused.
pub(crate) const VERSION: u32 = 6;

/// Alignment of the parts.
pub(crate) const PAGE_BYTES: u64 = 4096;

/// Bytes of a cache line, and of each credit line.
pub(crate) const LINE_BYTES: u64 = 64;

/// Number of words that each place has for [`isles_transport::MappedMemory::word`].
pub(crate) const WORDS: u32 = 4096;

/// Maximum number of places for which a receiver with a processor of its own polls every ring; otherwise senders ring a
/// bell.
pub(crate) const DIRECT_PLACES_MAX: u32 = 8;

/// Maximum number of processors that the header can name.
pub const PROCESSORS_MAX: usize = 1024;

/// Alignment of each arena, so that it can hold large pages.
const ARENA_ALIGN: u64 = 2 << 20;

/// Credit for blocks of one class from one place, as a multiple of the size of a data ring.
///
/// It shrinks with the rings as the number of places grows; up to 8 places it covers several messages of 2 MiB.
const CREDIT_RINGS: u64 = 64;

/// Minimum size of an arena under a limit, in credits: one in flight for each class, and the same amount in use by
/// receivers.
const ARENA_CREDITS_MIN: u64 = 4;

/// Bytes of the header in front of each block, which keep the payload on its own cache line.
pub(crate) const BLOCK_HEADER_BYTES: u64 = 64;

/// The sizes of one segment, which follow from the number of places.
///
/// The rings shrink as the number of ordered pairs grows; only pages that are touched take memory.
///
/// The regions take the same address space again as the arena.
///
/// | places | control ring | data ring | arena, virtual | all rings of a place, if all are used to the end |
/// |---|---|---|---|---|
/// | 1 to 8 | 64 KiB | 128 KiB | 8 GiB | 1.3 MiB |
/// | to 32 | 16 KiB | 64 KiB | 2 GiB | 2.4 MiB |
/// | to 64 | 8 KiB | 32 KiB | 1 GiB | 2.5 MiB |
/// | to 256 | 8 KiB | 16 KiB | 1 GiB | 6.0 MiB |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Number of places; 1 to 256.
    pub places: u32,
    /// Bytes of each ring of the control class; a power of two.
    pub control_bytes: u64,
    /// Bytes of each ring of the data class; a power of two.
    pub data_bytes: u64,
    /// Bytes of address space from which each place lends its blocks; its regions have the same again. A multiple of 2
    /// MiB.
    pub arena_bytes: u64,
}

impl Geometry {
    /// Returns the sizes for `places` places; they are checked when a segment is created.
    pub fn for_places(places: u32) -> Geometry {
        let (control, bulk, arena) = match places {
            0..=8 => (64 << 10, 128 << 10, 8 << 30),
            9..=32 => (16 << 10, 64 << 10, 2 << 30),
            33..=64 => (8 << 10, 32 << 10, 1 << 30),
            _ => (8 << 10, 16 << 10, 1 << 30),
        };
        Geometry { places, control_bytes: control, data_bytes: bulk, arena_bytes: arena }
    }

    /// Halves the arenas; `None` if they would be too small.
    pub(crate) fn with_smaller_arenas(self) -> Option<Geometry> {
        let arena_bytes = self.arena_bytes / 2;
        let smallest = (ARENA_CREDITS_MIN * self.credit_bytes()).next_multiple_of(ARENA_ALIGN);
        (arena_bytes >= smallest).then_some(Geometry { arena_bytes, ..self })
    }

    /// Checks that a segment can have these sizes. Returns the reason if not.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let ring = |bytes: u64| bytes.is_power_of_two() && (PAGE_BYTES..=1 << 24).contains(&bytes);
        if self.places == 0 || self.places > PLACES_MAX {
            Err("the number of places must be 1 to 256")
        } else if !ring(self.control_bytes) || !ring(self.data_bytes) {
            Err("a ring must be a power of two from 4 KiB to 16 MiB")
        } else if self.arena_bytes == 0
            || !self.arena_bytes.is_multiple_of(ARENA_ALIGN)
            || self.arena_bytes > 1 << 40
        {
            Err("an arena must be a multiple of 2 MiB of at most 1 TiB")
        } else {
            Ok(())
        }
    }

    /// Returns the bytes of a ring of `class`.
    pub(crate) fn ring_bytes(&self, class: Class) -> u64 {
        match class {
            Class::Control => self.control_bytes,
            Class::Data => self.data_bytes,
        }
    }

    /// Returns the maximum size of a small message of `class`, in bytes.
    pub(crate) fn inline_max(&self, class: Class) -> usize {
        payload_max(self.ring_bytes(class))
    }

    /// Returns the maximum size of a block, in bytes: a quarter of the arena, at most 1 GiB.
    pub(crate) fn block_max(&self) -> usize {
        ((self.arena_bytes / 4).min(1 << 30) - BLOCK_HEADER_BYTES) as usize
    }

    /// Returns the maximum bytes of blocks of one class that one place may have in receivers' rings: 8 MiB up to 8
    /// places.
    ///
    /// A ring has room for hundreds of descriptors, which does not bound the memory of their blocks. A longer block is
    /// sent when no other of its class is in a ring.
    pub fn credit_bytes(&self) -> u64 {
        CREDIT_RINGS * self.data_bytes
    }

    /// Returns the maximum that one turn of a place receives, besides large messages.
    pub fn turn_max(&self) -> BatchLimits {
        let others = self.places as usize - 1;
        let bytes = others * (self.control_bytes + self.data_bytes) as usize;
        BatchLimits { messages: others * 2 * BATCH, bytes }
    }

    /// Returns the maximum bytes of the segment that one place accounts for, if each place holds at most `held_bytes`
    /// of received large messages beyond one turn, and no message is longer than [`Geometry::credit_bytes`].
    ///
    /// The sum of its share of the tables; its rings to all others; its blocks that are in rings (two classes),
    /// returned but unnoticed, or cached; and the blocks it has received, where one turn may take twice the credit from
    /// each ring. Blocks that the program keeps do not count, nor do regions.
    pub fn place_bytes_max(&self, held_bytes: u64) -> u64 {
        let others = u64::from(self.places) - 1;
        let tables = Layout::of(*self).reserved_bytes().div_ceil(u64::from(self.places));
        let rings = others * (self.control_bytes + self.data_bytes);
        let lent = 3 * self.credit_bytes() + CACHED_BYTES_MAX;
        let held = held_bytes + others * 2 * self.credit_bytes();
        tables + rings + if others == 0 { 0 } else { lent + held }
    }

    /// Returns `true` if there are few enough places for receivers to poll every ring, if each has a processor of its
    /// own.
    pub(crate) fn is_direct(&self) -> bool {
        self.places <= DIRECT_PLACES_MAX
    }

    /// Returns `true` if senders ring a bell on a host of `processors` processors, and receivers poll only that.
    ///
    /// A place that shares its processor polls once for each turn of the others, with cold caches: a bell is one line,
    /// the rings of 8 places are 14.
    pub(crate) fn has_bells(&self, processors: u32) -> bool {
        !self.is_direct() || self.places > processors
    }
}

/// Limits of one batch of received messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchLimits {
    /// Number of messages.
    pub messages: usize,
    /// Bytes of all of them.
    pub bytes: usize,
}

/// The first page.
#[repr(C, align(64))]
pub(crate) struct SegmentHeader {
    /// [`MAGIC`].
    pub magic: u64,
    /// [`VERSION`].
    pub version: u32,
    /// [`Geometry::places`].
    pub places: u32,
    /// Identity of the program image, as given by the creator.
    pub image: [u8; 16],
    /// Size of the segment in bytes.
    pub total_bytes: u64,
    /// [`Geometry::control_bytes`].
    pub control_bytes: u64,
    /// [`Geometry::data_bytes`].
    pub data_bytes: u64,
    /// [`Geometry::arena_bytes`].
    pub arena_bytes: u64,
    /// 0: both sides of the parking protocol fence; 1: only the sleeper does.
    pub fencing: u32,
    /// Number of processors the creator was allowed to use.
    pub processors: u32,
    reserved: [u8; 48],
    /// Bit `n` of byte `n / 8`: the creator was allowed to use processor `n`.
    pub processor_set: [u8; PROCESSORS_MAX / 8],
    /// Counts every change of any place's life; also the futex for waiting for one.
    pub changes: ChangeCount,
}

impl SegmentHeader {
    /// Returns the number of changes of lives so far.
    #[inline]
    pub fn changes(&self) -> u32 {
        // PAIR head.changes: observe
        self.changes.0.load(Ordering::Acquire)
    }
}

/// A count on a line of its own.
#[repr(C, align(64))]
pub(crate) struct ChangeCount(pub AtomicU32);

/// Shared state of a place besides its rings.
#[repr(C, align(64))]
pub(crate) struct PlaceBlock {
    /// State and cause of death; see [`crate::lifecycle`].
    pub life: AtomicU64,
    /// Process that joined as the place; 0 before.
    pub process: AtomicU32,
    /// 1 once the process is known to have ended, so that it holds no block any more.
    pub reaped: AtomicU32,
    /// Program image of a refused process.
    pub image: [AtomicU64; 2],
    /// One more than the processor on which the place last found itself; 0 if it never checked.
    pub processor: AtomicU32,
    /// One more than the processor that is assigned to the place; 0: none.
    pub home: AtomicU32,
    /// 1: the place returns there whenever it is elsewhere; 0: only from a processor that another awake place uses.
    pub returns: AtomicU32,
    reserved: [u32; 5],
    /// The parking word.
    pub sleeping: ParkingLine,
    /// Bits of the places that have sent something.
    pub bell: Doorbell,
    /// 1 while the place waits for a block to come back.
    pub arena_starved: ParkingLine,
    /// Number of places that are writing a long message to this one.
    pub coming: ParkingLine,
}

/// A word on a line of its own.
#[repr(C, align(64))]
pub(crate) struct ParkingLine(pub AtomicU32);

/// Bytes from one place block to the next.
const PLACE_BLOCK_BYTES: u64 = size_of::<PlaceBlock>() as u64;

const _: () = {
    assert!(cfg!(target_endian = "little"));
    assert!(offset_of!(SegmentHeader, magic) == 0);
    assert!(offset_of!(SegmentHeader, version) == 8);
    assert!(offset_of!(SegmentHeader, places) == 12);
    assert!(offset_of!(SegmentHeader, image) == 16);
    assert!(offset_of!(SegmentHeader, total_bytes) == 32);
    assert!(offset_of!(SegmentHeader, control_bytes) == 40);
    assert!(offset_of!(SegmentHeader, data_bytes) == 48);
    assert!(offset_of!(SegmentHeader, arena_bytes) == 56);
    assert!(offset_of!(SegmentHeader, fencing) == 64);
    assert!(offset_of!(SegmentHeader, processors) == 68);
    assert!(offset_of!(SegmentHeader, processor_set) == 120);
    assert!(offset_of!(SegmentHeader, changes) == 256);
    assert!(size_of::<SegmentHeader>() == 320);
    assert!(offset_of!(PlaceBlock, life) == 0);
    assert!(offset_of!(PlaceBlock, process) == 8);
    assert!(offset_of!(PlaceBlock, reaped) == 12);
    assert!(offset_of!(PlaceBlock, image) == 16);
    assert!(offset_of!(PlaceBlock, sleeping) == 64);
    assert!(offset_of!(PlaceBlock, processor) == 32);
    assert!(offset_of!(PlaceBlock, home) == 36);
    assert!(offset_of!(PlaceBlock, returns) == 40);
    assert!(offset_of!(PlaceBlock, bell) == 128);
    assert!(offset_of!(PlaceBlock, arena_starved) == 192);
    assert!(offset_of!(PlaceBlock, coming) == 256);
    assert!(PLACE_BLOCK_BYTES == 320);
    assert!(offset_of!(Credit, head) == 0);
    assert!(offset_of!(Credit, starved) == 8);
    assert!(size_of::<Credit>() as u64 == LINE_BYTES && align_of::<Credit>() as u64 == LINE_BYTES);
    assert!(size_of::<Doorbell>() == 64);
    assert!(PAGE_BYTES.is_multiple_of(LINE_BYTES) && BLOCK_HEADER_BYTES == LINE_BYTES);
    assert!(GRAIN == LINE_BYTES && HEADER_BYTES == 8);
};

/// The offsets of one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The sizes they follow from.
    pub geometry: Geometry,
    words_start: u64,
    credits_start: u64,
    rings_start: u64,
    arenas_start: u64,
    regions_start: u64,
    /// Size of the segment in bytes.
    pub total_bytes: u64,
}

impl Layout {
    /// Computes the layout of a segment; `geometry` has been checked.
    pub fn of(geometry: Geometry) -> Layout {
        let places = u64::from(geometry.places);
        let words_start = (PAGE_BYTES + places * PLACE_BLOCK_BYTES).next_multiple_of(PAGE_BYTES);
        let credits_start = words_start + places * u64::from(WORDS) * 8;
        let rings_start = (credits_start + places * places * 2 * LINE_BYTES).next_multiple_of(PAGE_BYTES);
        let rings_bytes = places * places * (geometry.control_bytes + geometry.data_bytes);
        let arenas_start = (rings_start + rings_bytes).next_multiple_of(ARENA_ALIGN);
        let regions_start = arenas_start + places * geometry.arena_bytes;
        let total_bytes = regions_start + places * geometry.arena_bytes;
        Layout { geometry, words_start, credits_start, rings_start, arenas_start, regions_start, total_bytes }
    }

    /// Returns the bytes at the start whose pages are reserved at creation: header, place blocks, words, credit lines.
    ///
    /// 64 KiB for each place at 256 places. The rest (rings, arenas and regions) is reserved when it is first used.
    pub(crate) fn reserved_bytes(&self) -> u64 {
        self.rings_start
    }

    /// Returns the offset of the [`PlaceBlock`] of `place`.
    pub(crate) fn place_block(&self, place: PlaceId) -> u64 {
        PAGE_BYTES + u64::from(self.checked(place)) * PLACE_BLOCK_BYTES
    }

    /// Returns the offset of word `index` of `place`.
    pub fn word(&self, place: PlaceId, index: u32) -> u64 {
        assert!(index < WORDS, "word {index} of {WORDS}");
        self.words_start + (u64::from(self.checked(place)) * u64::from(WORDS) + u64::from(index)) * 8
    }

    /// Returns the offset of the [`Credit`] of the ring from `source` to `target`; those of one receiver are adjacent.
    pub fn credit(&self, source: PlaceId, target: PlaceId, class: Class) -> u64 {
        let pair = self.pair(target, source);
        self.credits_start + (pair * 2 + u64::from(class == Class::Data)) * LINE_BYTES
    }

    /// Returns the offset of the ring from `source` to `target`; those of one sender are adjacent.
    pub fn ring(&self, source: PlaceId, target: PlaceId, class: Class) -> u64 {
        let Geometry { control_bytes, data_bytes, .. } = self.geometry;
        let pair = self.rings_start + self.pair(source, target) * (control_bytes + data_bytes);
        match class {
            Class::Control => pair,
            Class::Data => pair + control_bytes,
        }
    }

    /// Returns the offset of the arena of `place`.
    pub fn arena(&self, place: PlaceId) -> u64 {
        self.arenas_start + u64::from(self.checked(place)) * self.geometry.arena_bytes
    }

    /// Returns the offset of the memory for regions of `place`, as large as its arena; `None` if there is no such
    /// place.
    pub fn regions(&self, place: PlaceId) -> Option<u64> {
        let is_there = place.0 < self.geometry.places;
        is_there.then(|| self.regions_start + u64::from(place.0) * self.geometry.arena_bytes)
    }

    fn pair(&self, row: PlaceId, column: PlaceId) -> u64 {
        u64::from(self.checked(row)) * u64::from(self.geometry.places) + u64::from(self.checked(column))
    }

    fn checked(&self, place: PlaceId) -> u32 {
        assert!(place.0 < self.geometry.places, "{place} of {} places", self.geometry.places);
        place.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other_without_overlap_for_every_number_of_places() {
        for places in 1..=PLACES_MAX {
            let geometry = Geometry::for_places(places);
            assert_eq!(geometry.check(), Ok(()));
            let layout = Layout::of(geometry);
            let last = PlaceId(places - 1);
            assert!(layout.place_block(last) + PLACE_BLOCK_BYTES <= layout.word(PlaceId(0), 0));
            assert!(
                layout.word(last, WORDS - 1) + 8 <= layout.credit(PlaceId(0), PlaceId(0), Class::Control)
            );
            assert!(
                layout.credit(last, last, Class::Data) + LINE_BYTES
                    <= layout.ring(PlaceId(0), PlaceId(0), Class::Control)
            );
            assert!(layout.ring(last, last, Class::Data) + geometry.data_bytes <= layout.arena(PlaceId(0)));
            let regions = |place| layout.regions(place).unwrap();
            assert_eq!(layout.arena(last) + geometry.arena_bytes, regions(PlaceId(0)));
            assert_eq!(regions(last) + geometry.arena_bytes, layout.total_bytes);
            assert_eq!(layout.regions(PlaceId(places)), None);
        }
    }

    #[test]
    fn the_numbers_of_the_layout_document_are_those_of_the_code() {
        let layout = Layout::of(Geometry::for_places(2));
        let (zero, one) = (PlaceId(0), PlaceId(1));
        let offsets = [
            layout.place_block(one),
            layout.word(zero, 0),
            layout.word(one, 0),
            layout.credit(one, zero, Class::Data),
            layout.ring(zero, zero, Class::Control),
            layout.ring(zero, one, Class::Data),
            layout.arena(zero),
            layout.regions(zero).unwrap(),
            layout.total_bytes,
        ];
        let document = include_str!("../../../docs/design/shm-layout.md");
        for offset in offsets {
            let row = format!("| {offset} |");
            assert!(document.contains(&row), "docs/design/shm-layout.md has no row {row}");
        }
        assert!(document.contains(&format!("version {VERSION} of the segment")));
        assert!(document.contains(&format!("| `version` | {VERSION}, ")));
    }
}
