//! The bytes of a frame: a header with returned credit, and records one after the other.
//!
//! All numbers are little-endian. Header and records begin at multiples of 8, so the bytes of a message are aligned in
//! an aligned frame. A pure format: it knows no library and no place. Invariant: the records of a frame that
//! [`Frame::parse`] accepts cover it exactly.

use isles_transport::{Class, HandlerId};
use std::cell::RefCell;
use std::rc::Rc;

/// Length of the header.
pub const HEADER_BYTES: usize = 24;

/// Length of a record before its content.
pub const RECORD_BYTES: usize = 8;

/// Returns the tag of the frames of a class.
pub fn tag_of(class: Class) -> u32 {
    match class {
        Class::Control => 0,
        Class::Data => 1,
    }
}

/// Returns the class of frames with this tag.
pub fn class_of(tag: u32) -> Class {
    if tag == tag_of(Class::Control) { Class::Control } else { Class::Data }
}

/// Credit that a frame returns to its receiver, for what that had sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReturnedCredit {
    /// Bytes of records, by class: control, data.
    pub records: [u32; 2],
    /// Number of blocks.
    pub blocks: u32,
    /// Their total length in bytes.
    pub block_bytes: u64,
}

impl ReturnedCredit {
    /// Returns `true` if no credit is returned.
    pub fn is_nothing(&self) -> bool {
        *self == ReturnedCredit::default()
    }

    fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..4].copy_from_slice(&self.records[0].to_le_bytes());
        bytes[4..8].copy_from_slice(&self.records[1].to_le_bytes());
        bytes[8..12].copy_from_slice(&self.blocks.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.block_bytes.to_le_bytes());
        bytes
    }
}

/// Content of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameRecord<'a> {
    /// A small message.
    Message(HandlerId, &'a [u8]),
    /// A large message that is short enough for the frame.
    InlineBlock(HandlerId, &'a [u8]),
    /// A large message, with its length in bytes; it comes separately with this tag.
    Block(HandlerId, u64, u32),
    /// The place has left: it sends nothing more.
    Left,
}

/// Kinds of records on the wire.
const MESSAGE: u16 = 1;
const BLOCK: u16 = 2;
const LEFT: u16 = 3;
const INLINE_BLOCK: u16 = 4;

/// Returns the length of a record with `len` bytes of content.
pub fn record_bytes(len: usize) -> usize {
    RECORD_BYTES + len.next_multiple_of(8)
}

/// Length of the record of a block.
pub const BLOCK_RECORD_BYTES: usize = RECORD_BYTES + 16;

/// Reused memory of frames that have left: fresh memory of the system would be written twice.
#[derive(Debug, Default)]
pub struct FramePool(RefCell<Vec<Vec<u8>>>);

impl FramePool {
    /// Number of frames whose memory is kept.
    const SPARE_MAX: usize = 4;

    fn take(&self) -> Vec<u8> {
        self.0.borrow_mut().pop().unwrap_or_default()
    }

    fn give_back(&self, memory: Vec<u8>) {
        let mut spare = self.0.borrow_mut();
        if spare.len() < FramePool::SPARE_MAX && !memory.is_empty() {
            spare.push(memory);
        }
    }
}

/// A complete frame, on the heap.
#[derive(Debug)]
pub struct FrameBytes {
    memory: Vec<u8>,
    len: usize,
    pool: Rc<FramePool>,
}

impl FrameBytes {
    /// Returns the bytes to send.
    pub fn bytes(&self) -> &[u8] {
        &self.memory[..self.len]
    }
}

impl Drop for FrameBytes {
    fn drop(&mut self) {
        self.pool.give_back(std::mem::take(&mut self.memory));
    }
}

/// A frame that is being filled.
#[derive(Debug)]
pub struct Frame {
    /// Fully initialised: the bytes behind `len` are from earlier frames; empty while there is no record.
    memory: Vec<u8>,
    len: usize,
    pool: Rc<FramePool>,
}

impl Frame {
    /// Makes a frame without a record; its memory comes from `pool`.
    pub fn new(pool: &Rc<FramePool>) -> Frame {
        Frame { memory: Vec::new(), len: HEADER_BYTES, pool: Rc::clone(pool) }
    }

    /// Returns `true` if there is no record.
    pub fn is_empty(&self) -> bool {
        self.len == HEADER_BYTES
    }

    /// Returns the length so far.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the next `room` bytes, whose content is unspecified.
    fn next(&mut self, room: usize) -> &mut [u8] {
        if self.memory.is_empty() {
            self.memory = self.pool.take();
        }
        let end = self.len + room;
        if self.memory.len() < end {
            self.memory.resize(end, 0);
        }
        &mut self.memory[self.len..end]
    }

    /// Adds a message that `fill` writes into `room` bytes. Returns the length of its record, or `None` if `fill` gives
    /// up.
    ///
    /// The frame does not change if `fill` gives up or panics.
    pub fn add(
        &mut self,
        handler: HandlerId,
        room: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> Option<usize>,
    ) -> Option<usize> {
        self.add_record(MESSAGE, handler, room, fill)
    }

    /// As [`Frame::add`], for a large message of `len` bytes, all of which `fill` writes.
    pub fn add_inline_block(
        &mut self,
        handler: HandlerId,
        len: usize,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> Option<usize> {
        self.add_record(INLINE_BLOCK, handler, len, &mut |room| {
            fill(room);
            Some(len)
        })
    }

    fn add_record(
        &mut self,
        kind: u16,
        handler: HandlerId,
        room: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> Option<usize>,
    ) -> Option<usize> {
        let record = self.next(record_bytes(room));
        let (header, content) = record.split_at_mut(RECORD_BYTES);
        let len = fill(&mut content[..room])?;
        assert!(len <= room, "{len} bytes were written into room for {room}");
        header.copy_from_slice(&record_header(len as u32, handler, kind));
        content[len..len.next_multiple_of(8)].fill(0);
        self.len += record_bytes(len);
        Some(record_bytes(len))
    }

    fn add_bytes(&mut self, bytes: &[u8]) {
        self.next(bytes.len()).copy_from_slice(bytes);
        self.len += bytes.len();
    }

    /// Adds the announcement of a block of `len` bytes that comes with `tag`.
    pub fn add_block(&mut self, handler: HandlerId, len: u64, tag: u32) {
        self.add_bytes(&record_header(16, handler, BLOCK));
        self.add_bytes(&len.to_le_bytes());
        self.add_bytes(&u64::from(tag).to_le_bytes());
    }

    /// Adds the notice that this place has left.
    pub fn add_left(&mut self) {
        self.add_bytes(&record_header(0, HandlerId(0), LEFT));
    }

    /// Returns the bytes to send, which return the credit `returned`; the frame is then empty.
    pub fn finish(&mut self, returned: ReturnedCredit) -> FrameBytes {
        self.next(0);
        self.memory[..HEADER_BYTES].copy_from_slice(&returned.to_bytes());
        let (memory, len) =
            (std::mem::take(&mut self.memory), std::mem::replace(&mut self.len, HEADER_BYTES));
        FrameBytes { memory, len, pool: Rc::clone(&self.pool) }
    }

    /// Returns the credit that a frame returns, and its records.
    ///
    /// # Errors
    /// The bytes are not a frame.
    pub fn parse(bytes: &[u8]) -> Result<(ReturnedCredit, Records<'_>), BrokenFrame> {
        let (header, rest) = bytes.split_at_checked(HEADER_BYTES).ok_or(BrokenFrame)?;
        let returned = ReturnedCredit {
            records: [number(header, 0), number(header, 4)],
            blocks: number(header, 8),
            block_bytes: long(header, 16),
        };
        let records = Records { rest };
        let mut unread = records.clone();
        while !unread.rest.is_empty() {
            unread.read()?;
        }
        Ok((returned, records))
    }
}

/// The records of a frame, one after the other.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    rest: &'a [u8],
}

impl<'a> Records<'a> {
    /// Returns the only record, or `None` if there is none or more than one.
    pub fn single(mut self) -> Option<FrameRecord<'a>> {
        self.next().filter(|_| self.rest.is_empty())
    }

    /// Reads a record; at least one byte is left.
    fn read(&mut self) -> Result<FrameRecord<'a>, BrokenFrame> {
        let (header, content) = self.rest.split_at_checked(RECORD_BYTES).ok_or(BrokenFrame)?;
        let len = number(header, 0) as usize;
        let handler = HandlerId(u16::from_le_bytes([header[4], header[5]]));
        let padded = len.checked_next_multiple_of(8).ok_or(BrokenFrame)?;
        let (content, after) = content.split_at_checked(padded).ok_or(BrokenFrame)?;
        self.rest = after;
        Ok(match u16::from_le_bytes([header[6], header[7]]) {
            MESSAGE => FrameRecord::Message(handler, &content[..len]),
            INLINE_BLOCK => FrameRecord::InlineBlock(handler, &content[..len]),
            BLOCK if len == 16 => {
                let tag = u32::try_from(long(content, 8)).map_err(|_| BrokenFrame)?;
                FrameRecord::Block(handler, long(content, 0), tag)
            }
            LEFT if len == 0 => FrameRecord::Left,
            _ => return Err(BrokenFrame),
        })
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = FrameRecord<'a>;

    fn next(&mut self) -> Option<FrameRecord<'a>> {
        // `Frame::parse` has checked all of them.
        if self.rest.is_empty() { None } else { self.read().ok() }
    }
}

/// Bytes that no valid place sends as a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokenFrame;

fn record_header(len: u32, handler: HandlerId, kind: u16) -> [u8; RECORD_BYTES] {
    let mut header = [0; RECORD_BYTES];
    header[0..4].copy_from_slice(&len.to_le_bytes());
    header[4..6].copy_from_slice(&handler.0.to_le_bytes());
    header[6..8].copy_from_slice(&kind.to_le_bytes());
    header
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(number(bytes, at)) | u64::from(number(bytes, at + 4)) << 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Part {
        Message(u16, Vec<u8>, usize),
        Abandoned(usize),
        InlineBlock(u16, Vec<u8>),
        Block(u16, u64, u32),
        Left,
    }

    fn part() -> impl Strategy<Value = Part> {
        prop_oneof![
            (any::<u16>(), proptest::collection::vec(any::<u8>(), 0..40), 0..9_usize)
                .prop_map(|(handler, bytes, spare)| Part::Message(handler, bytes, spare)),
            (0..40_usize).prop_map(Part::Abandoned),
            (any::<u16>(), proptest::collection::vec(any::<u8>(), 0..40))
                .prop_map(|(handler, bytes)| Part::InlineBlock(handler, bytes)),
            (any::<u16>(), any::<u64>(), any::<u32>()).prop_map(|(h, len, tag)| Part::Block(h, len, tag)),
            Just(Part::Left),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(parts in proptest::collection::vec(part(), 0..12), returned: [u32; 3]) {
            // Memory of another frame, all of which must be overwritten.
            let mut frame = Frame::new(&Rc::new(FramePool(RefCell::new(vec![vec![0xaa; 500]]))));
            let mut expected = Vec::new();
            for part in &parts {
                match part {
                    Part::Message(handler, bytes, spare) => {
                        let before = frame.len();
                        let added = frame.add(HandlerId(*handler), bytes.len() + spare, &mut |room| {
                            room[..bytes.len()].copy_from_slice(bytes);
                            Some(bytes.len())
                        });
                        prop_assert_eq!(added, Some(record_bytes(bytes.len())));
                        prop_assert_eq!(frame.len() - before, record_bytes(bytes.len()));
                        expected.push(FrameRecord::Message(HandlerId(*handler), bytes));
                    }
                    Part::Abandoned(room) => {
                        prop_assert_eq!(frame.add(HandlerId(1), *room, &mut |_| None), None);
                    }
                    Part::InlineBlock(handler, bytes) => {
                        let mut fill = |room: &mut [u8]| room.copy_from_slice(bytes);
                        let added = frame.add_inline_block(HandlerId(*handler), bytes.len(), &mut fill);
                        prop_assert_eq!(added, Some(record_bytes(bytes.len())));
                        expected.push(FrameRecord::InlineBlock(HandlerId(*handler), bytes));
                    }
                    Part::Block(handler, len, tag) => {
                        frame.add_block(HandlerId(*handler), *len, *tag);
                        expected.push(FrameRecord::Block(HandlerId(*handler), *len, *tag));
                    }
                    Part::Left => {
                        frame.add_left();
                        expected.push(FrameRecord::Left);
                    }
                }
            }
            let records = [returned[0], returned[1]];
            let returned = ReturnedCredit { records, blocks: returned[2], block_bytes: 1 << 40 };
            let bytes = frame.finish(returned);
            prop_assert!(frame.is_empty());
            let (read, records) = Frame::parse(bytes.bytes()).unwrap();
            prop_assert_eq!(records.clone().single(), expected.first().filter(|_| expected.len() == 1).copied());
            prop_assert_eq!((read, records.collect::<Vec<_>>()), (returned, expected));
        }

        #[test]
        fn garbage_is_refused_or_read_and_nothing_else(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok((_, records)) = Frame::parse(&bytes) {
                let len = |record: &FrameRecord<'_>| match record {
                    FrameRecord::Message(_, bytes) | FrameRecord::InlineBlock(_, bytes) => record_bytes(bytes.len()),
                    FrameRecord::Block(..) => BLOCK_RECORD_BYTES,
                    FrameRecord::Left => RECORD_BYTES,
                };
                prop_assert_eq!(HEADER_BYTES + records.map(|record| len(&record)).sum::<usize>(), bytes.len());
            }
        }
    }

    #[test]
    fn a_writer_that_panics_leaves_the_frame_as_it_was() {
        let mut frame = Frame::new(&Rc::default());
        frame.add(HandlerId(3), 8, &mut |_| Some(8));
        let write = std::panic::AssertUnwindSafe(|| frame.add(HandlerId(4), 100, &mut |_| panic!("no")));
        assert!(std::panic::catch_unwind(write).is_err());
        let bytes = frame.finish(ReturnedCredit::default());
        let (_, records) = Frame::parse(bytes.bytes()).unwrap();
        assert_eq!(records.single(), Some(FrameRecord::Message(HandlerId(3), &[0; 8])));
    }
}
