//! Messages as hardware packets, for chips that have them (a torus between nodes).
//!
//! The sender's core injects each packet, which crosses its route by itself and is in the receiver's memory when its
//! last flit has arrived. A place may have [`WINDOW`] packets of each class in flight, to all others together, until
//! the receivers have taken them and acknowledged that by a packet of one flit; a message requests an acknowledgement
//! when little of the window is free. A block is sent in pieces as far as the window allows. There is no state for
//! pairs of places, only for packets in flight, so memory grows with activity even for thousands of places. Receivers
//! whose numbers are far apart share one entry of [`Unacknowledged`], which has a fixed size.
//!
//! Invariants: a place has at most [`WINDOW`] packets of one class in flight to places that it has not forgotten; each
//! packet that is not free is counted as unacknowledged, requested by one message, owed by the receiver, or in an
//! acknowledgement in flight; a taken packet with a request is owed an acknowledgement at once.

#[cfg(test)]
mod tests;

use crate::cores::Cores;
use crate::protocol::inbox::{Fragment, Inbox, InboxEntry, MessageContent, ReceivedMessage};
use crate::protocol::{BlockingSendModel, MulticastModel, Outgoing, POLL_CYCLES, ProtocolModel, Wakeups};
use crate::report::TimeCategory;
use isles_chip::cost::HopCost;
use isles_chip::kernel::{EventClass, TieBreak};
use isles_chip::quantity::Picoseconds;
use isles_chip::{Chip, LinkTraits};
use isles_transport::{Class, HandlerId, PlaceId};

/// Maximum number of packets of one class that a place may have in flight: 60 KB on Blue Gene/P, half of a node's first
/// memory for received packets. Assumed; the hardware has no such bound, but its library does.
const WINDOW: u32 = 256;

/// Number of free packets of a window below which an acknowledgement is requested. At most this number is therefore
/// held by packets without a request, and it is more than a message needs.
const RESERVE: u32 = 64;

/// Packets of the longest message other than a block, by class, control first; also of a piece of a block.
const MESSAGE_PACKETS_MAX: [u32; 2] = [8, 16];

/// Packets that a core receives by one call of the library (Aggarwal et al., section 4.3.1).
const RECEIVED_TOGETHER: u32 = 4;

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

    /// Sends packets with `bytes` bytes in total; returns the time at which all have arrived.
    fn inject(
        &mut self,
        cores: &mut Cores,
        from: PlaceId,
        to: PlaceId,
        class: Class,
        bytes: usize,
        piece: Fragment,
    ) -> Picoseconds {
        let (mut arrival, mut packets, mut sent) = (Picoseconds::ZERO, 0, 0);
        let send = between(cores, self.costs.send, from, to);
        while sent < bytes {
            let payload = self.costs.payload.min(bytes - sent);
            cores.spend(from, send, TimeCategory::Handling);
            arrival = arrival.max(cores.carry(from, to, self.costs.transit, self.costs.flits(payload)));
            (packets, sent) = (packets + 1, sent + payload);
        }
        let place_state = &mut self.place_states[from.index()];
        let asked = place_state.dispatch(to, class, packets);
        let (lane, sequence) = (class as u32, place_state.sequence);
        let inbox = &mut self.place_states[to.index()].inbox;
        // A packet may fit into a gap that was too short for an earlier one; messages of one pair keep their order.
        let arrival = inbox.behind(from, lane, arrival);
        let key = self.tie_break.key(arrival, EventClass::Arrival, from.0, sequence);
        inbox.put(InboxEntry { key, lane, source: from, cost: PacketCounts { packets, asked }, piece });
        arrival
    }
}

/// Bytes of a message besides its content: length, handler, kind.
const HEADER_BYTES: usize = 8;

/// Costs and payload of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketCosts {
    send: HopCost,
    receive: HopCost,
    /// Cost of each further packet of a receive call; `receive` if the chip file has none.
    receive_more: HopCost,
    transit: HopCost,
    payload: usize,
    links: LinkTraits,
}

impl PacketCosts {
    /// Returns the costs of `chip` at its default preset; `None` if it has no hardware packets.
    pub(crate) fn of(chip: &Chip) -> Option<PacketCosts> {
        let (times, links) = (chip.default_preset().times(), chip.links());
        Some(PacketCosts {
            send: times.send?,
            receive: times.receive?,
            receive_more: times.receive_more.or(times.receive)?,
            transit: times.transit?,
            payload: links.payload_max.0 as usize,
            links: *links,
        })
    }

    /// Returns the maximum number of bytes in `packets` packets.
    fn carried(&self, packets: u32) -> usize {
        packets as usize * self.payload
    }

    /// Returns the number of flits of a packet with `len` bytes.
    fn flits(&self, len: usize) -> u64 {
        self.links.flits(len as u64)
    }
}

/// Returns the time of a core for a packet from one place to another.
#[inline]
fn between(cores: &Cores, cost: HopCost, from: PlaceId, to: PlaceId) -> Picoseconds {
    let hops = if cost.grows() { cores.topology().hops(cores.tile(from), cores.tile(to)) } else { 0 };
    cost.over(hops)
}

/// State of one place.
struct PlaceState {
    /// Number of packets that may still be sent, by class.
    free: [u32; 2],
    streams: Vec<BlockSend>,
    /// Acknowledgements in flight to this place.
    acknowledgements: Vec<Acknowledgement>,
    /// Messages that have arrived here or are in flight.
    inbox: Inbox<PacketCounts>,
    /// Acknowledgements owed for packets taken here or lost with this place.
    owed: Vec<OwedAcknowledgement>,
    /// The current receive call of the library.
    receiving: ReceiveCall,
    /// Number of messages and pieces sent from here.
    sequence: u32,
    /// Packets sent from here without a request for an acknowledgement, by class.
    unacknowledged: [Unacknowledged; 2],
}

/// A receive call of the library, which takes up to [`RECEIVED_TOGETHER`] arrived packets.
#[derive(Clone, Copy, Debug, Default)]
struct ReceiveCall {
    begun: Picoseconds,
    /// Number of further packets that it may take.
    left: u32,
}

impl ReceiveCall {
    /// Counts `packets` packets that arrived at `arrival` and are taken at `now`; returns the number of those that
    /// start a new call.
    fn take(&mut self, packets: u32, arrival: Picoseconds, now: Picoseconds) -> u32 {
        if arrival > self.begun {
            self.left = 0;
        }
        let further = packets - packets.min(self.left);
        self.left -= packets - further;
        let calls = further.div_ceil(RECEIVED_TOGETHER);
        if calls > 0 {
            *self = ReceiveCall { begun: now, left: calls * RECEIVED_TOGETHER - further };
        }
        calls
    }
}

/// The packets of one message or part of a block.
struct PacketCounts {
    packets: u32,
    /// Number of packets that it requests to be acknowledged.
    asked: u32,
}

/// Packets of one sender and class to be acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct OwedAcknowledgement {
    source: PlaceId,
    lane: u32,
    packets: u32,
}

impl PlaceState {
    /// Makes the state of a place without packets in flight.
    fn new() -> PlaceState {
        PlaceState {
            free: [WINDOW; 2],
            streams: Vec::new(),
            acknowledgements: Vec::new(),
            inbox: Inbox::default(),
            owed: Vec::new(),
            receiving: ReceiveCall::default(),
            sequence: 0,
            unacknowledged: Default::default(),
        }
    }

    /// Records the sending of `packets` packets to a place; returns the number of packets that they request to be
    /// acknowledged.
    ///
    /// Requests are rare while much of the window is free, so that one acknowledgement covers many packets.
    fn dispatch(&mut self, target: PlaceId, class: Class, packets: u32) -> u32 {
        self.sequence = self.sequence.wrapping_add(1);
        let free = &mut self.free[class as usize];
        *free -= packets;
        self.unacknowledged[class as usize].note(target, packets, *free < RESERVE)
    }

    /// Records the acknowledgement owed for an entry, if it requests one.
    fn owe(&mut self, queued: &InboxEntry<PacketCounts>) {
        if queued.cost.asked > 0 {
            self.owed.push(OwedAcknowledgement {
                source: queued.source,
                lane: queued.lane,
                packets: queued.cost.asked,
            });
        }
    }

    /// Drops all requests of `source` without an acknowledgement; returns the number of packets by class.
    fn forget(&mut self, source: PlaceId) -> [u32; 2] {
        let mut packets = [0; 2];
        for queued in self.inbox.queue_mut().filter(|queued| queued.source == source) {
            packets[queued.lane as usize] += std::mem::take(&mut queued.cost.asked);
        }
        for owed in self.owed.extract_if(.., |owed| owed.source == source) {
            packets[owed.lane as usize] += owed.packets;
        }
        packets
    }
}

/// Counts of packets without a request, in a table of [`ENTRIES`] receivers; empty before the first packet.
#[derive(Default)]
struct Unacknowledged(Vec<PeerCount>);

/// Number of entries.
const ENTRIES: usize = 64;

/// A receiver, with the number of packets in the low bits. Compact, because every message looks it up.
#[derive(Clone, Copy, Default)]
struct PeerCount(u32);

/// Bits of a number of packets. The rest holds the number of any place that an event key can have.
const PACKETS_BITS: u32 = 8;

const _: () = assert!(WINDOW - RESERVE < 1 << PACKETS_BITS, "more may be noted than an entry holds");

impl PeerCount {
    fn new(target: PlaceId, packets: u32) -> PeerCount {
        PeerCount(target.0 << PACKETS_BITS | packets)
    }

    fn target(self) -> PlaceId {
        PlaceId(self.0 >> PACKETS_BITS)
    }

    fn packets(self) -> u32 {
        self.0 & ((1 << PACKETS_BITS) - 1)
    }
}

impl Unacknowledged {
    /// Records packets to a place. If `asks`, returns the number of packets to request, including earlier ones. If the
    /// entry belongs to another receiver, requests these packets only.
    #[inline]
    fn note(&mut self, target: PlaceId, packets: u32, asks: bool) -> u32 {
        if self.0.is_empty() {
            self.0.resize(ENTRIES, PeerCount::default());
        }
        let entry = &mut self.0[target.index() % ENTRIES];
        let before = entry.packets();
        if before > 0 && entry.target() != target {
            return packets;
        }
        let (noted, asked) = if asks { (0, before + packets) } else { (before + packets, 0) };
        *entry = PeerCount::new(target, noted);
        asked
    }

    /// Returns the recorded number of packets to a place, and resets it.
    fn take(&mut self, target: PlaceId) -> u32 {
        let entry = self.0.get_mut(target.index() % ENTRIES).filter(|entry| entry.target() == target);
        entry.map_or(0, |entry| std::mem::take(entry).packets())
    }

    /// Returns the total number of recorded packets.
    #[cfg(test)]
    fn sum(&self) -> u32 {
        self.0.iter().map(|entry| entry.packets()).sum()
    }
}

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

    fn send(&mut self, cores: &mut Cores, out: &Outgoing, content: MessageContent) -> Option<Picoseconds> {
        let bytes = HEADER_BYTES + content.len();
        let piece = Fragment::Whole { handler: out.handler, content };
        Some(self.inject(cores, out.from, out.to, out.class, bytes, piece))
    }

    fn begin_block(
        &mut self,
        cores: &mut Cores,
        out: &Outgoing,
        content: MessageContent,
        wakeups: &mut Wakeups,
    ) {
        let left = HEADER_BYTES + content.len();
        let (target, class, handler) = (out.to, out.class, out.handler);
        let stream = BlockSend { target, class, handler, content: Some(content), left };
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
        let packets = queued.cost.packets;
        let calls = place_state.receiving.take(packets, queued.key.time(), cores.now(place));
        let [receive, more] = [self.costs.receive, self.costs.receive_more]
            .map(|cost| between(cores, cost, queued.source, place));
        let time = receive * u64::from(calls) + more * u64::from(packets - calls);
        cores.spend(place, time, TimeCategory::Handling);
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
        let queue: Vec<InboxEntry<PacketCounts>> = place_state.inbox.clear().collect();
        queue.iter().for_each(|queued| place_state.owe(queued));
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

/// A block being sent.
struct BlockSend {
    target: PlaceId,
    class: Class,
    handler: HandlerId,
    content: Option<MessageContent>,
    /// Bytes still to be sent, with the header.
    left: usize,
}

impl Packets {
    /// Returns `true` if a block is in flight to the same place in the same class.
    fn is_streaming(&self, out: &Outgoing) -> bool {
        let mut streams = self.place_states[out.from.index()].streams.iter();
        streams.any(|stream| stream.target == out.to && stream.class == out.class)
    }

    /// Sends pieces of the blocks of `place` as long as there is room.
    fn push_blocks(&mut self, cores: &mut Cores, place: PlaceId, wakeups: &mut Wakeups) {
        let mut streams = std::mem::take(&mut self.place_states[place.index()].streams);
        streams.retain_mut(|stream| {
            let lane = stream.class as usize;
            loop {
                let bytes = stream.left.min(self.costs.carried(MESSAGE_PACKETS_MAX[lane]));
                if self.costs.carried(self.place_states[place.index()].free[lane]) < bytes {
                    return true;
                }
                stream.left -= bytes;
                let of = stream.content.as_ref().map_or(0, MessageContent::len);
                let content = if stream.left == 0 { stream.content.take() } else { None };
                let whole = content.map(|content| Fragment::Whole { handler: stream.handler, content });
                let piece = whole.unwrap_or(Fragment::Part { of });
                let arrival = self.inject(cores, place, stream.target, stream.class, bytes, piece);
                wakeups.push((stream.target, arrival));
                if stream.left == 0 {
                    return false;
                }
            }
        });
        self.place_states[place.index()].streams = streams;
    }
}

/// An acknowledgement of taken packets.
struct Acknowledgement {
    arrival: Picoseconds,
    target: PlaceId,
    lane: u32,
    packets: u32,
}

impl Packets {
    /// Returns `true` if the packets of a message of `len` bytes may be sent, and no block is in flight.
    fn fits(&self, out: &Outgoing, len: usize) -> bool {
        let free = self.place_states[out.from.index()].free[out.class as usize];
        self.costs.carried(free) >= HEADER_BYTES + len && !self.is_streaming(out)
    }

    /// Takes the acknowledgements that had arrived at the start of the turn.
    fn read_acknowledgements(&mut self, cores: &mut Cores, place: PlaceId) {
        cores.spend(place, cores.cycles(place, POLL_CYCLES), TimeCategory::Polling);
        let seen = cores.present();
        let PlaceState { acknowledgements, free, .. } = &mut self.place_states[place.index()];
        acknowledgements.retain(|acknowledgement| {
            let arrived = acknowledgement.arrival <= seen;
            if arrived {
                free[acknowledgement.lane as usize] += acknowledgement.packets;
            }
            !arrived
        });
    }

    /// Acknowledges everything that `place` owes, and adds the arrivals to `wakeups`.
    fn write_acknowledgements(&mut self, cores: &mut Cores, place: PlaceId, wakeups: &mut Wakeups) {
        let mut owed = std::mem::take(&mut self.place_states[place.index()].owed);
        owed.sort_unstable();
        for group in owed.chunk_by(|one, other| (one.source, one.lane) == (other.source, other.lane)) {
            let OwedAcknowledgement { source, lane, .. } = group[0];
            let packets = group.iter().map(|owed| owed.packets).sum();
            let arrival = cores.carry(place, source, self.costs.transit, 1);
            let acknowledgement = Acknowledgement { arrival, target: place, lane, packets };
            self.place_states[source.index()].acknowledgements.push(acknowledgement);
            wakeups.push((source, arrival));
        }
        owed.clear();
        self.place_states[place.index()].owed = owed;
    }
}
