//! The protocol `doorbell`: messages are written at the receiver, signalled by a doorbell, and credited with messages
//! in the other direction.
//!
//! Every ordered pair of places has a small ring in the receiver's buffer for each class. A short message is written
//! into it. For a longer one the ring has a line that names a slot in the *sender's* buffer, from which the receiver
//! fetches it; a block goes through such slots piece by piece. After the lines of a message the sender writes its flag,
//! one or more bytes in lines that the receiver reads at every poll; with few places it has room for a header. The flag
//! also counts the entries taken in the other direction, so an answer returns credit; remaining credits are written at
//! the end of the turn or before the place computes. A message to several places is in one slot, which is free when the
//! last of them has credited it.
//!
//! This file has the state of a place and the operations for the world. `layout` divides the buffers; `rings` has
//! entries, blocks and credits; `docs/design/chip-protocols.md` has the reasons. The bytes themselves travel as values
//! beside the model; their lines are counted, and a ring without free lines refuses. Invariants: entries of a ring are
//! written, taken and credited in one order; a taken entry is owed credit at once, so everything that a sender counts
//! as taken is waiting, owed or being returned.

mod broadcast;
mod layout;
mod rings;

pub(crate) use layout::DoorbellLayout;

use crate::cores::Cores;
use crate::protocol::async_broadcast::AsyncBroadcast;
use crate::protocol::inbox::{Fragment, Inbox, InboxEntry, LaneNumbers, MessageContent, ReceivedMessage};
use crate::protocol::{
    BlockingSendModel, MulticastModel, Outgoing, OutgoingMulticast, POLL_CYCLES, ProtocolModel,
    RECEIVE_CYCLES, SEND_CYCLES, Wakeups,
};
use crate::report::TimeCategory;
use isles_chip::cache::StorePolicy;
use isles_chip::kernel::{EventClass, TieBreak};
use isles_chip::quantity::Picoseconds;
use isles_transport::{Class, PlaceId};
use layout::SLOTS_MAX;
use rings::{BlockSend, Credit, Lane, Occupancy, bit_of, is_credit_due};
use std::ops::Range;

/// A lane with its ends.
#[derive(Clone, Copy)]
struct LaneEnds {
    source: PlaceId,
    target: PlaceId,
    lane: usize,
}

/// All rings of a run.
pub(crate) struct Doorbell {
    layout: DoorbellLayout,
    pairs: LaneNumbers,
    tie_break: TieBreak,
    lanes: Vec<Lane>,
    place_states: Vec<PlaceState>,
    /// Asynchronous broadcasts, if they replace shared slots.
    relays: Option<Box<AsyncBroadcast>>,
}

impl Doorbell {
    pub(crate) fn new(layout: DoorbellLayout, places: u32, tie_break: TieBreak) -> Doorbell {
        let (places, pairs) = (places as usize, LaneNumbers::of(places as usize));
        Doorbell {
            lanes: (0..pairs.lanes()).map(|_| Lane::default()).collect(),
            place_states: (0..places).map(|_| PlaceState::new(&layout)).collect(),
            layout,
            pairs,
            tie_break,
            relays: None,
        }
    }

    /// Makes the protocol with asynchronous broadcasts, which have lines of their own.
    pub(crate) fn relayed(
        layout: DoorbellLayout,
        relays: AsyncBroadcast,
        places: u32,
        tie_break: TieBreak,
    ) -> Doorbell {
        Doorbell { relays: Some(Box::new(relays)), ..Doorbell::new(layout, places, tie_break) }
    }

    /// Returns the lane of a pair and class; lanes of one receiver are adjacent, because it polls all of them.
    fn lane_of(&mut self, from: PlaceId, to: PlaceId, class: Class) -> usize {
        let lane = self.pairs.lane(to, from, class);
        if lane >= self.lanes.len() {
            self.lanes.resize_with(self.pairs.lanes(), Lane::default);
        }
        lane
    }

    fn source_of(&self, lane: usize) -> PlaceId {
        self.pairs.ends(lane).1
    }

    fn target_of(&self, lane: usize) -> PlaceId {
        self.pairs.ends(lane).0
    }

    /// Writes an entry and rings the doorbell; returns the arrival time.
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
        let key = self.tie_break.key(arrival, EventClass::Arrival, self.pairs.owner(lane), 0);
        let cost = RingCost { share, fetch };
        let queued = InboxEntry { key, lane: lane as u32, source, cost, piece };
        self.place_states[target.index()].inbox.put(queued);
        arrival
    }
}

/// Space that an entry of a ring occupies, and the lines to fetch.
#[derive(Default)]
struct RingCost {
    /// Its lines of the ring and slots of the sender's buffer; none if it is in private memory.
    share: Occupancy,
    /// Lines to read in the sender's buffer.
    fetch: u32,
}

/// State of one place.
struct PlaceState {
    /// Free slots of its buffer, by class.
    slots: [u32; 2],
    /// Number of receivers that have not credited each shared slot, by class; 0 for other slots.
    fetchers: [[u32; SLOTS_MAX]; 2],
    /// Blocks in flight from here, at most one for a lane.
    streams: Vec<BlockSend>,
    /// Credits in flight to this place.
    credits: Vec<Credit>,
    /// Start of the turn in which it last read its flags.
    looked: Picoseconds,
    /// Entries in the rings here.
    inbox: Inbox<RingCost>,
    /// Lanes with entries taken in this turn and not credited, with their senders, without duplicates.
    owed: Vec<(PlaceId, usize)>,
    /// Bits of these senders; nothing is owed to a sender without its bit.
    owes: u64,
    /// `true` if one of these senders may be waiting for credit.
    is_credit_due: bool,
}

impl PlaceState {
    /// Makes the state of a place with all slots free.
    fn new(layout: &DoorbellLayout) -> PlaceState {
        PlaceState {
            slots: layout.slots,
            fetchers: [[0; SLOTS_MAX]; 2],
            streams: Vec::new(),
            credits: Vec::new(),
            looked: Picoseconds::ZERO,
            inbox: Inbox::default(),
            owed: Vec::new(),
            owes: 0,
            is_credit_due: false,
        }
    }

    /// Frees the slots of an occupancy of one of its lanes.
    fn free(&mut self, class: usize, share: Occupancy) {
        self.slots[class] += share.own_slots();
        for slot in share.shared_slots() {
            let fetchers = &mut self.fetchers[class][slot];
            *fetchers -= 1;
            self.slots[class] += u32::from(*fetchers == 0);
        }
    }
}

impl ProtocolModel for Doorbell {
    fn message_bytes_max(&self, class: Class) -> usize {
        self.layout.message_bytes_max[class as usize]
    }

    fn has_room(&mut self, cores: &mut Cores, out: &Outgoing, len: usize) -> bool {
        self.finds(cores, out.from, |rings| rings.fits(out, len, 1))
    }

    fn has_room_up_to(&self, out: &Outgoing, len: usize) -> bool {
        // A message in a slot takes one line of the ring, but a shorter one may need all of them.
        self.fits(out, len, self.layout.ring_lines[out.class as usize])
    }

    fn can_begin_block(&mut self, _cores: &mut Cores, out: &Outgoing) -> bool {
        let lane = self.lane_of(out.from, out.to, out.class);
        !self.lanes[lane].streams
    }

    fn send(&mut self, cores: &mut Cores, out: &Outgoing, content: MessageContent) -> Option<Picoseconds> {
        let way =
            LaneEnds { source: out.from, target: out.to, lane: self.lane_of(out.from, out.to, out.class) };
        let len = content.len();
        cores.compute(out.from, SEND_CYCLES, TimeCategory::Handling);
        if self.layout.has_cells() {
            return Some(self.write(cores, out, way, content));
        }
        let piece = Fragment::Whole { handler: out.handler, content };
        Some(match self.layout.ring_lines_of(out.class, len) {
            Some(lines) => self.ring(cores, way, Occupancy::of_lines(lines), 0, piece),
            None => self.write_local(cores, way, self.layout.lines(len), piece),
        })
    }

    fn begin_block(
        &mut self,
        cores: &mut Cores,
        out: &Outgoing,
        content: MessageContent,
        wakeups: &mut Wakeups,
    ) {
        let lane = self.lane_of(out.from, out.to, out.class);
        cores.compute(out.from, SEND_CYCLES, TimeCategory::Handling);
        let left = self.layout.lines(content.len());
        self.lanes[lane].streams = true;
        self.place_states[out.from.index()].streams.push(BlockSend {
            lane,
            handler: out.handler,
            content,
            left,
        });
        self.push_block(cores, lane, wakeups);
    }

    fn has_pending_blocks(&self, place: PlaceId) -> bool {
        !self.place_states[place.index()].streams.is_empty()
    }

    fn make_progress(&mut self, cores: &mut Cores, place: PlaceId, wakeups: &mut Wakeups) {
        self.look(cores, place);
        self.take_credits(place);
        if let Some(relays) = &mut self.relays {
            relays.make_progress(cores, place);
        }
        let streams = &self.place_states[place.index()].streams;
        for lane in streams.iter().map(|stream| stream.lane).collect::<Vec<_>>() {
            self.push_block(cores, lane, wakeups);
        }
    }

    fn poll(&mut self, cores: &mut Cores, place: PlaceId) {
        if let Some(relays) = &mut self.relays {
            relays.settle(cores, place);
            relays.make_progress(cores, place);
        }
        cores.read_own_lines(place, self.layout.flag_lines, TimeCategory::Polling);
        cores.compute(place, POLL_CYCLES, TimeCategory::Polling);
        self.place_states[place.index()].looked = cores.present();
    }

    /// The flags include credits, so `with_credits` makes no difference.
    fn poll_period(&self, cores: &Cores, place: PlaceId, _with_credits: bool) -> Picoseconds {
        let acknowledgements = self.relays.as_ref().map(|relays| relays.attention(cores, place));
        let flags = cores.own_read(place, self.layout.flag_lines);
        flags + cores.cycles(place, POLL_CYCLES) + acknowledgements.unwrap_or_default()
    }

    fn first_arrival(&self, place: PlaceId) -> Option<Picoseconds> {
        self.place_states[place.index()].inbox.first_arrival()
    }

    fn first_credit(&self, place: PlaceId) -> Option<Picoseconds> {
        let credit = self.place_states[place.index()].credits.iter().map(|credit| credit.arrival).min();
        let acknowledgement = self.relays.as_ref().and_then(|relays| relays.first_acknowledgement(place));
        [credit, acknowledgement].into_iter().flatten().min()
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
        let lane = queued.lane as usize;
        let ring = &mut self.lanes[lane];
        if queued.is_relayed() {
            return Some(self.take_relayed(cores, place, queued));
        }
        if ring.owed == Occupancy::default() {
            place_state.owed.push((queued.source, lane));
            place_state.owes |= bit_of(queued.source);
        }
        ring.owed += queued.cost.share;
        place_state.is_credit_due |= is_credit_due(ring.owed, self.layout.ring_lines[lane % 2]);
        let source = queued.source;
        cores.compute(place, RECEIVE_CYCLES, TimeCategory::Handling);
        cores.read_own_lines(place, queued.cost.share.lines.into(), TimeCategory::Copying);
        let fetch = queued.cost.fetch;
        if fetch > 0 {
            cores.read_lines(place, source, fetch, TimeCategory::Copying);
            cores.store_private(place, fetch, queued.piece.message_bytes(), StorePolicy::Prefetching);
        }
        Some(queued.open())
    }

    /// Returns only credits that a sender may be waiting for; the others may still go with a message of this turn.
    fn return_credits(&mut self, cores: &mut Cores, place: PlaceId, wakeups: &mut Wakeups) {
        if std::mem::take(&mut self.place_states[place.index()].is_credit_due) {
            self.write_credits(cores, place, wakeups, is_credit_due);
        }
        if let Some(relays) = &mut self.relays {
            relays.write_acknowledgements(cores, place, wakeups);
        }
    }

    fn end_turn(&mut self, cores: &mut Cores, place: PlaceId, wakeups: &mut Wakeups) {
        self.write_credits(cores, place, wakeups, |_, _| true);
    }

    fn forget_receiver(&mut self, place: PlaceId, gone: PlaceId) {
        if let Some(relays) = &mut self.relays {
            relays.forget(place, gone);
        }
        let known = [Class::Control, Class::Data].map(|class| self.pairs.known(gone, place, class));
        for lane in known.into_iter().flatten() {
            let ring = &mut self.lanes[lane];
            ring.streams = false;
            // Its owed credit is dropped with the taken entries; otherwise it might still write a credit at the end of
            // its turn.
            ring.owed = Occupancy::default();
            let taken = std::mem::take(&mut ring.taken);
            let place_state = &mut self.place_states[place.index()];
            place_state.free(lane % 2, taken);
            place_state.streams.retain(|stream| stream.lane != lane);
            place_state.credits.retain(|credit| credit.lane != lane);
        }
    }

    fn abort_place(&mut self, gone: PlaceId) {
        let (place_states, lanes) = (&mut self.place_states, &mut self.lanes);
        let PlaceState { streams, inbox, .. } = &mut place_states[gone.index()];
        for stream in streams.drain(..) {
            lanes[stream.lane].streams = false;
        }
        drop(inbox.clear());
    }

    fn multicast(&mut self) -> Option<&mut dyn MulticastModel> {
        Some(self)
    }

    fn blocking_sends(&self) -> Option<&dyn BlockingSendModel> {
        None
    }

    fn blocking_sends_mut(&mut self) -> Option<&mut dyn BlockingSendModel> {
        None
    }
}

impl MulticastModel for Doorbell {
    /// Returns the lengths worth multicasting; a message that fits into a short ring would gain nothing.
    fn bytes(&self, class: Class) -> Range<usize> {
        self.relays.as_ref().map_or_else(|| self.layout.shared_bytes(class), |relays| relays.message_bytes())
    }

    fn has_room_for_all(&mut self, cores: &mut Cores, out: &OutgoingMulticast<'_>) -> bool {
        if self.relays.is_some() {
            return self.may_relay(cores, out);
        }
        self.finds(cores, out.from, |rings| out.each().all(|out| rings.has_lines(&out, None, 1)))
    }

    fn stage(&mut self, cores: &mut Cores, out: &OutgoingMulticast<'_>, len: usize) -> u8 {
        if let Some(relays) = &mut self.relays {
            relays.send(cores, out.from, out.to, len);
            return 0;
        }
        cores.write_lines(out.from, out.from, self.layout.lines(len));
        let (place_state, class) = (&mut self.place_states[out.from.index()], out.class as usize);
        let is_free = |fetchers: &u32| *fetchers == 0;
        let slot =
            place_state.fetchers[class].iter().position(is_free).expect("one of the free slots is this");
        place_state.slots[class] -= 1;
        place_state.fetchers[class][slot] = out.to.len() as u32;
        slot as u8
    }

    fn announce(
        &mut self,
        cores: &mut Cores,
        out: &Outgoing,
        slot: u8,
        content: MessageContent,
    ) -> Picoseconds {
        if let Some(relays) = &mut self.relays {
            relays.note_sent(out);
            let found = relays.found(out.to);
            return self.find_relayed(out, found, content);
        }
        let way =
            LaneEnds { source: out.from, target: out.to, lane: self.lane_of(out.from, out.to, out.class) };
        let lines = self.layout.lines(content.len());
        cores.compute(out.from, SEND_CYCLES, TimeCategory::Handling);
        let piece = Fragment::Whole { handler: out.handler, content };
        self.ring(cores, way, Occupancy::of_shared(slot), lines, piece)
    }
}
