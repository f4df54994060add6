//! Blocks: large messages in the mapped segment.
//!
//! The unsafe half of large messages: the sender writes into lent memory, the receiver reads there, and one store
//! returns it. The arena ([`crate::arena`]) manages the free memory. Every block starts with a cache line of its own,
//! whose first word is 0 while the block is lent, 2 once the receiver has taken it out of its ring, and 1 once it has
//! been returned; the payload follows, aligned to 64 bytes.

use crate::arena::BlockStore;
use crate::layout::{BLOCK_HEADER_BYTES, Geometry};
use crate::parking;
use crate::ring::RingFault;
use crate::segment::Segment;
use isles_transport::{BlockMemory, PlaceId};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// The word of a block that is lent.
const LENT: u64 = 0;
/// The word of a block that was returned.
const RETURNED: u64 = 1;
/// The word of a block that its receiver has taken out of its ring.
const TAKEN: u64 = 2;

/// Descriptor of a block in a ring: offset of its header in the arena, and length of its payload; 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockDescriptor {
    /// Offset of the header in the sender's arena.
    pub offset: u64,
    /// Payload in bytes.
    pub len: u64,
}

impl BlockDescriptor {
    /// Bytes on the wire.
    pub const BYTES: usize = 16;

    /// Writes the descriptor.
    pub fn encode(&self, room: &mut [u8]) {
        room[..8].copy_from_slice(&self.offset.to_le_bytes());
        room[8..BlockDescriptor::BYTES].copy_from_slice(&self.len.to_le_bytes());
    }

    /// Reads a descriptor and checks that it lies in an arena and is no longer than a block may be.
    ///
    /// Reading holes of a shared file allocates pages: with an unbounded length the receiver could use up all memory.
    pub fn decode(payload: &[u8], geometry: &Geometry) -> Result<BlockDescriptor, RingFault> {
        let payload: &[u8; BlockDescriptor::BYTES] = payload.try_into().map_err(|_| RingFault::Block)?;
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| payload[at + byte]));
        let ticket = BlockDescriptor { offset: word(0), len: word(8) };
        let end =
            ticket.offset.checked_add(BLOCK_HEADER_BYTES).and_then(|start| start.checked_add(ticket.len));
        let inside = end.is_some_and(|end| end <= geometry.arena_bytes);
        if inside
            && ticket.len <= geometry.block_max() as u64
            && ticket.offset.is_multiple_of(BLOCK_HEADER_BYTES)
        {
            Ok(ticket)
        } else {
            Err(RingFault::Block)
        }
    }
}

/// The memory of the arena of one place.
pub(crate) struct ArenaMemory {
    segment: Segment,
    /// Offset of the arena in the segment.
    start: u64,
}

impl ArenaMemory {
    /// Returns the arena memory of `place`.
    pub fn new(segment: &Segment, place: PlaceId) -> ArenaMemory {
        ArenaMemory { segment: segment.clone(), start: segment.layout().arena(place) }
    }

    /// Marks the block at `offset` as lent and lets `fill` write its first `len` payload bytes.
    ///
    /// The block must come from this place's own arena and must not have been sent yet.
    pub fn write(&self, offset: u64, len: usize, fill: &mut dyn FnMut(&mut [u8])) {
        // Relaxed: the record that carries the descriptor is released later.
        self.word(offset).store(LENT, Ordering::Relaxed);
        let payload = self.segment.mapping().range(self.start + offset + BLOCK_HEADER_BYTES, len);
        // NEED: the message is written where the receiver will read it.
        // SOUND: in bounds (`range` checks); the arena lends each range to one message at a time, its last
        // receiver has given it back (pair: block.returned), and the next does not know it before it is sent.
        fill(unsafe { std::slice::from_raw_parts_mut(payload.as_ptr(), len) });
    }

    fn word(&self, offset: u64) -> &AtomicU64 {
        self.segment.mapping().view(self.start + offset)
    }
}

impl BlockStore for ArenaMemory {
    fn is_returned(&self, offset: u64) -> bool {
        // PAIR block.returned: observe
        self.word(offset).load(Ordering::Acquire) == RETURNED
    }

    fn is_taken(&self, offset: u64) -> bool {
        // Relaxed: this returns credit but no memory.
        self.word(offset).load(Ordering::Relaxed) != LENT
    }

    fn populate(&self, offset: u64, len: u64) -> bool {
        self.segment.mapping().populate(self.start + offset, len)
    }

    fn release(&self, offset: u64, len: u64) {
        self.segment.mapping().release(self.start + offset, len);
    }
}

/// A received block; dropping it returns the memory to the sender.
pub(crate) struct ShmBlock {
    segment: Segment,
    source: PlaceId,
    /// Offset of the block's header in the segment.
    start: u64,
    payload: NonNull<u8>,
    len: usize,
}

impl ShmBlock {
    /// Takes the block of `ticket`, which was checked, in the arena of `source`, and tells the sender so.
    pub fn new(segment: &Segment, source: PlaceId, ticket: BlockDescriptor) -> ShmBlock {
        let start = segment.layout().arena(source) + ticket.offset;
        let len = ticket.len as usize;
        let payload = segment.mapping().range(start + BLOCK_HEADER_BYTES, len);
        let block = ShmBlock { segment: segment.clone(), source, start, payload, len };
        // Relaxed: this returns credit but no memory.
        block.word().store(TAKEN, Ordering::Relaxed);
        block.wake_lender();
        block
    }

    fn word(&self) -> &AtomicU64 {
        self.segment.mapping().view(self.start)
    }

    /// Wakes the sender if it waits for the change of the word, which the caller has made before.
    fn wake_lender(&self) {
        let lender = self.segment.block(self.source);
        // PAIR parking.word: observe
        fence(Ordering::SeqCst);
        // Relaxed, both: ordered by the fence; a flag cleared too early is noticed before its owner sleeps.
        if lender.arena_starved.0.load(Ordering::Relaxed) != 0 {
            lender.arena_starved.0.store(0, Ordering::Relaxed);
            parking::signal(&lender.sleeping.0, self.segment.fencing());
        }
    }
}

impl BlockMemory for ShmBlock {
    fn bytes(&self) -> &[u8] {
        // NEED: the message is read where the sender wrote it.
        // SOUND: in bounds (checked by `new`), mapped as long as `self.segment`; the sender does not write
        // before the word says that the block came back, which only `drop` does.
        unsafe { std::slice::from_raw_parts(self.payload.as_ptr(), self.len) }
    }
}

impl Drop for ShmBlock {
    fn drop(&mut self) {
        // PAIR block.returned: publish
        self.word().store(RETURNED, Ordering::Release);
        self.wake_lender();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(offset: u64, len: u64) -> Result<BlockDescriptor, RingFault> {
        let mut bytes = [0; BlockDescriptor::BYTES];
        BlockDescriptor { offset, len }.encode(&mut bytes);
        BlockDescriptor::decode(&bytes, &Geometry::for_places(2))
    }

    #[test]
    fn a_ticket_names_a_block_of_an_arena_and_no_more() {
        let Geometry { arena_bytes, .. } = Geometry::for_places(2);
        let max = Geometry::for_places(2).block_max() as u64;
        let last = arena_bytes - BLOCK_HEADER_BYTES;
        for (offset, len) in [(0, 0), (0, max), (arena_bytes - max - BLOCK_HEADER_BYTES, max), (last, 0)] {
            assert_eq!(decode(offset, len), Ok(BlockDescriptor { offset, len }));
        }
        for (offset, len) in
            [(0, max + 1), (0, arena_bytes - 64), (last, 1), (32, 8), (0, u64::MAX), (u64::MAX - 63, 64)]
        {
            assert_eq!(decode(offset, len), Err(RingFault::Block), "{len} bytes at {offset}");
        }
        let short = BlockDescriptor::decode(&[0; BlockDescriptor::BYTES - 1], &Geometry::for_places(2));
        assert_eq!(short, Err(RingFault::Block));
    }
}
