//! Protocols whose receiver is interrupted, so that its interrupt service receives the message.
//!
//! The sender's interrupt service writes a packet and raises an interrupt. The receiver's service copies the packet
//! into private memory even while its place computes, which frees the buffer; the place finds the message at its next
//! poll. So a computing place never holds a buffer, and all times of a packet are known when it is sent. The protocols
//! differ in the location of a packet and the costs of the services: that is a [`Driver`], one module each.
//!
//! The work of a service while its place computes or copies is charged to the place at its next poll; while the place
//! waits it costs nothing more. The unread bytes of one sender and class are bounded; acknowledgements free that room.
//! Invariants: messages of one pair and class are found in the order of sending; at most [`Driver::UNREAD_MAX`] bytes
//! of one sender and class are unread, as known to the sender; a lane has at most one block.

mod ring;
mod sockets;

pub(crate) use ring::Ring;
pub(crate) use sockets::{MpiCosts, Sockets};

use crate::cores::Cores;
use crate::cores::interrupt::InterruptService;
use crate::protocol::inbox::{Fragment, Inbox, InboxEntry, LaneIndex, MessageContent, ReceivedMessage};
use crate::protocol::{BlockingSendModel, MulticastModel, Outgoing, ProtocolModel, Wakeups};
use crate::report::TimeCategory;
use isles_chip::cache::StorePolicy;
use isles_chip::kernel::{EventClass, TieBreak};
use isles_chip::quantity::Picoseconds;
use isles_transport::{Class, HandlerId, PlaceId};

/// Bytes of a message besides its content: length, handler, kind.
const HEADER_BYTES: usize = 8;

/// A packet to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub(crate) source: PlaceId,
    pub(crate) target: PlaceId,
    pub(crate) class: Class,
    pub(crate) lines: u32,
}

/// Behaviour of the cores' systems in one protocol.
pub(crate) trait Driver {
    /// `true` if waiting places are halted until an interrupt wakes them.
    const CALLS: bool;

    /// Maximum number of unread bytes of one sender and class.
    const UNREAD_MAX: usize;

    /// Returns the maximum content of a packet of `class` in bytes.
    fn payload(&self, class: Class) -> usize;

    /// Returns the lines of a packet with `bytes` bytes of content.
    fn lines(&self, bytes: usize) -> u32;

    /// Charges the sender's part before a packet can be written: calls and copies; for each packet of a block.
    fn prepare(&self, cores: &mut Cores, packet: Packet);

    /// Returns the time from which there is room for the packet, `ready` or later.
    fn slot(&mut self, cores: &Cores, packet: Packet, ready: Picoseconds) -> Picoseconds;

    /// Writes the packet at `at` or later and raises the interrupt; returns start and duration.
    fn write(&mut self, cores: &mut Cores, packet: Packet, at: Picoseconds) -> (Picoseconds, Picoseconds);

    /// Returns the time of the receiver's system for receiving the packet, without contention.
    fn receive_time(&self, cores: &Cores, packet: Packet) -> Picoseconds;

    /// Receives the packet from `at` on; returns the time for which its lines are needed, and the total time.
    fn receive(&mut self, cores: &mut Cores, packet: Packet, at: Picoseconds) -> (Picoseconds, Picoseconds);

    /// Frees the lines of the packet from `at` on.
    fn free(&mut self, packet: Packet, at: Picoseconds);

    /// Returns the time of a poll for messages.
    fn look(&self, cores: &Cores, place: PlaceId) -> Picoseconds;

    /// Returns the time of the place for reading a message of `bytes` bytes.
    fn read(&self, cores: &Cores, place: PlaceId, bytes: usize) -> Picoseconds;

    /// Returns the times that reader and sender spend on an acknowledgement. `is_due` is `true` if the sender may be
    /// waiting for it.
    fn acknowledgement(
        &self,
        cores: &Cores,
        reader: PlaceId,
        sender: PlaceId,
        is_due: bool,
    ) -> [Picoseconds; 2];
}

/// The systems of all cores of a run.
pub(crate) struct InterruptDriven<D> {
    driver: D,
    pairs: LaneIndex,
    tie_break: TieBreak,
    lanes: Vec<Lane>,
    place_states: Vec<PlaceState>,
}

impl<D: Driver> InterruptDriven<D> {
    pub(crate) fn new(driver: D, places: u32, tie_break: TieBreak) -> InterruptDriven<D> {
        let (places, pairs) = (places as usize, LaneIndex::of(places as usize));
        InterruptDriven {
            driver,
            pairs,
            tie_break,
            lanes: std::iter::repeat_with(Lane::default).take(pairs.lanes()).collect(),
            place_states: std::iter::repeat_with(PlaceState::default).take(places).collect(),
        }
    }

    fn lane_out(&self, out: &Outgoing) -> usize {
        self.pairs.lane(out.from, out.to, out.class)
    }

    fn place_state(&mut self, place: PlaceId) -> &mut PlaceState {
        &mut self.place_states[place.index()]
    }
}

/// Messages in flight from one place to another in one class.
#[derive(Default)]
struct Lane {
    /// Number of unread bytes, as known to the sender.
    unread: usize,
    /// Time at which the last message is found.
    last: Picoseconds,
    /// Number of messages and pieces not taken yet.
    waiting: u32,
    stream: Option<BlockSend>,
}

/// State of one place beside its lanes.
#[derive(Default)]
struct PlaceState {
    /// Packets for this place, with their bytes.
    inbox: Inbox<usize>,
    /// Lanes with a block in flight from here.
    streams: Vec<usize>,
    /// Acknowledgements in flight to this place.
    acknowledgements: Vec<Acknowledgement>,
    /// Lane and bytes of messages read and not yet acknowledged.
    owed: Vec<(usize, usize)>,
    system: InterruptService,
}

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

    fn send(&mut self, cores: &mut Cores, out: &Outgoing, content: MessageContent) -> Option<Picoseconds> {
        let bytes = HEADER_BYTES + content.len();
        let piece = Fragment::Whole { handler: out.handler, content };
        Some(self.inject(cores, self.lane_out(out), bytes, piece))
    }

    fn begin_block(
        &mut self,
        cores: &mut Cores,
        out: &Outgoing,
        content: MessageContent,
        wakeups: &mut Wakeups,
    ) {
        let lane = self.lane_out(out);
        let left = HEADER_BYTES + content.len();
        self.lanes[lane].stream = Some(BlockSend { handler: out.handler, content, left });
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
        let (lane, bytes) = (queued.lane as usize, queued.cost);
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

    fn multicast(&mut self) -> Option<&mut dyn MulticastModel> {
        None
    }

    fn blocking_sends(&self) -> Option<&dyn BlockingSendModel> {
        None
    }

    fn blocking_sends_mut(&mut self) -> Option<&mut dyn BlockingSendModel> {
        None
    }
}

impl<D: Driver> InterruptDriven<D> {
    /// Sends a packet with `bytes` bytes of a lane; returns the time at which it can be found.
    fn inject(&mut self, cores: &mut Cores, lane: usize, bytes: usize, piece: Fragment) -> Picoseconds {
        let (source, target, class) = self.pairs.ends(lane);
        let packet = Packet { source, target, class, lines: self.driver.lines(bytes) };
        self.driver.prepare(cores, packet);
        cores.load_private(source, packet.lines, piece.message_bytes());
        let ready = cores.now(source);
        let slot = self.driver.slot(cores, packet, ready);
        let (start, took) = self.driver.write(cores, packet, slot);
        if slot == ready {
            cores.spend(source, (start - ready) + took, TimeCategory::Copying);
        } else {
            // The system continues by itself when there is room.
            self.place_state(source).system.reserve(cores.present(), start, took);
        }
        let called = start + took + cores.times(source).interrupt.unwrap_or_default().over(0);
        // First the start of the service, then contention at that time, so that simultaneous packets each wait only
        // once.
        let alone = self.driver.receive_time(cores, packet);
        let begin = self.place_state(target).system.reserve(cores.present(), called, alone);
        let (needed, whole) = self.driver.receive(cores, packet, begin);
        self.driver.free(packet, begin + needed);
        let state = &mut self.lanes[lane];
        state.last = state.last.max(begin + whole);
        state.unread += bytes;
        state.waiting += 1;
        let found = state.last;
        let key = self.tie_break.key(found, EventClass::Arrival, lane as u32, 0);
        let queued = InboxEntry { key, lane: lane as u32, source, cost: bytes, piece };
        self.place_state(target).inbox.put(queued);
        found
    }
}

/// An acknowledgement of read bytes.
struct Acknowledgement {
    arrival: Picoseconds,
    lane: usize,
    bytes: usize,
}

impl<D: Driver> InterruptDriven<D> {
    /// Returns `true` if no block is in flight and there is room for another `len` unread bytes.
    fn fits(&self, lane: usize, len: usize) -> bool {
        let Lane { unread, stream, .. } = &self.lanes[lane];
        stream.is_none() && unread + HEADER_BYTES + len <= D::UNREAD_MAX
    }

    /// Takes the acknowledgements that had arrived at the start of the turn.
    fn read_acknowledgements(&mut self, cores: &Cores, place: PlaceId) {
        let seen = cores.present();
        let (place_states, lanes) = (&mut self.place_states, &mut self.lanes);
        place_states[place.index()].acknowledgements.retain(|acknowledgement| {
            let has_come = acknowledgement.arrival <= seen;
            if has_come {
                lanes[acknowledgement.lane].unread -= acknowledgement.bytes;
            }
            !has_come
        });
    }

    /// Acknowledges everything that `place` has read, and adds the arrivals to `wakeups`.
    fn write_acknowledgements(&mut self, cores: &mut Cores, place: PlaceId, wakeups: &mut Wakeups) {
        let mut owed = std::mem::take(&mut self.place_state(place).owed);
        owed.sort_unstable();
        for group in owed.chunk_by(|one, other| one.0 == other.0) {
            let lane = group[0].0;
            let bytes = group.iter().map(|(_, bytes)| bytes).sum();
            let (sender, ..) = self.pairs.ends(lane);
            let is_due = self.lanes[lane].unread > D::UNREAD_MAX / 2;
            let [here, there] = self.driver.acknowledgement(cores, place, sender, is_due);
            cores.spend(place, here, TimeCategory::Handling);
            let interrupt = cores.times(place).interrupt.unwrap_or_default().over(0);
            let called = cores.now(place) + interrupt;
            let arrival = match there {
                Picoseconds::ZERO => called,
                work => self.place_state(sender).system.reserve(cores.present(), called, work) + work,
            };
            self.place_state(sender).acknowledgements.push(Acknowledgement { arrival, lane, bytes });
            wakeups.push((sender, arrival));
        }
        owed.clear();
        self.place_state(place).owed = owed;
    }
}

/// A partly sent block.
struct BlockSend {
    handler: HandlerId,
    content: MessageContent,
    left: usize,
}

impl<D: Driver> InterruptDriven<D> {
    /// Sends packets of a lane's block up to the limit of unread bytes.
    fn push_block(&mut self, cores: &mut Cores, lane: usize, wakeups: &mut Wakeups) {
        let (place, target, class) = self.pairs.ends(lane);
        while let Some(mut stream) = self.lanes[lane].stream.take() {
            let bytes = stream.left.min(self.driver.payload(class));
            if self.lanes[lane].unread + bytes > D::UNREAD_MAX {
                self.lanes[lane].stream = Some(stream);
                return;
            }
            stream.left -= bytes;
            let of = stream.content.len();
            let piece = if stream.left == 0 {
                self.place_state(place).streams.retain(|other| *other != lane);
                Fragment::Whole { handler: stream.handler, content: stream.content }
            } else {
                self.lanes[lane].stream = Some(stream);
                Fragment::Part { of }
            };
            wakeups.push((target, self.inject(cores, lane, bytes, piece)));
        }
    }
}
