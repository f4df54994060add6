//! Messages as packets of the hardware, for chips that carry them (a torus between nodes).
//!
//! The core of the sender starts each packet; it goes along its route by itself, and all of it lies in the memory of
//! the receiver when its last flit is there. A place may have so many packets of each class under way, to all others
//! together, until the receivers have taken them and a packet of one flit has said so, for which a message asks when
//! little is left. A block goes in pieces as far as that allows. Nothing here is kept for pairs of places, only what is
//! under way, so thousands of places cost what they do.
//!
//! What a packet costs is in `costs`, blocks are in `block_send`, what the receivers say of packets in
//! `acknowledgement`, and for which of them nobody asks that in `unacknowledged`. It does not know turns or deaths:
//! `state` tells it what to forget. Invariant: what is under way of one place in one class, to places that it has not
//! forgotten, is never more than [`WINDOW`] packets.

mod acknowledgement;
mod block_send;
mod costs;
mod place_state;
mod protocol;
#[cfg(test)]
mod tests;
mod unacknowledged;

pub(crate) use costs::PacketCosts;

use crate::cores::Cores;
use crate::inbox::{Fragment, InboxEntry};
use crate::report::TimeCategory;
use isles_chip::kernel::{EventClass, TieBreak};
use isles_chip::quantity::Picoseconds;
use isles_transport::{Class, PlaceId};
use place_state::PlaceState;

/// Packets of one class that a place may have under way: 60 KB of Blue Gene/P's, half of a node's first memory for
/// received packets. Assumed; the hardware has no such bound, its library keeps one.
const WINDOW: u32 = 256;

/// What leaves less than this of a window free asks for a receipt. So much is therefore never lost to packets for which
/// nobody has asked, and it is more than a message needs.
const RESERVE: u32 = 64;

/// Packets of the longest message that is no block, by class, control first; also of a piece of a block.
const MESSAGE_PACKETS_MAX: [u32; 2] = [8, 16];

const _: () = assert!(MESSAGE_PACKETS_MAX[0] <= RESERVE && MESSAGE_PACKETS_MAX[1] <= RESERVE);

/// All nodes of a run.
pub(crate) struct Packets {
    costs: PacketCosts,
    tie_break: TieBreak,
    place_states: Vec<PlaceState>,
}

impl Packets {
    pub(crate) fn new(costs: PacketCosts, places: u32, tie_break: TieBreak) -> Packets {
        let place_states = (0..places).map(|_| PlaceState::new()).collect();
        Packets { costs, tie_break, place_states }
    }

    /// Sends packets of together `bytes` bytes; gives when all of them are there.
    fn inject(
        &mut self,
        cores: &mut Cores,
        (from, to, class): (PlaceId, PlaceId, Class),
        bytes: usize,
        piece: Fragment,
    ) -> Picoseconds {
        let (mut arrival, mut packets, mut sent) = (Picoseconds::ZERO, 0, 0);
        while sent < bytes {
            let payload = self.costs.payload.min(bytes - sent);
            cores.spend(from, self.costs.send, TimeCategory::Handling);
            arrival = arrival.max(cores.carry(from, to, self.costs.transit, self.costs.flits(payload)));
            (packets, sent) = (packets + 1, sent + payload);
        }
        let place_state = &mut self.place_states[from.index()];
        let asked = place_state.dispatch(to, class, packets);
        let (lane, sequence) = (class as u32, place_state.sequence);
        let inbox = &mut self.place_states[to.index()].inbox;
        // A packet may find a gap that an earlier one was too long for; messages of one pair keep their order.
        let arrival = inbox.behind(from, lane, arrival);
        let key = self.tie_break.key(arrival, EventClass::Arrival, from.0, sequence);
        inbox.put(InboxEntry { key, lane, source: from, lines: packets, fetch: asked, slots: 0, piece });
        arrival
    }
}
