//! A channel at one place: its home, or an end at another place.
//!
//! Each has a type of its own. Both hold values that have arrived for tasks of this place, and answers to its
//! operations. Invariant: nothing is borrowed while a message is sent, a value is dropped, or a task is woken.

use super::control_block::{AnyChannel, ControlBlock, value_bytes};
use super::home::HomeChannel;
use super::message::{ChannelId, ChannelMessage};
use super::remote::RemoteChannel;
use super::waits::{Begun, Caller, ChannelAnswer};
use isles_protocol::PlaceId;
use isles_protocol::channel::{ArrivalStep, Choice};
use isles_runtime::Local;
use isles_runtime::capture::CanSend;
use isles_runtime::service::{Refused, drop_caught};
use isles_runtime::wire::Reader;
use std::any::Any;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Options of a send. Passed by reference: a copy would stall on store forwarding.
pub(super) struct SendOptions {
    /// True if room is reserved first, while the value stays with the task.
    pub(super) reserves: bool,
    /// True if the send waits for room.
    pub(super) blocking: bool,
    /// The `select!` that the send is a branch of.
    pub(super) choice: Choice,
}

/// Options of a receive. Passed by reference, like those of a send.
pub(super) struct ReceiveOptions {
    /// True if the receive waits for a value.
    pub(super) blocking: bool,
    /// The `select!` that the receive is a branch of.
    pub(super) choice: Choice,
}

/// A channel at one place.
pub(super) enum LocalChannel<T> {
    /// At its home.
    Home(Rc<HomeChannel<T>>),
    /// At another place.
    Remote(Rc<RemoteChannel<T>>),
}

impl<T> Clone for LocalChannel<T> {
    fn clone(&self) -> Self {
        match self {
            LocalChannel::Home(end) => LocalChannel::Home(Rc::clone(end)),
            LocalChannel::Remote(end) => LocalChannel::Remote(Rc::clone(end)),
        }
    }
}

impl<T> LocalChannel<T> {
    #[inline]
    pub(super) fn parts(&self) -> &EndParts<T> {
        match self {
            LocalChannel::Home(end) => &end.parts,
            LocalChannel::Remote(end) => &end.parts,
        }
    }

    #[inline]
    pub(super) fn control(&self) -> &ControlBlock {
        &self.parts().control
    }
}

/// Calls a method of either end of a channel.
macro_rules! either {
    ($channel:expr, $end:ident => $call:expr) => {
        match $channel {
            LocalChannel::Home($end) => $call,
            LocalChannel::Remote($end) => $call,
        }
    };
}

impl<T: CanSend> LocalChannel<T> {
    /// Returns the channel `id` at this place, for a handle that has arrived; `None` if it is gone or its values are no
    /// `T`.
    pub(super) fn of(local: &Local, id: ChannelId, capacity: u32) -> Option<LocalChannel<T>> {
        let channel = if id.home == local.here() {
            LocalChannel::Home(HomeChannel::of(local, id)?)
        } else {
            LocalChannel::Remote(RemoteChannel::of(local, id, capacity)?)
        };
        channel.control().retain();
        Some(channel)
    }

    /// Returns the channel with its value type erased.
    pub(super) fn any(&self) -> Rc<dyn AnyChannel> {
        either!(self, end => Rc::clone(end) as Rc<dyn AnyChannel>)
    }

    /// Begins to send `value`, which is left in place if it is not sent.
    #[inline]
    pub(super) fn send(
        &self,
        local: &Local,
        value: &mut Option<T>,
        options: &SendOptions,
        caller: Caller,
    ) -> Begun {
        either!(self, end => match end.parts.control.is_of_run(local) {
            true => end.send(local, value, options, caller),
            false => Ok(ChannelAnswer::Foreign),
        })
    }

    /// Sends the value of an operation that was granted room. Returns the answer, or `None` at a rendezvous, where the
    /// operation waits until the value is taken or declined.
    pub(super) fn choose(&self, number: u64, value: &mut Option<T>, caller: Caller) -> Option<ChannelAnswer> {
        Local::with(|local| either!(self, end => end.choose(local, number, value, caller)))
    }

    /// Begins to receive into `value`.
    #[inline]
    pub(super) fn receive_value(
        &self,
        local: &Local,
        value: &mut Option<T>,
        options: &ReceiveOptions,
        caller: Caller,
    ) -> Begun {
        either!(self, end => match end.parts.control.is_of_run(local) {
            true => end.receive_value(local, value, options, caller),
            false => Ok(ChannelAnswer::Foreign),
        })
    }

    /// Waits again, after the sent value has been declined.
    pub(super) fn wait_again(&self, number: u64, caller: Caller) {
        self.control().wait(number, "room in", caller);
    }

    /// Takes the first value that is here, for a receive that was told so.
    pub(super) fn take_arrived(&self) -> Option<T> {
        either!(self, end => end.take_arrived())
    }

    /// Closes the channel on behalf of a task here: no more values can be sent.
    pub(super) fn close(&self) {
        either!(self, end => end.close());
    }

    /// Gives up a receive that nobody waits for any more.
    pub(super) fn give_up_receive(&self, number: u64) {
        either!(self, end => end.give_up_receive(number));
    }

    /// Gives up a send that nobody waits for any more. If its value had been handed over, it is unknown whether it was
    /// sent.
    pub(super) fn give_up_send(&self, number: u64) {
        either!(self, end => end.give_up_send(number));
    }

    /// Returns the room that this send was granted, after its task has seen the grant.
    pub(super) fn give_up_room(&self, number: u64) {
        let control = self.control();
        control.attachment.try_with(|local| either!(self, end => end.cancel_send(local, number)));
    }
}

/// The parts that a channel has at every place.
pub(super) struct EndParts<T> {
    pub(super) control: ControlBlock,
    /// Values that have arrived for receives of this place, each with the number of its receive.
    pub(super) arrived: RefCell<VecDeque<(u64, T)>>,
    /// Values that were returned to sends of this place.
    returned: RefCell<Vec<(u64, T)>>,
}

impl<T> EndParts<T> {
    pub(super) fn new(control: ControlBlock) -> EndParts<T> {
        EndParts { control, arrived: RefCell::default(), returned: RefCell::default() }
    }

    pub(super) fn answer_one(&self, number: u64, answer: ChannelAnswer, value: Option<T>) {
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

    /// Takes the value that was returned to send `number`, if any.
    pub(super) fn take_returned(&self, number: u64) -> Option<T> {
        let mut returned = self.returned.borrow_mut();
        let found = returned.iter().position(|(of, _)| *of == number)?;
        Some(returned.swap_remove(found).1)
    }
}

impl<T: CanSend> EndParts<T> {
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
}

/// An end of a channel: at its home, or at another place.
pub(super) trait ChannelEnd: Sized + 'static {
    /// Type of the values.
    type Value: CanSend;

    fn parts(&self) -> &EndParts<Self::Value>;

    /// As [`LocalChannel::send`]; `local` is of the channel's run.
    fn send(
        self: &Rc<Self>,
        local: &Local,
        value: &mut Option<Self::Value>,
        options: &SendOptions,
        caller: Caller,
    ) -> Begun;

    /// As [`LocalChannel::choose`].
    fn choose(
        self: &Rc<Self>,
        local: &Local,
        number: u64,
        value: &mut Option<Self::Value>,
        caller: Caller,
    ) -> Option<ChannelAnswer>;

    /// As [`LocalChannel::receive_value`]; `local` is of the channel's run.
    fn receive_value(
        self: &Rc<Self>,
        local: &Local,
        value: &mut Option<Self::Value>,
        options: &ReceiveOptions,
        caller: Caller,
    ) -> Begun;

    /// As [`LocalChannel::close`].
    fn close(self: &Rc<Self>);

    /// As [`AnyChannel::receive`].
    fn receive_message(
        self: &Rc<Self>,
        local: &Local,
        source: PlaceId,
        head: ChannelMessage,
        reader: &mut Reader<'_>,
    ) -> Result<(), Refused>;

    /// As [`AnyChannel::explain_holders`].
    fn explain_holders(&self) -> Vec<String>;

    /// As [`AnyChannel::serve_from_rings`].
    fn serve_from_rings(self: &Rc<Self>, local: &Local) -> (usize, bool);

    /// As [`AnyChannel::place_died`].
    fn place_died(self: &Rc<Self>, local: &Local, place: PlaceId);

    /// Tells the home that the value for receive `number` was taken.
    fn send_taken(self: &Rc<Self>, local: &Local, number: u64);

    /// Returns a value to the home that no task here waits for.
    fn put_back(self: &Rc<Self>, local: &Local, number: u64, value: Self::Value);

    /// Tells the home that nobody waits for the answer to this receive any more.
    fn withdraw(self: &Rc<Self>, local: &Local, number: u64);

    /// Tells the home that this send is given up.
    fn cancel_send(self: &Rc<Self>, local: &Local, number: u64);

    /// Takes the first value that is here, for a receive that was told so.
    fn take_arrived(self: &Rc<Self>) -> Option<Self::Value> {
        let (number, value) = self.parts().arrived.borrow_mut().pop_front()?;
        self.parts().control.arrivals.borrow_mut().take();
        self.parts().control.attachment.try_with(|local| {
            self.send_taken(local, number);
            self.parts().control.report_if_settled(local);
        });
        Some(value)
    }

    /// Delivers an arrived value to this receive, or to the next one if this one was given up.
    fn arrive(self: &Rc<Self>, local: &Local, number: u64, value: Self::Value) {
        self.parts().arrived.borrow_mut().push_back((number, value));
        let step = self.parts().control.arrivals.borrow_mut().arrived(number);
        self.execute_arrival_step(local, step);
        self.parts().control.forget_if_unused(local);
    }

    fn execute_arrival_step(self: &Rc<Self>, local: &Local, step: ArrivalStep) {
        match step {
            ArrivalStep::Nothing => {}
            ArrivalStep::Ready(number) => self.parts().answer_one(number, ChannelAnswer::Ready, None),
            ArrivalStep::Replace(number) => {
                self.parts().answer_one(number, ChannelAnswer::Ready, None);
                self.withdraw(local, number);
            }
            ArrivalStep::Withdraw(number) => self.withdraw(local, number),
            ArrivalStep::PutBack(count) => {
                let mut arrived = self.parts().arrived.borrow_mut();
                let first = arrived.len().saturating_sub(count);
                let back = arrived.split_off(first);
                drop(arrived);
                for (number, value) in back.into_iter().rev() {
                    self.put_back(local, number, value);
                }
                self.parts().control.report_if_settled(local);
            }
        }
    }

    /// Ends an operation of this place with an answer that is no value; `value` is returned to a send.
    fn answer(
        self: &Rc<Self>,
        local: &Local,
        number: u64,
        answer: ChannelAnswer,
        value: Option<Self::Value>,
    ) {
        let is_of_receive = matches!(
            answer,
            ChannelAnswer::Ended
                | ChannelAnswer::Empty
                | ChannelAnswer::Cancelled
                | ChannelAnswer::Faulty(_)
                | ChannelAnswer::Dead
        ) && self.parts().control.arrivals.borrow().expects(number);
        let step = match is_of_receive {
            true => self.parts().control.arrivals.borrow_mut().ended(number),
            false => None,
        };
        match step {
            Some(step) => self.execute_arrival_step(local, step),
            None => self.parts().answer_one(number, answer, value),
        }
        self.parts().control.forget_if_unused(local);
    }

    /// Gives up a receive that nobody waits for any more.
    fn give_up_receive(self: &Rc<Self>, number: u64) {
        self.parts().control.attachment.try_with(|local| {
            if let Some(is_ready) = self.parts().control.waits.give_up_receive(number) {
                let step = self.parts().control.arrivals.borrow_mut().give_up(number, is_ready);
                self.execute_arrival_step(local, step);
            }
            self.parts().control.forget_if_unused(local);
        });
    }

    /// Gives up a send that nobody waits for any more. If its value had been handed over, it is unknown whether it was
    /// sent.
    fn give_up_send(self: &Rc<Self>, number: u64) {
        self.parts().control.attachment.try_with(|local| {
            if self.parts().control.waits.give_up_send(number) {
                self.cancel_send(local, number);
            }
            drop_caught(self.parts().take_returned(number));
            self.parts().control.forget_if_unused(local);
        });
    }

    /// Gives up a receive that waits; it begins anew when it is polled again.
    fn suspend(self: &Rc<Self>, local: &Local, number: u64) {
        let Some((is_ready, waker)) = self.parts().control.waits.suspend_receive(number) else { return };
        let step = self.parts().control.arrivals.borrow_mut().give_up(number, is_ready);
        self.execute_arrival_step(local, step);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<E: ChannelEnd> AnyChannel for E {
    fn control(&self) -> &ControlBlock {
        &self.parts().control
    }

    fn receive(
        self: Rc<Self>,
        local: &Local,
        source: PlaceId,
        head: ChannelMessage,
        reader: &mut Reader<'_>,
    ) -> Result<(), Refused> {
        self.receive_message(local, source, head, reader)
    }

    fn suspend_receive(self: Rc<Self>, local: &Local, number: u64) {
        self.suspend(local, number);
    }

    fn explain_holders(&self) -> Vec<String> {
        ChannelEnd::explain_holders(self)
    }

    fn place_died(self: Rc<Self>, local: &Local, place: PlaceId) {
        ChannelEnd::place_died(&self, local, place);
    }

    fn serve_from_rings(self: Rc<Self>, local: &Local) -> (usize, bool) {
        ChannelEnd::serve_from_rings(&self, local)
    }

    fn into_any(self: Rc<Self>) -> Rc<dyn Any> {
        self
    }
}
