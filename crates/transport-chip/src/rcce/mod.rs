//! `rcce`: the library itself. Both sides meet, and do nothing else until all has passed.
//!
//! The test-and-set registers of both cores are taken before a meeting, so who waits for an answer never waits for
//! somebody who does. Who cannot have them stands in its send until it can, and receives what others send to it. What
//! a place does not want yet it keeps: one message of each sender and class. Why that is enough is in `docs/twin.md`;
//! what the instructions cost is that of the library on bare cores (`isles_chip::bare::rcce`), fitted there. Both
//! classes share all.
//!
//! The layout is in `division`, who gets the registers in `register`, what passes then in `meeting`, what a place does
//! until then in `standing`. It does not know turns or deaths: `state` tells it what to forget, and gives no turns to
//! who stands in a call.
//! Invariant: a place is in one meeting at most, and its register is taken until the last chunk is answered.

mod desk;
mod division;
mod line;
mod meeting;
mod register;
mod standing;
mod wire;

pub(crate) use division::Division;

use crate::stands::Stands;
use crate::wire::{FLAG_CYCLES, POLL_CYCLES};
use desk::Desk;
use isles_chip::bare::rcce::Library;
use isles_chip::kernel::Ties;
use isles_transport::PlaceId;
use line::Line;

/// What the library's instructions cost.
const LIBRARY: Library = Library::RCCE;

/// All buffers of a run.
pub(crate) struct Rcce {
    division: Division,
    ties: Ties,
    desks: Vec<Desk>,
    /// What places send next, and what they have received and did not want yet.
    stands: Stands,
    /// Who waits for registers.
    line: Line,
    /// Instructions of a poll.
    poll_cycles: u64,
}

impl Rcce {
    pub(crate) fn new(division: Division, places: u32, ties: Ties) -> Rcce {
        let places = places as usize;
        Rcce {
            division,
            ties,
            desks: std::iter::repeat_with(Desk::default).take(places).collect(),
            stands: Stands::new(places),
            line: Line::default(),
            poll_cycles: POLL_CYCLES + FLAG_CYCLES * (places as u64 - 1),
        }
    }

    fn desk(&mut self, place: PlaceId) -> &mut Desk {
        &mut self.desks[place.index()]
    }

    /// Lines of flags that a poll reads.
    fn flag_lines(&self) -> u32 {
        self.desks.len() as u32 - 1
    }
}
