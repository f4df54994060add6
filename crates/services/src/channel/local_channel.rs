//! A channel at one place: its home, or what another place keeps of it.
//!
//! Carries out what the protocol says, and keeps the operations that wait here. A value moves: it is in the home, in a
//! message, among those that have come here, or with its task. Invariant: nothing is borrowed while a message is sent,
//! a value is dropped, or a task is woken.

use super::control_block::{AnyChannel, ControlBlock, access, value_bytes};
use super::message::{ChannelId, ChannelMessage};
use super::ring::{RingShape, TakeFrom};
use super::waits::ChannelAnswer;
use crate::channel::control_block::ChannelTable;
use isles_protocol::PlaceId;
use isles_protocol::channel::{ArrivalStep, Cancelled, ChannelHome, ChannelStep, Choice, HeldResource};
use isles_protocol::channel::{OfferOutcome, OperationId, WantOutcome};
use isles_runtime::capture::CanSend;
use isles_runtime::service::{OutputQueue, Refused, drop_caught};
use isles_runtime::wire::Reader;
use isles_runtime::{Clock, Local};
use isles_telemetry::CounterId;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::panic::Location;
use std::rc::Rc;

/// Longer memory for steps is not kept.
const SPARE_BYTES_MAX: usize = 1 << 10;

/// Options of a send. Passed by reference: a copy would stall on store forwarding.
pub(super) struct SendOptions {
    /// True if room is reserved first, while the value stays with the task.
    pub(super) reserves: bool,
    /// True if the send waits for room.
    pub(super) blocking: bool,
    /// The `select!` of which it is a branch.
    pub(super) choice: Choice,
}

/// A channel at one place.
pub(crate) struct LocalChannel<T> {
    pub(super) control: ControlBlock,
    /// The buffer, if this is the home.
    pub(super) home: Option<RefCell<ChannelHome<T>>>,
    /// The values that have come for receives of this place, each with the one for which it came.
    arrived: RefCell<VecDeque<(u64, T)>>,
    /// Values of sends of the home that come back to them.
    returned: RefCell<Vec<(u64, T)>>,
    steps: OutputQueue<ChannelStep<T>>,
    /// Memory for the next steps, which are few each time.
    spare: Cell<Vec<ChannelStep<T>>>,
}

impl<T: CanSend> LocalChannel<T> {
    /// A new channel whose home is here, counted by two kinds of handles.
    pub(super) fn make(local: &Local, capacity: u32) -> Rc<LocalChannel<T>> {
        let id = ChannelTable::of(local).borrow_mut().new_id(local.here());
        let home = ChannelHome::new(local.here(), capacity);
        let access = matches!(local.clock(), Clock::Modelled(_)).then(|| access(size_of::<T>(), capacity));
        let control = ControlBlock::new(local, id, (capacity, RingShape::of::<T>(capacity)), access);
        let end = LocalChannel::new(control, Some(RefCell::new(home)));
        ChannelTable::of(local).borrow_mut().insert(id, Rc::clone(&end) as Rc<dyn AnyChannel>);
        local.add_count(CounterId::ChannelsMade, 1);
        end
    }

    /// The channel of this name here, for a handle that has arrived; none if it is not that of a `T`, or gone.
    pub(super) fn of(local: &Local, id: ChannelId, capacity: u32) -> Option<Rc<LocalChannel<T>>> {
        let known = ChannelTable::of(local).borrow().get(id);
        let end = match known {
            Some(end) => end.into_any().downcast::<LocalChannel<T>>().ok()?,
            None if id.home == local.here() || id.home.0 >= local.places() => return None,
            None => {
                let shape = RingShape::of::<T>(capacity);
                let end = LocalChannel::new(ControlBlock::new(local, id, (capacity, shape), None), None);
                ChannelTable::of(local).borrow_mut().insert(id, Rc::clone(&end) as Rc<dyn AnyChannel>);
                end
            }
        };
        end.control.retain();
        Some(end)
    }

    fn new(control: ControlBlock, home: Option<RefCell<ChannelHome<T>>>) -> Rc<LocalChannel<T>> {
        let (arrived, returned) = (RefCell::default(), RefCell::default());
        let (steps, spare) = (OutputQueue::default(), Cell::default());
        Rc::new(LocalChannel { control, home, arrived, returned, steps, spare })
    }

    fn id(&self, number: u64) -> OperationId {
        OperationId { place: self.control.here, number }
    }

    /// Begins to send `value`, which stays there if it is not sent. Ready if it is over; else the number to ask for.
    #[inline]
    pub(super) fn send(
        self: &Rc<Self>,
        local: &Local,
        value: &mut Option<T>,
        options: &SendOptions,
        caller: &'static Location<'static>,
    ) -> Result<ChannelAnswer, u64> {
        if self.control.attachment != local.attachment() {
            return Ok(ChannelAnswer::Foreign);
        }
        let Some(home) = &self.home else { return self.send_there(local, value, options, caller) };
        self.control.charge(local);
        if let Some(offered) = value.take_if(|_| !options.reserves) {
            match home.borrow_mut().offer_at_once(offered) {
                Ok(()) => return Ok(ChannelAnswer::Accepted),
                Err(back) => *value = Some(back),
            }
        }
        self.send_here(local, home, value, options, caller)
    }

    /// As [`LocalChannel::send`], at the home, where there is more to do than to put the value into the buffer.
    #[inline(never)]
    fn send_here(
        self: &Rc<Self>,
        local: &Local,
        home: &RefCell<ChannelHome<T>>,
        value: &mut Option<T>,
        options: &SendOptions,
        caller: &'static Location<'static>,
    ) -> Result<ChannelAnswer, u64> {
        let (number, mut steps) = (self.control.new_number(), self.new_steps());
        let outcome = if options.reserves {
            let asked = home.borrow_mut().ask(self.id(number), options.choice, options.blocking, &mut steps);
            match asked {
                OfferOutcome::Accepted(_) => {
                    steps.push(ChannelStep::Grant(self.id(number)));
                    Err(number)
                }
                OfferOutcome::Waits => Err(number),
                OfferOutcome::Refused(()) => Ok(ChannelAnswer::Refused),
                OfferOutcome::Full(()) => Ok(ChannelAnswer::Full),
            }
        } else {
            let Some(offered) = value.take() else { return Ok(ChannelAnswer::Refused) };
            let offered = home.borrow_mut().offer(self.id(number), offered, options.blocking, &mut steps);
            match offered {
                OfferOutcome::Accepted(_) => Ok(ChannelAnswer::Accepted),
                OfferOutcome::Waits => Err(number),
                OfferOutcome::Refused(back) => {
                    *value = Some(back);
                    Ok(ChannelAnswer::Refused)
                }
                OfferOutcome::Full(back) => {
                    *value = Some(back);
                    Ok(ChannelAnswer::Full)
                }
            }
        };
        if outcome.is_err() {
            self.control.wait(number, "room in", caller);
        }
        self.execute_steps(local, steps);
        outcome
    }

    /// Sends the value of an operation that was granted room. Ready if it is over; of a rendezvous, it waits until the
    /// value is taken, or is declined.
    pub(super) fn choose(
        self: &Rc<Self>,
        number: u64,
        value: &mut Option<T>,
        caller: &'static Location<'static>,
    ) -> Option<ChannelAnswer> {
        Local::with(|local| {
            let Some(home) = &self.home else { return self.choose_there(local, number, value, caller) };
            let chosen = value.take()?;
            self.control.charge(local);
            let mut steps = self.new_steps();
            let outcome = home.borrow_mut().choose(self.id(number), chosen, &mut steps);
            let answer = match outcome {
                Ok(OfferOutcome::Accepted(_)) => Some(ChannelAnswer::Accepted),
                Ok(OfferOutcome::Refused(back)) => {
                    *value = Some(back);
                    Some(ChannelAnswer::Refused)
                }
                Ok(_) => None,
                Err(_) => unreachable!("the room was granted to this operation"),
            };
            if answer.is_none() {
                self.control.wait(number, "a receiver of", caller);
            }
            self.execute_steps(local, steps);
            answer
        })
    }

    fn send_taken(self: &Rc<Self>, local: &Local, number: u64) {
        let is_rendezvous = self.control.is_rendezvous();
        let Some(home) = &self.home else {
            if is_rendezvous {
                // A dead home has no sender that waits.
                let _ = self.control.send_message(
                    local,
                    self.control.id.home,
                    &ChannelMessage::Taken { operation: number },
                );
            }
            return;
        };
        let mut steps = self.new_steps();
        if is_rendezvous {
            // It has the value of none that is here.
            let _ = home.borrow_mut().taken(self.id(number), &mut steps);
        } else {
            home.borrow_mut().forget_lent(&mut steps);
        }
        self.execute_steps(local, steps);
    }

    /// A value that is nobody's here goes back.
    fn put_back(self: &Rc<Self>, local: &Local, number: u64, value: T) {
        let mut steps = self.new_steps();
        let left = match &self.home {
            // A dead home has no buffer, and no sender that waits.
            None if self.control.is_rendezvous() => {
                let _ = self.control.send_message(
                    local,
                    self.control.id.home,
                    &ChannelMessage::NotTaken { operation: number },
                );
                Some(value)
            }
            None => {
                let _ = self.send_message(local, self.control.id.home, &ChannelMessage::PutBack, &value);
                Some(value)
            }
            Some(home) if self.control.is_rendezvous() => {
                // The value here was lent.
                let _ = home.borrow_mut().not_taken(self.id(number), Some(value), &mut steps);
                None
            }
            // A value of this place is always taken back.
            Some(home) => home.borrow_mut().put_back(self.control.here, value, &mut steps).ok().flatten(),
        };
        self.execute_steps(local, steps);
        drop_caught(left);
    }

    /// Waits on, after the value that was sent has been declined.
    pub(super) fn wait_again(&self, number: u64, caller: &'static Location<'static>) {
        self.control.wait(number, "room in", caller);
    }

    /// Begins to receive into `value`; as [`LocalChannel::send`].
    #[inline]
    pub(super) fn receive_value(
        self: &Rc<Self>,
        local: &Local,
        value: &mut Option<T>,
        how: (bool, &Choice),
        caller: &'static Location<'static>,
    ) -> Result<ChannelAnswer, u64> {
        if self.control.attachment != local.attachment() {
            return Ok(ChannelAnswer::Foreign);
        }
        if let Some(home) = &self.home {
            self.control.charge(local);
            let mut steps = Vec::new(); // mostly there are none
            let mut next = home.borrow_mut().want_at_once(&mut steps);
            if next.is_none() && self.control.inward.are_used.get() {
                next = self.pass_from_rings(local, home, &mut steps);
            }
            if let Some(next) = next {
                *value = Some(self.exchange(next));
                if !steps.is_empty() {
                    self.execute_steps(local, steps);
                }
                return Ok(ChannelAnswer::Ready);
            }
        }
        self.receive_slow(local, value, how, caller)
    }

    /// As [`LocalChannel::receive_value`], where there is more to do than to take a value out of the buffer.
    #[inline(never)]
    fn receive_slow(
        self: &Rc<Self>,
        local: &Local,
        value: &mut Option<T>,
        (waits, choice): (bool, &Choice),
        caller: &'static Location<'static>,
    ) -> Result<ChannelAnswer, u64> {
        // Inside of another future it belongs to the `select!` around that.
        let within = || ChannelTable::of(local).borrow().choice_within();
        let choice = choice.or_else(|| if self.control.is_rendezvous() { within() } else { None });
        let Some(home) = &self.home else { return self.receive_there(local, (waits, choice), caller) };
        let mut steps = self.new_steps();
        // Values that lie here for others would come first.
        if self.control.is_rendezvous() && self.arrived.borrow().is_empty() {
            *value = home.borrow_mut().take_offer(&mut steps);
            if value.is_some() {
                self.execute_steps(local, steps);
                return Ok(ChannelAnswer::Ready);
            }
        }
        let number = self.control.new_number();
        self.fill_from_rings(local, home, &mut steps);
        let wanted = home.borrow_mut().want(self.id(number), choice, waits, &mut steps);
        if matches!(wanted, WantOutcome::Waits) {
            self.watch_rings(local);
            self.control.wait(number, "a value of", caller);
            self.control.arrivals.borrow_mut().begin(number);
        }
        self.execute_steps(local, steps);
        match wanted {
            WantOutcome::Value(next) => {
                *value = Some(self.exchange(next));
                Ok(ChannelAnswer::Ready)
            }
            WantOutcome::Waits => Err(number),
            WantOutcome::Ended => Ok(ChannelAnswer::Ended),
            WantOutcome::Empty => Ok(ChannelAnswer::Empty),
        }
    }

    /// Returns the value for a task of the home that has one at once; if earlier ones lie here for others, it is the
    /// first of them.
    #[inline]
    fn exchange(&self, value: T) -> T {
        let mut arrived = self.arrived.borrow_mut();
        match arrived.pop_front() {
            Some((number, first)) => {
                arrived.push_back((number, value));
                first
            }
            None => value,
        }
    }

    /// Takes the first value that is here, for a receive that was told so.
    pub(super) fn take_arrived(self: &Rc<Self>) -> Option<T> {
        let (number, value) = self.arrived.borrow_mut().pop_front()?;
        self.control.arrivals.borrow_mut().take();
        self.control.attachment.try_with(|local| {
            self.send_taken(local, number);
            self.control.report_if_settled(local);
        });
        Some(value)
    }

    /// Closes the channel on behalf of a task here: nothing can be sent any more.
    pub(super) fn close(self: &Rc<Self>) {
        self.control.attachment.try_with(|local| {
            let Some(home) = &self.home else { return self.control.close_remotely(local) };
            let mut steps = self.new_steps();
            home.borrow_mut().close(&mut steps);
            self.execute_steps(local, steps);
        });
    }

    /// Ends one side at the home: the last sender is gone anywhere, or the last receiver, if `is_receiver`.
    pub(super) fn close_side(self: &Rc<Self>, is_receiver: bool) {
        let abandoned = self.control.attachment.try_with(|local| {
            let mut steps = self.new_steps();
            let mut left = Vec::new();
            if let Some(home) = &self.home {
                let mut home = home.borrow_mut();
                if is_receiver { left = home.abandon(&mut steps) } else { home.close(&mut steps) }
            }
            self.execute_steps(local, steps);
            (left, self.control.release_kind(local))
        });
        drop(abandoned);
    }

    /// As [`ControlBlock::send_message`], with a value.
    pub(super) fn send_message(
        &self,
        local: &Local,
        to: PlaceId,
        head: &ChannelMessage,
        value: &T,
    ) -> Result<(), ChannelAnswer> {
        self.control.send_message_with(local, to, head, value_bytes::<T>(), &|writer| writer.put_value(value))
    }

    /// An empty list for the steps of the protocol.
    #[inline]
    pub(super) fn new_steps(&self) -> Vec<ChannelStep<T>> {
        self.spare.take()
    }

    pub(super) fn execute_steps(self: &Rc<Self>, local: &Local, mut steps: Vec<ChannelStep<T>>) {
        self.steps.process(&mut steps, |step| self.execute_step(local, step));
        if (1..=SPARE_BYTES_MAX).contains(&(steps.capacity() * size_of::<ChannelStep<T>>())) {
            self.spare.set(steps);
        }
    }

    fn execute_step(self: &Rc<Self>, local: &Local, step: ChannelStep<T>) {
        let (id, answer, head, value) = match step {
            ChannelStep::Deliver(id, value) => return self.deliver(local, id, value),
            ChannelStep::Lend(id, value) => return self.lend(local, id, value),
            ChannelStep::Accept(id, slots) => {
                (id, ChannelAnswer::Accepted, ChannelMessage::Accepted { operation: id.number, slots }, None)
            }
            ChannelStep::Refuse(id, value) => {
                (id, ChannelAnswer::Refused, ChannelMessage::Refused { operation: id.number }, value)
            }
            ChannelStep::Full(id, value) => {
                (id, ChannelAnswer::Full, ChannelMessage::Full { operation: id.number }, value)
            }
            ChannelStep::GiveBack(id, value) => (
                id,
                ChannelAnswer::Cancelled,
                ChannelMessage::Cancelled { operation: id.number },
                Some(value),
            ),
            ChannelStep::End(id) => {
                (id, ChannelAnswer::Ended, ChannelMessage::Ended { operation: id.number }, None)
            }
            ChannelStep::Empty(id) => {
                (id, ChannelAnswer::Empty, ChannelMessage::Empty { operation: id.number }, None)
            }
            ChannelStep::Grant(id) => {
                (id, ChannelAnswer::Granted, ChannelMessage::Granted { operation: id.number }, None)
            }
            ChannelStep::Decline(id, value) => {
                (id, ChannelAnswer::Declined, ChannelMessage::Declined { operation: id.number }, Some(value))
            }
            // A dead place is told nothing.
            ChannelStep::Announce(to, slots) => {
                return drop(self.control.send_message(local, to, &ChannelMessage::Slots { count: slots }));
            }
            ChannelStep::Recall(to) => {
                return drop(self.control.send_message(local, to, &ChannelMessage::Recall));
            }
            ChannelStep::Close(to) => {
                return drop(self.control.send_message(local, to, &ChannelMessage::Closed));
            }
            ChannelStep::Settle(to) => {
                return drop(self.control.send_message(local, to, &ChannelMessage::Settle));
            }
        };
        if id.place == self.control.here {
            return self.answer(local, id.number, answer, value);
        }
        // As above. The sender has kept its value; what is here is a copy.
        let _ = self.control.send_message(local, id.place, &head);
        drop_caught(value);
    }

    pub(super) fn deliver(self: &Rc<Self>, local: &Local, id: OperationId, value: T) {
        if id.place == self.control.here {
            return self.arrive(local, id.number, value);
        }
        self.send_granted_value(local, id, &value);
        drop_caught(value);
    }

    /// Sends a copy of the value of a rendezvous, which stays here until it is taken.
    fn lend(self: &Rc<Self>, local: &Local, id: OperationId, value: T) {
        if id.place == self.control.here {
            return self.arrive(local, id.number, value);
        }
        let is_written = self.send_granted_value(local, id, &value);
        let Some(home) = &self.home else { return };
        let mut steps = self.new_steps();
        let unneeded = home.borrow_mut().retain(id, value, &mut steps);
        if !is_written {
            // Its receiver has the error, as of a value that it cannot read.
            let taken = home.borrow_mut().taken(id, &mut steps);
            drop_caught(taken);
        }
        self.execute_steps(local, steps);
        drop_caught(unneeded);
    }

    /// Returns `true` if the value could be written.
    fn send_granted_value(&self, local: &Local, id: OperationId, value: &T) -> bool {
        let sent = self.send_message(local, id.place, &ChannelMessage::Value { operation: id.number }, value);
        let Err(ChannelAnswer::Faulty(fault)) = sent else { return true };
        // A dead place needs no answer.
        let _ = self.control.send_message(
            local,
            id.place,
            &ChannelMessage::Faulty { operation: id.number, text: fault.text().to_owned() },
        );
        false
    }

    /// Delivers a value that has arrived for this receive, or for the next one.
    pub(super) fn arrive(self: &Rc<Self>, local: &Local, number: u64, value: T) {
        self.arrived.borrow_mut().push_back((number, value));
        let step = self.control.arrivals.borrow_mut().arrived(number);
        self.execute_arrival_step(local, step);
        self.control.forget_if_unused(local);
    }

    fn execute_arrival_step(self: &Rc<Self>, local: &Local, step: ArrivalStep) {
        match step {
            ArrivalStep::Nothing => {}
            ArrivalStep::Ready(number) => self.answer_one(number, ChannelAnswer::Ready, None),
            ArrivalStep::Replace(number) => {
                self.answer_one(number, ChannelAnswer::Ready, None);
                self.withdraw(local, number);
            }
            ArrivalStep::Withdraw(number) => self.withdraw(local, number),
            ArrivalStep::PutBack(count) => {
                let mut arrived = self.arrived.borrow_mut();
                let first = arrived.len().saturating_sub(count);
                let back = arrived.split_off(first);
                drop(arrived);
                for (number, value) in back.into_iter().rev() {
                    self.put_back(local, number, value);
                }
                self.control.report_if_settled(local);
            }
        }
    }

    /// Tells the home that nobody waits for the answer to this receive any more.
    fn withdraw(self: &Rc<Self>, local: &Local, number: u64) {
        let Some(home) = &self.home else {
            // A dead home answers by its death.
            let _ = self.control.send_message(
                local,
                self.control.id.home,
                &ChannelMessage::Cancel { operation: number },
            );
            return;
        };
        let mut steps = self.new_steps();
        let cancelled = home.borrow_mut().cancel(self.id(number), &mut steps);
        self.execute_steps(local, steps);
        if let Cancelled::Now(_) = cancelled {
            self.answer(local, number, ChannelAnswer::Cancelled, None);
        }
    }

    /// Ends an operation of this place that was answered, except by a value; `value` comes back to a send.
    pub(super) fn answer(
        self: &Rc<Self>,
        local: &Local,
        number: u64,
        answer: ChannelAnswer,
        value: Option<T>,
    ) {
        let is_of_receive = matches!(
            answer,
            ChannelAnswer::Ended
                | ChannelAnswer::Empty
                | ChannelAnswer::Cancelled
                | ChannelAnswer::Faulty(_)
                | ChannelAnswer::Dead
        ) && self.control.arrivals.borrow().expects(number);
        let step = match is_of_receive {
            true => self.control.arrivals.borrow_mut().ended(number),
            false => None,
        };
        match step {
            Some(step) => self.execute_arrival_step(local, step),
            None => self.answer_one(number, answer, value),
        }
        self.control.forget_if_unused(local);
    }

    fn answer_one(&self, number: u64, answer: ChannelAnswer, value: Option<T>) {
        match self.control.waits.note_answer(number, answer) {
            Ok(waker) => {
                self.returned.borrow_mut().extend(value.map(|value| (number, value)));
                if let Some(waker) = waker {
                    waker.wake();
                }
            }
            Err(_) => drop_caught(value),
        }
    }

    /// The value of a send that has come back to it.
    pub(super) fn take_returned(&self, number: u64) -> Option<T> {
        let mut returned = self.returned.borrow_mut();
        let found = returned.iter().position(|(of, _)| *of == number)?;
        Some(returned.swap_remove(found).1)
    }

    /// Gives up a receive that nobody waits for any more.
    pub(super) fn give_up_receive(self: &Rc<Self>, number: u64) {
        self.control.attachment.try_with(|local| {
            if let Some(is_ready) = self.control.waits.give_up_receive(number) {
                let step = self.control.arrivals.borrow_mut().give_up(number, is_ready);
                self.execute_arrival_step(local, step);
            }
            self.control.forget_if_unused(local);
        });
    }

    /// Gives up a send that nobody waits for any more. If its value had been handed over, it is unknown whether it was
    /// sent.
    pub(super) fn give_up_send(self: &Rc<Self>, number: u64) {
        self.control.attachment.try_with(|local| {
            if self.control.waits.give_up_send(number) {
                self.cancel_send(local, number);
            }
            drop_caught(self.take_returned(number));
            self.control.forget_if_unused(local);
        });
    }

    /// The room that this send was granted, and that it has looked at, is not needed.
    pub(super) fn give_up_room(self: &Rc<Self>, number: u64) {
        self.control.attachment.try_with(|local| self.cancel_send(local, number));
    }

    fn cancel_send(self: &Rc<Self>, local: &Local, number: u64) {
        let Some(home) = &self.home else {
            if self
                .control
                .send_message(local, self.control.id.home, &ChannelMessage::Cancel { operation: number })
                .is_err()
            {
                self.control.waits.forget(number); // a dead home does not answer
            }
            // It may have been accepted, and is the earlier one then.
            self.control.hold_ring();
            return;
        };
        let mut steps = self.new_steps();
        let cancelled = home.borrow_mut().cancel(self.id(number), &mut steps);
        self.execute_steps(local, steps);
        match cancelled {
            Cancelled::Later => {}
            Cancelled::Granted => self.control.waits.forget(number),
            Cancelled::Now(value) => {
                self.control.waits.forget(number);
                drop_caught(value);
            }
        }
    }
}

impl<T: CanSend> AnyChannel for LocalChannel<T> {
    fn control(&self) -> &ControlBlock {
        &self.control
    }

    fn receive(
        self: Rc<Self>,
        local: &Local,
        source: PlaceId,
        head: ChannelMessage,
        reader: &mut Reader<'_>,
    ) -> Result<(), Refused> {
        match &self.home {
            Some(home) => self.receive_at_home(local, source, head, reader, home),
            None if source == self.control.id.home => self.receive_from_home(local, head, reader),
            None => Err(Refused::NotItsHome),
        }
    }

    fn suspend_receive(self: Rc<Self>, local: &Local, number: u64) {
        let Some((is_ready, waker)) = self.control.waits.suspend_receive(number) else { return };
        let step = self.control.arrivals.borrow_mut().give_up(number, is_ready);
        self.execute_arrival_step(local, step);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn explain_holders(&self) -> Vec<String> {
        let mut holders = self.home.as_ref().map_or(Vec::new(), |home| home.borrow().holders());
        holders.sort_unstable();
        holders.dedup();
        let home = self.control.here;
        let line = |(place, holding): (PlaceId, HeldResource)| match holding {
            HeldResource::Room => format!(
                "a task of {place} that was granted room in a channel of {home} and has not run since"
            ),
            HeldResource::Value => {
                format!("a task of {place} to take a value that arrived there over a channel of {home}")
            }
        };
        holders.into_iter().map(line).collect()
    }

    fn serve_from_rings(self: Rc<Self>, local: &Local) -> (usize, bool) {
        let Some(home) = &self.home else { return (0, false) };
        let (any, mut steps, mut served) = (TakeFrom::Any { may_spin: false }, self.new_steps(), 0);
        while home.borrow().receivers() > 0 && self.take_from_rings(local, home, any, &mut steps) {
            served += 1;
        }
        self.execute_steps(local, steps);
        (served, home.borrow().receivers() > 0)
    }

    fn place_died(self: Rc<Self>, local: &Local, place: PlaceId) {
        if let Some(home) = &self.home {
            self.empty_ring(local, place, home);
            self.control.inward.place_died(place);
            let mut steps = self.new_steps();
            let left = home.borrow_mut().place_died(place, &mut steps);
            self.execute_steps(local, steps);
            return drop_caught(left);
        }
        if place == self.control.id.home {
            let spare = self.control.arrivals.borrow_mut().home_died();
            let mut arrived = self.arrived.borrow_mut();
            let first = arrived.len().saturating_sub(spare);
            let left = arrived.split_off(first);
            drop(arrived);
            self.control
                .waits
                .numbers()
                .into_iter()
                .for_each(|number| self.answer_one(number, ChannelAnswer::Dead, None));
            self.control.forget_if_unused(local);
            drop_caught(left);
        }
    }

    fn into_any(self: Rc<Self>) -> Rc<dyn Any> {
        self
    }
}
