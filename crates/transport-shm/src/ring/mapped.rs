//! One ring in the mapped segment.
//!
//! The memory of [`crate::ring`] in the product; nothing here knows the ring's protocol. Small, because every
//! message passes through it and half of it is unsafe.

use crate::layout::Layout;
use crate::ring::{Credit, GRAIN, HEADER_BYTES, RingMemory};
use crate::segment::{Segment, View};
use isles_transport::{Class, PlaceId};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// The records and the credit line of one ring.
pub(crate) struct MappedRing {
    /// Keeps the memory mapped.
    segment: Segment,
    records: NonNull<u8>,
    credit: View<Credit>,
    /// Capacity less one; the capacity is a power of two.
    mask: u64,
    /// Offset of the records in the segment.
    offset: u64,
}

// NEED: the pointer keeps the type from moving between threads.
// SOUND: it points into the segment that the value owns a share of; nothing is bound to a thread.
unsafe impl Send for MappedRing {}

impl MappedRing {
    /// Returns the ring of `class` from `source` to `target`.
    pub fn new(segment: &Segment, source: PlaceId, target: PlaceId, class: Class) -> MappedRing {
        let layout: &Layout = segment.layout();
        let capacity = layout.geometry.ring_bytes(class);
        let offset = layout.ring(source, target, class);
        MappedRing {
            segment: segment.clone(),
            records: segment.mapping().range(offset, capacity as usize),
            credit: View::new(segment, layout.credit(source, target, class)),
            mask: capacity - 1,
            offset,
        }
    }

    /// Returns the payload of `len` bytes after the header word at `position`.
    #[inline]
    fn payload(&self, position: u64, len: usize) -> NonNull<u8> {
        let start = (position & self.mask) as usize + HEADER_BYTES;
        assert!(start + len <= self.mask as usize + 1, "a payload leaves its ring");
        // NEED: address arithmetic in the ring.
        // SOUND: checked on the line above; `records` has `mask + 1` bytes.
        unsafe { self.records.add(start) }
    }
}

impl RingMemory for MappedRing {
    #[inline]
    fn capacity(&self) -> u64 {
        self.mask + 1
    }

    #[inline]
    fn word(&self, position: u64) -> &AtomicU64 {
        let offset = position & self.mask & !(GRAIN - 1);
        // NEED: a view of a header word in mapped memory, without the cost of a bounds check.
        // SOUND: masked to a multiple of 64 below the capacity, so in bounds and aligned; the segment lives as
        // long as `self`; an atomic is valid for every content.
        unsafe { self.records.add(offset as usize).cast::<AtomicU64>().as_ref() }
    }

    #[inline]
    fn credit(&self) -> &Credit {
        &self.credit
    }

    #[inline]
    fn write<R>(&self, position: u64, room: usize, fill: impl FnOnce(&mut [u8]) -> R) -> R {
        // NEED: messages are written in place.
        // SOUND: in bounds; by the ring's credit rule the consumer touches no byte from the tail on before the
        // record is published, and this is the one producer, inside one `put`: the endpoint, which owns it, refuses a
        // second one from within `fill` (`ReentryGuard`).
        fill(unsafe { std::slice::from_raw_parts_mut(self.payload(position, room).as_ptr(), room) })
    }

    #[inline]
    fn read<R>(&self, position: u64, len: usize, look: impl FnOnce(&[u8]) -> R) -> R {
        // NEED: messages are read in place.
        // SOUND: in bounds; the record was published, and by the credit rule its producer does not write it
        // again before the head has passed it, which is after this call.
        look(unsafe { std::slice::from_raw_parts(self.payload(position, len).as_ptr(), len) })
    }

    #[inline]
    fn fetch(&self, position: u64) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // NEED: nothing in the language asks for a line without storing to it.
        // SOUND: a hint, which changes no memory, at an address in the ring; processors without it do nothing.
        unsafe {
            std::arch::asm!("prefetchw [{}]", in(reg) self.word(position), options(nostack, preserves_flags));
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let _ = position;
    }

    #[inline]
    fn expect(&self, position: u64) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // NEED: nothing in the language asks for a line without a load.
        // SOUND: a hint, which changes no memory, at an address in the ring.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(
                std::ptr::from_ref(self.word(position)).cast(),
            );
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let _ = position;
    }

    fn reserve(&self, from: u64, to: u64) -> bool {
        self.segment.mapping().populate(self.offset + from, to - from)
    }
}
