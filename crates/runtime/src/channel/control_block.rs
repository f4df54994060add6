//! The part of a channel at one place that touches no value.
//!
//! Apart from [`End`](super::end::End), so that it is compiled once, with this crate, and not for each type of values.
//! It keeps who waits, what they wait for and what became of it; a value that belongs to an answer is kept by the end.
//! Invariant: nothing is borrowed while a message is sent or a task is woken.

use super::message::{ChannelId, Head};
use crate::error::Error;
use crate::local::{Inquiry, Local, Service, Unsent};
use crate::message::{Handler, Refused};
use crate::part::table::NumberHasherBuilder;
use crate::wire::{EncodeError, Reader, Writer};
use isles_protocol::PlaceId;
use isles_protocol::channel::SlotPool;
use isles_transport::{Class, Work};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::panic::Location;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

/// What an operation touches at the home: the lines of the two ends and of those who wait, and one value. They are in
/// a cache as far as that holds the whole buffer.
pub(super) fn access(value_bytes: usize, capacity: u32) -> Work {
    /// The two ends of the buffer, and the two queues of those who wait: a line each.
    const LINES: u64 = 4;
    const LINE_BYTES: u64 = 32;
    let value = value_bytes.max(1) as u64;
    let buffer = value.saturating_mul(u64::from(capacity.max(1)));
    let lines = value.div_ceil(LINE_BYTES);
    Work::new().integers(2 * LINES + lines).scattered(LINES, LINES * LINE_BYTES).scattered(lines, buffer)
}

/// The channels of one place.
#[derive(Default)]
pub(crate) struct ChannelTable {
    serial: u32,
    ends: BTreeMap<ChannelId, Rc<dyn AnyEnd>>,
    /// Which branch the next `select!` looks at first.
    select_turn: u32,
}

impl ChannelTable {
    /// The name of a new channel whose home is `here`.
    pub(super) fn new_id(&mut self, here: PlaceId) -> ChannelId {
        let id = ChannelId { home: here, serial: self.serial };
        self.serial += 1;
        id
    }

    pub(super) fn insert(&mut self, id: ChannelId, end: Rc<dyn AnyEnd>) {
        self.ends.insert(id, end);
    }

    pub(super) fn get(&self, id: ChannelId) -> Option<Rc<dyn AnyEnd>> {
        self.ends.get(&id).cloned()
    }

    pub(super) fn remove(&mut self, id: ChannelId) -> Option<Rc<dyn AnyEnd>> {
        self.ends.remove(&id)
    }

    /// Returns the turn of a `select!`, each time the next one.
    pub(super) fn next_turn(&mut self) -> u32 {
        let next = self.select_turn.wrapping_add(1);
        std::mem::replace(&mut self.select_turn, next)
    }
}

impl Service for RefCell<ChannelTable> {
    fn new(_here: PlaceId, _places: u32) -> Self {
        RefCell::default()
    }

    fn place_died(&self, local: &Local, place: PlaceId) {
        let ends: Vec<Rc<dyn AnyEnd>> = self.borrow().ends.values().cloned().collect();
        ends.into_iter().for_each(|end| end.place_died(local, place));
    }

    fn explain(&self, _inquiry: &Inquiry<'_>) -> Vec<String> {
        let table = self.borrow();
        let mut lines: Vec<String> = table.ends.values().flat_map(|end| end.control().explain()).collect();
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

/// An [`End`](super::end::End) of any type.
pub(super) trait AnyEnd {
    fn control(&self) -> &ControlBlock;

    /// A message about this channel.
    fn receive(
        self: Rc<Self>,
        local: &Local,
        source: PlaceId,
        head: Head,
        reader: &mut Reader<'_>,
    ) -> Result<(), Refused>;

    /// A place is dead, and all that it sent has arrived.
    fn place_died(self: Rc<Self>, local: &Local, place: PlaceId);

    fn into_any(self: Rc<Self>) -> Rc<dyn Any>;
}

/// What became of an operation. Of `()` it is without the value, which is elsewhere.
#[derive(Debug)]
pub(super) enum Answer<T> {
    Accepted,
    /// The channel is closed; with the value, if the home had it.
    Refused(Option<T>),
    Full,
    Granted,
    Value(T),
    Ended,
    Empty,
    /// It was given up while it waited; with the value, if the home had it.
    Cancelled(Option<T>),
    Counted(u64),
    Faulty(String),
    /// The home is dead.
    Dead,
}

impl<T> Answer<T> {
    /// The answer without its value, and the value.
    pub(super) fn split(self) -> (Answer<()>, Option<T>) {
        let answer = match self {
            Answer::Value(value) => return (Answer::Value(()), Some(value)),
            Answer::Refused(value) => return (Answer::Refused(value.as_ref().map(drop)), value),
            Answer::Cancelled(value) => return (Answer::Cancelled(value.as_ref().map(drop)), value),
            Answer::Accepted => Answer::Accepted,
            Answer::Full => Answer::Full,
            Answer::Granted => Answer::Granted,
            Answer::Ended => Answer::Ended,
            Answer::Empty => Answer::Empty,
            Answer::Counted(count) => Answer::Counted(count),
            Answer::Faulty(text) => Answer::Faulty(text),
            Answer::Dead => Answer::Dead,
        };
        (answer, None)
    }
}

impl Answer<()> {
    /// Whether a value belongs to it.
    pub(super) fn has_value(&self) -> bool {
        matches!(self, Answer::Value(()) | Answer::Refused(Some(())) | Answer::Cancelled(Some(())))
    }

    /// The answer with its value; the reverse of [`Answer::split`].
    pub(super) fn join<T>(self, value: Option<T>) -> Answer<T> {
        match self {
            // A value that is not there was taken before.
            Answer::Value(()) => value.map_or(Answer::Ended, Answer::Value),
            Answer::Refused(_) => Answer::Refused(value),
            Answer::Cancelled(_) => Answer::Cancelled(value),
            Answer::Accepted => Answer::Accepted,
            Answer::Full => Answer::Full,
            Answer::Granted => Answer::Granted,
            Answer::Ended => Answer::Ended,
            Answer::Empty => Answer::Empty,
            Answer::Counted(count) => Answer::Counted(count),
            Answer::Faulty(text) => Answer::Faulty(text),
            Answer::Dead => Answer::Dead,
        }
    }
}

/// An operation that waits here.
enum Wait {
    Pending {
        waker: Option<Waker>,
        what: &'static str,
        caller: &'static Location<'static>,
    },
    Answered(Answer<()>),
    /// Nobody waits any more; the answer will say what is to be put back.
    GivenUp,
}

/// A channel at one place, but for its values.
pub(super) struct ControlBlock {
    pub(super) id: ChannelId,
    pub(super) here: PlaceId,
    pub(super) capacity: u32,
    is_home: bool,
    /// At a home on a modelled chip: what one operation costs there.
    pub(super) access: Option<Work>,
    /// Elsewhere: what may be sent without asking.
    slots: RefCell<SlotPool>,
    waits: RefCell<HashMap<u64, Wait, NumberHasherBuilder>>,
    /// Values that are kept for answers to receivers.
    pub(super) untaken: Cell<u32>,
    /// Elsewhere: the home is to be told when there are none.
    is_settling: Cell<bool>,
    next: Cell<u64>,
    /// Elsewhere: handles at this place. At the home: kinds of handles of which some live anywhere.
    handles: Cell<u32>,
}

impl ControlBlock {
    /// The channel `id` at `here`; at its home with two kinds of handles, elsewhere with none.
    pub(super) fn new(id: ChannelId, here: PlaceId, capacity: u32, access: Option<Work>) -> ControlBlock {
        let is_home = id.home == here;
        ControlBlock {
            id,
            here,
            capacity,
            is_home,
            access,
            slots: RefCell::default(),
            waits: RefCell::default(),
            untaken: Cell::new(0),
            is_settling: Cell::new(false),
            next: Cell::new(0),
            handles: Cell::new(if is_home { 2 } else { 0 }),
        }
    }

    /// Lets the home pay for one operation.
    #[inline]
    pub(super) fn charge(&self, local: &Local) {
        if let (Some(access), Some(observer)) = (&self.access, local.endpoint().observer()) {
            observer.work(access);
        }
    }

    pub(super) fn new_number(&self) -> u64 {
        let number = self.next.get();
        self.next.set(number + 1);
        number
    }

    /// Sends a message without a value; what becomes of the operation if that is not possible.
    pub(super) fn tell(&self, local: &Local, to: PlaceId, head: &Head) -> Result<(), Answer<()>> {
        self.tell_with(local, to, head, &|_| Ok(()))
    }

    /// As [`ControlBlock::tell`], with what `put` writes after the head.
    pub(super) fn tell_with(
        &self,
        local: &Local,
        to: PlaceId,
        head: &Head,
        put: &dyn Fn(&mut Writer<'_>) -> Result<(), EncodeError>,
    ) -> Result<(), Answer<()>> {
        let sent = local.send(to, Class::Data, Handler::Channel.id(), |writer| {
            writer.put_serde(&(self.id, head))?;
            put(writer)
        });
        sent.map(drop).map_err(unsent)
    }

    /// Takes a slot for a value, elsewhere: whether there was one.
    ///
    /// # Errors
    /// With the answer, if nothing can be sent.
    pub(super) fn take_slot(&self, local: &Local) -> Result<bool, Answer<()>> {
        if local.is_dead(self.id.home) {
            return Err(Answer::Dead);
        }
        let mut slots = self.slots.borrow_mut();
        if slots.is_closed() { Err(Answer::Refused(None)) } else { Ok(slots.take()) }
    }

    /// Asks the home, and waits for its answer to `number`: as [`ControlBlock::tell`].
    pub(super) fn ask(
        &self,
        local: &Local,
        (number, what, caller): (u64, &'static str, &'static Location<'static>),
        head: &Head,
    ) -> Result<Answer<()>, u64> {
        if local.is_dead(self.id.home) {
            return Ok(Answer::Dead);
        }
        self.wait(number, what, caller);
        self.waits_if_sent(number, self.tell(local, self.id.home, head))
    }

    /// What became of an operation that waits if its message was sent.
    pub(super) fn waits_if_sent(&self, number: u64, sent: Result<(), Answer<()>>) -> Result<Answer<()>, u64> {
        match sent {
            Ok(()) => Err(number),
            Err(answer) => {
                self.waits.borrow_mut().remove(&number);
                Ok(answer)
            }
        }
    }

    pub(super) fn wait(&self, number: u64, what: &'static str, caller: &'static Location<'static>) {
        self.waits.borrow_mut().insert(number, Wait::Pending { waker: None, what, caller });
    }

    /// Says to the home that nothing shall be sent any more.
    pub(super) fn close_from_afar(&self, local: &Local) {
        let unused = self.slots.borrow_mut().close();
        // A dead home has no channel that could be closed.
        let _ = self.tell(local, self.id.home, &Head::Close);
        self.return_slots(local, unused);
    }

    pub(super) fn return_slots(&self, local: &Local, slots: u32) {
        if slots > 0 {
            // A dead home needs none.
            let _ = self.tell(local, self.id.home, &Head::ReturnSlots(slots));
        }
    }

    /// Tells the home, if it wants to know, that no value is left here.
    pub(super) fn say_if_settled(&self, local: &Local) {
        if self.untaken.get() == 0 && self.is_settling.take() {
            // A dead home need not know.
            let _ = self.tell(local, self.id.home, &Head::Settled);
        }
    }

    /// What became of an operation, if that is known; else notes whom to wake.
    pub(super) fn poll(&self, number: u64, waker: &Waker) -> Poll<Answer<()>> {
        let mut waits = self.waits.borrow_mut();
        match waits.get_mut(&number) {
            Some(Wait::Pending { waker: known, .. }) => {
                let old = known.replace(waker.clone());
                drop(waits);
                drop(old);
                Poll::Pending
            }
            _ => {
                let wait = waits.remove(&number);
                drop(waits);
                Poll::Ready(if let Some(Wait::Answered(answer)) = wait { answer } else { Answer::Ended })
            }
        }
    }

    /// Notes the answer to an operation of this place; whom to wake.
    ///
    /// # Errors
    /// With the answer, if nobody waits for it.
    pub(super) fn note_answer(&self, number: u64, answer: Answer<()>) -> Result<Option<Waker>, Answer<()>> {
        let mut waits = self.waits.borrow_mut();
        match waits.get_mut(&number) {
            Some(wait @ Wait::Pending { .. }) => {
                if let Answer::Value(()) = answer {
                    self.untaken.set(self.untaken.get() + 1);
                }
                let pending = std::mem::replace(wait, Wait::Answered(answer));
                Ok(if let Wait::Pending { waker, .. } = pending { waker } else { None })
            }
            Some(Wait::GivenUp) => {
                waits.remove(&number);
                Err(answer)
            }
            // An answer that is there already stands; a second one is no sound home's.
            Some(Wait::Answered(_)) | None => Err(answer),
        }
    }

    /// Ends an operation before it is over: whether it still waited, and its answer, if nobody will ask for that.
    /// Without `is_awaited` nobody will.
    pub(super) fn give_up(&self, number: u64, is_awaited: bool) -> (bool, Option<Answer<()>>) {
        let mut waits = self.waits.borrow_mut();
        let is_pending = matches!(waits.get(&number), Some(Wait::Pending { .. }));
        let before = match (is_pending, is_awaited) {
            (true, true) | (false, true) => None,
            (true, false) => waits.insert(number, Wait::GivenUp),
            (false, false) => waits.remove(&number),
        };
        drop(waits);
        (is_pending, if let Some(Wait::Answered(answer)) = before { Some(answer) } else { None })
    }

    /// Takes in what the home says without a value: the answer to an operation, if it is one.
    pub(super) fn receive_from_home(
        &self,
        local: &Local,
        head: Head,
    ) -> Result<Option<(u64, Answer<()>)>, Refused> {
        Ok(Some(match head {
            Head::Accepted(number, slots) => {
                self.receive_slots(local, slots);
                (number, Answer::Accepted)
            }
            Head::Refused(number) => (number, Answer::Refused(None)),
            Head::Full(number) => (number, Answer::Full),
            Head::Granted(number) => (number, Answer::Granted),
            Head::Ended(number) => (number, Answer::Ended),
            Head::Empty(number) => (number, Answer::Empty),
            Head::Cancelled(number) => (number, Answer::Cancelled(None)),
            Head::Faulty(number, text) => (number, Answer::Faulty(text)),
            Head::Counted(number, count) => (number, Answer::Counted(count)),
            Head::Slots(slots) => {
                self.receive_slots(local, slots);
                return Ok(None);
            }
            Head::Settle => {
                self.is_settling.set(true);
                self.say_if_settled(local);
                return Ok(None);
            }
            Head::Recall | Head::Closed => {
                let mut pool = self.slots.borrow_mut();
                let slots = if head == Head::Recall { pool.recall() } else { pool.close() };
                drop(pool);
                // Told also if there are none: the home waits for the answer.
                let _ = self.tell(local, self.id.home, &Head::ReturnSlots(slots));
                return Ok(None);
            }
            _ => return Err(Refused::NotItsHome),
        }))
    }

    fn receive_slots(&self, local: &Local, slots: u32) {
        let back = self.slots.borrow_mut().grant(slots);
        self.return_slots(local, back);
    }

    /// One handle more here.
    pub(super) fn retain(&self) {
        if !self.is_home {
            self.handles.set(self.handles.get() + 1);
        }
    }

    /// One handle less here.
    pub(super) fn release(&self) {
        if !self.is_home {
            self.handles.set(self.handles.get().saturating_sub(1));
            Local::try_with(|local| self.forget_if_unused(local));
        }
    }

    /// At the home: one kind of handles less; the channel, if that was the last.
    #[must_use = "what is in the channel is to be dropped when nothing is borrowed"]
    pub(super) fn release_kind(&self, local: &Local) -> Option<Rc<dyn AnyEnd>> {
        self.handles.set(self.handles.get() - 1);
        if self.handles.get() == 0 { local.services.channels.borrow_mut().remove(self.id) } else { None }
    }

    /// What is left of the channel here goes when no handle and no operation is left.
    pub(super) fn forget_if_unused(&self, local: &Local) {
        if !self.is_home && self.handles.get() == 0 && self.waits.borrow().is_empty() {
            // First, because to return slots may deliver a message that brings more.
            let end = local.services.channels.borrow_mut().remove(self.id);
            let unused = self.slots.borrow_mut().recall();
            self.return_slots(local, unused);
            drop(end);
        }
    }

    /// The operations that wait here, in the order of their numbers.
    pub(super) fn numbers(&self) -> Vec<u64> {
        let mut numbers: Vec<u64> = self.waits.borrow().keys().copied().collect();
        numbers.sort_unstable();
        numbers
    }

    pub(super) fn is_answered(&self, number: u64) -> bool {
        matches!(self.waits.borrow().get(&number), Some(Wait::Answered(_)))
    }

    /// What the operations that wait here wait for, one line each.
    fn explain(&self) -> Vec<String> {
        let waits = self.waits.borrow();
        let line = |number: u64| match waits.get(&number) {
            Some(Wait::Pending { what, caller, .. }) => {
                Some(format!("{what} a channel of {}, at {caller}", self.id.home))
            }
            _ => None,
        };
        self.numbers().into_iter().filter_map(line).collect()
    }
}

fn unsent(unsent: Unsent) -> Answer<()> {
    match unsent {
        Unsent::DeadPlace(_) => Answer::Dead,
        unsent => Answer::Faulty(Error::from(unsent).text().to_owned()),
    }
}
