//! A channel at its home: the buffer, and the operations of the home's own tasks.
//!
//! Carries out the steps of the protocol. A value is in the buffer, in a message, among the arrived values, or with its
//! task. Invariant: nothing is borrowed while a message is sent, a value is dropped, or a task is woken.

use super::control_block::{AnyChannel, ChannelKind, ControlBlock, access};
use super::local_channel::{ChannelEnd, EndParts, ReceiveOptions, SendOptions};
use super::message::{ChannelId, ChannelMessage};
use super::ring::TakeFrom;
use super::waits::{Begun, Caller, ChannelAnswer};
use crate::channel::control_block::ChannelTable;
use isles_protocol::PlaceId;
use isles_protocol::channel::{Cancelled, ChannelHome, ChannelStep, HeldResource};
use isles_protocol::channel::{OfferOutcome, OperationId, WantOutcome};
use isles_runtime::capture::CanSend;
use isles_runtime::service::{OutputQueue, Refused, drop_caught};
use isles_runtime::wire::Reader;
use isles_runtime::{Clock, Local};
use isles_telemetry::CounterId;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Maximum size of the memory for steps that is kept for reuse.
const SPARE_BYTES_MAX: usize = 1 << 10;

/// A channel at its home.
pub(crate) struct HomeChannel<T> {
    pub(super) parts: EndParts<T>,
    /// The buffer.
    pub(super) home: RefCell<ChannelHome<T>>,
    steps: OutputQueue<ChannelStep<T>>,
    /// Memory for the next steps, of which each operation has few.
    spare: Cell<Vec<ChannelStep<T>>>,
}

impl<T: CanSend> HomeChannel<T> {
    /// Creates a channel whose home is here.
    pub(super) fn make(local: &Local, capacity: u32) -> Rc<HomeChannel<T>> {
        let id = ChannelTable::of(local).borrow_mut().new_id(local.here());
        let home = ChannelHome::new(local.here(), capacity);
        let access = matches!(local.clock(), Clock::Modelled(_)).then(|| access(size_of::<T>(), capacity));
        let control = ControlBlock::new(local, id, ChannelKind::of::<T>(capacity), access);
        let end = HomeChannel::new(control, home);
        ChannelTable::of(local).borrow_mut().insert(id, Rc::clone(&end) as Rc<dyn AnyChannel>);
        local.add_count(CounterId::ChannelsMade, 1);
        end
    }

    /// Returns the channel `id`, whose home is here; `None` if it is gone or its values are no `T`.
    pub(super) fn of(local: &Local, id: ChannelId) -> Option<Rc<HomeChannel<T>>> {
        let known = ChannelTable::of(local).borrow().get(id);
        known?.into_any().downcast().ok()
    }

    fn new(control: ControlBlock, home: ChannelHome<T>) -> Rc<HomeChannel<T>> {
        let (steps, spare) = (OutputQueue::default(), Cell::default());
        Rc::new(HomeChannel { parts: EndParts::new(control), home: RefCell::new(home), steps, spare })
    }

    fn id(&self, number: u64) -> OperationId {
        OperationId { place: self.parts.control.here, number }
    }

    /// As [`ChannelEnd::send`], if more is needed than to put the value into the buffer.
    #[inline(never)]
    fn send_slow(
        self: &Rc<Self>,
        local: &Local,
        value: &mut Option<T>,
        options: &SendOptions,
        caller: Caller,
    ) -> Begun {
        let (number, mut steps) = (self.parts.control.new_number(), self.new_steps());
        let outcome = if options.reserves {
            let asked =
                self.home.borrow_mut().ask(self.id(number), options.choice, options.blocking, &mut steps);
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
            let offered =
                self.home.borrow_mut().offer(self.id(number), offered, options.blocking, &mut steps);
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
            self.parts.control.wait(number, "room in", caller);
        }
        self.execute_steps(local, steps);
        outcome
    }

    /// As [`ChannelEnd::receive_value`], if more is needed than to take a value out of the buffer.
    #[inline(never)]
    fn receive_slow(
        self: &Rc<Self>,
        local: &Local,
        value: &mut Option<T>,
        options: &ReceiveOptions,
        caller: Caller,
    ) -> Begun {
        let choice = self.parts.control.choice_or_within(local, &options.choice);
        let mut steps = self.new_steps();
        // Values that have arrived for other tasks would come first.
        if self.parts.arrived.borrow().is_empty() {
            *value = self.home.borrow_mut().take_offer(&mut steps);
            if value.is_some() {
                self.execute_steps(local, steps);
                return Ok(ChannelAnswer::Ready);
            }
        }
        let number = self.parts.control.new_number();
        self.fill_from_rings(local, &mut steps);
        let wanted = self.home.borrow_mut().want(self.id(number), choice, options.blocking, &mut steps);
        if matches!(wanted, WantOutcome::Waits) {
            self.watch_rings(local);
            self.parts.control.wait(number, "a value of", caller);
            self.parts.control.arrivals.borrow_mut().begin(number);
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

    /// Exchanges `value` for the first arrived value, if there is one: tasks of the home take values in order.
    #[inline]
    fn exchange(&self, value: T) -> T {
        let mut arrived = self.parts.arrived.borrow_mut();
        match arrived.pop_front() {
            Some((number, first)) => {
                arrived.push_back((number, value));
                first
            }
            None => value,
        }
    }

    /// Closes one side at the home: the last sender anywhere is gone, or the last receiver if `is_receiver`.
    pub(super) fn close_side(self: &Rc<Self>, is_receiver: bool) {
        let abandoned = self.parts.control.attachment.try_with(|local| {
            let mut steps = self.new_steps();
            let mut left = Vec::new();
            {
                let mut home = self.home.borrow_mut();
                if is_receiver { left = home.abandon(&mut steps) } else { home.close(&mut steps) }
            }
            self.execute_steps(local, steps);
            (left, self.parts.control.release_kind(local))
        });
        drop(abandoned);
    }

    /// Returns an empty list for steps of the protocol.
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
            // A message to a dead place is dropped.
            ChannelStep::Announce(to, slots) => {
                return drop(self.parts.control.send_message(
                    local,
                    to,
                    &ChannelMessage::Slots { count: slots },
                ));
            }
            ChannelStep::Recall(to) => {
                return drop(self.parts.control.send_message(local, to, &ChannelMessage::Recall));
            }
            ChannelStep::Close(to) => {
                return drop(self.parts.control.send_message(local, to, &ChannelMessage::Closed));
            }
            ChannelStep::Settle(to) => {
                return drop(self.parts.control.send_message(local, to, &ChannelMessage::Settle));
            }
        };
        if id.place == self.parts.control.here {
            return self.answer(local, id.number, answer, value);
        }
        // As above. The sender has kept its value; the one here is a copy.
        let _ = self.parts.control.send_message(local, id.place, &head);
        drop_caught(value);
    }

    pub(super) fn deliver(self: &Rc<Self>, local: &Local, id: OperationId, value: T) {
        if id.place == self.parts.control.here {
            return self.arrive(local, id.number, value);
        }
        self.send_granted_value(local, id, &value);
        drop_caught(value);
    }

    /// Sends a copy of the value of a rendezvous; the original stays here until the copy is taken.
    fn lend(self: &Rc<Self>, local: &Local, id: OperationId, value: T) {
        if id.place == self.parts.control.here {
            return self.arrive(local, id.number, value);
        }
        let is_written = self.send_granted_value(local, id, &value);
        let mut steps = self.new_steps();
        let unneeded = self.home.borrow_mut().retain(id, value, &mut steps);
        if !is_written {
            // The receiver gets the error, as for a value that it cannot decode.
            let taken = self.home.borrow_mut().taken(id, &mut steps);
            drop_caught(taken);
        }
        self.execute_steps(local, steps);
        drop_caught(unneeded);
    }

    /// Returns `true` if the value could be written.
    fn send_granted_value(&self, local: &Local, id: OperationId, value: &T) -> bool {
        let sent =
            self.parts.send_message(local, id.place, &ChannelMessage::Value { operation: id.number }, value);
        let Err(ChannelAnswer::Faulty(fault)) = sent else { return true };
        // A dead place needs no answer.
        let _ = self.parts.control.send_message(
            local,
            id.place,
            &ChannelMessage::Faulty { operation: id.number, text: fault.text().to_owned() },
        );
        false
    }
}

impl<T: CanSend> ChannelEnd for HomeChannel<T> {
    type Value = T;

    #[inline]
    fn parts(&self) -> &EndParts<T> {
        &self.parts
    }

    #[inline]
    fn send(
        self: &Rc<Self>,
        local: &Local,
        value: &mut Option<T>,
        options: &SendOptions,
        caller: Caller,
    ) -> Begun {
        self.parts.control.charge(local);
        if let Some(offered) = value.take_if(|_| !options.reserves) {
            match self.home.borrow_mut().offer_at_once(offered) {
                Ok(()) => return Ok(ChannelAnswer::Accepted),
                Err(back) => *value = Some(back),
            }
        }
        self.send_slow(local, value, options, caller)
    }

    fn choose(
        self: &Rc<Self>,
        local: &Local,
        number: u64,
        value: &mut Option<T>,
        caller: Caller,
    ) -> Option<ChannelAnswer> {
        let chosen = value.take()?;
        self.parts.control.charge(local);
        let mut steps = self.new_steps();
        let outcome = self.home.borrow_mut().choose(self.id(number), chosen, &mut steps);
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
            self.parts.control.wait(number, "a receiver of", caller);
        }
        self.execute_steps(local, steps);
        answer
    }

    #[inline]
    fn receive_value(
        self: &Rc<Self>,
        local: &Local,
        value: &mut Option<T>,
        options: &ReceiveOptions,
        caller: Caller,
    ) -> Begun {
        self.parts.control.charge(local);
        let mut steps = Vec::new(); // mostly there are none
        let mut next = self.home.borrow_mut().want_at_once(&mut steps);
        if next.is_none() && self.parts.control.inward.are_used.get() {
            next = self.pass_from_rings(local, &mut steps);
        }
        if let Some(next) = next {
            *value = Some(self.exchange(next));
            if !steps.is_empty() {
                self.execute_steps(local, steps);
            }
            return Ok(ChannelAnswer::Ready);
        }
        self.receive_slow(local, value, options, caller)
    }

    fn close(self: &Rc<Self>) {
        self.parts.control.attachment.try_with(|local| {
            let mut steps = self.new_steps();
            self.home.borrow_mut().close(&mut steps);
            self.execute_steps(local, steps);
        });
    }

    fn receive_message(
        self: &Rc<Self>,
        local: &Local,
        source: PlaceId,
        head: ChannelMessage,
        reader: &mut Reader<'_>,
    ) -> Result<(), Refused> {
        self.receive_at_home(local, source, head, reader)
    }

    fn send_taken(self: &Rc<Self>, local: &Local, number: u64) {
        let mut steps = self.new_steps();
        // No value is left: values for tasks of this place are not copied.
        let _ = self.home.borrow_mut().taken(self.id(number), &mut steps);
        self.execute_steps(local, steps);
    }

    fn put_back(self: &Rc<Self>, local: &Local, number: u64, value: T) {
        let mut steps = self.new_steps();
        let left = self.home.borrow_mut().restore(self.id(number), value, &mut steps);
        self.execute_steps(local, steps);
        drop_caught(left);
    }

    fn withdraw(self: &Rc<Self>, local: &Local, number: u64) {
        let mut steps = self.new_steps();
        let cancelled = self.home.borrow_mut().cancel(self.id(number), &mut steps);
        self.execute_steps(local, steps);
        if let Cancelled::Now(_) = cancelled {
            self.answer(local, number, ChannelAnswer::Cancelled, None);
        }
    }

    fn cancel_send(self: &Rc<Self>, local: &Local, number: u64) {
        let mut steps = self.new_steps();
        let cancelled = self.home.borrow_mut().cancel(self.id(number), &mut steps);
        self.execute_steps(local, steps);
        match cancelled {
            Cancelled::Later => {}
            Cancelled::Granted => self.parts.control.waits.forget(number),
            Cancelled::Now(value) => {
                self.parts.control.waits.forget(number);
                drop_caught(value);
            }
        }
    }

    fn explain_holders(&self) -> Vec<String> {
        let mut holders = self.home.borrow().holders();
        holders.sort_unstable();
        holders.dedup();
        let home = self.parts.control.here;
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

    fn serve_from_rings(self: &Rc<Self>, local: &Local) -> (usize, bool) {
        let (any, mut steps, mut served) = (TakeFrom::Any { may_spin: false }, self.new_steps(), 0);
        while self.home.borrow().receivers() > 0 && self.take_from_rings(local, any, &mut steps) {
            served += 1;
        }
        self.execute_steps(local, steps);
        (served, self.home.borrow().receivers() > 0)
    }

    fn place_died(self: &Rc<Self>, local: &Local, place: PlaceId) {
        self.empty_ring(local, place);
        self.parts.control.inward.place_died(place);
        let mut steps = self.new_steps();
        let left = self.home.borrow_mut().place_died(place, &mut steps);
        self.execute_steps(local, steps);
        drop_caught(left);
    }
}
