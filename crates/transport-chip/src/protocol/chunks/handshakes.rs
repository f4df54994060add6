//! The handshakes of the protocols `rcce-x10` and `sections`.
//!
//! `rcce-x10`: data waits in the sender's buffer until the receiver fetches it, as in X10's port to the SCC.
//!
//! ```text
//! sent    one line for each place     written by that place, cleared by the owner, read at every poll
//! ready   one line for each place     written by that place, cleared by the owner, read while an answer is awaited
//! chunk   what is left                written by the owner, read by receivers: an eighth for control
//! ```
//!
//! With RCCE the sender does nothing while it waits. X10's port serves arriving messages meanwhile: it takes, answers
//! and keeps them for the program until the send is over. The division into classes is ours; X10's port has one class.
//!
//! `sections`: the sender writes into its own section of the receiver's buffer, as in SCC-MPI.
//!
//! ```text
//! section of a place     a buffer has one for each core of the chip, or one for each place; all written by that place,
//!                        read by the owner
//!   header               one line: what was sent in each class, and how much was taken of what came back
//!   control              a quarter of the other lines, at least one
//!   data                 the rest
//! ```
//!
//! With a memory channel, the chunks of all messages, or of those longer than a chunk of the buffer, are in memory
//! behind the receiver's controller, in one section of [`MEMORY_SECTION_LINES`] for each sender; headers stay in
//! buffers. The source describes these channels and a constant threshold between both memories; the length of a section
//! and the location of the headers are ours.
//!
//! The receiver writes the answer to a chunk into the header of its own section at the sender, so each poll, which
//! reads all headers, sees messages and answers at once. A message longer than its chunk is sent piece by piece. The
//! division into classes is ours; SCC-MPI has one class.

use super::{Handshake, Route};
use crate::cores::Cores;
use crate::protocol::MESSAGE_BYTES_MIN;
use crate::report::TimeCategory;
use isles_transport::Class;

/// Lines of flags for each place: sent and ready.
const FLAG_LINES: u32 = 2;

/// Control gets one part in this number of the chunk lines.
const RCCE_X10_CONTROL_PART: u32 = 8;

/// The layout of one buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RcceX10 {
    line_bytes: u32,
    /// Lines of a chunk by class, control first.
    chunk_lines: [u32; 2],
}

impl RcceX10 {
    /// The layout of `lines` lines among `places` places.
    ///
    /// # Errors
    /// The least number of lines that would do.
    pub(crate) fn new(places: u32, lines: u32, line_bytes: u32) -> Result<RcceX10, u32> {
        let message = MESSAGE_BYTES_MIN.div_ceil(line_bytes);
        let least = FLAG_LINES * places + 2 * message;
        if lines < least {
            return Err(least);
        }
        let chunk = lines - FLAG_LINES * places;
        let control = (chunk / RCCE_X10_CONTROL_PART).max(message);
        Ok(RcceX10 { line_bytes, chunk_lines: [control, chunk - control] })
    }
}

impl Handshake for RcceX10 {
    const SHARED: bool = true;
    const WAITS: bool = true;
    const POLL_SEES_ANSWERS: bool = false;

    fn chunk_lines(&self, class: Class, _bytes: usize) -> u32 {
        self.chunk_lines[class as usize]
    }

    fn message_bytes_max(&self, class: Class) -> usize {
        (self.chunk_lines[class as usize] * self.line_bytes) as usize
    }

    fn put(&self, cores: &mut Cores, route: Route, lines: u32, _bytes: usize) {
        cores.write_lines(route.source, route.source, lines);
        cores.write_lines(route.source, route.target, 1);
    }

    /// Clears the flag, fetches the chunk, and answers.
    fn get(&self, cores: &mut Cores, route: Route, lines: u32, _bytes: usize) {
        cores.write_lines(route.target, route.target, 1);
        cores.read_lines(route.target, route.source, lines, TimeCategory::Copying);
        cores.write_lines(route.target, route.source, 1);
    }
}

/// Lines of the smallest section: the header, and one line for each class.
const SECTION_LINES_MIN: u32 = 3;

/// Control gets one part in this number of the lines behind the header.
const SECTIONS_CONTROL_PART: u32 = 4;

/// Size in bytes of the longest message other than a block: one for each receiver and class may wait in private memory.
const MESSAGE_BYTES_MAX: usize = 512;

/// Lines of a section in memory: 8 KiB.
const MEMORY_SECTION_LINES: u32 = 256;

/// Memory for the chunks of `sections`, as in the channels of SCC-MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SectionChannel {
    /// The message buffers.
    Buffers,
    /// Shared memory.
    Memory,
    /// The buffers for messages of one chunk, shared memory for longer ones.
    Mixed,
}

/// The layout of one buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sections {
    channel: SectionChannel,
    line_bytes: u32,
    /// Lines of a chunk in the buffer by class, control first.
    chunk_lines: [u32; 2],
}

impl Sections {
    /// Makes the layout of `lines` lines in `sections` sections, with chunks in the buffer.
    ///
    /// # Errors
    /// The least number of lines that would do.
    pub(crate) fn new(sections: u32, lines: u32, line_bytes: u32) -> Result<Sections, u32> {
        let section = lines / sections;
        if section < SECTION_LINES_MIN {
            return Err(SECTION_LINES_MIN * sections);
        }
        let chunk_lines = by_class(section - 1);
        Ok(Sections { channel: SectionChannel::Buffers, line_bytes, chunk_lines })
    }

    /// Returns the layout with the chunks in the memory of `channel`.
    pub(crate) fn over(self, channel: SectionChannel) -> Sections {
        Sections { channel, ..self }
    }

    /// Returns `true` if the chunks of a message of `bytes` bytes are in shared memory.
    fn is_in_memory(&self, class: Class, bytes: usize) -> bool {
        match self.channel {
            SectionChannel::Buffers => false,
            SectionChannel::Memory => true,
            SectionChannel::Mixed => bytes > (self.chunk_lines[class as usize] * self.line_bytes) as usize,
        }
    }
}

/// Divides the lines of a section behind its header among the classes, control first.
fn by_class(lines: u32) -> [u32; 2] {
    let control = (lines / SECTIONS_CONTROL_PART).max(1);
    [control, lines - control]
}

impl Handshake for Sections {
    const SHARED: bool = false;
    const WAITS: bool = false;
    const POLL_SEES_ANSWERS: bool = true;

    fn chunk_lines(&self, class: Class, bytes: usize) -> u32 {
        let is_in_memory = self.is_in_memory(class, bytes);
        let lines = if is_in_memory { by_class(MEMORY_SECTION_LINES) } else { self.chunk_lines };
        lines[class as usize]
    }

    fn message_bytes_max(&self, _class: Class) -> usize {
        MESSAGE_BYTES_MAX
    }

    fn put(&self, cores: &mut Cores, route: Route, lines: u32, bytes: usize) {
        if self.is_in_memory(route.class, bytes) {
            cores.write_memory_lines(route.source, route.target, lines);
            cores.write_lines(route.source, route.target, 1);
        } else {
            cores.write_lines(route.source, route.target, lines + 1);
        }
    }

    /// Reads the sender's section here, and answers in the own section at the sender.
    fn get(&self, cores: &mut Cores, route: Route, lines: u32, bytes: usize) {
        if self.is_in_memory(route.class, bytes) {
            cores.read_memory_lines(route.target, lines);
        } else {
            cores.read_lines(route.target, route.target, lines, TimeCategory::Copying);
        }
        cores.write_lines(route.target, route.source, 1);
    }
}
