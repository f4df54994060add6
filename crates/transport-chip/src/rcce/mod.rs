//! `rcce`: the library itself. Both sides meet, and do nothing else until all has passed.
//!
//! The test-and-set registers of both cores are taken before a meeting, so who waits for an answer never waits for
//! somebody who does. Who cannot have them stands in its send until it can, and receives what others send to it. What
//! a place does not want yet it keeps: one message of each sender and class. Why that is enough is in
//! `docs/design/chip-protocols.md`; what the instructions cost is that of the library on bare cores
//! (`isles_chip::bare::rcce`), fitted there. Both
//! classes share all.
//!
//! The layout is in `layout`, who gets the registers in `register`, what passes then in `rendezvous`, what a place does
//! until then in `blocking_send`. It does not know turns or deaths: `state` tells it what to forget, and gives no turns
//! to who stands in a call. Invariant: a place is in one meeting at most, and its register is taken until the last
//! chunk is answered.

mod blocking_send;
mod layout;
mod place_state;
mod protocol;
mod register;
mod rendezvous;
mod wait_queue;

pub(crate) use layout::BufferLayout;

use crate::blocking_sends::BlockingSends;
use crate::protocol::{FLAG_CYCLES, POLL_CYCLES};
use isles_chip::bare::rcce::LibraryCosts;
use isles_chip::kernel::TieBreak;
use isles_transport::PlaceId;
use place_state::PlaceState;
use wait_queue::WaitQueue;

/// What the library's instructions cost.
const LIBRARY: LibraryCosts = LibraryCosts::RCCE;

/// All buffers of a run.
pub(crate) struct Rcce {
    division: BufferLayout,
    tie_break: TieBreak,
    place_states: Vec<PlaceState>,
    /// What places send next, and what they have received and did not want yet.
    blocking_sends: BlockingSends,
    /// Who waits for registers.
    line: WaitQueue,
    /// Instructions of a poll.
    poll_cycles: u64,
}

impl Rcce {
    pub(crate) fn new(division: BufferLayout, places: u32, tie_break: TieBreak) -> Rcce {
        let places = places as usize;
        Rcce {
            division,
            tie_break,
            place_states: std::iter::repeat_with(PlaceState::default).take(places).collect(),
            blocking_sends: BlockingSends::new(places),
            line: WaitQueue::default(),
            poll_cycles: POLL_CYCLES + FLAG_CYCLES * (places as u64 - 1),
        }
    }

    fn place_state(&mut self, place: PlaceId) -> &mut PlaceState {
        &mut self.place_states[place.index()]
    }

    /// Lines of flags that a poll reads.
    fn flag_lines(&self) -> u32 {
        self.place_states.len() as u32 - 1
    }
}
