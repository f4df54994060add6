//! Memory that cores share and no hardware keeps coherent, as the machine offers it, and the lines of an object there.

use isles_protocol::PlaceId;
use isles_protocol::shared::MemoryKind;
use isles_runtime::Local;
use isles_telemetry::CounterId;
use serde::{Deserialize, Serialize};
use std::rc::Rc;

/// Bytes of a line.
pub(super) const LINE_BYTES: u64 = 32;

/// A range of such memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryRange {
    /// Its first byte.
    pub start: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Kind of memory, as cores see it.
    pub kind: MemoryKind,
    /// The memory controller behind which it lies, or the number of the message buffer in which it lies.
    pub controller: u32,
}

impl MemoryRange {
    /// Length of the name of a range in a table, without what all ranges of the table have in common.
    pub(super) const NAME_BYTES: usize = 12;

    pub(super) fn name(&self) -> [u8; MemoryRange::NAME_BYTES] {
        let mut name = [0; MemoryRange::NAME_BYTES];
        name[..8].copy_from_slice(&self.start.to_le_bytes());
        name[8..].copy_from_slice(&self.controller.to_le_bytes());
        name
    }

    /// Returns the range with this name.
    pub(super) fn named(name: &[u8], bytes: u64, kind: MemoryKind) -> Option<MemoryRange> {
        let start = u64::from_le_bytes(name.get(..8)?.try_into().ok()?);
        let controller = u32::from_le_bytes(name.get(8..12)?.try_into().ok()?);
        Some(MemoryRange { start, bytes, kind, controller })
    }
}

/// Memory that all cores share and no hardware keeps coherent. Each call is made by the place that runs, and takes its
/// time.
pub trait IncoherentMemory {
    /// Takes a range of zeros, on lines of its own, until the run ends; `None` if the chip has no such memory.
    fn take(&self, kind: MemoryKind, bytes: u64) -> Option<MemoryRange>;

    /// Takes a range of zeros, of the kind [`MemoryKind::Through`], in the message buffer of this place's core; `None`
    /// if there is no room.
    fn take_buffer(&self, bytes: u64) -> Option<MemoryRange>;

    /// Gives back a range of [`IncoherentMemory::take_buffer`], of any place; ignores others.
    fn give_back_buffer(&self, range: &MemoryRange);

    /// Returns `true` if `place` has taken `range`, or one that contains it.
    fn is_taken_by(&self, place: PlaceId, range: &MemoryRange) -> bool;

    /// Returns the number of the tile on which the core of `place` lies.
    fn tile(&self, place: PlaceId) -> u32;

    /// Returns the number of memory controllers; controllers are numbered below it.
    fn controllers(&self) -> u32;

    /// Reads what this place sees from `offset` on, which may be stale.
    fn read(&self, range: &MemoryRange, offset: u64, into: &mut [u8]);

    /// Writes from `offset` on.
    fn write(&self, range: &MemoryRange, offset: u64, from: &[u8]);

    /// Writes back what this core's caches have changed in the ranges, and drops the ranges from them, in one
    /// operation.
    fn flush(&self, ranges: &[MemoryRange]);

    /// Drains the line in this core's write buffer to memory, behind the controller of the range.
    fn drain(&self, range: &MemoryRange);

    /// Drops all lines of [`MemoryKind::Through`] memory from this core's first cache.
    fn invalidate(&self);
}

/// The machine's memory, and how an object uses it.
#[derive(Clone)]
pub struct ObjectMemory {
    pub(super) memory: Rc<dyn IncoherentMemory>,
    pub(super) kind: MemoryKind,
    /// True if caches are flushed when they must be; otherwise the run reports stale reads.
    pub(super) flushes: bool,
}

impl ObjectMemory {
    /// Counts a flush, if caches are flushed.
    fn count_flush(&self) {
        Local::with(|local| local.add_count(CounterId::ObjectFlushes, u64::from(self.flushes)));
    }

    /// Drops ranges, which are of one kind, from caches.
    pub(super) fn forget(&self, ranges: &[MemoryRange]) {
        self.count_flush();
        match ranges.first().map(|range| range.kind) {
            Some(MemoryKind::Cached) if self.flushes => self.memory.flush(ranges),
            Some(MemoryKind::Through) if self.flushes => self.memory.invalidate(),
            _ => {}
        }
    }

    /// Writes what was stored to ranges, which are of one kind, back to memory.
    pub(super) fn write_back(&self, ranges: &[MemoryRange]) {
        self.count_flush();
        match ranges.last() {
            Some(last) if self.flushes && last.kind == MemoryKind::Through => self.memory.drain(last),
            Some(last) if self.flushes && last.kind == MemoryKind::Cached => self.memory.flush(ranges),
            _ => {}
        }
    }
}

/// Bytes of any length in such memory: a head of one line with their position and length, and a range that holds them.
pub(super) struct ByteLines {
    head: MemoryRange,
    body: Option<MemoryRange>,
}

/// Length of the used part of the head: the name of the body, its size, and the number of bytes in it.
const HEAD_BYTES: usize = MemoryRange::NAME_BYTES + 16;

impl ByteLines {
    /// Takes a new head.
    pub(super) fn new(memory: &ObjectMemory, kind: MemoryKind) -> Option<ByteLines> {
        Some(ByteLines { head: memory.memory.take(kind, LINE_BYTES)?, body: None })
    }

    /// Returns the lines whose head starts at `start`.
    pub(super) fn at(kind: MemoryKind, start: u64, controller: u32) -> ByteLines {
        ByteLines { head: MemoryRange { start, bytes: LINE_BYTES, kind, controller }, body: None }
    }

    pub(super) fn head(&self) -> MemoryRange {
        self.head
    }

    /// Writes the bytes, to a longer range if they do not fit.
    pub(super) fn store(&mut self, memory: &ObjectMemory, bytes: &[u8]) {
        let len = bytes.len() as u64;
        let body = match self.body.filter(|body| body.bytes >= len) {
            Some(body) => body,
            // Half as much again, so that a growing value seldom moves.
            None => match memory.memory.take(self.head.kind, (len + len / 2).next_multiple_of(LINE_BYTES)) {
                Some(body) => body,
                None => return,
            },
        };
        self.body = Some(body);
        let mut head = [0; HEAD_BYTES];
        head[..MemoryRange::NAME_BYTES].copy_from_slice(&body.name());
        head[12..20].copy_from_slice(&body.bytes.to_le_bytes());
        head[20..].copy_from_slice(&len.to_le_bytes());
        memory.memory.write(&self.head, 0, &head);
        memory.memory.write(&body, 0, bytes);
    }

    /// Writes what was stored back to memory.
    pub(super) fn write_back(&self, memory: &ObjectMemory) {
        memory.write_back(&self.ranges());
    }

    /// Drops the lines from caches.
    pub(super) fn forget(&self, memory: &ObjectMemory) {
        memory.forget(&self.ranges());
    }

    fn ranges(&self) -> Vec<MemoryRange> {
        std::iter::once(self.head).chain(self.body).collect()
    }

    /// Reads the bytes; `None` if the head is not valid.
    pub(super) fn load(&mut self, memory: &ObjectMemory) -> Option<Vec<u8>> {
        let mut head = [0; HEAD_BYTES];
        memory.memory.read(&self.head, 0, &mut head);
        let number = |at: usize| head.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
        let body = MemoryRange::named(&head, number(12)?, self.head.kind)?;
        let len = number(20).filter(|len| *len <= body.bytes)?;
        self.body = Some(body);
        let mut bytes = vec![0; usize::try_from(len).ok()?];
        memory.memory.read(&body, 0, &mut bytes);
        Some(bytes)
    }
}
