//! `rcce`: the library itself. Both sides rendezvous and do nothing else until the transfer is complete.
//!
//! ```text
//! world   two lines                    flags of the library's barrier
//! sent    one line for each place      written by that place, cleared by the owner
//! ready   one line for each place      written by that place, cleared by the owner
//! chunk   what is left                 written by the owner, read by the receiver
//! ```
//!
//! The test-and-set registers of both cores are acquired before a rendezvous, so a sender never waits for the answer of
//! a place that waits itself. A place that cannot acquire them is blocked in its send, and receives messages of others
//! meanwhile. It keeps unexpected messages, one of each sender and class. `docs/design/chip-protocols.md` explains why
//! that is enough. The costs of instructions are those of the library on bare cores (`isles_chip::bare::rcce`), fitted
//! there. Both classes share everything.
//!
//! This file has the layout, the state of a place and the operations for the world; `rendezvous` has registers and
//! rendezvous. The world gives no turns to a blocked place. Invariants: a place is in at most one rendezvous, and its
//! register is held until the last chunk is answered; a blocked place takes nothing for itself.

mod rendezvous;

use crate::cores::Cores;
use crate::protocol::blocking_send::BlockingSends;
use crate::protocol::inbox::{MessageContent, ReceivedMessage};
use crate::protocol::{
    BlockingSendModel, FLAG_CYCLES, MESSAGE_BYTES_MIN, MulticastModel, Outgoing, POLL_CYCLES, ProtocolModel,
    Wakeups,
};
use crate::report::TimeCategory;
use isles_chip::bare::rcce::LibraryCosts;
use isles_chip::kernel::{Key, TieBreak};
use isles_chip::quantity::Picoseconds;
use isles_transport::{Class, HandlerId, PlaceId};
use rendezvous::{WaitQueue, look_at_registers, set_flag};

/// Costs of the library's instructions.
const LIBRARY: LibraryCosts = LibraryCosts::RCCE;

/// All buffers of a run.
pub(crate) struct Rcce {
    layout: BufferLayout,
    tie_break: TieBreak,
    place_states: Vec<PlaceState>,
    /// Pending messages, and received messages that are not wanted yet.
    blocking_sends: BlockingSends,
    /// Queue of the places that wait for registers.
    line: WaitQueue,
    /// Cycles of a poll.
    poll_cycles: u64,
}

impl Rcce {
    pub(crate) fn new(layout: BufferLayout, places: u32, tie_break: TieBreak) -> Rcce {
        let places = places as usize;
        Rcce {
            layout,
            tie_break,
            place_states: std::iter::repeat_with(PlaceState::default).take(places).collect(),
            blocking_sends: BlockingSends::new(places),
            line: WaitQueue::default(),
            poll_cycles: POLL_CYCLES + FLAG_CYCLES * (places as u64 - 1),
        }
    }

    fn place_state(&mut self, place: PlaceId) -> &mut PlaceState {
        &mut self.place_states[place.index()]
    }

    /// Returns the number of flag lines that a poll reads.
    fn flag_lines(&self) -> u32 {
        self.place_states.len() as u32 - 1
    }
}

/// Lines of flags for each place: sent and ready.
const FLAG_LINES: u32 = 2;

/// Lines of flags of the library's barrier.
const WORLD_LINES: u32 = 2;

/// The layout of one buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BufferLayout {
    chunk_lines: u32,
    line_bytes: u32,
}

impl BufferLayout {
    /// The layout of `lines` lines among `places` places.
    ///
    /// # Errors
    /// The least number of lines that would do.
    pub(crate) fn new(places: u32, lines: u32, line_bytes: u32) -> Result<BufferLayout, u32> {
        let flags = WORLD_LINES + FLAG_LINES * places;
        let least = flags + MESSAGE_BYTES_MIN.div_ceil(line_bytes);
        if lines < least { Err(least) } else { Ok(BufferLayout { chunk_lines: lines - flags, line_bytes }) }
    }
}

/// A message with chunks still to be written.
struct PartialSend {
    target: PlaceId,
    class: Class,
    handler: HandlerId,
    content: MessageContent,
    /// Lines still to be written.
    left: u32,
}

/// A message whose last written chunk is unanswered, as known to the sender.
struct UnfinishedSend {
    target: PlaceId,
    class: Class,
    /// Arrival time of the answer, in the past or the future.
    answer: Option<Picoseconds>,
    /// Rest of the message, to be written after the answer.
    sending: Option<PartialSend>,
}

/// A chunk at the receiver; the last one carries the message.
struct Chunk {
    key: Key,
    source: PlaceId,
    lines: u32,
    /// Size of the whole message in bytes.
    of: usize,
    message: Option<(Class, HandlerId, MessageContent)>,
}

impl PartialSend {
    /// Splits off a chunk of `lines` lines: returns the chunk for the receiver, and the unfinished rest.
    fn split(self, key: Key, source: PlaceId, lines: u32) -> (Chunk, UnfinishedSend) {
        let (target, class, of) = (self.target, self.class, self.content.len());
        if self.left > 0 {
            let chunk = Chunk { key, source, lines, of, message: None };
            return (chunk, UnfinishedSend { target, class, answer: None, sending: Some(self) });
        }
        let message = Some((class, self.handler, self.content));
        (
            Chunk { key, source, lines, of, message },
            UnfinishedSend { target, class, answer: None, sending: None },
        )
    }
}

impl UnfinishedSend {
    /// Returns the rest of the message, to be written after the answer.
    fn remainder(self) -> Option<PartialSend> {
        self.sending
    }

    /// Returns `true` if the receiver has answered the last chunk and released the registers; the sender only has to
    /// see it.
    fn is_over(&self) -> bool {
        self.sending.is_none() && self.answer.is_some()
    }
}

impl Chunk {
    /// Returns the message, if this is its last chunk.
    fn open(self) -> Option<ReceivedMessage> {
        let (class, handler, content) = self.message?;
        Some(ReceivedMessage { source: self.source, class, handler, content, arrival: self.key.time() })
    }
}

/// State of one place.
#[derive(Default)]
struct PlaceState {
    /// `true` while its register is held, by itself or by a sender to it.
    taken: bool,
    /// Time since which the register is free, and the place that released it, which knows at once.
    free: (Picoseconds, Option<PlaceId>),
    sending: Option<UnfinishedSend>,
    /// `true` if it has taken a chunk of a message, but not the last one.
    receiving: bool,
    /// The chunk that waits for it.
    chunk: Option<Chunk>,
}

impl PlaceState {
    /// Returns `true` if the place is in a rendezvous, as far as it knows.
    fn is_in_rendezvous(&self) -> bool {
        self.sending.is_some() || self.receiving
    }

    /// Returns `true` if the last chunk of a message of `source` waits here.
    fn has_last_chunk_from(&self, source: PlaceId) -> bool {
        self.chunk.as_ref().is_some_and(|chunk| chunk.source == source && chunk.message.is_some())
    }
}

impl ProtocolModel for Rcce {
    fn message_bytes_max(&self, _class: Class) -> usize {
        (self.layout.chunk_lines * self.layout.line_bytes) as usize
    }

    fn has_room(&mut self, cores: &mut Cores, out: &Outgoing, _len: usize) -> bool {
        let sending = self.place_states[out.from.index()].sending.as_ref();
        let is_under_way = sending.is_some_and(|rest| (rest.target, rest.class) == (out.to, out.class));
        self.blocking_sends.admits(out, cores.present()) && !is_under_way
    }

    fn can_begin_block(&mut self, cores: &mut Cores, out: &Outgoing) -> bool {
        self.has_room(cores, out, 0)
    }

    fn send(&mut self, cores: &mut Cores, out: &Outgoing, content: MessageContent) -> Option<Picoseconds> {
        self.post(cores, out, content)
    }

    fn begin_block(
        &mut self,
        cores: &mut Cores,
        out: &Outgoing,
        block: MessageContent,
        wakeups: &mut Wakeups,
    ) {
        wakeups.extend(self.post(cores, out, block).map(|arrival| (out.to, arrival)));
    }

    fn has_pending_blocks(&self, place: PlaceId) -> bool {
        self.place_states[place.index()].sending.is_some() || !self.blocking_sends.of(place).is_empty()
    }

    fn make_progress(&mut self, cores: &mut Cores, place: PlaceId, wakeups: &mut Wakeups) {
        self.continue_send(cores, place, wakeups);
        self.continue_receive(cores, place);
        self.begin_rendezvous(cores, place, wakeups);
        self.blocking_sends.drain_wakeups(place, wakeups);
    }

    fn poll(&mut self, cores: &mut Cores, place: PlaceId) {
        let present = cores.present();
        self.blocking_sends.of_mut(place).expire(present);
        cores.read_own_lines(place, self.flag_lines(), TimeCategory::Polling);
        cores.compute(place, self.poll_cycles, TimeCategory::Polling);
    }

    fn poll_period(&self, cores: &Cores, place: PlaceId, with_credits: bool) -> Picoseconds {
        if self.place_states[place.index()].is_in_rendezvous() {
            return cores.own_read(place, 1) + cores.cycles(place, LIBRARY.look);
        }
        if let Some(out) = self.blocking_sends.of(place).next() {
            return look_at_registers(cores, &out);
        }
        let registers = if with_credits { cores.register(place, place) * 2 } else { Picoseconds::ZERO };
        cores.own_read(place, self.flag_lines()) + cores.cycles(place, self.poll_cycles) + registers
    }

    fn first_arrival(&self, place: PlaceId) -> Option<Picoseconds> {
        let place_state = &self.place_states[place.index()];
        if place_state.sending.is_some() {
            return None;
        }
        let kept = self.blocking_sends.kept.first_arrival(place).filter(|_| !self.is_blocked_in_send(place));
        place_state.chunk.as_ref().map(|chunk| chunk.key.time()).into_iter().chain(kept).min()
    }

    fn first_credit(&self, place: PlaceId) -> Option<Picoseconds> {
        let place_state = &self.place_states[place.index()];
        match &place_state.sending {
            Some(rest) => rest.answer,
            None => self.blocking_sends.of(place).due().filter(|_| !place_state.receiving),
        }
    }

    fn has_pending_from(&self, source: PlaceId, place: PlaceId) -> bool {
        let place_state = &self.place_states[place.index()];
        let has_chunk = place_state.chunk.as_ref().is_some_and(|chunk| chunk.source == source);
        has_chunk || self.blocking_sends.kept.has_from(source, place)
    }

    fn take(
        &mut self,
        cores: &mut Cores,
        place: PlaceId,
        until: Picoseconds,
        control_only: bool,
    ) -> Option<Option<ReceivedMessage>> {
        if self.is_blocked_in_send(place) {
            return None;
        }
        if let Some(message) = self.take_deferred(cores, place, control_only) {
            return Some(Some(message));
        }
        let chunk = self.place_state(place).chunk.take_if(|chunk| chunk.key.time() <= until)?;
        let message = self.receive(cores, place, chunk);
        Some(message.and_then(|message| self.blocking_sends.accept_or_defer(place, message, control_only)))
    }

    fn return_credits(&mut self, _cores: &mut Cores, place: PlaceId, wakeups: &mut Wakeups) {
        self.blocking_sends.drain_wakeups(place, wakeups);
    }

    fn forget_receiver(&mut self, place: PlaceId, gone: PlaceId) {
        self.abort_rendezvous(place, gone);
        if self.blocking_sends.of(place).next().is_some_and(|out| out.to == gone) {
            self.line.leave(place);
        }
        self.blocking_sends.of_mut(place).forget(gone);
        for place in [place, gone] {
            self.blocking_sends.of_mut(place).may_try(Picoseconds::ZERO); // what stood before it may be dropped
        }
        self.blocking_sends.kept.forget_receiver(place, gone);
    }

    /// Releases the register of `gone`, and the places in a rendezvous with it.
    fn abort_place(&mut self, gone: PlaceId) {
        let sending = self.place_state(gone).sending.take().filter(|rest| !rest.is_over());
        // A written chunk arrives if it is the last of its message; otherwise the receiver is released.
        if let Some(target) = sending.map(|rest| rest.target)
            && !self.place_state(target).has_last_chunk_from(gone)
        {
            self.place_state(target).chunk = None;
            self.place_state(target).receiving = false;
            self.release(target, Picoseconds::ZERO, target);
        }
        let senders = (0..self.place_states.len() as u32).map(PlaceId);
        for place in senders.filter(|place| *place != gone) {
            self.abort_rendezvous(place, gone);
            self.blocking_sends.kept.forget_receiver(place, gone);
        }
        self.blocking_sends.of_mut(gone).clear();
        if self.line.leave(gone) {
            let behind: Vec<_> = self.line.places().collect();
            behind.into_iter().for_each(|place| self.blocking_sends.of_mut(place).may_try(Picoseconds::ZERO));
        }
        self.blocking_sends.kept.clear(gone);
        self.release(gone, Picoseconds::ZERO, gone);
    }

    fn multicast(&mut self) -> Option<&mut dyn MulticastModel> {
        None
    }

    fn blocking_sends(&self) -> Option<&dyn BlockingSendModel> {
        Some(self)
    }

    fn blocking_sends_mut(&mut self) -> Option<&mut dyn BlockingSendModel> {
        Some(self)
    }
}

impl BlockingSendModel for Rcce {
    fn is_blocked_in_send(&self, place: PlaceId) -> bool {
        self.place_states[place.index()].is_in_rendezvous() || !self.blocking_sends.of(place).is_empty()
    }

    fn drain_wakeups(&mut self, place: PlaceId, wakeups: &mut Wakeups) {
        self.blocking_sends.drain_wakeups(place, wakeups);
    }
}

impl Rcce {
    /// Returns `true` if a chunk has arrived for a place.
    fn has_chunk(&self, place: PlaceId, present: Picoseconds) -> bool {
        self.place_states[place.index()].chunk.as_ref().is_some_and(|chunk| chunk.key.time() <= present)
    }

    /// Receives the chunk that waits for a blocked sender, which frees its register; the message is kept for later.
    fn free_register(&mut self, cores: &mut Cores, place: PlaceId) {
        let present = cores.present();
        let Some(chunk) = self.place_state(place).chunk.take_if(|chunk| chunk.key.time() <= present) else {
            return;
        };
        self.receive_early(cores, place, chunk);
    }

    /// Receives a chunk that is not wanted yet.
    fn receive_early(&mut self, cores: &mut Cores, place: PlaceId, chunk: Chunk) {
        let message = self.receive(cores, place, chunk);
        message.into_iter().for_each(|message| self.blocking_sends.kept.put(place, message));
    }

    /// Sends a message and returns the arrival time of its first chunk; otherwise the place is blocked in its send from
    /// now on.
    fn post(&mut self, cores: &mut Cores, out: &Outgoing, content: MessageContent) -> Option<Picoseconds> {
        if !self.is_blocked_in_send(out.from) {
            self.free_register(cores, out.from);
            if !self.place_state(out.from).receiving && self.can_begin_rendezvous(cores, out) {
                return Some(self.begin(cores, out, content));
            }
        }
        self.blocking_sends.of_mut(out.from).push(out, content);
        None
    }

    /// Starts the next rendezvous of a blocked sender if possible, after receiving a chunk that has arrived for it.
    fn begin_rendezvous(&mut self, cores: &mut Cores, place: PlaceId, wakeups: &mut Wakeups) {
        let next = self.blocking_sends.of(place).next();
        let Some(out) = next.filter(|_| !self.place_states[place.index()].is_in_rendezvous()) else { return };
        if self.has_chunk(place, cores.present()) {
            self.poll(cores, place);
            self.free_register(cores, place);
        }
        if !self.place_states[place.index()].receiving
            && self.can_begin_rendezvous(cores, &out)
            && let Some((out, content)) = self.blocking_sends.of_mut(place).pop()
        {
            wakeups.push((out.to, self.begin(cores, &out, content)));
        }
    }

    /// Takes a kept message that is wanted now, and notifies its sender that it may send another one.
    fn take_deferred(
        &mut self,
        cores: &mut Cores,
        place: PlaceId,
        control_only: bool,
    ) -> Option<ReceivedMessage> {
        self.blocking_sends.take_deferred(place, control_only, |source| {
            set_flag(cores, place, source);
            cores.now(place)
        })
    }
}
