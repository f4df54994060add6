//! `sections`: the sender writes into a section of the receiver's buffer that is its own, as SCC-MPI does.
//!
//! ```text
//! section of a place     as many lines as there are for each place; all written by that place, read by the owner
//!   header               one line: what was sent in each class, and how much was taken of what came back
//!   control              a quarter of the other lines, at least one
//!   data                 the rest
//! ```
//!
//! The answer to a chunk is in the header of the section that the receiver writes, at the sender; so each poll, which
//! reads all headers, sees messages and answers at once. A message that is longer than its chunk goes piece by piece.
//! The cut between the classes is ours: SCC-MPI has one class.

use super::{Handshake, Route};
use crate::cores::Cores;
use crate::report::TimeCategory;
use isles_transport::Class;

/// Lines of the smallest section: the header, and one for each class.
const SECTION_LINES_MIN: u32 = 3;

/// Control gets this part of the lines behind the header.
const CONTROL_PART: u32 = 4;

/// Bytes of the longest message that is no block: one for each receiver and class may wait in private memory.
const MESSAGE_BYTES_MAX: usize = 512;

/// The division of one buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sections {
    /// By class, control first.
    chunk_lines: [u32; 2],
}

impl Sections {
    /// The division of `lines` lines among `places` places.
    ///
    /// # Errors
    /// The least number of lines that would do.
    pub(crate) fn new(places: u32, lines: u32, _line_bytes: u32) -> Result<Sections, u32> {
        let section = lines / places;
        if section < SECTION_LINES_MIN {
            return Err(SECTION_LINES_MIN * places);
        }
        let control = ((section - 1) / CONTROL_PART).max(1);
        Ok(Sections { chunk_lines: [control, section - 1 - control] })
    }
}

impl Handshake for Sections {
    const SHARED: bool = false;
    const WAITS: bool = false;
    const POLL_SEES_ANSWERS: bool = true;

    fn chunk_lines(&self, class: Class) -> u32 {
        self.chunk_lines[class as usize]
    }

    fn message_bytes_max(&self, _class: Class) -> usize {
        MESSAGE_BYTES_MAX
    }

    fn put(cores: &mut Cores, route: Route, lines: u32) {
        cores.write_lines(route.source, route.target, lines + 1);
    }

    /// Reads the section at home, answers in one's own over there.
    fn get(cores: &mut Cores, route: Route, lines: u32) {
        cores.read_lines(route.target, route.target, lines, TimeCategory::Copying);
        cores.write_lines(route.target, route.source, 1);
    }
}
