//! The home of a channel: the buffer, the tasks that wait to send or to receive, and the slots of other places.
//!
//! Generic over the values. What becomes of the operation at hand is returned; what happens to others is added to a
//! list of [`ChannelStep`]s, to be carried out in order. Invariants: the buffer and the room that was granted are
//! together no more than the capacity, but for values that used slots or were put back; nobody waits to receive while
//! the buffer holds something; nobody waits to send while there is room; an operation that waits is told its end once,
//! or is cancelled. A rendezvous has no buffer: a value stays with its sender until a receiver has taken it.

use super::credits::{Receivers, SlotCredits};
use super::rendezvous::Rendezvous;
use crate::PlaceId;
use std::collections::VecDeque;

/// An operation that waits: a number of its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OperationId {
    /// The place of the task that waits.
    pub place: PlaceId,
    /// Number of the operation at its place.
    pub number: u64,
}

/// Number of a task's choice at its place, of whose operations at most one happens; or `None`.
pub type Choice = Option<u64>;

/// Action to take for an operation that has waited, or message to a place that holds slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelStep<V> {
    /// A receiver gets this value.
    Deliver(OperationId, V),
    /// A receiver is offered the value of a rendezvous; its place says whether it was taken.
    Lend(OperationId, V),
    /// The value of a sender is in the buffer or received; its place has this many more slots.
    Accept(OperationId, u32),
    /// A sender is refused, because the channel is closed; its value goes back, if it had been handed over.
    Refuse(OperationId, Option<V>),
    /// A sender that was not to wait is refused, because the receiver it met has left; its value goes back.
    Full(OperationId, Option<V>),
    /// A sender that gave up while its value was lent has it back.
    GiveBack(OperationId, V),
    /// A receiver waits for nothing: the channel is closed and empty.
    End(OperationId),
    /// A receiver that was not to wait finds nothing: the sender that it met has left.
    Empty(OperationId),
    /// The sender that asked for room may send its value now, if it still wants to.
    Grant(OperationId),
    /// The receiver whom a chosen sender has met has left; the sender waits as before, and its value goes back.
    Decline(OperationId, V),
    /// Slots of a place are free again.
    Announce(PlaceId, u32),
    /// A place must return the slots that it has not used.
    Recall(PlaceId),
    /// The same, and there are no more: the channel is closed.
    Close(PlaceId),
    /// A place must say when each value that went there has been taken or put back.
    Settle(PlaceId),
}

/// Outcome of an offer, or of the question for room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OfferOutcome<V> {
    /// The value is in the buffer or received, or room is granted; its place has this many more slots.
    Accepted(u32),
    /// It waits.
    Waits,
    /// The channel is closed.
    Refused(V),
    /// There is no room, and it does not wait.
    Full(V),
}

/// Outcome of the question for a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WantOutcome<V> {
    /// Here it is.
    Value(V),
    /// It waits, if no step has a value for it.
    Waits,
    /// The channel is closed and empty.
    Ended,
    /// There is no value, and it does not wait.
    Empty,
}

/// Outcome of cancelling an operation that nobody waits for any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cancelled<V> {
    /// It no longer waits; its value, if it had one.
    Now(Option<V>),
    /// Room that was granted to it is free again. The grant was reported to it; nothing more will be.
    Granted,
    /// Its answer is on the way, or will be when its value, which is lent, has been taken or not.
    Later,
}

/// Resource a task of a place has and has not used, so that others wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HeldResource {
    /// Room that it was granted, or of a rendezvous a receiver.
    Room,
    /// A value of a rendezvous, which no task there has taken yet.
    Value,
}

/// A place uses or returns slots, or room, that it does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotViolation;

/// A place puts back, or says that it has taken, more values than have gone to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PutBackViolation;

/// Operation that waits to send.
#[derive(Clone, Debug)]
enum Sending<V> {
    /// With a value.
    Offer(OperationId, V),
    /// For room.
    Ask(OperationId),
}

impl<V> Sending<V> {
    fn id(&self) -> OperationId {
        match self {
            Sending::Offer(id, _) | Sending::Ask(id) => *id,
        }
    }
}

/// The state of a channel at its home.
#[derive(Clone, Debug)]
pub struct ChannelHome<V> {
    here: PlaceId,
    capacity: u32,
    /// Each value with the place for which its slot is kept, if there is one.
    buffer: VecDeque<(V, Option<PlaceId>)>,
    sending: VecDeque<Sending<V>>,
    /// Operations that asked and have room.
    granted: Vec<OperationId>,
    receiving: Receivers,
    credits: SlotCredits,
    /// All who wait, of a rendezvous; it has nothing of the above.
    rendezvous: Rendezvous<V>,
    is_closed: bool,
    /// True if there are no receivers any more.
    is_abandoned: bool,
}

impl<V> ChannelHome<V> {
    /// Makes an open channel of `capacity` values, whose home is `here`.
    pub fn new(here: PlaceId, capacity: u32) -> ChannelHome<V> {
        ChannelHome {
            here,
            capacity,
            buffer: VecDeque::new(),
            sending: VecDeque::new(),
            granted: Vec::new(),
            receiving: Receivers::default(),
            credits: SlotCredits::new(here),
            rendezvous: Rendezvous::default(),
            is_closed: false,
            is_abandoned: false,
        }
    }

    /// Returns the capacity, in values.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Returns `true` if the channel has no buffer.
    #[inline]
    pub fn is_rendezvous(&self) -> bool {
        self.capacity == 0
    }

    /// Returns the number of values in the channel.
    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Returns `true` if the channel holds no value.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Returns the number of senders at a rendezvous that wait for a receiver; 0 with a buffer.
    pub fn waiting_senders(&self) -> usize {
        self.rendezvous.waiting_senders()
    }

    /// Returns `true` if nothing can be sent any more.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Places whose tasks those who wait to send wait for, if any do.
    pub fn holders(&self) -> Vec<(PlaceId, HeldResource)> {
        if self.is_rendezvous() {
            return self.rendezvous.holders();
        }
        let granted: &[OperationId] = if self.sending.is_empty() { &[] } else { &self.granted };
        granted.iter().map(|id| (id.place, HeldResource::Room)).collect()
    }

    /// Returns the number of values and promises of room that fill it. Slots of other places do not: so nobody waits
    /// for room that a place only keeps, and those who use their slots then stand beside the capacity.
    #[inline]
    fn used(&self) -> usize {
        self.buffer.len() + self.granted.len()
    }

    #[inline]
    fn has_room(&self) -> bool {
        self.used() < self.capacity as usize
    }

    /// Room that is nobody's slot.
    #[inline]
    fn spare(&self) -> usize {
        (self.capacity as usize).saturating_sub(self.used() + self.credits.reserved())
    }

    /// As [`ChannelHome::offer`] of a task of this place, where the value only goes into the buffer.
    ///
    /// # Errors
    /// With the value, if that is not all there is to do.
    #[inline]
    pub fn offer_at_once(&mut self, value: V) -> Result<(), V> {
        if self.is_closed || !self.sending.is_empty() || !self.receiving.is_empty() || self.spare() == 0 {
            return Err(value);
        }
        self.buffer.push_back((value, None));
        Ok(())
    }

    /// As [`ChannelHome::want`] of a task of this place, where a value leaves the buffer and nobody waits for the room;
    /// none if that is not all there is to do.
    #[inline]
    pub fn want_at_once(&mut self, steps: &mut Vec<ChannelStep<V>>) -> Option<V> {
        if !self.sending.is_empty() {
            return None;
        }
        let (value, from) = self.buffer.pop_front()?;
        if let Some(place) = from {
            self.credits.note_received(place);
            self.keep(place, steps);
        }
        Some(value)
    }

    /// As [`ChannelHome::want`] of a task of this place at a rendezvous, where a value waits with its sender and nobody
    /// waits to receive; none if that is not so.
    #[inline]
    pub fn take_offer(&mut self, steps: &mut Vec<ChannelStep<V>>) -> Option<V> {
        self.rendezvous.take_offer(steps)
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
        if self.is_closed {
            return OfferOutcome::Refused(value);
        }
        if self.is_rendezvous() {
            return self.rendezvous.offer(id, value, waits, steps);
        }
        if self.sending.is_empty() && !self.receiving.is_empty() {
            self.deliver_first(value, steps);
            return OfferOutcome::Accepted(self.give_more(id.place));
        }
        if self.sending.is_empty() && self.has_room() {
            self.take_room(steps);
            self.buffer.push_back((value, None));
            return OfferOutcome::Accepted(self.give_more(id.place));
        }
        if !waits {
            return OfferOutcome::Full(value);
        }
        self.recall(steps);
        self.sending.push_back(Sending::Offer(id, value));
        OfferOutcome::Waits
    }

    /// Asks for room for one value, which the sender keeps until it has that and still wants to send; if there is none,
    /// it waits, if it `waits`. Then the sender calls [`ChannelHome::choose`], or gives the room back by
    /// [`ChannelHome::cancel`].
    pub fn ask(
        &mut self,
        id: OperationId,
        choice: Choice,
        waits: bool,
        steps: &mut Vec<ChannelStep<V>>,
    ) -> OfferOutcome<()> {
        if self.is_closed {
            return OfferOutcome::Refused(());
        }
        if self.is_rendezvous() {
            return self.rendezvous.ask(id, choice, waits, steps);
        }
        if self.sending.is_empty() && self.has_room() {
            self.take_room(steps);
            self.granted.push(id);
            return OfferOutcome::Accepted(0);
        }
        if !waits {
            return OfferOutcome::Full(());
        }
        self.recall(steps);
        self.sending.push_back(Sending::Ask(id));
        OfferOutcome::Waits
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
        if self.is_rendezvous() {
            return self.rendezvous.choose(id, value, self.is_closed, steps);
        }
        let found = self.granted.iter().position(|other| *other == id).ok_or(SlotViolation)?;
        self.granted.swap_remove(found);
        if self.is_abandoned {
            return Ok(OfferOutcome::Refused(value));
        }
        if self.receiving.is_empty() {
            self.buffer.push_back((value, None));
        } else {
            self.deliver_first(value, steps);
            self.admit(steps);
        }
        self.end_if_over(steps);
        Ok(OfferOutcome::Accepted(0))
    }

    /// A value for which `place` had a slot. It is given back if nobody can receive it any more.
    ///
    /// # Errors
    /// It had none.
    pub fn item(
        &mut self,
        place: PlaceId,
        value: V,
        steps: &mut Vec<ChannelStep<V>>,
    ) -> Result<Option<V>, SlotViolation> {
        self.credits.use_slot(place)?;
        if self.is_abandoned {
            return Ok(Some(value));
        }
        if self.receiving.is_empty() {
            self.credits.note_buffered(place);
            self.buffer.push_back((value, Some(place)));
        } else {
            self.deliver_first(value, steps);
            self.keep(place, steps);
            self.admit(steps);
        }
        self.end_if_over(steps);
        Ok(None)
    }

    /// Returns `true` if a task of this place may have a value at once that is under way by a slot: none is before it,
    /// and nobody waits for anything.
    #[inline]
    pub fn may_pass(&self) -> bool {
        self.buffer.is_empty() && self.sending.is_empty() && self.receiving.is_empty()
    }

    /// As [`ChannelHome::item`] and then [`ChannelHome::want`] of a task of this place, where it
    /// [may have it](ChannelHome::may_pass) at once.
    ///
    /// # Errors
    /// `place` had no slot.
    #[inline]
    pub fn pass(&mut self, place: PlaceId, steps: &mut Vec<ChannelStep<V>>) -> Result<(), SlotViolation> {
        self.credits.use_slot(place)?;
        self.keep(place, steps);
        Ok(())
    }

    /// Returns the number of tasks that wait to receive.
    pub fn receivers(&self) -> usize {
        self.receiving.len()
    }

    /// Asks for a value; if there is none, it waits, if it `waits`. The value of a rendezvous comes as a step.
    pub fn want(
        &mut self,
        id: OperationId,
        choice: Choice,
        waits: bool,
        steps: &mut Vec<ChannelStep<V>>,
    ) -> WantOutcome<V> {
        if self.is_rendezvous() {
            return if self.is_closed {
                WantOutcome::Ended
            } else {
                self.rendezvous.want(id, choice, waits, steps)
            };
        }
        if let Some((value, from)) = self.buffer.pop_front() {
            // A task of this place has it at once.
            if id.place != self.here {
                self.credits.lend(id.place);
            }
            self.was_received(from, steps);
            return WantOutcome::Value(value);
        }
        // All of the room is granted to others.
        if let Some(Sending::Offer(..)) = self.sending.front()
            && let Some(Sending::Offer(sender, value)) = self.sending.pop_front()
        {
            if id.place != self.here {
                self.credits.lend(id.place);
            }
            steps.push(ChannelStep::Accept(sender, 0));
            return WantOutcome::Value(value);
        }
        if self.is_over() {
            return WantOutcome::Ended;
        }
        if !waits {
            self.settle_if_closed(steps);
            return WantOutcome::Empty;
        }
        self.receiving.push(id);
        self.admit(steps);
        self.end_if_over(steps);
        WantOutcome::Waits
    }

    /// A value that arrived at `place` for nobody; it is the next to be received. It is given back if nobody can
    /// receive it.
    ///
    /// # Errors
    /// Another place puts back more than has gone there, or anything of a rendezvous.
    pub fn put_back(
        &mut self,
        place: PlaceId,
        value: V,
        steps: &mut Vec<ChannelStep<V>>,
    ) -> Result<Option<V>, PutBackViolation> {
        let was_there = self.credits.take_back(place);
        if self.is_rendezvous() || (!was_there && place != self.here) {
            return Err(PutBackViolation);
        }
        if self.is_abandoned {
            return Ok(Some(value));
        }
        if self.receiving.is_empty() {
            self.buffer.push_front((value, None));
        } else {
            self.deliver_first(value, steps);
        }
        self.end_if_over(steps);
        Ok(None)
    }

    /// The value of a rendezvous that was lent to `receiver` is still here, as it was only copied there. It is given
    /// back if it is not needed any more.
    pub fn retain(&mut self, receiver: OperationId, value: V, steps: &mut Vec<ChannelStep<V>>) -> Option<V> {
        self.rendezvous.retain(receiver, value, self.is_closed, steps)
    }

    /// The value of a rendezvous that was lent to `receiver` was taken; it is given back, if it is still here.
    ///
    /// # Errors
    /// None was lent.
    pub fn taken(
        &mut self,
        receiver: OperationId,
        steps: &mut Vec<ChannelStep<V>>,
    ) -> Result<Option<V>, PutBackViolation> {
        self.rendezvous.taken(receiver, steps)
    }

    /// The value of a rendezvous that was lent to `receiver` was not taken, and nobody there waits for one. It comes
    /// along if it had gone there.
    ///
    /// # Errors
    /// None was lent.
    pub fn not_taken(
        &mut self,
        receiver: OperationId,
        value: Option<V>,
        steps: &mut Vec<ChannelStep<V>>,
    ) -> Result<(), PutBackViolation> {
        self.rendezvous.not_taken(receiver, value, self.is_closed, steps)
    }

    /// A value that went to a waiting operation of this place has been taken.
    pub fn forget_lent(&mut self, steps: &mut Vec<ChannelStep<V>>) {
        self.credits.forget_lent();
        self.end_if_over(steps);
    }

    /// Each value that had gone to `place` when it was asked has been taken or put back.
    pub fn settled(&mut self, place: PlaceId, steps: &mut Vec<ChannelStep<V>>) {
        self.credits.settled(place);
        self.end_if_over(steps);
    }

    /// Cancels an operation that nobody waits for any more.
    pub fn cancel(&mut self, id: OperationId, steps: &mut Vec<ChannelStep<V>>) -> Cancelled<V> {
        if self.is_rendezvous() {
            return self.rendezvous.cancel(id, steps);
        }
        let found = self.sending.iter().position(|sending| sending.id() == id);
        if let Some(sending) = found.and_then(|found| self.sending.remove(found)) {
            self.admit(steps);
            return Cancelled::Now(match sending {
                Sending::Offer(_, value) => Some(value),
                Sending::Ask(_) => None,
            });
        }
        if let Some(found) = self.granted.iter().position(|other| *other == id) {
            self.granted.swap_remove(found);
            self.admit(steps);
            self.end_if_over(steps);
            return Cancelled::Granted;
        }
        if self.receiving.remove(id) { Cancelled::Now(None) } else { Cancelled::Later }
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
        self.credits.return_slots(place, slots)?;
        self.end_if_over(steps);
        Ok(())
    }

    /// Closes the channel: nothing can be sent any more. What was sent can still be received.
    pub fn close(&mut self, steps: &mut Vec<ChannelStep<V>>) {
        if std::mem::replace(&mut self.is_closed, true) {
            return;
        }
        for sending in std::mem::take(&mut self.sending) {
            steps.push(match sending {
                Sending::Offer(id, value) => ChannelStep::Refuse(id, Some(value)),
                Sending::Ask(id) => ChannelStep::Refuse(id, None),
            });
        }
        self.rendezvous.close(steps);
        self.credits.take_idle();
        steps.extend(self.credits.recall_all().into_iter().map(ChannelStep::Close));
        self.end_if_over(steps);
    }

    /// Closes the channel because nobody can receive any more; returns the values that nobody will have.
    #[must_use = "the values are to be dropped when nothing is borrowed"]
    pub fn abandon(&mut self, steps: &mut Vec<ChannelStep<V>>) -> Vec<V> {
        self.is_abandoned = true;
        self.close(steps);
        self.buffer.drain(..).map(|(value, _)| value).collect()
    }

    /// Handles the death of a place, of which nothing will arrive any more; returns the values that it waited to send,
    /// and those of a rendezvous that it may have taken.
    #[must_use = "the values are to be dropped when nothing is borrowed"]
    pub fn place_died(&mut self, place: PlaceId, steps: &mut Vec<ChannelStep<V>>) -> Vec<V> {
        if self.is_rendezvous() {
            return self.rendezvous.place_died(place, steps);
        }
        let (dead, living) =
            std::mem::take(&mut self.sending).into_iter().partition(|sending| sending.id().place == place);
        let dead: VecDeque<Sending<V>> = dead;
        self.sending = living;
        self.granted.retain(|id| id.place != place);
        self.receiving.remove_place(place);
        self.credits.remove(place);
        self.admit(steps);
        self.end_if_over(steps);
        let value = |sending| match sending {
            Sending::Offer(_, value) => Some(value),
            Sending::Ask(_) => None,
        };
        dead.into_iter().filter_map(value).collect()
    }

    /// Delivers `value` to the longest waiting receiver.
    fn deliver_first(&mut self, value: V, steps: &mut Vec<ChannelStep<V>>) {
        if let Some(id) = self.receiving.pop() {
            self.credits.lend(id.place);
            steps.push(ChannelStep::Deliver(id, value));
        }
    }

    /// Frees the slot of a value that has left the buffer, which was kept for `from`.
    fn was_received(&mut self, from: Option<PlaceId>, steps: &mut Vec<ChannelStep<V>>) {
        if let Some(place) = from {
            self.credits.note_received(place);
            self.keep(place, steps);
        }
        self.admit(steps);
    }

    /// Keeps a slot for `place`, unless someone waits for room; announces what is kept when that is a quarter of all.
    fn keep(&mut self, place: PlaceId, steps: &mut Vec<ChannelStep<V>>) {
        if !self.sending.is_empty() || self.is_closed || self.spare() == 0 || !self.may_give(place) {
            return;
        }
        if let Some(slots) = self.credits.keep(place) {
            steps.push(ChannelStep::Announce(place, slots));
        }
    }

    /// Returns `true` if a place may have slots: of a channel of one value they would be room that others see and
    /// cannot use.
    fn may_give(&self, place: PlaceId) -> bool {
        place != self.here && self.capacity > 1
    }

    /// Slots that a place gets beside the answer to an offer: half of what is free.
    fn give_more(&mut self, place: PlaceId) -> u32 {
        if !self.may_give(place) || !self.sending.is_empty() {
            return 0;
        }
        let slots = self.spare().div_ceil(2) as u32;
        if slots > 0 {
            self.credits.reserve(place, slots);
        }
        slots
    }

    /// Takes room: what is kept for others goes first; then places that have slots are asked for them, so that they do
    /// not stand beside the capacity for long.
    fn take_room(&mut self, steps: &mut Vec<ChannelStep<V>>) {
        if self.spare() == 0 && self.credits.take_idle() == 0 {
            self.recall(steps);
        }
    }

    fn recall(&mut self, steps: &mut Vec<ChannelStep<V>>) {
        steps.extend(self.credits.recall().into_iter().map(ChannelStep::Recall));
    }

    /// Serves those who wait to send, as far as there is room or a receiver.
    fn admit(&mut self, steps: &mut Vec<ChannelStep<V>>) {
        while let Some(first) = self.sending.front() {
            let is_received = matches!(first, Sending::Offer(..)) && !self.receiving.is_empty();
            if !is_received && !self.has_room() {
                return self.recall(steps);
            }
            match self.sending.pop_front() {
                Some(Sending::Offer(id, value)) => {
                    if is_received {
                        self.deliver_first(value, steps);
                    } else {
                        self.take_room(steps);
                        self.buffer.push_back((value, None));
                    }
                    steps.push(ChannelStep::Accept(id, 0));
                }
                Some(Sending::Ask(id)) => {
                    self.take_room(steps);
                    self.granted.push(id);
                    steps.push(ChannelStep::Grant(id));
                }
                None => return,
            }
        }
    }

    /// Returns `true` if nothing can be received any more: it is closed, and nothing is here or under way, in either
    /// direction.
    fn is_over(&self) -> bool {
        self.is_closed && self.buffer.is_empty() && self.granted.is_empty() && self.credits.are_quiet()
    }

    /// Asks the places to which values have gone whether any can come back, if the channel is closed and empty but for
    /// those.
    fn settle_if_closed(&mut self, steps: &mut Vec<ChannelStep<V>>) {
        if self.is_closed && self.buffer.is_empty() {
            steps.extend(self.credits.settle().into_iter().map(ChannelStep::Settle));
        }
    }

    /// Tells those who wait to receive that there is nothing to wait for, if that is so; asks where it is not known.
    #[inline]
    fn end_if_over(&mut self, steps: &mut Vec<ChannelStep<V>>) {
        if self.is_closed {
            self.end_closed_if_over(steps);
        }
    }

    fn end_closed_if_over(&mut self, steps: &mut Vec<ChannelStep<V>>) {
        if !self.receiving.is_empty() {
            self.settle_if_closed(steps);
        }
        if self.is_over() {
            while let Some(id) = self.receiving.pop() {
                steps.push(ChannelStep::End(id));
            }
        }
    }
}
