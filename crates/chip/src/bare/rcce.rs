//! The library of the SCC in terms of accesses: puts, gets, flags of one line, blocking sends and receives.
//!
//! ```text
//! sent    one line for each participant   written by that one, cleared by the owner
//! ready   one line for each participant   written by that one, cleared by the owner
//! chunk   what is left                    written by the owner, read by receivers
//! ```
//!
//! A message waits in the sender's buffer, chunk by chunk; the sender only waits for the answer, so two participants
//! that send to each other deadlock. The costs of instructions are fitted to one ping-pong of each library
//! (`docs/reproduction/ping-pong.md`); everything else follows from the chip file.

use super::{BareCore, LINE_BYTES, Line};
use crate::topology::CoreId;

/// Costs of a library's instructions besides the accesses, in core cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LibraryCosts {
    /// Cycles of one call: a put, a get, the writing of a flag, a wait.
    pub call: u64,
    /// Cycles of each further poll of a flag.
    pub look: u64,
    /// Cycles of each line of a put or get.
    pub line: u64,
    /// Cycles of a partial last line of a message, at each side.
    pub tail: u64,
    /// `true` if a get first reads the line that it will write, so that its words go to the first-level cache.
    pub prefetches: bool,
}

impl LibraryCosts {
    /// RCCE 1.0.13 with flags of a line; fitted to half a ping-pong of 4 and 32 bytes and to its slope up to 2 KiB.
    pub const RCCE: LibraryCosts =
        LibraryCosts { call: 158, look: 20, line: 66, tail: 70, prefetches: false };

    /// iRCCE with its own copy; fitted likewise to 32 bytes and the slope.
    pub const IRCCE: LibraryCosts = LibraryCosts { call: 118, look: 20, line: 8, tail: 70, prefetches: true };

    /// Flags of RCCE and the copy of iRCCE, with which the published broadcasts were built.
    pub const MIXED: LibraryCosts = LibraryCosts { call: Self::RCCE.call, ..Self::IRCCE };

    /// Hardware time only, as in the copy with which the times of lines were measured.
    pub const BARE: LibraryCosts = LibraryCosts { call: 20, look: 20, line: 0, tail: 0, prefetches: true };
}

/// A participant of a group, which consists of the cores from 0 on.
#[derive(Clone)]
pub struct Participant {
    /// Its core.
    pub core: BareCore,
    /// Number of participants.
    pub participants: u32,
    /// Costs of the library with which it copies.
    pub library: LibraryCosts,
}

impl Participant {
    /// Returns the rank of the participant.
    pub fn rank(&self) -> u32 {
        self.core.id().0
    }

    /// Returns the first line and the number of lines of the chunk.
    fn chunk(&self) -> (u32, u32) {
        let flags = 2 * self.participants;
        (flags, self.core.buffer_lines() - flags)
    }

    /// Copies lines of private memory into a message buffer.
    pub async fn put(&self, to: CoreId, line: u32, memory: u64, lines: u32) {
        self.core.compute(self.library.call).await;
        for at in 0..lines {
            let content = self.core.load(memory + u64::from(at)).await;
            self.core.compute(self.library.line).await;
            self.core.write_line(to, line + at, content).await;
        }
    }

    /// Copies lines of a message buffer into private memory.
    pub async fn get(&self, from: CoreId, line: u32, memory: u64, lines: u32) {
        self.core.compute(self.library.call).await;
        self.core.invalidate_buffers();
        for at in 0..lines {
            let place = memory + u64::from(at);
            if self.library.prefetches {
                self.core.load(place).await;
            }
            let content = self.core.read_line(from, line + at).await;
            self.core.compute(self.library.line).await;
            self.core.store(place, content).await;
        }
    }

    /// Copies lines of another message buffer into its own.
    pub async fn relay(&self, from: CoreId, line: u32, own: u32, lines: u32) {
        self.core.compute(self.library.call).await;
        self.core.invalidate_buffers();
        for at in 0..lines {
            let content = self.core.read_line(from, line + at).await;
            self.core.compute(self.library.line).await;
            self.core.write_line(self.core.id(), own + at, content).await;
        }
    }

    /// Writes a flag of a line.
    pub async fn set_flag(&self, of: CoreId, line: u32, value: u32) {
        self.core.compute(self.library.call).await;
        self.core.write_line(of, line, flag(value)).await;
    }

    /// Waits until a flag of its own buffer has reached a value.
    pub async fn wait_flag(&self, line: u32, value: u32) {
        self.core.compute(self.library.call).await;
        self.core.wait_line(line, self.library.look, |content| flag_value(content) >= value).await;
    }

    /// Sends bytes of private memory, from line `memory` on; returns when they have been received.
    pub async fn send(&self, to: u32, memory: u64, bytes: usize) {
        let (start, most) = self.chunk();
        let (me, to) = (self.core.id(), CoreId(to));
        for (at, lines) in chunks(bytes, most) {
            self.tail(bytes).await;
            self.put(me, start, memory + u64::from(at), lines).await;
            self.set_flag(to, me.0, 1).await;
            let ready = self.participants + to.0;
            self.wait_flag(ready, 1).await;
            self.set_flag(me, ready, 0).await;
        }
    }

    /// Receives `bytes` bytes into private memory, from line `memory` on.
    pub async fn receive(&self, from: u32, memory: u64, bytes: usize) {
        let (start, most) = self.chunk();
        let (me, from) = (self.core.id(), CoreId(from));
        for (at, lines) in chunks(bytes, most) {
            self.wait_flag(from.0, 1).await;
            self.set_flag(me, from.0, 0).await;
            self.get(from, start, memory + u64::from(at), lines).await;
            self.tail(bytes).await;
            self.set_flag(from, self.participants + me.0, 1).await;
        }
    }

    async fn tail(&self, bytes: usize) {
        if !bytes.is_multiple_of(LINE_BYTES) {
            self.core.compute(self.library.tail).await;
        }
    }
}

/// Returns the first line of each chunk of a message, and its number of lines.
pub(super) fn chunks(bytes: usize, most: u32) -> impl Iterator<Item = (u32, u32)> {
    line_chunks(bytes.div_ceil(LINE_BYTES) as u32, most)
}

/// As [`chunks`], for a message of `lines` lines.
pub(crate) fn line_chunks(lines: u32, most: u32) -> impl Iterator<Item = (u32, u32)> {
    (0..lines).step_by(most as usize).map(move |at| (at, most.min(lines - at)))
}

/// Returns the line of a flag.
pub(super) fn flag(value: u32) -> Line {
    let mut line = [0; LINE_BYTES];
    line[..4].copy_from_slice(&value.to_le_bytes());
    line
}

/// Returns the value of a flag.
pub(super) fn flag_value(line: &Line) -> u32 {
    u32::from_le_bytes([line[0], line[1], line[2], line[3]])
}
