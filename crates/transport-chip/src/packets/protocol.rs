//! What the world asks of this protocol: who may send, who looks, what is taken, what ends with a place.
//!
//! How packets go is in the module, blocks are in `block_send`, receipts in `acknowledgement`. Invariant: what is taken
//! and asks for a receipt is owed it at once.

use super::block_send::BlockSend;
use super::costs::HEADER_BYTES;
use super::place_state::PlaceState;
use super::{MESSAGE_PACKETS_MAX, Packets};
use crate::cores::Cores;
use crate::inbox::{Fragment, InboxEntry};
use crate::message::{MessageContent, ReceivedMessage};
use crate::protocol::{Outgoing, POLL_CYCLES, ProtocolModel, Wakeups};
use crate::report::TimeCategory;
use isles_chip::quantity::Picoseconds;
use isles_transport::{Class, PlaceId};

impl ProtocolModel for Packets {
    fn message_bytes_max(&self, class: Class) -> usize {
        self.costs.carried(MESSAGE_PACKETS_MAX[class as usize]) - HEADER_BYTES
    }

    fn has_room(&mut self, cores: &mut Cores, out: &Outgoing, len: usize) -> bool {
        if self.fits(out, len) {
            return true;
        }
        !self.place_states[out.from.index()].acknowledgements.is_empty() && {
            self.read_acknowledgements(cores, out.from);
            self.fits(out, len)
        }
    }

    fn has_room_up_to(&self, out: &Outgoing, len: usize) -> bool {
        self.fits(out, len)
    }

    fn can_begin_block(&mut self, _cores: &mut Cores, out: &Outgoing) -> bool {
        !self.is_streaming(out)
    }

    fn send(&mut self, cores: &mut Cores, out: &Outgoing, load: MessageContent) -> Option<Picoseconds> {
        let bytes = HEADER_BYTES + load.len();
        let piece = Fragment::Whole { handler: out.handler, load };
        Some(self.inject(cores, (out.from, out.to, out.class), bytes, piece))
    }

    fn begin_block(
        &mut self,
        cores: &mut Cores,
        out: &Outgoing,
        load: MessageContent,
        wakeups: &mut Wakeups,
    ) {
        let left = HEADER_BYTES + load.len();
        let (target, class, handler) = (out.to, out.class, out.handler);
        let stream = BlockSend { target, class, handler, load: Some(load), left };
        self.place_states[out.from.index()].streams.push(stream);
        self.push_blocks(cores, out.from, wakeups);
    }

    fn has_pending_blocks(&self, place: PlaceId) -> bool {
        !self.place_states[place.index()].streams.is_empty()
    }

    fn make_progress(&mut self, cores: &mut Cores, place: PlaceId, wakeups: &mut Wakeups) {
        self.read_acknowledgements(cores, place);
        self.push_blocks(cores, place, wakeups);
    }

    fn poll(&mut self, cores: &mut Cores, place: PlaceId) {
        cores.spend(place, cores.cycles(place, POLL_CYCLES), TimeCategory::Polling);
    }

    fn poll_period(&self, cores: &Cores, place: PlaceId, with_credits: bool) -> Picoseconds {
        cores.cycles(place, POLL_CYCLES) * (1 + u64::from(with_credits))
    }

    fn first_arrival(&self, place: PlaceId) -> Option<Picoseconds> {
        self.place_states[place.index()].inbox.first_arrival()
    }

    fn first_credit(&self, place: PlaceId) -> Option<Picoseconds> {
        self.place_states[place.index()]
            .acknowledgements
            .iter()
            .map(|acknowledgement| acknowledgement.arrival)
            .min()
    }

    fn has_pending_from(&self, source: PlaceId, place: PlaceId) -> bool {
        self.place_states[place.index()].inbox.has_any_of(source)
    }

    fn take(
        &mut self,
        cores: &mut Cores,
        place: PlaceId,
        until: Picoseconds,
        control_only: bool,
    ) -> Option<Option<ReceivedMessage>> {
        let place_state = &mut self.place_states[place.index()];
        let queued = place_state.inbox.take(until, control_only)?;
        place_state.owe(&queued);
        cores.spend(place, self.costs.receive * u64::from(queued.lines), TimeCategory::Handling);
        Some(queued.open())
    }

    fn return_credits(&mut self, cores: &mut Cores, place: PlaceId, wakeups: &mut Wakeups) {
        if !self.place_states[place.index()].owed.is_empty() {
            self.write_acknowledgements(cores, place, wakeups);
        }
    }

    fn forget_receiver(&mut self, place: PlaceId, gone: PlaceId) {
        let mut packets = self.place_states[gone.index()].forget(place);
        let PlaceState { streams, acknowledgements, free, unacknowledged, .. } =
            &mut self.place_states[place.index()];
        packets
            .iter_mut()
            .zip(unacknowledged)
            .for_each(|(packets, unacknowledged)| *packets += unacknowledged.take(gone));
        streams.retain(|stream| stream.target != gone);
        for acknowledgement in
            acknowledgements.extract_if(.., |acknowledgement| acknowledgement.target == gone)
        {
            packets[acknowledgement.lane as usize] += acknowledgement.packets;
        }
        free.iter_mut().zip(packets).for_each(|(free, packets)| *free += packets);
    }

    fn abort_place(&mut self, gone: PlaceId) {
        let place_state = &mut self.place_states[gone.index()];
        place_state.streams.clear();
        let queue: Vec<InboxEntry> = place_state.inbox.clear().collect();
        queue.iter().for_each(|queued| place_state.owe(queued));
    }
}
