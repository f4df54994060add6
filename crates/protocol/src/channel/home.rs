//! A channel at its home, of either kind: the interface of [`Buffered`] and [`Rendezvous`].
//!
//! The capacity decides the kind when the channel is made. A place may send any message to a channel of any kind, so
//! each method is here; what only the other kind allows is refused. What becomes of the operation at hand is returned;
//! what happens to others is added to a list of [`ChannelStep`]s, to be carried out in order.

use super::buffered::Buffered;
use super::rendezvous::Rendezvous;
use super::step::{Cancelled, ChannelStep, Choice, HeldResource, OfferOutcome, OperationId, WantOutcome};
use super::step::{PutBackViolation, SlotViolation};
use crate::PlaceId;
use std::num::NonZeroU32;

/// The state of a channel at its home.
#[derive(Clone, Debug)]
pub enum ChannelHome<V> {
    /// Values wait in a buffer.
    Buffered(Buffered<V>),
    /// Each value stays with its sender until a receiver has taken it.
    Rendezvous(Rendezvous<V>),
}

/// Calls a method that both kinds have.
macro_rules! either {
    ($home:expr, $kind:ident => $call:expr) => {
        match $home {
            ChannelHome::Buffered($kind) => $call,
            ChannelHome::Rendezvous($kind) => $call,
        }
    };
}

impl<V> ChannelHome<V> {
    /// Makes an open channel of `capacity` values, whose home is `here`; 0 makes a rendezvous.
    pub fn new(here: PlaceId, capacity: u32) -> ChannelHome<V> {
        match NonZeroU32::new(capacity) {
            Some(capacity) => ChannelHome::Buffered(Buffered::new(here, capacity)),
            None => ChannelHome::Rendezvous(Rendezvous::new()),
        }
    }

    /// Returns the capacity, in values; 0 for a rendezvous.
    pub fn capacity(&self) -> u32 {
        match self {
            ChannelHome::Buffered(home) => home.capacity(),
            ChannelHome::Rendezvous(_) => 0,
        }
    }

    /// Returns the number of values in the buffer; 0 for a rendezvous.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            ChannelHome::Buffered(home) => home.len(),
            ChannelHome::Rendezvous(_) => 0,
        }
    }

    /// Returns `true` if the buffer holds no value.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of values in the buffer, or of senders at a rendezvous that wait for a receiver.
    pub fn pending(&self) -> usize {
        match self {
            ChannelHome::Buffered(home) => home.len(),
            ChannelHome::Rendezvous(home) => home.waiting_senders(),
        }
    }

    /// Returns `true` if nothing can be sent any more.
    pub fn is_closed(&self) -> bool {
        either!(self, home => home.is_closed())
    }

    /// Places whose tasks those who wait to send wait for, if any do.
    pub fn holders(&self) -> Vec<(PlaceId, HeldResource)> {
        either!(self, home => home.holders())
    }

    /// As [`ChannelHome::offer`] of a task of this place, where the value only goes into the buffer.
    ///
    /// # Errors
    /// With the value, if that is not all there is to do.
    #[inline]
    pub fn offer_at_once(&mut self, value: V) -> Result<(), V> {
        match self {
            ChannelHome::Buffered(home) => home.offer_at_once(value),
            ChannelHome::Rendezvous(_) => Err(value),
        }
    }

    /// As [`ChannelHome::want`] of a task of this place, where a value leaves the buffer and nobody waits for the room;
    /// none if that is not all there is to do.
    #[inline]
    pub fn want_at_once(&mut self, steps: &mut Vec<ChannelStep<V>>) -> Option<V> {
        match self {
            ChannelHome::Buffered(home) => home.want_at_once(steps),
            ChannelHome::Rendezvous(_) => None,
        }
    }

    /// As [`ChannelHome::want`] of a task of this place at a rendezvous, where a value waits with its sender and nobody
    /// waits to receive; none if that is not so.
    #[inline]
    pub fn take_offer(&mut self, steps: &mut Vec<ChannelStep<V>>) -> Option<V> {
        match self {
            ChannelHome::Buffered(_) => None,
            ChannelHome::Rendezvous(home) => home.take_offer(steps),
        }
    }

    /// Offers `value`; if there is no room, it waits, if it `waits`. A nonblocking offer may still wait until a
    /// receiver of a rendezvous has taken its value or left.
    pub fn offer(
        &mut self,
        id: OperationId,
        value: V,
        waits: bool,
        steps: &mut Vec<ChannelStep<V>>,
    ) -> OfferOutcome<V> {
        either!(self, home => home.offer(id, value, waits, steps))
    }

    /// Asks for room for one value, which the sender keeps until it has that and still wants to send; if there is none,
    /// it waits, if it `waits`. Then the sender calls [`ChannelHome::choose`], or gives the room back by
    /// [`ChannelHome::cancel`]. Only a rendezvous needs to know the `choice`.
    pub fn ask(
        &mut self,
        id: OperationId,
        choice: Choice,
        waits: bool,
        steps: &mut Vec<ChannelStep<V>>,
    ) -> OfferOutcome<()> {
        match self {
            ChannelHome::Buffered(home) => home.ask(id, waits, steps),
            ChannelHome::Rendezvous(home) => home.ask(id, choice, waits, steps),
        }
    }

    /// The value of a sender that has asked and was granted room.
    ///
    /// # Errors
    /// It was not.
    pub fn choose(
        &mut self,
        id: OperationId,
        value: V,
        steps: &mut Vec<ChannelStep<V>>,
    ) -> Result<OfferOutcome<V>, SlotViolation> {
        either!(self, home => home.choose(id, value, steps))
    }

    /// A value for which `place` had a slot. It is given back if nobody can receive it any more.
    ///
    /// # Errors
    /// It had none; of a rendezvous there are none.
    pub fn item(
        &mut self,
        place: PlaceId,
        value: V,
        steps: &mut Vec<ChannelStep<V>>,
    ) -> Result<Option<V>, SlotViolation> {
        match self {
            ChannelHome::Buffered(home) => home.item(place, value, steps),
            ChannelHome::Rendezvous(_) => Err(SlotViolation),
        }
    }

    /// Returns `true` if a task of this place may have a value at once that is under way by a slot: none is before it,
    /// and nobody waits for anything.
    #[inline]
    pub fn may_pass(&self) -> bool {
        match self {
            ChannelHome::Buffered(home) => home.may_pass(),
            ChannelHome::Rendezvous(_) => false,
        }
    }

    /// As [`ChannelHome::item`] and then [`ChannelHome::want`] of a task of this place, where it
    /// [may have it](ChannelHome::may_pass) at once.
    ///
    /// # Errors
    /// `place` had no slot.
    #[inline]
    pub fn pass(&mut self, place: PlaceId, steps: &mut Vec<ChannelStep<V>>) -> Result<(), SlotViolation> {
        match self {
            ChannelHome::Buffered(home) => home.pass(place, steps),
            ChannelHome::Rendezvous(_) => Err(SlotViolation),
        }
    }

    /// Returns the number of tasks that wait for a value of the buffer; 0 for a rendezvous.
    pub fn receivers(&self) -> usize {
        match self {
            ChannelHome::Buffered(home) => home.receivers(),
            ChannelHome::Rendezvous(_) => 0,
        }
    }

    /// Asks for a value; if there is none, it waits, if it `waits`. The value of a rendezvous comes as a step, and only
    /// a rendezvous needs to know the `choice`.
    pub fn want(
        &mut self,
        id: OperationId,
        choice: Choice,
        waits: bool,
        steps: &mut Vec<ChannelStep<V>>,
    ) -> WantOutcome<V> {
        match self {
            ChannelHome::Buffered(home) => home.want(id, waits, steps),
            ChannelHome::Rendezvous(home) => home.want(id, choice, waits, steps),
        }
    }

    /// A value of the buffer that arrived at `place` for nobody; it is the next to be received. It is given back if
    /// nobody can receive it.
    ///
    /// # Errors
    /// Another place puts back more than has gone there, or anything of a rendezvous.
    pub fn put_back(
        &mut self,
        place: PlaceId,
        value: V,
        steps: &mut Vec<ChannelStep<V>>,
    ) -> Result<Option<V>, PutBackViolation> {
        match self {
            ChannelHome::Buffered(home) => home.put_back(place, value, steps),
            ChannelHome::Rendezvous(_) => Err(PutBackViolation),
        }
    }

    /// As [`ChannelHome::put_back`] or [`ChannelHome::not_taken`], of a value that came to a task of this place.
    ///
    /// # Errors
    /// None was lent to `receiver`.
    pub fn restore(
        &mut self,
        receiver: OperationId,
        value: V,
        steps: &mut Vec<ChannelStep<V>>,
    ) -> Result<Option<V>, PutBackViolation> {
        match self {
            ChannelHome::Buffered(home) => home.put_back(receiver.place, value, steps),
            ChannelHome::Rendezvous(home) => home.not_taken(receiver, Some(value), steps).map(|()| None),
        }
    }

    /// The value of a rendezvous that was lent to `receiver` is still here, as it was only copied there. It is given
    /// back if it is not needed any more.
    pub fn retain(&mut self, receiver: OperationId, value: V, steps: &mut Vec<ChannelStep<V>>) -> Option<V> {
        match self {
            ChannelHome::Buffered(_) => Some(value),
            ChannelHome::Rendezvous(home) => home.retain(receiver, value, steps),
        }
    }

    /// The value that went to `receiver` was taken; it is given back, if it is still here.
    ///
    /// # Errors
    /// None was lent to `receiver`; of a buffer, `receiver` is of another place, which does not say so.
    pub fn taken(
        &mut self,
        receiver: OperationId,
        steps: &mut Vec<ChannelStep<V>>,
    ) -> Result<Option<V>, PutBackViolation> {
        match self {
            ChannelHome::Buffered(home) => home.taken(receiver, steps).map(|()| None),
            ChannelHome::Rendezvous(home) => home.taken(receiver, steps),
        }
    }

    /// The value of a rendezvous that was lent to `receiver`, of another place, was not taken, and nobody there waits
    /// for one.
    ///
    /// # Errors
    /// None was lent.
    pub fn not_taken(
        &mut self,
        receiver: OperationId,
        steps: &mut Vec<ChannelStep<V>>,
    ) -> Result<(), PutBackViolation> {
        match self {
            ChannelHome::Buffered(_) => Err(PutBackViolation),
            ChannelHome::Rendezvous(home) => home.not_taken(receiver, None, steps),
        }
    }

    /// Each value that had gone to `place` when it was asked has been taken or put back.
    pub fn settled(&mut self, place: PlaceId, steps: &mut Vec<ChannelStep<V>>) {
        if let ChannelHome::Buffered(home) = self {
            home.settled(place, steps);
        }
    }

    /// Cancels an operation that nobody waits for any more.
    pub fn cancel(&mut self, id: OperationId, steps: &mut Vec<ChannelStep<V>>) -> Cancelled<V> {
        either!(self, home => home.cancel(id, steps))
    }

    /// A place returns slots that it has not used.
    ///
    /// # Errors
    /// `place` has fewer than `slots`.
    pub fn return_slots(
        &mut self,
        place: PlaceId,
        slots: u32,
        steps: &mut Vec<ChannelStep<V>>,
    ) -> Result<(), SlotViolation> {
        match self {
            ChannelHome::Buffered(home) => home.return_slots(place, slots, steps),
            ChannelHome::Rendezvous(_) => Err(SlotViolation),
        }
    }

    /// Closes the channel: nothing can be sent any more. What was sent can still be received.
    pub fn close(&mut self, steps: &mut Vec<ChannelStep<V>>) {
        either!(self, home => home.close(steps));
    }

    /// Closes the channel because nobody can receive any more; returns the values that nobody will have.
    #[must_use = "the values are to be dropped when nothing is borrowed"]
    pub fn abandon(&mut self, steps: &mut Vec<ChannelStep<V>>) -> Vec<V> {
        match self {
            ChannelHome::Buffered(home) => home.abandon(steps),
            ChannelHome::Rendezvous(home) => {
                home.close(steps);
                Vec::new()
            }
        }
    }

    /// Handles the death of a place, of which nothing will arrive any more; returns the values that it waited to send,
    /// and those of a rendezvous that it may have taken.
    #[must_use = "the values are to be dropped when nothing is borrowed"]
    pub fn place_died(&mut self, place: PlaceId, steps: &mut Vec<ChannelStep<V>>) -> Vec<V> {
        either!(self, home => home.place_died(place, steps))
    }
}
