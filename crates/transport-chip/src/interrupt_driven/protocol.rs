//! What the world asks of these protocols: who may send, who looks, what is taken, what ends with a place.
//!
//! The way of a packet is in `transfer`. Invariant: before a place looks it is charged for what its system has
//! done.

use super::block_send::BlockSend;
use super::{Driver, HEADER_BYTES, InterruptDriven};
use crate::cores::Cores;
use crate::inbox::Fragment;
use crate::message::{MessageContent, ReceivedMessage};
use crate::protocol::{Outgoing, ProtocolModel, Wakeups};
use crate::report::TimeCategory;
use isles_chip::cache::StorePolicy;
use isles_chip::quantity::Picoseconds;
use isles_transport::{Class, PlaceId};

impl<D: Driver> ProtocolModel for InterruptDriven<D> {
    fn message_bytes_max(&self, class: Class) -> usize {
        self.driver.payload(class) - HEADER_BYTES
    }

    fn is_interrupt_driven(&self) -> bool {
        D::CALLS
    }

    fn has_room(&mut self, cores: &mut Cores, out: &Outgoing, len: usize) -> bool {
        let lane = self.lane_out(out);
        if !self.fits(lane, len) {
            self.read_acknowledgements(cores, out.from);
        }
        self.fits(lane, len)
    }

    fn can_begin_block(&mut self, _cores: &mut Cores, out: &Outgoing) -> bool {
        self.lanes[self.lane_out(out)].stream.is_none()
    }

    fn send(&mut self, cores: &mut Cores, out: &Outgoing, load: MessageContent) -> Option<Picoseconds> {
        let bytes = HEADER_BYTES + load.len();
        let piece = Fragment::Whole { handler: out.handler, load };
        Some(self.inject(cores, self.lane_out(out), bytes, piece))
    }

    fn begin_block(
        &mut self,
        cores: &mut Cores,
        out: &Outgoing,
        load: MessageContent,
        wakeups: &mut Wakeups,
    ) {
        let lane = self.lane_out(out);
        let left = HEADER_BYTES + load.len();
        self.lanes[lane].stream = Some(BlockSend { handler: out.handler, load, left });
        self.place_state(out.from).streams.push(lane);
        self.push_block(cores, lane, wakeups);
    }

    fn has_pending_blocks(&self, place: PlaceId) -> bool {
        !self.place_states[place.index()].streams.is_empty()
    }

    fn make_progress(&mut self, cores: &mut Cores, place: PlaceId, wakeups: &mut Wakeups) {
        self.read_acknowledgements(cores, place);
        for lane in self.place_states[place.index()].streams.clone() {
            self.push_block(cores, lane, wakeups);
        }
    }

    fn poll(&mut self, cores: &mut Cores, place: PlaceId) {
        self.place_state(place).system.settle(cores, place);
        let look = self.driver.look(cores, place);
        cores.spend(place, look, TimeCategory::Polling);
    }

    fn poll_period(&self, cores: &Cores, place: PlaceId, _with_credits: bool) -> Picoseconds {
        self.driver.look(cores, place)
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
        self.pairs.both(source, place).into_iter().any(|lane| self.lanes[lane].waiting > 0)
    }

    fn take(
        &mut self,
        cores: &mut Cores,
        place: PlaceId,
        until: Picoseconds,
        control_only: bool,
    ) -> Option<Option<ReceivedMessage>> {
        let queued = self.place_state(place).inbox.take(until, control_only)?;
        let (lane, bytes) = (queued.lane as usize, queued.lines as usize);
        let time = self.driver.read(cores, place, bytes);
        cores.spend(place, time, TimeCategory::Handling);
        cores.store_private(
            place,
            self.driver.lines(bytes),
            queued.piece.message_bytes(),
            StorePolicy::Prefetching,
        );
        self.lanes[lane].waiting -= 1;
        self.place_state(place).owed.push((lane, bytes));
        Some(queued.open())
    }

    fn return_credits(&mut self, cores: &mut Cores, place: PlaceId, wakeups: &mut Wakeups) {
        self.write_acknowledgements(cores, place, wakeups);
    }

    fn forget_receiver(&mut self, place: PlaceId, gone: PlaceId) {
        for lane in self.pairs.both(place, gone) {
            self.lanes[lane].stream = None;
            self.lanes[lane].unread = 0;
            let place_state = self.place_state(place);
            place_state.streams.retain(|other| *other != lane);
            place_state.acknowledgements.retain(|acknowledgement| acknowledgement.lane != lane);
            self.place_state(gone).owed.retain(|(other, _)| *other != lane);
        }
    }

    fn abort_place(&mut self, gone: PlaceId) {
        for lane in std::mem::take(&mut self.place_state(gone).streams) {
            self.lanes[lane].stream = None;
        }
        for queued in self.place_states[gone.index()].inbox.clear() {
            self.lanes[queued.lane as usize].waiting = 0;
        }
    }
}
