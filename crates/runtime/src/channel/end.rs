//! A channel at one place: its home, or what another place keeps of it.
//!
//! Carries out what the protocol says, and keeps the operations that wait here. A value moves: it is in the home, in a
//! message, in an answer that nobody has taken yet, or with its task. Invariant: nothing is borrowed while a message is
//! sent, a value is dropped, or a task is woken.

use super::message::{ChannelId, Head};
use crate::capture::CanSend;
use crate::error::Error;
use crate::local::output_queue::OutputQueue;
use crate::local::{Clock, Inquiry, Local, Service, Unsent};
use crate::message::{Handler, Refused};
use crate::part::table::NumberHasherBuilder;
use crate::wire::Reader;
use isles_protocol::PlaceId;
use isles_protocol::channel::{ChannelHome, ChannelStep, Offered, OperationId, SlotPool, Wanted};
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
fn access(value_bytes: usize, capacity: u32) -> Work {
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
    pub(super) ends: BTreeMap<ChannelId, Rc<dyn AnyEnd>>,
    /// Which branch the next `select!` looks at first.
    select_turn: u32,
}

impl ChannelTable {
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
        let mut lines: Vec<String> = self.borrow().ends.values().flat_map(|end| end.explain()).collect();
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

/// An [`End`] of any type.
pub(super) trait AnyEnd {
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

    fn explain(&self) -> Vec<String>;

    fn into_any(self: Rc<Self>) -> Rc<dyn Any>;
}

/// What became of an operation.
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

/// An operation that waits here.
enum Wait<T> {
    Pending {
        waker: Option<Waker>,
        what: &'static str,
        caller: &'static Location<'static>,
    },
    Answered(Answer<T>),
    /// Nobody waits any more; the answer will say what is to be put back.
    GivenUp,
}

/// A channel at one place.
pub(crate) struct End<T> {
    pub(super) id: ChannelId,
    pub(super) here: PlaceId,
    capacity: u32,
    /// The buffer, if this is the home.
    pub(super) home: Option<RefCell<ChannelHome<T>>>,
    /// At a home on a modelled chip: what one operation costs there.
    access: Option<Work>,
    /// Elsewhere: what may be sent without asking.
    pub(super) slots: RefCell<SlotPool>,
    waits: RefCell<HashMap<u64, Wait<T>, NumberHasherBuilder>>,
    /// Values among the answers there.
    untaken: Cell<u32>,
    /// Elsewhere: the home is to be told when there are none.
    pub(super) is_settling: Cell<bool>,
    next: Cell<u64>,
    steps: OutputQueue<ChannelStep<T>>,
    /// Elsewhere: handles at this place. At the home: kinds of handles of which some live anywhere.
    handles: Cell<u32>,
}

impl<T: CanSend> End<T> {
    /// A new channel whose home is here, counted by two kinds of handles.
    pub(super) fn make(local: &Local, capacity: u32) -> Rc<End<T>> {
        let mut channels = local.services.channels.borrow_mut();
        let id = ChannelId { home: local.here(), serial: channels.serial };
        channels.serial += 1;
        let home = ChannelHome::new(local.here(), capacity);
        let mut end = End::new(id, local.here(), capacity, Some(RefCell::new(home)));
        end.access = matches!(local.clock(), Clock::Modelled(_)).then(|| access(size_of::<T>(), capacity));
        end.handles.set(2);
        let end = Rc::new(end);
        channels.ends.insert(id, Rc::clone(&end) as Rc<dyn AnyEnd>);
        local.tally.count_message(|counts| counts.channels_made += 1);
        end
    }

    /// The channel of this name here, for a handle that has arrived; none if it is not that of a `T`, or gone.
    pub(super) fn of(local: &Local, id: ChannelId, capacity: u32) -> Option<Rc<End<T>>> {
        let mut channels = local.services.channels.borrow_mut();
        let known = match channels.ends.get(&id) {
            Some(end) => Rc::clone(end).into_any().downcast::<End<T>>().ok()?,
            None if id.home == local.here() || id.home.0 >= local.places() => return None,
            None => {
                let end = Rc::new(End::new(id, local.here(), capacity, None));
                channels.ends.insert(id, Rc::clone(&end) as Rc<dyn AnyEnd>);
                end
            }
        };
        known.retain();
        Some(known)
    }

    fn new(id: ChannelId, here: PlaceId, capacity: u32, home: Option<RefCell<ChannelHome<T>>>) -> End<T> {
        End {
            id,
            here,
            capacity,
            home,
            access: None,
            slots: RefCell::default(),
            waits: RefCell::default(),
            untaken: Cell::new(0),
            is_settling: Cell::new(false),
            next: Cell::new(0),
            steps: OutputQueue::default(),
            handles: Cell::new(0),
        }
    }

    /// Begins to send. With `asks`, the value stays with the task until there is a slot for it. Ready if it is over;
    /// else the number to ask for with [`End::poll`].
    pub(super) fn send(
        self: &Rc<Self>,
        value: &mut Option<T>,
        (asks, waits): (bool, bool),
        caller: &'static Location<'static>,
    ) -> Result<Answer<T>, u64> {
        Local::with(|local| match &self.home {
            Some(home) => self.send_here(local, home, value, (asks, waits), caller),
            None => self.send_there(local, value, (asks, waits), caller),
        })
    }

    fn send_here(
        self: &Rc<Self>,
        local: &Local,
        home: &RefCell<ChannelHome<T>>,
        value: &mut Option<T>,
        (asks, waits): (bool, bool),
        caller: &'static Location<'static>,
    ) -> Result<Answer<T>, u64> {
        self.charge(local);
        if let Some(offered) = value.take_if(|_| !asks) {
            match home.borrow_mut().offer_at_once(offered) {
                Ok(()) => return Ok(Answer::Accepted),
                Err(back) => *value = Some(back),
            }
        }
        let (number, mut steps) = (self.new_number(), Vec::new());
        let id = OperationId { place: self.here, number };
        let outcome = if asks {
            let asked = home.borrow_mut().ask(id, waits, &mut steps);
            match asked {
                Offered::Accepted(_) => Ok(Answer::Granted),
                Offered::Waits => Err(number),
                Offered::Refused(()) => Ok(Answer::Refused(None)),
                Offered::Full(()) => Ok(Answer::Full),
            }
        } else {
            let Some(offered) = value.take() else { return Ok(Answer::Refused(None)) };
            let offered = home.borrow_mut().offer(id, offered, waits, &mut steps);
            match offered {
                Offered::Accepted(_) => Ok(Answer::Accepted),
                Offered::Waits => Err(number),
                Offered::Refused(back) => Ok(Answer::Refused(Some(back))),
                Offered::Full(back) => {
                    *value = Some(back);
                    Ok(Answer::Full)
                }
            }
        };
        if outcome.is_err() {
            self.wait(number, "room in", caller);
        }
        self.carry_out(local, steps);
        outcome
    }

    fn send_there(
        self: &Rc<Self>,
        local: &Local,
        value: &mut Option<T>,
        (asks, waits): (bool, bool),
        caller: &'static Location<'static>,
    ) -> Result<Answer<T>, u64> {
        if local.is_dead(self.id.home) {
            return Ok(Answer::Dead);
        }
        if self.slots.borrow().is_closed() {
            return Ok(Answer::Refused(None));
        }
        let has_slot = self.slots.borrow_mut().take();
        if has_slot {
            return Ok(self.send_item(local, value));
        }
        let number = self.new_number();
        self.wait(number, "room in", caller);
        let sent = match (&*value, asks || !waits) {
            (Some(value), false) => self.tell(local, self.id.home, &Head::Offer(number), Some(value)),
            _ => self.tell(local, self.id.home, &Head::Ask(number, waits), None),
        };
        match sent {
            Ok(()) => Err(number),
            Err(answer) => {
                self.waits.borrow_mut().remove(&number);
                Ok(answer)
            }
        }
    }

    /// Sends the value for which there is a slot.
    pub(super) fn commit(self: &Rc<Self>, value: &mut Option<T>) -> Answer<T> {
        Local::with(|local| {
            let Some(home) = &self.home else { return self.send_item(local, value) };
            let Some(taken) = value.take() else { return Answer::Refused(None) };
            self.charge(local);
            let mut steps = Vec::new();
            let back = home.borrow_mut().item(self.here, taken, &mut steps);
            self.carry_out(local, steps);
            match back {
                Ok(None) => Answer::Accepted,
                Ok(back) => Answer::Refused(back),
                Err(_) => unreachable!("the slot was given to this place"),
            }
        })
    }

    fn send_item(&self, local: &Local, value: &mut Option<T>) -> Answer<T> {
        let Some(item) = value.as_ref() else { return Answer::Refused(None) };
        match self.tell(local, self.id.home, &Head::Item, Some(item)) {
            Ok(()) => {
                *value = None;
                Answer::Accepted
            }
            Err(answer) => {
                // Nothing was sent: the slot is still there.
                self.return_slots(local, 1);
                answer
            }
        }
    }

    /// Begins to receive; as [`End::send`].
    pub(super) fn receive_value(
        self: &Rc<Self>,
        waits: bool,
        caller: &'static Location<'static>,
    ) -> Result<Answer<T>, u64> {
        if let Some(value) = self.home.as_ref().and_then(|home| home.borrow_mut().want_at_once()) {
            if self.access.is_some() {
                Local::with(|local| self.charge(local));
            }
            return Ok(Answer::Value(value));
        }
        Local::with(|local| {
            let number = self.new_number();
            let Some(home) = &self.home else {
                return self.ask_there(local, (number, "a value of", caller), &Head::Want(number, waits));
            };
            self.charge(local);
            let mut steps = Vec::new();
            let id = OperationId { place: self.here, number };
            let wanted = home.borrow_mut().want(id, waits, &mut steps);
            if matches!(wanted, Wanted::Waits) {
                self.wait(number, "a value of", caller);
            }
            self.carry_out(local, steps);
            match wanted {
                Wanted::Value(value) => Ok(Answer::Value(value)),
                Wanted::Waits => Err(number),
                Wanted::Ended => Ok(Answer::Ended),
                Wanted::Empty => Ok(Answer::Empty),
            }
        })
    }

    /// Begins to ask how many values there are; as [`End::send`].
    pub(super) fn count(self: &Rc<Self>, caller: &'static Location<'static>) -> Result<Answer<T>, u64> {
        if let Some(home) = &self.home {
            return Ok(Answer::Counted(home.borrow().len() as u64));
        }
        let number = self.new_number();
        Local::with(|local| self.ask_there(local, (number, "the length of", caller), &Head::Count(number)))
    }

    fn ask_there(
        &self,
        local: &Local,
        (number, what, caller): (u64, &'static str, &'static Location<'static>),
        head: &Head,
    ) -> Result<Answer<T>, u64> {
        if local.is_dead(self.id.home) {
            return Ok(Answer::Dead);
        }
        self.wait(number, what, caller);
        match self.tell(local, self.id.home, head, None) {
            Ok(()) => Err(number),
            Err(answer) => {
                self.waits.borrow_mut().remove(&number);
                Ok(answer)
            }
        }
    }

    /// Nothing shall be sent any more, says a task here.
    pub(super) fn close(self: &Rc<Self>) {
        Local::try_with(|local| {
            let Some(home) = &self.home else {
                let unused = self.slots.borrow_mut().close();
                // A dead home has no channel that could be closed.
                let _ = self.tell(local, self.id.home, &Head::Close, None);
                return self.return_slots(local, unused);
            };
            let mut steps = Vec::new();
            home.borrow_mut().close(&mut steps);
            self.carry_out(local, steps);
        });
    }

    /// At the home: the last sender is gone anywhere, or the last receiver, if `is_receiver`.
    pub(super) fn handles_are_gone(self: &Rc<Self>, is_receiver: bool) {
        let abandoned = Local::try_with(|local| {
            let mut steps = Vec::new();
            let mut left = Vec::new();
            if let Some(home) = &self.home {
                let mut home = home.borrow_mut();
                if is_receiver { left = home.abandon(&mut steps) } else { home.close(&mut steps) }
            }
            self.carry_out(local, steps);
            self.handles.set(self.handles.get() - 1);
            let freed =
                (self.handles.get() == 0).then(|| local.services.channels.borrow_mut().ends.remove(&self.id));
            (left, freed)
        });
        drop(abandoned);
    }

    pub(super) fn return_slots(&self, local: &Local, slots: u32) {
        if slots > 0 {
            // A dead home needs none.
            let _ = self.tell(local, self.id.home, &Head::ReturnSlots(slots), None);
        }
    }

    /// A value that was among the answers is not there any more; `is_taken` by its task, or to be put back.
    fn settle_one(self: &Rc<Self>, local: &Local, is_taken: bool) {
        self.untaken.set(self.untaken.get() - 1);
        if let (Some(home), true) = (&self.home, is_taken) {
            let mut steps = Vec::new();
            home.borrow_mut().taken(&mut steps);
            self.carry_out(local, steps);
        }
    }

    /// Tells the home, if it wants to know, that no value is left here.
    pub(super) fn say_if_settled(&self, local: &Local) {
        if self.untaken.get() == 0 && self.is_settling.take() {
            // A dead home need not know.
            let _ = self.tell(local, self.id.home, &Head::Settled, None);
        }
    }

    fn put_back(self: &Rc<Self>, local: &Local, value: T) {
        let Some(home) = &self.home else {
            // A dead home has no buffer to put it into.
            let _ = self.tell(local, self.id.home, &Head::PutBack, Some(&value));
            return;
        };
        let mut steps = Vec::new();
        let nobody = home.borrow_mut().put_back(self.here, value, &mut steps);
        self.carry_out(local, steps);
        // A value of this place is always taken back.
        drop(nobody);
    }

    /// Sends a message; what becomes of the operation if that is not possible.
    pub(super) fn tell(
        &self,
        local: &Local,
        to: PlaceId,
        head: &Head,
        value: Option<&T>,
    ) -> Result<(), Answer<T>> {
        let sent = local.send(to, Class::Data, Handler::Channel.id(), |writer| {
            writer.put_serde(&(self.id, head))?;
            value.map_or(Ok(()), |value| writer.put_value(value))
        });
        match sent {
            Ok(_) => Ok(()),
            Err(Unsent::DeadPlace(_)) => Err(Answer::Dead),
            Err(unsent) => Err(Answer::Faulty(Error::from(unsent).text().to_owned())),
        }
    }

    pub(super) fn carry_out(self: &Rc<Self>, local: &Local, steps: Vec<ChannelStep<T>>) {
        self.steps.carry(steps, |step| self.carry_out_one(local, step));
    }

    fn carry_out_one(self: &Rc<Self>, local: &Local, step: ChannelStep<T>) {
        let (id, answer, head) = match step {
            ChannelStep::Deliver(id, value) => return self.deliver(local, id, value),
            ChannelStep::Accept(id, slots) => (id, Answer::Accepted, Head::Accepted(id.number, slots)),
            ChannelStep::Refuse(id, value) => (id, Answer::Refused(value), Head::Refused(id.number)),
            ChannelStep::End(id) => (id, Answer::Ended, Head::Ended(id.number)),
            ChannelStep::Grant(id) => (id, Answer::Granted, Head::Granted(id.number)),
            // What a dead place is to be told is told to nobody.
            ChannelStep::Announce(to, slots) => {
                return drop(self.tell(local, to, &Head::Slots(slots), None));
            }
            ChannelStep::Recall(to) => return drop(self.tell(local, to, &Head::Recall, None)),
            ChannelStep::Close(to) => return drop(self.tell(local, to, &Head::Closed, None)),
            ChannelStep::Settle(to) => return drop(self.tell(local, to, &Head::Settle, None)),
        };
        if id.place == self.here {
            self.answer(local, id.number, answer);
        } else {
            // As above.
            let _ = self.tell(local, id.place, &head, None);
        }
    }

    pub(super) fn deliver(self: &Rc<Self>, local: &Local, id: OperationId, value: T) {
        if id.place == self.here {
            return self.answer(local, id.number, Answer::Value(value));
        }
        if let Err(Answer::Faulty(text)) = self.tell(local, id.place, &Head::Value(id.number), Some(&value)) {
            // As above.
            let _ = self.tell(local, id.place, &Head::Faulty(id.number, text), None);
        }
    }

    /// Lets the home pay for one operation.
    #[inline]
    pub(super) fn charge(&self, local: &Local) {
        if let (Some(access), Some(observer)) = (&self.access, local.endpoint().observer()) {
            observer.work(access);
        }
    }

    fn new_number(&self) -> u64 {
        let number = self.next.get();
        self.next.set(number + 1);
        number
    }

    fn wait(&self, number: u64, what: &'static str, caller: &'static Location<'static>) {
        self.waits.borrow_mut().insert(number, Wait::Pending { waker: None, what, caller });
    }

    /// What became of an operation, if that is known; else notes whom to wake.
    pub(super) fn poll(self: &Rc<Self>, number: u64, waker: &Waker) -> Poll<Answer<T>> {
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
                let Some(Wait::Answered(answer)) = wait else { return Poll::Ready(Answer::Ended) };
                if let Answer::Value(_) = answer {
                    Local::with(|local| {
                        self.settle_one(local, true);
                        self.say_if_settled(local);
                    });
                }
                Poll::Ready(answer)
            }
        }
    }

    /// The answer to an operation of this place has come.
    pub(super) fn answer(self: &Rc<Self>, local: &Local, number: u64, answer: Answer<T>) {
        let mut waits = self.waits.borrow_mut();
        match waits.get_mut(&number) {
            Some(wait @ Wait::Pending { .. }) => {
                if let Answer::Value(_) = answer {
                    self.untaken.set(self.untaken.get() + 1);
                }
                let pending = std::mem::replace(wait, Wait::Answered(answer));
                drop(waits);
                if let Wait::Pending { waker: Some(waker), .. } = pending {
                    waker.wake();
                }
            }
            Some(Wait::GivenUp) => {
                waits.remove(&number);
                drop(waits);
                self.undo(local, answer);
            }
            // An answer that is there already stands; a second one is no sound home's.
            Some(Wait::Answered(_)) | None => {
                drop(waits);
                self.undo(local, answer);
            }
        }
        self.forget_if_unused(local);
    }

    /// Puts back what an answer brings for which nobody waits.
    fn undo(self: &Rc<Self>, local: &Local, answer: Answer<T>) {
        match answer {
            Answer::Value(value) => self.put_back(local, value),
            Answer::Granted if self.home.is_none() => self.return_slots(local, 1),
            Answer::Granted => {
                let mut steps = Vec::new();
                if let Some(home) = &self.home {
                    // It was given to this place.
                    let _ = home.borrow_mut().return_slots(self.here, 1, &mut steps);
                }
                self.carry_out(local, steps);
            }
            _ => {}
        }
    }

    /// Ends an operation before it is over. Without `is_awaited` nobody will ask for the answer; else it comes soon.
    pub(super) fn cancel(self: &Rc<Self>, number: u64, is_awaited: bool) {
        Local::try_with(|local| {
            let mut waits = self.waits.borrow_mut();
            let is_pending = matches!(waits.get(&number), Some(Wait::Pending { .. }));
            let before = match (is_pending, is_awaited) {
                (true, true) | (false, true) => None,
                (true, false) => waits.insert(number, Wait::GivenUp),
                (false, false) => waits.remove(&number),
            };
            drop(waits);
            if let Some(Wait::Answered(answer)) = before {
                if let Answer::Value(_) = answer {
                    self.settle_one(local, false);
                }
                self.undo(local, answer);
                self.say_if_settled(local);
            }
            if is_pending {
                self.cancel_at_home(local, number);
            }
            self.forget_if_unused(local);
        });
    }

    fn cancel_at_home(self: &Rc<Self>, local: &Local, number: u64) {
        let Some(home) = &self.home else {
            // A dead home answers by its death.
            let _ = self.tell(local, self.id.home, &Head::Cancel(number), None);
            return;
        };
        let mut steps = Vec::new();
        let cancelled = home.borrow_mut().cancel(OperationId { place: self.here, number }, &mut steps);
        self.carry_out(local, steps);
        if let Some(value) = cancelled {
            self.answer(local, number, Answer::Cancelled(value));
        }
    }

    /// One handle more here.
    pub(super) fn retain(&self) {
        if self.home.is_none() {
            self.handles.set(self.handles.get() + 1);
        }
    }

    /// What is left of the channel here goes when no handle and no operation is left.
    fn forget_if_unused(&self, local: &Local) {
        if self.home.is_none() && self.handles.get() == 0 && self.waits.borrow().is_empty() {
            // First, because to return slots may deliver a message that brings more.
            let end = local.services.channels.borrow_mut().ends.remove(&self.id);
            let unused = self.slots.borrow_mut().recall();
            self.return_slots(local, unused);
            drop(end);
        }
    }
}

impl<T> End<T> {
    /// How many values the channel holds at most.
    pub(super) fn capacity(&self) -> u32 {
        self.capacity
    }

    /// The place of the buffer.
    pub(super) fn home(&self) -> PlaceId {
        self.id.home
    }

    /// The name of the channel.
    pub(super) fn id(&self) -> ChannelId {
        self.id
    }
}

impl<T: CanSend> End<T> {
    /// One handle less here.
    pub(super) fn release(&self) {
        if self.home.is_none() {
            self.handles.set(self.handles.get().saturating_sub(1));
            Local::try_with(|local| self.forget_if_unused(local));
        }
    }
}

impl<T: CanSend> AnyEnd for End<T> {
    fn receive(
        self: Rc<Self>,
        local: &Local,
        source: PlaceId,
        head: Head,
        reader: &mut Reader<'_>,
    ) -> Result<(), Refused> {
        match &self.home {
            Some(home) => self.receive_at_home(local, source, head, reader, home),
            None if source == self.id.home => self.receive_from_home(local, head, reader),
            None => Err(Refused::NotItsHome),
        }
    }

    fn place_died(self: Rc<Self>, local: &Local, place: PlaceId) {
        if let Some(home) = &self.home {
            let mut steps = Vec::new();
            let left = home.borrow_mut().place_died(place, &mut steps);
            self.carry_out(local, steps);
            return drop(left);
        }
        if place == self.id.home {
            let mut numbers: Vec<u64> = self.waits.borrow().keys().copied().collect();
            numbers.sort_unstable();
            numbers.into_iter().for_each(|number| self.die(local, number));
        }
    }

    fn explain(&self) -> Vec<String> {
        let line = |wait: &Wait<T>| match wait {
            Wait::Pending { what, caller, .. } => {
                Some(format!("{what} a channel of {}, at {caller}", self.id.home))
            }
            _ => None,
        };
        let waits = self.waits.borrow();
        let mut waiting: Vec<_> = waits.iter().collect();
        waiting.sort_unstable_by_key(|(number, _)| **number);
        waiting.into_iter().filter_map(|(_, wait)| line(wait)).collect()
    }

    fn into_any(self: Rc<Self>) -> Rc<dyn Any> {
        self
    }
}

impl<T: CanSend> End<T> {
    /// The home of a waiting operation is dead.
    fn die(self: &Rc<Self>, local: &Local, number: u64) {
        let is_answered = matches!(self.waits.borrow().get(&number), Some(Wait::Answered(_)));
        if !is_answered {
            self.answer(local, number, Answer::Dead);
        }
    }
}
