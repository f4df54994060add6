//! The protocol `doorbell`: written at the receiver, noticed by a doorbell, credited with what goes the other way.
//!
//! Every ordered pair of places has a small ring in the receiver's buffer for each class. A short message is written
//! into it; of a longer one the ring carries a line that says in which slot of the *sender's* buffer it lies, from
//! where the receiver fetches it; a block goes through such slots piece by piece. After the lines of a message the
//! sender writes its flag, a byte or more in lines that the receiver reads at every poll; of few places it has room for
//! a header. It also counts what the sender has taken of the other direction, so an answer credits what it answers;
//! what is owed to others is written when the turn ends or before the place computes. What several places get at once
//! lies in one slot, which is free when the last of them has credited it. The layout is in `layout`, what lies where in
//! `ring_entry`, whether there is room in `admission`, who hears of it when in `credit`, the reasons in
//! `docs/design/chip-protocols.md`.
//!
//! The bytes themselves travel as values beside the model; their lines are counted, and a ring without free lines
//! refuses. It does not know turns or deaths: `state` tells it what to forget.
//! Invariant: entries of a ring are written, taken and credited in one order.

mod admission;
mod block_send;
mod broadcast;
mod credit;
mod layout;
mod occupancy;
mod place_state;
mod protocol;
mod ring_entry;

pub(crate) use layout::DoorbellLayout;

use crate::async_broadcast::AsyncBroadcast;
use crate::cores::Cores;
use crate::inbox::{Fragment, InboxEntry};
use crate::lane_index::LaneIndex;
use credit::bit_of;
use isles_chip::kernel::{EventClass, TieBreak};
use isles_chip::quantity::Picoseconds;
use isles_transport::{Class, PlaceId};
use occupancy::{Lane, Occupancy};
use place_state::PlaceState;

/// A lane and its ends.
#[derive(Clone, Copy)]
struct LaneEnds {
    source: PlaceId,
    target: PlaceId,
    lane: usize,
}

/// All rings of a run.
pub(crate) struct Doorbell {
    budget: DoorbellLayout,
    pairs: LaneIndex,
    tie_break: TieBreak,
    lanes: Vec<Lane>,
    place_states: Vec<PlaceState>,
    /// What carries messages to several places, if that is not a slot.
    relays: Option<Box<AsyncBroadcast>>,
}

impl Doorbell {
    pub(crate) fn new(budget: DoorbellLayout, places: u32, tie_break: TieBreak) -> Doorbell {
        let places = places as usize;
        Doorbell {
            lanes: (0..2 * places * places).map(|_| Lane::default()).collect(),
            place_states: (0..places).map(|_| PlaceState::new(&budget)).collect(),
            budget,
            pairs: LaneIndex::of(places),
            tie_break,
            relays: None,
        }
    }

    /// The same with asynchronous broadcasts, which have their own lines of the buffers.
    pub(crate) fn relayed(
        budget: DoorbellLayout,
        relays: AsyncBroadcast,
        places: u32,
        tie_break: TieBreak,
    ) -> Doorbell {
        Doorbell { relays: Some(Box::new(relays)), ..Doorbell::new(budget, places, tie_break) }
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
        LaneEnds { source, target, lane }: LaneEnds,
        share: Occupancy,
        fetch: u32,
        piece: Fragment,
    ) -> Picoseconds {
        let lines = u32::from(share.lines);
        cores.write_lines(source, target, lines + 1);
        let arrival = cores.now(source);
        self.place_states[source.index()].slots[lane % 2] -= share.own_slots();
        self.lanes[lane].taken += share;
        if self.place_states[source.index()].owes & bit_of(target) != 0 {
            self.credit_along(source, target, arrival);
        }
        let arrival = if self.relays.is_some() { self.behind(lane, arrival) } else { arrival };
        let key = self.tie_break.key(arrival, EventClass::Arrival, lane as u32, 0);
        let queued = InboxEntry { key, lane: lane as u32, source, lines, fetch, slots: share.slots, piece };
        self.place_states[target.index()].inbox.put(queued);
        arrival
    }
}
