//! The protocol `isles`: written at the receiver, noticed by a doorbell, credited with what goes the other way.
//!
//! Every ordered pair of places has a small ring in the receiver's buffer for each class. A short message is written
//! into it; of a longer one the ring carries a line that says in which slot of the *sender's* buffer it lies, from
//! where the receiver fetches it; a block goes through such slots piece by piece. After the lines of a message the
//! sender writes its flag, a byte or more in lines that the receiver reads at every poll; of few places it has room for
//! a header. It also counts what the sender has taken of the other direction, so an answer credits what it answers;
//! what is owed to others is written when the turn ends or before the place computes. What several places get at once
//! lies in one slot, which is free when the last of them has credited it. The layout is in `budget`, what lies where in
//! `entry`, whether there is room in `room`, who hears of it when in `credit`, the reasons in `docs/twin.md`.
//!
//! The bytes themselves travel as values beside the model; their lines are counted, and a ring without free lines
//! refuses. It does not know turns or deaths: `state` tells it what to forget.
//! Invariant: entries of a ring are written, taken and credited in one order.

mod budget;
mod credit;
mod desk;
mod entry;
mod lane;
mod relayed;
mod room;
mod stream;
mod wire;

pub(crate) use budget::Budget;

use crate::cores::Cores;
use crate::mail::{Letter, Piece};
use crate::pairs::Pairs;
use crate::relay::Relays;
use credit::bit_of;
use desk::Desk;
use isles_chip::kernel::{EventClass, Ties};
use isles_chip::quantity::Picoseconds;
use isles_transport::{Class, PlaceId};
use lane::{Lane, Share};

/// A lane and its ends.
#[derive(Clone, Copy)]
struct Way {
    source: PlaceId,
    target: PlaceId,
    lane: usize,
}

/// All rings of a run.
pub(crate) struct Isles {
    budget: Budget,
    pairs: Pairs,
    ties: Ties,
    lanes: Vec<Lane>,
    desks: Vec<Desk>,
    /// What carries messages to several places, if that is not a slot.
    relays: Option<Box<Relays>>,
}

impl Isles {
    pub(crate) fn new(budget: Budget, places: u32, ties: Ties) -> Isles {
        let places = places as usize;
        Isles {
            lanes: (0..2 * places * places).map(|_| Lane::default()).collect(),
            desks: (0..places).map(|_| Desk::new(&budget)).collect(),
            budget,
            pairs: Pairs::of(places),
            ties,
            relays: None,
        }
    }

    /// The same with asynchronous broadcasts, which have their own lines of the buffers.
    pub(crate) fn relayed(budget: Budget, relays: Relays, places: u32, ties: Ties) -> Isles {
        Isles { relays: Some(Box::new(relays)), ..Isles::new(budget, places, ties) }
    }

    /// Lanes of one receiver lie together: it looks at all of them.
    fn lane_of(&self, from: PlaceId, to: PlaceId, class: Class) -> usize {
        self.pairs.lane(to, from, class)
    }

    fn source_of(&self, lane: usize) -> PlaceId {
        self.pairs.ends(lane).1
    }

    fn target_of(&self, lane: usize) -> PlaceId {
        self.pairs.ends(lane).0
    }

    /// Writes an entry and rings the doorbell; gives when that arrives.
    fn ring(
        &mut self,
        cores: &mut Cores,
        Way { source, target, lane }: Way,
        share: Share,
        fetch: u32,
        piece: Piece,
    ) -> Picoseconds {
        let lines = u32::from(share.lines);
        cores.write_lines(source, target, lines + 1);
        let arrival = cores.now(source);
        self.desks[source.index()].slots[lane % 2] -= share.own_slots();
        self.lanes[lane].taken += share;
        if self.desks[source.index()].owes & bit_of(target) != 0 {
            self.credit_along(source, target, arrival);
        }
        let arrival = if self.relays.is_some() { self.behind(lane, arrival) } else { arrival };
        let key = self.ties.key(arrival, EventClass::Arrival, lane as u32, 0);
        let letter = Letter { key, lane: lane as u32, source, lines, fetch, slots: share.slots, piece };
        self.desks[target.index()].mail.put(letter);
        arrival
    }
}
