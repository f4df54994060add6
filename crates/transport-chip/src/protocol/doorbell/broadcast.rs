//! Asynchronous broadcasts of the protocol `doorbell`, forwarded by the interrupt services of cores.
//!
//! A place finds these messages among the entries of its rings, by arrival. They are in private memory, so they take no
//! line of a ring and need no credit. Invariant: messages of one place and class are found in the order of sending,
//! whichever way they came.

use super::rings::Occupancy;
use super::{Doorbell, RingCost};
use crate::cores::Cores;
use crate::protocol::inbox::{Fragment, InboxEntry, MessageContent, ReceivedMessage};
use crate::protocol::{Outgoing, OutgoingMulticast, RECEIVE_CYCLES};
use crate::report::TimeCategory;
use isles_chip::kernel::EventClass;
use isles_chip::quantity::Picoseconds;
use isles_transport::PlaceId;

impl Doorbell {
    /// Returns `true` if a broadcast may be sent now: no block is in flight to a receiver, and each has room for an
    /// unread message.
    pub(super) fn may_relay(&mut self, cores: &mut Cores, out: &OutgoingMulticast<'_>) -> bool {
        let known = |out: &Outgoing| self.pairs.known(out.to, out.from, out.class);
        let streams = out.each().any(|out| known(&out).is_some_and(|lane| self.lanes[lane].streams));
        let relays = self.relays.as_mut();
        !streams && relays.is_some_and(|relays| relays.has_room(cores, out))
    }

    /// Returns the time at which an entry of a lane due at `arrival` is found: not before earlier relayed messages.
    #[inline(never)] // Without asynchronous broadcasts none comes here.
    pub(super) fn behind(&self, lane: usize, arrival: Picoseconds) -> Picoseconds {
        let place_state = &self.place_states[self.target_of(lane).index()];
        place_state.inbox.behind(self.source_of(lane), lane as u32, arrival)
    }

    /// Adds a message from a tree to the inbox of one receiver; returns the time at which it is found.
    pub(super) fn find_relayed(
        &mut self,
        out: &Outgoing,
        found: Picoseconds,
        content: MessageContent,
    ) -> Picoseconds {
        let lane = self.lane_of(out.from, out.to, out.class);
        let arrival = self.behind(lane, found);
        let key = self.tie_break.key(arrival, EventClass::Arrival, self.pairs.owner(lane), 0);
        let piece = Fragment::Whole { handler: out.handler, content };
        let queued =
            InboxEntry { key, lane: lane as u32, source: out.from, cost: RingCost::default(), piece };
        self.place_states[out.to.index()].inbox.put(queued);
        arrival
    }

    /// Takes an entry from a tree.
    #[cold]
    pub(super) fn take_relayed(
        &mut self,
        cores: &mut Cores,
        place: PlaceId,
        queued: InboxEntry<RingCost>,
    ) -> Option<ReceivedMessage> {
        cores.compute(place, RECEIVE_CYCLES, TimeCategory::Handling);
        let message = queued.open()?;
        if let Some(relays) = &mut self.relays {
            relays.note_read(message.source, message.class, place);
        }
        Some(message)
    }
}

impl InboxEntry<RingCost> {
    /// Returns `true` if the message is in private memory: it occupies neither lines of a ring nor a cell.
    #[inline]
    pub(super) fn is_relayed(&self) -> bool {
        self.cost.share == Occupancy::default()
    }
}
