//! `rcce-x10`: data waits in the sender's buffer until the receiver fetches it, as in X10's port to the SCC.
//!
//! ```text
//! sent    one line for each place     written by that place, cleared by the owner, read at every poll
//! ready   one line for each place     written by that place, cleared by the owner, read while an answer is awaited
//! chunk   what is left                written by the owner, read by receivers: an eighth for control
//! ```
//!
//! With RCCE the sender does nothing while it waits; X10's port serves what arrives meanwhile: it takes, answers and
//! keeps it, and the program has it when the send is over. The cut between the classes is ours: X10's port has one.

use super::{Handshake, Route};
use crate::cores::Cores;
use crate::protocol::MESSAGE_BYTES_MIN;
use crate::report::TimeCategory;
use isles_transport::Class;

/// Lines of flags for each place: sent and ready.
const FLAG_LINES: u32 = 2;

/// Control gets this part of the chunk.
const CONTROL_PART: u32 = 8;

/// The division of one buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RcceX10 {
    line_bytes: u32,
    /// By class, control first.
    chunk_lines: [u32; 2],
}

impl RcceX10 {
    /// The division of `lines` lines among `places` places.
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
        let control = (chunk / CONTROL_PART).max(message);
        Ok(RcceX10 { line_bytes, chunk_lines: [control, chunk - control] })
    }
}

impl Handshake for RcceX10 {
    const SHARED: bool = true;
    const WAITS: bool = true;
    const POLL_SEES_ANSWERS: bool = false;

    fn chunk_lines(&self, class: Class) -> u32 {
        self.chunk_lines[class as usize]
    }

    fn message_bytes_max(&self, class: Class) -> usize {
        (self.chunk_lines(class) * self.line_bytes) as usize
    }

    fn put(cores: &mut Cores, route: Route, lines: u32) {
        cores.write_lines(route.source, route.source, lines);
        cores.write_lines(route.source, route.target, 1);
    }

    /// Clears the flag, fetches, answers.
    fn get(cores: &mut Cores, route: Route, lines: u32) {
        cores.write_lines(route.target, route.target, 1);
        cores.read_lines(route.target, route.source, lines, TimeCategory::Copying);
        cores.write_lines(route.target, route.source, 1);
    }
}
