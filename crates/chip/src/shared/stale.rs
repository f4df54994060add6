//! Stale reads: the write that a read has missed, and the cause.
//!
//! It compares a read with the newest write to each byte, and finds out where that write is. The remedy is only
//! reported. Invariant: a read is recorded at most once for each line, at its first stale byte.

use super::history::{LineVersion, WriteId};
use super::{LINE_BYTES, SharedMemory};
use crate::quantity::Picoseconds;
use crate::topology::CoreId;
use std::ops::Range;

/// Maximum number of stale reads that are kept; others are only counted.
pub const STALE_LISTED_MAX: usize = 100;

/// A write, for reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// Core that wrote.
    pub core: CoreId,
    /// Time of the write.
    pub at: Picoseconds,
}

/// Cause of a read that missed a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StaleCause {
    /// The write is in memory, but the reader's cache has an older copy.
    OldCopy,
    /// The write is still in the cache or write buffer of its core.
    NotWrittenBack,
    /// A core with an older copy of the line has written it back over the write.
    Overwritten,
}

impl StaleCause {
    /// Returns its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            StaleCause::OldCopy => "old-copy",
            StaleCause::NotWrittenBack => "not-let-go",
            StaleCause::Overwritten => "overwritten",
        }
    }

    /// Returns the remedy for the program, as text.
    pub const fn advice(self) -> &'static str {
        match self {
            StaleCause::OldCopy => "the reader has an old copy: invalidate or flush before the read",
            StaleCause::NotWrittenBack => "the writer has not let go of it: drain or flush after the write",
            StaleCause::Overwritten => {
                "another core wrote an older copy of the line back: keep lines of different writers apart"
            }
        }
    }
}

/// A read that missed a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaleRead {
    /// Core that read.
    pub core: CoreId,
    /// Time of the read.
    pub at: Picoseconds,
    /// Address of the first stale byte.
    pub address: u64,
    /// Value that the read returned.
    pub found: u8,
    /// Value that it should have returned.
    pub newest: u8,
    /// The newest write to that byte.
    pub missed: Write,
    /// Cause of the miss.
    pub cause: StaleCause,
}

impl StaleRead {
    /// Describes the read in one line; `who` is what runs on a core, for example `place`.
    pub fn describe(&self, who: &str) -> String {
        let StaleRead { core, at, address, found, newest, missed, cause } = self;
        let microseconds = |time: &Picoseconds| time.0 as f64 / 1e6;
        format!(
            "{who} {core} read {found} at address {address:#x} at {:.3} µs and missed the {newest} that {who} {} wrote \
             at {:.3} µs; {}",
            microseconds(at),
            missed.core,
            microseconds(&missed.at),
            cause.advice()
        )
    }
}

impl SharedMemory {
    /// Records a read that missed a write, at its first stale byte.
    pub(super) fn compare(
        &mut self,
        core: CoreId,
        now: Picoseconds,
        line: u64,
        bytes: Range<usize>,
        image: &LineVersion,
    ) {
        let Some(state) = self.lines.get(&line) else { return };
        let newest = state.newest.at(now);
        let Some(at) = bytes.into_iter().find(|at| image.writes[*at] != newest.writes[*at]) else { return };
        self.stale_count += 1;
        if self.stale.len() < STALE_LISTED_MAX {
            let id = newest.writes[at];
            self.stale.push(StaleRead {
                core,
                at: now,
                address: line * LINE_BYTES as u64 + at as u64,
                found: image.bytes[at],
                newest: newest.bytes[at],
                missed: self.writes[id as usize],
                cause: self.cause(now, line, at, id),
            });
        }
    }

    /// Returns why a write was missed.
    fn cause(&self, now: Picoseconds, line: u64, at: usize, id: WriteId) -> StaleCause {
        if self.memory_at(line, now).writes[at] == id {
            return StaleCause::OldCopy;
        }
        let side = &self.sides[self.writes[id as usize].core.0 as usize];
        let in_copy = side.copies.get(&line).is_some_and(|copy| copy.image.writes[at] == id);
        let in_buffer = side
            .write_buffer
            .as_ref()
            .is_some_and(|(other, _, image)| *other == line && image.writes[at] == id);
        if in_copy || in_buffer { StaleCause::NotWrittenBack } else { StaleCause::Overwritten }
    }
}
