//! Messages that the interrupt services of cores pass on: where rings and the asynchronous broadcast meet.
//!
//! A place finds them among the entries of its rings, by arrival, but they lie in its private memory: they take no
//! line of a ring and are owed no credit. Invariant: what comes from one place in one class is found in the order of
//! sending, whichever way it came.

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
    /// Returns `true` if such a message may be sent now: no block is on its way to a receiver, and none has too much of
    /// it unread.
    pub(super) fn may_relay(&mut self, cores: &mut Cores, out: &OutgoingMulticast<'_>) -> bool {
        let known = |out: &Outgoing| self.pairs.known(out.to, out.from, out.class);
        let streams = out.each().any(|out| known(&out).is_some_and(|lane| self.lanes[lane].streams));
        let relays = self.relays.as_mut();
        !streams && relays.is_some_and(|relays| relays.has_room(cores, out))
    }

    /// Returns the time at which an entry of a lane that arrives at `arrival` is found: not before what was relayed
    /// earlier.
    #[inline(never)] // Without asynchronous broadcasts none comes here.
    pub(super) fn behind(&self, lane: usize, arrival: Picoseconds) -> Picoseconds {
        let place_state = &self.place_states[self.target_of(lane).index()];
        place_state.inbox.behind(self.source_of(lane), lane as u32, arrival)
    }

    /// Lets one of the receivers of a message that comes down a tree find it; returns when it does.
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

    /// Takes an entry that came down a tree.
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
    /// Returns `true` if the message is in private memory: every entry of a ring has a line there, or a cell.
    #[inline]
    pub(super) fn is_relayed(&self) -> bool {
        self.cost.share == Occupancy::default()
    }
}
