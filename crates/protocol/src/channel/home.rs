//! A channel at its home, of either kind: the interface of [`Buffered`] and [`Rendezvous`].
//!
//! The capacity decides the kind when the channel is created. A place may send any message to a channel of either kind,
//! so each method is here; one that only the other kind permits is refused. The outcome of the current operation is
//! returned; effects on other operations are appended to a list of [`ChannelStep`]s, which must be carried out in
//! order.

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

/// Calls a method that both kinds implement.
macro_rules! either {
    ($home:expr, $kind:ident => $call:expr) => {
        match $home {
            ChannelHome::Buffered($kind) => $call,
            ChannelHome::Rendezvous($kind) => $call,
        }
    };
}

impl<V> ChannelHome<V> {
    /// Creates an open channel of `capacity` values, whose home is `here`; with 0 it is a rendezvous.
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

    /// Returns `true` if no value can be sent any more.
    pub fn is_closed(&self) -> bool {
        either!(self, home => home.is_closed())
    }

    /// Returns the places whose tasks hold the resources for which senders wait, if any do.
    pub fn holders(&self) -> Vec<(PlaceId, HeldResource)> {
        either!(self, home => home.holders())
    }

    /// As [`ChannelHome::offer`] of a task of this place, if the value only has to be put into the buffer.
    ///
    /// # Errors
    /// The value, if more than that is needed.
    #[inline]
    pub fn offer_at_once(&mut self, value: V) -> Result<(), V> {
        match self {
            ChannelHome::Buffered(home) => home.offer_at_once(value),
            ChannelHome::Rendezvous(_) => Err(value),
        }
    }

    /// As [`ChannelHome::want`] of a task of this place, if a value leaves the buffer and no task waits for the room;
    /// `None` if more is needed.
    #[inline]
    pub fn want_at_once(&mut self, steps: &mut Vec<ChannelStep<V>>) -> Option<V> {
        match self {
            ChannelHome::Buffered(home) => home.want_at_once(steps),
            ChannelHome::Rendezvous(_) => None,
        }
    }

    /// As [`ChannelHome::want`] of a task of this place at a rendezvous, if a value waits with its sender and no task
    /// waits to receive; otherwise `None`.
    #[inline]
    pub fn take_offer(&mut self, steps: &mut Vec<ChannelStep<V>>) -> Option<V> {
        match self {
            ChannelHome::Buffered(_) => None,
            ChannelHome::Rendezvous(home) => home.take_offer(steps),
        }
    }

    /// Offers `value`. If there is no room, the operation waits if `waits` is true. A nonblocking offer may still wait
    /// until a receiver of a rendezvous has taken its value or left.
    pub fn offer(
        &mut self,
        id: OperationId,
        value: V,
        waits: bool,
        steps: &mut Vec<ChannelStep<V>>,
    ) -> OfferOutcome<V> {
        either!(self, home => home.offer(id, value, waits, steps))
    }

    /// Asks for room for one value, which the sender keeps until it has the room and still wants to send. If there is
    /// no room, the operation waits if `waits` is true. After the grant, the sender calls [`ChannelHome::choose`], or
    /// returns the room by [`ChannelHome::cancel`]. Only a rendezvous uses `choice`.
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

    /// Accepts the value of a sender that was granted room.
    ///
    /// # Errors
    /// The sender was not granted room.
    pub fn choose(
        &mut self,
        id: OperationId,
        value: V,
        steps: &mut Vec<ChannelStep<V>>,
    ) -> Result<OfferOutcome<V>, SlotViolation> {
        either!(self, home => home.choose(id, value, steps))
    }

    /// Accepts a value for which `place` had a slot. The value is returned if it can no longer be received.
    ///
    /// # Errors
    /// The place had no slot; a rendezvous has no slots.
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

    /// Returns `true` if a task of this place may immediately have a value that is arriving by a slot: no value
    /// precedes it, and no operation waits.
    #[inline]
    pub fn may_pass(&self) -> bool {
        match self {
            ChannelHome::Buffered(home) => home.may_pass(),
            ChannelHome::Rendezvous(_) => false,
        }
    }

    /// As [`ChannelHome::item`] and then [`ChannelHome::want`] of a task of this place that [may have the
    /// value](ChannelHome::may_pass) immediately.
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

    /// Asks for a value. If there is none, the operation waits if `waits` is true. The value of a rendezvous comes as a
    /// step, and only a rendezvous uses `choice`.
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

    /// Puts back a value of the buffer that no task at `place` took; it is the next to be received. The value is
    /// returned if it can no longer be received.
    ///
    /// # Errors
    /// Another place puts back more values than it got, or a value of a rendezvous.
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

    /// As [`ChannelHome::put_back`] or [`ChannelHome::not_taken`], for a value that came to a task of this place.
    ///
    /// # Errors
    /// No value of a rendezvous was lent to `receiver`.
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

    /// Keeps the value of a rendezvous that was lent to `receiver`, because only a copy was sent. The value is returned
    /// if it is not needed any more.
    pub fn retain(&mut self, receiver: OperationId, value: V, steps: &mut Vec<ChannelStep<V>>) -> Option<V> {
        match self {
            ChannelHome::Buffered(_) => Some(value),
            ChannelHome::Rendezvous(home) => home.retain(receiver, value, steps),
        }
    }

    /// Ends the loan to `receiver`, because its value was taken. Returns the value, if it is still here.
    ///
    /// # Errors
    /// No value of a rendezvous was lent to `receiver`; or the channel has a buffer and `receiver` is at another place,
    /// which does not report this.
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

    /// Ends the loan of a rendezvous to `receiver` at another place, where the value was not taken and no task waits
    /// for one.
    ///
    /// # Errors
    /// No value was lent.
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

    /// Notes that each value sent to `place` before the last `ChannelStep::Settle` has been taken or put back.
    pub fn settled(&mut self, place: PlaceId, steps: &mut Vec<ChannelStep<V>>) {
        if let ChannelHome::Buffered(home) = self {
            home.settled(place, steps);
        }
    }

    /// Cancels an operation that was given up.
    pub fn cancel(&mut self, id: OperationId, steps: &mut Vec<ChannelStep<V>>) -> Cancelled<V> {
        either!(self, home => home.cancel(id, steps))
    }

    /// Returns unused slots of a place.
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

    /// Closes the channel: no more values can be sent. Those already sent can still be received.
    pub fn close(&mut self, steps: &mut Vec<ChannelStep<V>>) {
        either!(self, home => home.close(steps));
    }

    /// Closes the channel because there are no receivers any more. Returns the values that remain.
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

    /// Handles the death of a place, after its last message. Returns the values that its tasks waited to send, and
    /// those of a rendezvous that they may have taken.
    #[must_use = "the values are to be dropped when nothing is borrowed"]
    pub fn place_died(&mut self, place: PlaceId, steps: &mut Vec<ChannelStep<V>>) -> Vec<V> {
        either!(self, home => home.place_died(place, steps))
    }
}
