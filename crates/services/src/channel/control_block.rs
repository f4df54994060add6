//! The part of a channel at one place that touches no value.
//!
//! Separate from [`HomeChannel`](super::home::HomeChannel) and [`RemoteChannel`](super::remote::RemoteChannel), so that
//! it is compiled once, with this crate, and not for each value type. It records the waiting tasks, what they wait for
//! and the outcomes; the values are in the end. Invariant: nothing is borrowed while a message is sent or a task is
//! woken.

use super::message::{ChannelId, ChannelMessage, ItemHeader};
use super::ring::{InwardRings, OutwardRing, RingShape};
use super::waits::{Begun, Caller, ChannelAnswer, Waits};
use crate::channel::message::CHANNEL;
use crate::table::service::Service;
use isles_protocol::PlaceId;
use isles_protocol::channel::{Arrivals, Choice, SlotPool};
use isles_runtime::limits::{ROOM_GUESS, WATCHFUL_RECEIVES};
use isles_runtime::service::{Attachment, Encode, Inquiry, Refused, Unsent};
use isles_runtime::wire::Reader;
use isles_runtime::{Error, Local};
use isles_transport::{Class, Work};
use std::any::Any;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::panic::Location;
use std::rc::Rc;
use std::time::Duration;

/// Returns the work of one operation at the home: it touches the lines of both ends and of both wait queues, and one
/// value, which hits a cache as far as that holds the whole buffer.
pub(super) fn access(value_bytes: usize, capacity: u32) -> Work {
    /// The two ends of the buffer and the two wait queues: a line each.
    const LINES: u64 = 4;
    const LINE_BYTES: u64 = 32;
    let value = value_bytes.max(1) as u64;
    let buffer = value.saturating_mul(u64::from(capacity.max(1)));
    let lines = value.div_ceil(LINE_BYTES);
    Work::new().integers(2 * LINES + lines).scattered(LINES, LINES * LINE_BYTES).scattered(lines, buffer)
}

/// Maximum bytes of a channel's id and a head without a text, as `postcard` writes them: two 32-bit numbers, one byte
/// for the variant, two 64-bit numbers and a flag.
const HEAD_BYTES_MAX: usize = 2 * 5 + 1 + 2 * 10 + 1;

/// Returns the likely maximum size of a `T` on the wire, in bytes: numbers take up to a quarter more than in memory;
/// the size of a type that owns other memory is unknown, and therefore guessed.
pub(super) const fn value_bytes<T>() -> usize {
    if std::mem::needs_drop::<T>() { ROOM_GUESS } else { size_of::<T>() + size_of::<T>() / 4 + 1 }
}

/// The channels of one place.
#[derive(Default)]
pub(crate) struct ChannelTable {
    serial: u32,
    ends: BTreeMap<ChannelId, Rc<dyn AnyChannel>>,
    /// The channel that received the last item: a stream sends many to one channel.
    recent: Option<Rc<dyn AnyChannel>>,
    /// Channels whose value rings this place polls, because tasks wait for their values.
    watched: Vec<Rc<dyn AnyChannel>>,
    /// Counts the `select!`s of the place.
    select_turn: u64,
    /// Number of the `select!` whose branch is being polled, and the receives that wait inside that branch.
    within_branch: Option<(u64, BranchReceives)>,
}

/// Receives that wait inside of another future.
pub(super) type BranchReceives = Vec<(Rc<dyn AnyChannel>, u64)>;

impl ChannelTable {
    /// Replaces the list that collects waiting receives by `receives`. Returns the previous one.
    pub(super) fn note_within(
        &mut self,
        receives: Option<(u64, BranchReceives)>,
    ) -> Option<(u64, BranchReceives)> {
        std::mem::replace(&mut self.within_branch, receives)
    }

    /// Returns the number of the `select!` whose branch is being polled, if any.
    pub(super) fn choice_within(&self) -> Choice {
        self.within_branch.as_ref().map(|(number, _)| *number)
    }

    /// Notes that a receive waits, if it is polled inside a branch.
    pub(super) fn note_waiting(&mut self, end: &dyn Fn() -> Rc<dyn AnyChannel>, number: u64) {
        if let Some((_, receives)) = &mut self.within_branch {
            receives.push((end(), number));
        }
    }

    /// Returns the id of a new channel whose home is `here`.
    pub(super) fn new_id(&mut self, here: PlaceId) -> ChannelId {
        let id = ChannelId { home: here, serial: self.serial };
        self.serial += 1;
        id
    }

    pub(super) fn insert(&mut self, id: ChannelId, end: Rc<dyn AnyChannel>) {
        self.ends.insert(id, end);
    }

    pub(super) fn get(&self, id: ChannelId) -> Option<Rc<dyn AnyChannel>> {
        self.ends.get(&id).cloned()
    }

    pub(super) fn remove(&mut self, id: ChannelId) -> Option<Rc<dyn AnyChannel>> {
        // The caller holds the returned channel, so that nothing is dropped here.
        self.recent.take_if(|recent| recent.control().id == id);
        self.ends.remove(&id)
    }

    /// Returns the channel that received the last item, if `reader` has another item for it, and consumes the head of
    /// that. No other message begins with the same bytes.
    #[inline]
    pub(super) fn next_item(&self, reader: &mut Reader<'_>) -> Option<Rc<dyn AnyChannel>> {
        let recent = self.recent.as_ref()?;
        reader.take_prefix(recent.control().item_header.bytes()).then(|| Rc::clone(recent))
    }

    /// Notes that `end`, which is in the table, received an item.
    pub(super) fn note_item(&mut self, end: &Rc<dyn AnyChannel>) {
        self.recent = Some(Rc::clone(end));
    }

    /// Polls the value rings of this channel until no task waits for its values.
    pub(super) fn watch(&mut self, end: Rc<dyn AnyChannel>) {
        if !end.control().inward.are_watched.replace(true) {
            self.watched.push(end);
        }
    }

    /// Returns `true` if a value ring that a task waits for holds a value.
    #[inline]
    pub(crate) fn have_values(&self) -> bool {
        self.watched.iter().any(|end| end.control().inward.have_values())
    }

    /// Returns the number of a new `select!`.
    pub(super) fn next_turn(&mut self) -> u64 {
        let next = self.select_turn + 1;
        std::mem::replace(&mut self.select_turn, next)
    }
}

impl ChannelTable {
    /// Returns the table of `local`.
    #[inline]
    pub(crate) fn of(local: &Local) -> &RefCell<ChannelTable> {
        Service::of(local)
    }
}

impl Service for RefCell<ChannelTable> {
    const ROW: usize = 3;

    fn new(_here: PlaceId, _places: u32) -> Self {
        RefCell::default()
    }

    fn place_died(&self, local: &Local, place: PlaceId) {
        let ends: Vec<Rc<dyn AnyChannel>> = self.borrow().ends.values().cloned().collect();
        ends.into_iter().for_each(|end| end.place_died(local, place));
    }

    fn explain(&self, _inquiry: &Inquiry<'_>) -> Vec<String> {
        let table = self.borrow();
        let lines = table
            .ends
            .values()
            .flat_map(|end| end.control().explain().into_iter().chain(end.explain_holders()));
        let mut lines: Vec<String> = lines.collect();
        lines.sort();
        lines
    }

    fn next_due(&self) -> Option<Duration> {
        None
    }

    fn run_due(&self, _local: &Local) -> bool {
        false
    }
}

/// An end of a channel, with the value type erased.
pub(super) trait AnyChannel {
    fn control(&self) -> &ControlBlock;

    /// Receives a message about this channel.
    fn receive(
        self: Rc<Self>,
        local: &Local,
        source: PlaceId,
        head: ChannelMessage,
        reader: &mut Reader<'_>,
    ) -> Result<(), Refused>;

    /// Gives up a receive that waits; it begins anew when it is polled again.
    fn suspend_receive(self: Rc<Self>, local: &Local, number: u64);

    /// Describes, at the home, the places whose tasks hold what the waiting senders wait for, one line each.
    fn explain_holders(&self) -> Vec<String>;

    /// Handles the death of `place`, after its last message.
    fn place_died(self: Rc<Self>, local: &Local, place: PlaceId);

    /// Delivers, at the home, values of rings to waiting tasks. Returns their number, and whether tasks still wait.
    fn serve_from_rings(self: Rc<Self>, local: &Local) -> (usize, bool);

    fn into_any(self: Rc<Self>) -> Rc<dyn Any>;
}

/// Polls the value rings of all watched channels. Returns the number of values delivered.
#[inline]
pub(crate) fn poll_rings(local: &Local) -> usize {
    let (mut served, mut index) = (0, 0);
    loop {
        let table = ChannelTable::of(local).borrow();
        let Some(end) = table.watched.get(index).cloned() else {
            local.set_watching(!table.watched.is_empty());
            return served;
        };
        drop(table);
        let (count, wait) = Rc::clone(&end).serve_from_rings(local);
        served += count;
        if wait {
            index += 1;
        } else {
            end.control().inward.are_watched.set(false);
            let over = ChannelTable::of(local).borrow_mut().watched.swap_remove(index);
            drop(over);
        }
    }
}

impl Drop for ControlBlock {
    fn drop(&mut self) {
        if self.is_home {
            self.attachment.try_with(|local| self.inward.free(local));
        }
    }
}

/// Kind of a channel, chosen when it is made.
#[derive(Clone, Copy, Debug)]
pub(super) enum ChannelKind {
    /// With a buffer at its home.
    Buffered {
        /// In values.
        capacity: NonZeroU32,
        /// Shape of the value rings, if the channel can have any: at the home one from each sending place, elsewhere
        /// the one to the home.
        ring_shape: Option<RingShape>,
    },
    /// Unbuffered: a value stays with its sender until a receiver has taken it.
    Rendezvous,
}

impl ChannelKind {
    /// Returns the kind of a channel of `capacity` values of `T`; 0 is a rendezvous.
    pub(super) fn of<T>(capacity: u32) -> ChannelKind {
        match NonZeroU32::new(capacity) {
            Some(capacity) => {
                ChannelKind::Buffered { capacity, ring_shape: RingShape::of::<T>(capacity.get()) }
            }
            None => ChannelKind::Rendezvous,
        }
    }

    /// Returns the capacity in values.
    pub(super) fn capacity(self) -> u32 {
        match self {
            ChannelKind::Buffered { capacity, .. } => capacity.get(),
            ChannelKind::Rendezvous => 0,
        }
    }

    /// Returns the shape of the value rings, if there can be any.
    pub(super) fn ring_shape(self) -> Option<RingShape> {
        match self {
            ChannelKind::Buffered { ring_shape, .. } => ring_shape,
            ChannelKind::Rendezvous => None,
        }
    }

    /// Returns the message that asks for room. Only a rendezvous needs the number of the `select!`.
    pub(super) fn ask_message(self, operation: u64, waits: bool, choice: Choice) -> ChannelMessage {
        match (self, choice) {
            (ChannelKind::Rendezvous, Some(choice)) => ChannelMessage::AskSelect { operation, waits, choice },
            _ => ChannelMessage::Ask { operation, waits },
        }
    }

    /// Returns the message that asks for a value. Only a rendezvous needs the number of the `select!`.
    pub(super) fn want_message(self, operation: u64, waits: bool, choice: Choice) -> ChannelMessage {
        match (self, choice) {
            (ChannelKind::Rendezvous, Some(choice)) => {
                ChannelMessage::WantSelect { operation, waits, choice }
            }
            _ => ChannelMessage::Want { operation, waits },
        }
    }
}

/// The value ring is held ([`ControlBlock::hold_ring`]).
pub(super) struct RingHeld;

/// A channel at one place, without its values.
pub(super) struct ControlBlock {
    pub(super) id: ChannelId,
    pub(super) here: PlaceId,
    pub(super) attachment: Attachment,
    pub(super) kind: ChannelKind,
    is_home: bool,
    /// Cost of one operation at a home on a modelled chip.
    pub(super) access: Option<Work>,
    /// Elsewhere: slots for values that may be sent without asking.
    slots: RefCell<SlotPool>,
    pub(super) waits: Waits,
    /// Operations that take the values arriving here.
    pub(super) arrivals: RefCell<Arrivals>,
    /// Elsewhere: true if the home must be told when no arrived value is left.
    is_settling: Cell<bool>,
    next: Cell<u64>,
    pub(super) inward: InwardRings,
    pub(super) outward: OnceCell<OutwardRing>,
    /// Number of the first operation whose answer releases the ring; the answer to a later one does so as well. Until
    /// then nothing goes through the ring: a value is in transit in a message that is not answered, and must not be
    /// overtaken.
    held_until: Cell<Option<u64>>,
    /// Bytes with which each item begins.
    pub(super) item_header: ItemHeader,
    /// Number of receives by the home's tasks that still read the clock first, because tasks of other places receive
    /// too.
    watchful: Cell<u32>,
    /// Elsewhere: number of handles at this place. At the home: number of handle kinds that still have a handle
    /// anywhere.
    handles: Cell<u32>,
}

impl ControlBlock {
    /// Creates the channel `id` at the place of `local`; at its home with two kinds of handles, elsewhere with none.
    pub(super) fn new(local: &Local, id: ChannelId, kind: ChannelKind, access: Option<Work>) -> ControlBlock {
        let here = local.here();
        let is_home = id.home == here;
        ControlBlock {
            id,
            here,
            attachment: local.attachment(),
            kind,
            is_home,
            access,
            slots: RefCell::default(),
            waits: Waits::default(),
            arrivals: RefCell::default(),
            is_settling: Cell::new(false),
            next: Cell::new(0),
            inward: InwardRings::default(),
            outward: OnceCell::new(),
            held_until: Cell::new(None),
            item_header: ItemHeader::new(id),
            watchful: Cell::new(0),
            handles: Cell::new(if is_home { 2 } else { 0 }),
        }
    }

    /// Returns `true` if the channel belongs to the run of `local`.
    #[inline]
    pub(super) fn is_of_run(&self, local: &Local) -> bool {
        self.attachment == local.attachment()
    }

    /// Charges the home for one operation.
    #[inline]
    pub(super) fn charge(&self, local: &Local) {
        if let Some(access) = &self.access {
            charge(local, access);
        }
    }

    /// Notes that tasks of other places receive from this home, or are about to, so that its own tasks do not take all
    /// values in one long turn.
    pub(super) fn note_remote_receiver(&self) {
        self.watchful.set(WATCHFUL_RECEIVES);
    }

    /// Returns `true` if a task that receives at the home must read the clock first.
    #[inline]
    pub(super) fn is_watchful(&self) -> bool {
        let left = self.watchful.get();
        left > 0 && {
            self.watchful.set(left - 1);
            true
        }
    }

    /// Returns the `select!` of an operation: `choice`, or at a rendezvous also the `select!` around the future that
    /// polls it.
    pub(super) fn choice_or_within(&self, local: &Local, choice: &Choice) -> Choice {
        match self.kind {
            ChannelKind::Buffered { .. } => *choice,
            ChannelKind::Rendezvous => choice.or_else(|| ChannelTable::of(local).borrow().choice_within()),
        }
    }

    pub(super) fn new_number(&self) -> u64 {
        let number = self.next.get();
        self.next.set(number + 1);
        number
    }

    /// Sends a message without a value. Returns the outcome of the operation as an error if that fails.
    pub(super) fn send_message(
        &self,
        local: &Local,
        to: PlaceId,
        head: &ChannelMessage,
    ) -> Result<(), ChannelAnswer> {
        self.send_message_with(local, to, head, 0, &|_| Ok(()))
    }

    /// As [`ControlBlock::send_message`]; `put` writes more after the head, probably at most `room` bytes.
    #[inline]
    pub(super) fn send_message_with(
        &self,
        local: &Local,
        to: PlaceId,
        head: &ChannelMessage,
        room: usize,
        put: &Encode<'_>,
    ) -> Result<(), ChannelAnswer> {
        let handler = CHANNEL;
        let sent = local.send_with_size_hint(to, Class::Data, handler, HEAD_BYTES_MAX + room, |writer| {
            writer.put_serde(&(self.id, head))?;
            put(writer)
        });
        sent.map(drop).map_err(unsent)
    }

    /// Sends a value for which there is a slot, probably of at most `room` bytes.
    #[inline]
    pub(super) fn send_item(
        &self,
        local: &Local,
        room: usize,
        put: &Encode<'_>,
    ) -> Result<(), ChannelAnswer> {
        let (handler, head) = (CHANNEL, self.item_header.bytes());
        let sent =
            local.send_with_size_hint(self.id.home, Class::Data, handler, head.len() + room, |writer| {
                writer.put_bytes(head);
                put(writer)
            });
        sent.map(drop).map_err(unsent)
    }

    /// Holds the ring after a value was sent in a message that is not answered, until a later request is answered.
    pub(super) fn hold_ring(&self) {
        self.held_until.set(self.outward.get().map(|_| self.next.get()));
    }

    /// Returns the ring for values sent by slots, unless it is held.
    ///
    /// # Errors
    /// The ring is held.
    #[inline]
    pub(super) fn free_ring(&self) -> Result<Option<&OutwardRing>, RingHeld> {
        if self.held_until.get().is_some() { Err(RingHeld) } else { Ok(self.outward.get()) }
    }

    fn note_answered(&self, number: u64) {
        if self.held_until.get().is_some_and(|first| number >= first) {
            self.held_until.set(None);
        }
    }

    /// Puts back a slot that was taken and not used.
    pub(super) fn keep_slot(&self, local: &Local) {
        self.receive_slots(local, 1);
    }

    /// Takes a slot for a value, elsewhere. Returns `false` if there is none.
    ///
    /// # Errors
    /// The answer, if nothing can be sent.
    #[inline]
    pub(super) fn take_slot(&self, local: &Local) -> Result<bool, ChannelAnswer> {
        let mut slots = self.slots.borrow_mut();
        match slots.is_closed() {
            false => Ok(slots.take()),
            true if local.is_dead(self.id.home) => Err(ChannelAnswer::Dead),
            true => Err(ChannelAnswer::Refused),
        }
    }

    /// Sends `head` to the home and waits for the answer to `number`; errors as in [`ControlBlock::send_message`].
    pub(super) fn ask(
        &self,
        local: &Local,
        number: u64,
        what: &'static str,
        caller: Caller,
        head: &ChannelMessage,
    ) -> Begun {
        if local.is_dead(self.id.home) {
            return Ok(ChannelAnswer::Dead);
        }
        self.wait(number, what, caller);
        self.waits_if_sent(number, self.send_message(local, self.id.home, head))
    }

    /// Returns `Err(number)` if the message was sent, so that the operation waits, and otherwise its answer.
    pub(super) fn waits_if_sent(&self, number: u64, sent: Result<(), ChannelAnswer>) -> Begun {
        match sent {
            Ok(()) => Err(number),
            Err(answer) => {
                self.waits.forget(number);
                Ok(answer)
            }
        }
    }

    pub(super) fn wait(&self, number: u64, what: &'static str, caller: Caller) {
        self.waits.begin(number, what, caller);
    }

    /// Tells the home that nothing can be sent any more.
    pub(super) fn close_remotely(&self, local: &Local) {
        let unused = self.slots.borrow_mut().close();
        // A dead home has no channel that could be closed.
        let _ = self.send_message(local, self.id.home, &ChannelMessage::Close);
        self.return_slots(local, unused);
    }

    pub(super) fn return_slots(&self, local: &Local, slots: u32) {
        if slots > 0 {
            // A dead home needs none.
            let _ = self.send_message(local, self.id.home, &ChannelMessage::ReturnSlots { count: slots });
        }
    }

    /// Reports to the home that no value is left here, if it has asked for that.
    pub(super) fn report_if_settled(&self, local: &Local) {
        if self.arrivals.borrow().is_empty() && self.is_settling.take() {
            // A dead home need not know.
            let _ = self.send_message(local, self.id.home, &ChannelMessage::Settled);
        }
    }

    /// Receives a message of the home without a value. Returns the operation and its answer, if it is one.
    pub(super) fn receive_from_home(
        &self,
        local: &Local,
        head: ChannelMessage,
    ) -> Result<Option<(u64, ChannelAnswer)>, Refused> {
        let answered = match head {
            ChannelMessage::Accepted { operation: number, slots } => {
                self.receive_slots(local, slots);
                (number, ChannelAnswer::Accepted)
            }
            ChannelMessage::Refused { operation: number } => (number, ChannelAnswer::Refused),
            ChannelMessage::Full { operation: number } => (number, ChannelAnswer::Full),
            ChannelMessage::Granted { operation: number } => (number, ChannelAnswer::Granted),
            ChannelMessage::Declined { operation: number } => (number, ChannelAnswer::Declined),
            ChannelMessage::Ended { operation: number } => (number, ChannelAnswer::Ended),
            ChannelMessage::Empty { operation: number } => (number, ChannelAnswer::Empty),
            ChannelMessage::Cancelled { operation: number } => (number, ChannelAnswer::Cancelled),
            ChannelMessage::Faulty { operation: number, text } => {
                (number, ChannelAnswer::Faulty(Error::message(text)))
            }
            ChannelMessage::Slots { count: slots } => {
                self.receive_slots(local, slots);
                return Ok(None);
            }
            ChannelMessage::Ring { start, words } => {
                self.begin_ring(local, start, words);
                return Ok(None);
            }
            ChannelMessage::Settle => {
                self.is_settling.set(true);
                self.report_if_settled(local);
                return Ok(None);
            }
            ChannelMessage::Recall | ChannelMessage::Closed => {
                let mut pool = self.slots.borrow_mut();
                let slots = if head == ChannelMessage::Recall { pool.recall() } else { pool.close() };
                drop(pool);
                // Sent even if there are none: the home waits for the answer.
                let _ = self.send_message(local, self.id.home, &ChannelMessage::ReturnSlots { count: slots });
                return Ok(None);
            }
            _ => return Err(Refused::NotItsHome),
        };
        self.note_answered(answered.0);
        Ok(Some(answered))
    }

    fn receive_slots(&self, local: &Local, slots: u32) {
        let back = self.slots.borrow_mut().grant(slots);
        self.return_slots(local, back);
    }

    /// Counts a further handle here.
    pub(super) fn retain(&self) {
        if !self.is_home {
            self.handles.set(self.handles.get() + 1);
        }
    }

    /// Releases a handle here.
    pub(super) fn release(&self) {
        if !self.is_home {
            self.handles.set(self.handles.get().saturating_sub(1));
            self.attachment.try_with(|local| self.forget_if_unused(local));
        }
    }

    /// Releases, at the home, one kind of handles. Returns the channel if that was the last.
    #[must_use = "what is in the channel is to be dropped when nothing is borrowed"]
    pub(super) fn release_kind(&self, local: &Local) -> Option<Rc<dyn AnyChannel>> {
        self.handles.set(self.handles.get() - 1);
        if self.handles.get() == 0 { ChannelTable::of(local).borrow_mut().remove(self.id) } else { None }
    }

    /// Removes the channel here when no handle and no operation is left.
    pub(super) fn forget_if_unused(&self, local: &Local) {
        let is_unused = || self.waits.is_empty() && self.arrivals.borrow().is_idle();
        if !self.is_home && self.handles.get() == 0 && is_unused() {
            // First, because returning slots may deliver a message that brings more.
            let end = ChannelTable::of(local).borrow_mut().remove(self.id);
            let unused = self.slots.borrow_mut().recall();
            self.return_slots(local, unused);
            drop(end);
        }
    }

    /// Describes the resources that operations here wait for, one line each.
    fn explain(&self) -> Vec<String> {
        let line = |(what, caller)| format!("{what} a channel of {}, at {caller}", self.id.home);
        self.waits.wanted().into_iter().map(line).collect()
    }
}

/// Charges the place for work on a modelled chip.
#[cold]
fn charge(local: &Local, access: &Work) {
    if let Some(model) = local.endpoint().work_model() {
        model.work(access, Location::caller());
    }
}

fn unsent(unsent: Unsent) -> ChannelAnswer {
    match unsent {
        Unsent::DeadPlace(_) => ChannelAnswer::Dead,
        unsent => ChannelAnswer::Faulty(Error::from(unsent)),
    }
}
