//! What the world knows of its places: who is next, who waits for what, who is gone.
//!
//! A plain state machine behind the world and its endpoints. The queue holds at most one turn of each place: of a busy
//! one at its own clock, of a waiting one at its first poll after something has come. Who has the next turn is decided
//! in `turn`; what a place does in it is in `sending` and `taking`, whom that wakes in `news`, the end of places in
//! `death`. It does not know how a message crosses the chip: that is the protocol's.
//! Invariant: a turn is never before the present, so nothing that a turn does can have been missed by an earlier one.

mod clocks;
mod death;
mod news;
mod sending;
mod spare;
mod taking;
mod turn;

pub(crate) use taking::Taken;

use crate::cores::{Cores, Costs};
use crate::demand::Demand;
use crate::govern::Governing;
use crate::parcel::Content;
use crate::placement::Seating;
use crate::report::Report;
use crate::shared::Shared;
use crate::wire::{Division, News, Wire};
use death::Notice;
use isles_chip::kernel::{Digest, EventClass, Key, Queue, Ties};
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
    Piece,
    Death,
    Clocks,
}

/// One place as the world sees it.
struct Site {
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
    notices: BTreeMap<PlaceId, Notice>,
}

impl Site {
    /// Of a place before its first turn.
    fn new() -> Site {
        Site {
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
pub(crate) struct State {
    pub(crate) cores: Cores,
    pub(crate) wire: Box<dyn Wire>,
    /// Whether places ever stand in a call of `wire`.
    engages: bool,
    pub(crate) live_blocks: Rc<Cell<usize>>,
    sites: Vec<Site>,
    /// The next turn of each place that has one.
    turns: Queue,
    /// Whose turn it is. It stays in `turns` until its next one is known: so it moves once instead of twice.
    under_way: Option<PlaceId>,
    ties: Ties,
    digest: Digest,
    /// Empty between two calls; kept for its memory.
    news: News,
    /// Memory of short messages that were taken in, for others.
    spare: Vec<Content>,
    messages: u64,
    bytes: u64,
    governing: Option<Governing>,
    /// Memory that all cores share; nothing before it is asked for.
    pub(crate) shared: Option<Shared>,
}

impl State {
    pub(crate) fn new(costs: Costs, division: Division, seating: Seating, seed: u64) -> State {
        let places = seating.places();
        let ties = Ties::new(seed);
        let mut cores = Cores::new(costs, seating);
        let wire = division.open(&cores, places, ties);
        cores.is_called = wire.calls();
        let mut state = State {
            engages: wire.engages(),
            wire,
            cores,
            live_blocks: Rc::default(),
            sites: (0..places).map(|_| Site::new()).collect(),
            turns: Queue::new(places as usize),
            under_way: None,
            ties,
            digest: Digest::default(),
            news: News::new(),
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
        let site = &mut self.sites[place.index()];
        site.sequence = site.sequence.wrapping_add(1);
        self.ties.key(time, class, place.0, site.sequence)
    }

    /// Tells the recorder that `place` does something with a name.
    fn begin_action(&mut self, place: PlaceId) {
        if let Some(recorder) = &mut self.cores.recorder {
            recorder.begin(place);
        }
    }

    pub(crate) fn report(&self) -> Report {
        let places = (0..self.sites.len() as u32).map(PlaceId);
        Report {
            time: self.cores.now(PlaceId(0)),
            messages: self.messages,
            bytes: self.bytes,
            lines: self.cores.lines(),
            by_class: self.cores.by_class,
            fetched: self.cores.lines_fetched(),
            flit_hops: self.cores.flit_hops(),
            digest: self.digest,
            cores: self.cores.seating().cores().to_vec(),
            ledgers: places.map(|place| self.cores.ledger(place)).collect(),
            shifts: self.cores.shifts,
            stale: self.shared.as_ref().map(Shared::stale),
            energy: self.cores.energy(),
        }
    }
}
