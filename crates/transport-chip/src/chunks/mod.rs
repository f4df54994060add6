//! The protocols that move one chunk at a time: the sender writes it and sets a flag, the receiver takes and answers.
//!
//! They differ in where a chunk waits, who shares that part of a buffer, and what is read and written for it: that is a
//! [`Handshake`], one module each. What they have in common is here: a part holds one message, chunk by chunk, until
//! the receiver has answered for the last; until then a further one is refused, or the sender stands in its send and
//! serves what arrives. Flags and answers are bytes of lines that only one place writes, one for each class.
//!
//! How chunks pass is in `transfer`, what a sender knows of them in `acknowledgement`, what a place does that stands in
//! a send in `blocking_send`. The bytes themselves travel as values beside the model. It does not know turns or deaths.
//! Invariant: of one part there is never more than one chunk that is not answered.

mod acknowledgement;
mod blocking_send;
mod place_state;
mod protocol;
mod rcce_x10;
mod sections;
#[cfg(test)]
mod tests;
mod transfer;

pub(crate) use rcce_x10::RcceX10;
pub(crate) use sections::Sections;

use crate::blocking_sends::BlockingSends;
use crate::cores::Cores;
use crate::lane_index::LaneIndex;
use crate::protocol::{FLAG_CYCLES, Outgoing, POLL_CYCLES};
use isles_chip::kernel::TieBreak;
use isles_transport::{Class, PlaceId};
use place_state::{Lane, PartInUse, PlaceState};

/// One ordered pair of places and a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) source: PlaceId,
    pub(crate) target: PlaceId,
    pub(crate) class: Class,
}

/// How one protocol moves a chunk.
pub(crate) trait Handshake {
    /// Lines of the longest chunk of `class`.
    fn chunk_lines(&self, class: Class) -> u32;

    /// Bytes of the longest message of `class` that is no block.
    fn message_bytes_max(&self, class: Class) -> usize;

    /// Whether all receivers share the part of the buffer where the chunks of one sender and class wait.
    const SHARED: bool;

    /// Whether the lines of a poll hold answers, too; else each awaited one is a line to read and to clear.
    const POLL_SEES_ANSWERS: bool;

    /// Whether a sender does nothing but serve arrivals until its last chunk is answered.
    const WAITS: bool;

    /// Writes a chunk of `lines` lines and its flag.
    fn put(cores: &mut Cores, route: Route, lines: u32);

    /// Takes a chunk of `lines` lines whose flag was seen, and answers.
    fn get(cores: &mut Cores, route: Route, lines: u32);
}

/// All buffers of a run.
pub(crate) struct Chunks<H> {
    handshake: H,
    pairs: LaneIndex,
    line_bytes: usize,
    tie_break: TieBreak,
    lanes: Vec<Lane>,
    place_states: Vec<PlaceState>,
    /// By part.
    held: Vec<Option<PartInUse>>,
    /// What places send next, and what they have taken while they stood in a send.
    blocking_sends: BlockingSends,
    /// Instructions of a poll.
    poll_cycles: u64,
}

impl<H: Handshake> Chunks<H> {
    pub(crate) fn new(handshake: H, cores: &Cores, places: u32, tie_break: TieBreak) -> Chunks<H> {
        let (places, pairs) = (places as usize, LaneIndex::of(places as usize));
        let lanes = pairs.lanes();
        let flags = places as u64 - 1;
        Chunks {
            handshake,
            pairs,
            line_bytes: cores.line_bytes() as usize,
            tie_break,
            lanes: std::iter::repeat_with(Lane::default).take(lanes).collect(),
            place_states: std::iter::repeat_with(PlaceState::default).take(places).collect(),
            held: vec![None; if H::SHARED { 2 * places } else { lanes }],
            blocking_sends: BlockingSends::new(places),
            poll_cycles: POLL_CYCLES + FLAG_CYCLES * flags,
        }
    }

    fn lane_of(&self, route: Route) -> usize {
        self.pairs.lane(route.source, route.target, route.class)
    }

    fn route_of(&self, lane: usize) -> Route {
        let (source, target, class) = self.pairs.ends(lane);
        Route { source, target, class }
    }

    fn lane_out(&self, out: &Outgoing) -> usize {
        self.lane_of(Route { source: out.from, target: out.to, class: out.class })
    }

    fn part_of(&self, lane: usize) -> usize {
        if H::SHARED { self.route_of(lane).source.index() * 2 + lane % 2 } else { lane }
    }
}
