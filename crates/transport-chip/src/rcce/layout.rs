//! How one buffer is divided, in lines.
//!
//! ```text
//! world   two lines                    flags of the library's barrier
//! sent    one line for each place      written by that place, cleared by the owner
//! ready   one line for each place      written by that place, cleared by the owner
//! chunk   what is left                 written by the owner, read by the receiver
//! ```
//!
//! It does not know what a line costs. Invariant: the chunk holds a short message.

use crate::protocol::MESSAGE_BYTES_MIN;

/// Lines of flags for each place: sent and ready.
const FLAG_LINES: u32 = 2;

/// Lines of flags of the library's barrier.
const WORLD_LINES: u32 = 2;

/// The division of one buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BufferLayout {
    pub(super) chunk_lines: u32,
    pub(super) line_bytes: u32,
}

impl BufferLayout {
    /// The division of `lines` lines among `places` places.
    ///
    /// # Errors
    /// The least number of lines that would do.
    pub(crate) fn new(places: u32, lines: u32, line_bytes: u32) -> Result<BufferLayout, u32> {
        let flags = WORLD_LINES + FLAG_LINES * places;
        let least = flags + MESSAGE_BYTES_MIN.div_ceil(line_bytes);
        if lines < least { Err(least) } else { Ok(BufferLayout { chunk_lines: lines - flags, line_bytes }) }
    }
}
