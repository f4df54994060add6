//! A channel at one place: its home, or what another place keeps of it.
//!
//! Carries out what the protocol says, and keeps the operations that wait here. A value moves: it is in the home, in a
//! message, in an answer that nobody has taken yet, or with its task. Invariant: nothing is borrowed while a message is
//! sent, a value is dropped, or a task is woken.

use super::control_block::{Answer, AnyEnd, ControlBlock, access};
use super::message::{ChannelId, Head};
use crate::capture::CanSend;
use crate::local::output_queue::OutputQueue;
use crate::local::{Clock, Local};
use crate::message::Refused;
use crate::wire::Reader;
use isles_protocol::PlaceId;
use isles_protocol::channel::{ChannelHome, ChannelStep, Offered, OperationId, Wanted};
use std::any::Any;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::Location;
use std::rc::Rc;
use std::task::{Poll, Waker, ready};

/// A channel at one place.
pub(crate) struct End<T> {
    pub(super) control: ControlBlock,
    /// The buffer, if this is the home.
    pub(super) home: Option<RefCell<ChannelHome<T>>>,
    /// The values of answers that nobody has asked for yet, by operation; mostly asked for in the order in which they
    /// came.
    values: RefCell<VecDeque<(u64, T)>>,
    steps: OutputQueue<ChannelStep<T>>,
}

impl<T: CanSend> End<T> {
    /// A new channel whose home is here, counted by two kinds of handles.
    pub(super) fn make(local: &Local, capacity: u32) -> Rc<End<T>> {
        let id = local.services.channels.borrow_mut().new_id(local.here());
        let home = ChannelHome::new(local.here(), capacity);
        let access = matches!(local.clock(), Clock::Modelled(_)).then(|| access(size_of::<T>(), capacity));
        let control = ControlBlock::new(id, local.here(), capacity, access);
        let end = End::new(control, Some(RefCell::new(home)));
        local.services.channels.borrow_mut().insert(id, Rc::clone(&end) as Rc<dyn AnyEnd>);
        local.tally.count_message(|counts| counts.channels_made += 1);
        end
    }

    /// The channel of this name here, for a handle that has arrived; none if it is not that of a `T`, or gone.
    pub(super) fn of(local: &Local, id: ChannelId, capacity: u32) -> Option<Rc<End<T>>> {
        let known = local.services.channels.borrow().get(id);
        let end = match known {
            Some(end) => end.into_any().downcast::<End<T>>().ok()?,
            None if id.home == local.here() || id.home.0 >= local.places() => return None,
            None => {
                let end = End::new(ControlBlock::new(id, local.here(), capacity, None), None);
                local.services.channels.borrow_mut().insert(id, Rc::clone(&end) as Rc<dyn AnyEnd>);
                end
            }
        };
        end.control.retain();
        Some(end)
    }

    fn new(control: ControlBlock, home: Option<RefCell<ChannelHome<T>>>) -> Rc<End<T>> {
        Rc::new(End { control, home, values: RefCell::default(), steps: OutputQueue::default() })
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
        self.control.charge(local);
        if let Some(offered) = value.take_if(|_| !asks) {
            match home.borrow_mut().offer_at_once(offered) {
                Ok(()) => return Ok(Answer::Accepted),
                Err(back) => *value = Some(back),
            }
        }
        let (number, mut steps) = (self.control.new_number(), Vec::new());
        let id = OperationId { place: self.control.here, number };
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
            self.control.wait(number, "room in", caller);
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
        match self.control.take_slot(local) {
            Ok(true) => return Ok(self.send_item(local, value)),
            Ok(false) => {}
            Err(answer) => return Ok(answer.join(None)),
        }
        let number = self.control.new_number();
        let answer = match (&*value, asks || !waits) {
            (Some(value), false) => {
                self.control.wait(number, "room in", caller);
                let sent = self.tell(local, self.control.id.home, &Head::Offer(number), value);
                self.control.waits_if_sent(number, sent)
            }
            _ => self.control.ask(local, (number, "room in", caller), &Head::Ask(number, waits)),
        };
        answer.map(|answer| answer.join(None))
    }

    /// Sends the value for which there is a slot.
    pub(super) fn commit(self: &Rc<Self>, value: &mut Option<T>) -> Answer<T> {
        Local::with(|local| {
            let Some(home) = &self.home else { return self.send_item(local, value) };
            let Some(taken) = value.take() else { return Answer::Refused(None) };
            self.control.charge(local);
            let mut steps = Vec::new();
            let back = home.borrow_mut().item(self.control.here, taken, &mut steps);
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
        match self.tell(local, self.control.id.home, &Head::Item, item) {
            Ok(()) => {
                *value = None;
                Answer::Accepted
            }
            Err(answer) => {
                // Nothing was sent: the slot is still there.
                self.control.return_slots(local, 1);
                answer.join(None)
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
            if self.control.access.is_some() {
                Local::with(|local| self.control.charge(local));
            }
            return Ok(Answer::Value(value));
        }
        Local::with(|local| {
            let number = self.control.new_number();
            let Some(home) = &self.home else {
                let asked =
                    self.control.ask(local, (number, "a value of", caller), &Head::Want(number, waits));
                return asked.map(|answer| answer.join(None));
            };
            self.control.charge(local);
            let mut steps = Vec::new();
            let id = OperationId { place: self.control.here, number };
            let wanted = home.borrow_mut().want(id, waits, &mut steps);
            if matches!(wanted, Wanted::Waits) {
                self.control.wait(number, "a value of", caller);
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
        let number = self.control.new_number();
        let what = (number, "the length of", caller);
        let asked = Local::with(|local| self.control.ask(local, what, &Head::Count(number)));
        asked.map(|answer| answer.join(None))
    }

    /// Nothing shall be sent any more, says a task here.
    pub(super) fn close(self: &Rc<Self>) {
        Local::try_with(|local| {
            let Some(home) = &self.home else { return self.control.close_from_afar(local) };
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
            (left, self.control.release_kind(local))
        });
        drop(abandoned);
    }

    /// A value that was among the answers is not there any more; `is_taken` by its task, or to be put back.
    fn settle_one(self: &Rc<Self>, local: &Local, is_taken: bool) {
        self.control.untaken.set(self.control.untaken.get() - 1);
        if let (Some(home), true) = (&self.home, is_taken) {
            let mut steps = Vec::new();
            home.borrow_mut().taken(&mut steps);
            self.carry_out(local, steps);
        }
    }

    fn put_back(self: &Rc<Self>, local: &Local, value: T) {
        let Some(home) = &self.home else {
            // A dead home has no buffer to put it into.
            let _ = self.tell(local, self.control.id.home, &Head::PutBack, &value);
            return;
        };
        let mut steps = Vec::new();
        let nobody = home.borrow_mut().put_back(self.control.here, value, &mut steps);
        self.carry_out(local, steps);
        // A value of this place is always taken back.
        drop(nobody);
    }

    /// As [`ControlBlock::tell`], with a value.
    fn tell(&self, local: &Local, to: PlaceId, head: &Head, value: &T) -> Result<(), Answer<()>> {
        self.control.tell_with(local, to, head, &|writer| writer.put_value(value))
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
                return drop(self.control.tell(local, to, &Head::Slots(slots)));
            }
            ChannelStep::Recall(to) => return drop(self.control.tell(local, to, &Head::Recall)),
            ChannelStep::Close(to) => return drop(self.control.tell(local, to, &Head::Closed)),
            ChannelStep::Settle(to) => return drop(self.control.tell(local, to, &Head::Settle)),
        };
        if id.place == self.control.here {
            self.answer(local, id.number, answer);
        } else {
            // As above.
            let _ = self.control.tell(local, id.place, &head);
        }
    }

    pub(super) fn deliver(self: &Rc<Self>, local: &Local, id: OperationId, value: T) {
        if id.place == self.control.here {
            return self.answer(local, id.number, Answer::Value(value));
        }
        if let Err(Answer::Faulty(text)) = self.tell(local, id.place, &Head::Value(id.number), &value) {
            // As above.
            let _ = self.control.tell(local, id.place, &Head::Faulty(id.number, text));
        }
    }

    /// What became of an operation, if that is known; else notes whom to wake.
    pub(super) fn poll(self: &Rc<Self>, number: u64, waker: &Waker) -> Poll<Answer<T>> {
        let answer = ready!(self.control.poll(number, waker));
        let value = if answer.has_value() { self.take_value(number) } else { None };
        if let Answer::Value(()) = answer {
            Local::with(|local| {
                self.settle_one(local, true);
                self.control.say_if_settled(local);
            });
        }
        Poll::Ready(answer.join(value))
    }

    /// The value of an answer that is asked for, or given up.
    fn take_value(&self, number: u64) -> Option<T> {
        let mut values = self.values.borrow_mut();
        let found = values.iter().position(|(of, _)| *of == number)?;
        values.remove(found).map(|(_, value)| value)
    }

    /// The answer to an operation of this place has come.
    pub(super) fn answer(self: &Rc<Self>, local: &Local, number: u64, answer: Answer<T>) {
        let (answer, value) = answer.split();
        match self.control.note_answer(number, answer) {
            Ok(waker) => {
                if let Some(value) = value {
                    self.values.borrow_mut().push_back((number, value));
                }
                if let Some(waker) = waker {
                    waker.wake();
                }
            }
            Err(answer) => self.undo(local, answer.join(value)),
        }
        self.control.forget_if_unused(local);
    }

    /// Puts back what an answer brings for which nobody waits.
    fn undo(self: &Rc<Self>, local: &Local, answer: Answer<T>) {
        match answer {
            Answer::Value(value) => self.put_back(local, value),
            Answer::Granted if self.home.is_none() => self.control.return_slots(local, 1),
            Answer::Granted => {
                let mut steps = Vec::new();
                if let Some(home) = &self.home {
                    // It was given to this place.
                    let _ = home.borrow_mut().return_slots(self.control.here, 1, &mut steps);
                }
                self.carry_out(local, steps);
            }
            _ => {}
        }
    }

    /// Ends an operation before it is over. Without `is_awaited` nobody will ask for the answer; else it comes soon.
    pub(super) fn cancel(self: &Rc<Self>, number: u64, is_awaited: bool) {
        Local::try_with(|local| {
            let (is_pending, answer) = self.control.give_up(number, is_awaited);
            if let Some(answer) = answer {
                let value = if answer.has_value() { self.take_value(number) } else { None };
                if let Answer::Value(()) = answer {
                    self.settle_one(local, false);
                }
                self.undo(local, answer.join(value));
                self.control.say_if_settled(local);
            }
            if is_pending {
                self.cancel_at_home(local, number);
            }
            self.control.forget_if_unused(local);
        });
    }

    fn cancel_at_home(self: &Rc<Self>, local: &Local, number: u64) {
        let Some(home) = &self.home else {
            // A dead home answers by its death.
            let _ = self.control.tell(local, self.control.id.home, &Head::Cancel(number));
            return;
        };
        let mut steps = Vec::new();
        let cancelled =
            home.borrow_mut().cancel(OperationId { place: self.control.here, number }, &mut steps);
        self.carry_out(local, steps);
        if let Some(value) = cancelled {
            self.answer(local, number, Answer::Cancelled(value));
        }
    }
}

impl<T: CanSend> AnyEnd for End<T> {
    fn control(&self) -> &ControlBlock {
        &self.control
    }

    fn receive(
        self: Rc<Self>,
        local: &Local,
        source: PlaceId,
        head: Head,
        reader: &mut Reader<'_>,
    ) -> Result<(), Refused> {
        match &self.home {
            Some(home) => self.receive_at_home(local, source, head, reader, home),
            None if source == self.control.id.home => self.receive_from_home(local, head, reader),
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
        if place == self.control.id.home {
            self.control.numbers().into_iter().for_each(|number| self.die(local, number));
        }
    }

    fn into_any(self: Rc<Self>) -> Rc<dyn Any> {
        self
    }
}

impl<T: CanSend> End<T> {
    /// The home of a waiting operation is dead.
    fn die(self: &Rc<Self>, local: &Local, number: u64) {
        if !self.control.is_answered(number) {
            self.answer(local, number, Answer::Dead);
        }
    }
}
