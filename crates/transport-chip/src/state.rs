//! What the world knows of its places: who is next, who waits for what, who is gone.
//!
//! A plain state machine behind the world and its endpoints. The queue holds at most one turn of each place: of a busy
//! one at its own clock, of a waiting one at its first poll after something has come. Who has the next turn is decided
//! in `scheduling`; what a place does in it is in `sending` and `receiving`, whom that wakes in `wakeups`, the end of
//! places in `death`. It does not know how a message crosses the chip: that is the protocol's. Invariant: a turn is
//! never before the present, so nothing that a turn does can have been missed by an earlier one.

mod clocks;
mod death;
mod message_pool;
mod receiving;
mod scheduling;
mod sending;
mod wakeups;

pub(crate) use receiving::Delivery;

use crate::cores::{Cores, Costs};
use crate::demand::Demand;
use crate::governor::GovernorState;
use crate::message::Content;
use crate::placement::CoreMap;
use crate::protocol::{BufferLayout, ProtocolModel, Wakeups};
use crate::report::Report;
use crate::shared::SharedMemoryState;
use death::DeathNotice;
use isles_chip::kernel::{Digest, EventClass, Key, Queue, TieBreak};
use isles_chip::quantity::Picoseconds;
use isles_transport::PlaceId;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// What happened, for the digest.
#[derive(Clone, Copy)]
enum Event {
    Turn = 1,
    Message,
    Fragment,
    Death,
    Clocks,
}

/// One place as the world sees it.
struct PlaceStatus {
    alive: bool,
    left: bool,
    /// Whether it waits, so that what comes may move its turn.
    parked: bool,
    /// Whether a send of its last turn found no room.
    refused: bool,
    /// What is done when the call is over in which the place stands.
    postponed: Demand,
    /// Events of this place so far.
    sequence: u32,
    notices: BTreeMap<PlaceId, DeathNotice>,
}

impl PlaceStatus {
    /// Of a place before its first turn.
    fn new() -> PlaceStatus {
        PlaceStatus {
            alive: true,
            left: false,
            parked: false,
            refused: false,
            postponed: Demand::default(),
            sequence: 0,
            notices: BTreeMap::new(),
        }
    }
}

/// See the file header.
pub(crate) struct WorldState {
    pub(crate) cores: Cores,
    pub(crate) protocol: Box<dyn ProtocolModel>,
    /// Whether places ever stand in a call of `protocol`.
    has_blocking_sends: bool,
    pub(crate) live_blocks: Rc<Cell<usize>>,
    statuses: Vec<PlaceStatus>,
    /// The next turn of each place that has one.
    turns: Queue,
    /// Whose turn it is. It stays in `turns` until its next one is known: so it moves once instead of twice.
    under_way: Option<PlaceId>,
    tie_break: TieBreak,
    digest: Digest,
    /// Empty between two calls; kept for its memory.
    wakeups: Wakeups,
    /// Memory of short messages that were taken in, for others.
    spare: Vec<Content>,
    messages: u64,
    bytes: u64,
    governing: Option<GovernorState>,
    /// Memory that all cores share; nothing before it is asked for.
    pub(crate) shared: Option<SharedMemoryState>,
}

impl WorldState {
    pub(crate) fn new(costs: Costs, division: BufferLayout, core_map: CoreMap, seed: u64) -> WorldState {
        let places = core_map.places();
        let tie_break = TieBreak::new(seed);
        let mut cores = Cores::new(costs, core_map);
        let protocol = division.open(&cores, places, tie_break);
        cores.is_interrupt_driven = protocol.is_interrupt_driven();
        let mut state = WorldState {
            has_blocking_sends: protocol.has_blocking_sends(),
            protocol,
            cores,
            live_blocks: Rc::default(),
            statuses: (0..places).map(|_| PlaceStatus::new()).collect(),
            turns: Queue::new(places as usize),
            under_way: None,
            tie_break,
            digest: Digest::default(),
            wakeups: Wakeups::new(),
            spare: Vec::new(),
            messages: 0,
            bytes: 0,
            governing: None,
            shared: None,
        };
        (0..places).map(PlaceId).for_each(|place| state.schedule(place, Picoseconds::ZERO));
        state
    }

    #[inline]
    fn key(&mut self, time: Picoseconds, class: EventClass, place: PlaceId) -> Key {
        let status = &mut self.statuses[place.index()];
        status.sequence = status.sequence.wrapping_add(1);
        self.tie_break.key(time, class, place.0, status.sequence)
    }

    /// Tells the recorder that `place` does something with a name.
    fn begin_action(&mut self, place: PlaceId) {
        if let Some(recorder) = &mut self.cores.recorder {
            recorder.begin(place);
        }
    }

    pub(crate) fn report(&self) -> Report {
        let places = (0..self.statuses.len() as u32).map(PlaceId);
        Report {
            time: self.cores.now(PlaceId(0)),
            messages: self.messages,
            bytes: self.bytes,
            lines: self.cores.lines(),
            by_class: self.cores.by_class,
            fetched: self.cores.lines_fetched(),
            flit_hops: self.cores.flit_hops(),
            digest: self.digest,
            cores: self.cores.core_map().cores().to_vec(),
            ledgers: places.map(|place| self.cores.ledger(place)).collect(),
            shifts: self.cores.shifts,
            stale: self.shared.as_ref().map(SharedMemoryState::stale),
            energy: self.cores.energy(),
        }
    }
}
