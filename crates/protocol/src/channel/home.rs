//! The home of a channel: the buffer, who waits to send, who waits to receive, and the slots of other places.
//!
//! Generic over the values. What becomes of the operation at hand is returned; what happens to others is added to a
//! list of [`ChannelStep`]s, to be carried out in order. Invariants: the buffer and the slots that are out or kept are
//! together no more than the capacity, but for values that were put back and slots of a rendezvous; nobody waits to
//! receive while the buffer holds something; an operation that waits is told its end once, or is cancelled.

use super::windows::{Receivers, Windows};
use crate::PlaceId;
use std::collections::VecDeque;

/// An operation that waits: a number of its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OperationId {
    /// The place of the task that waits.
    pub place: PlaceId,
    /// Which of its operations.
    pub number: u64,
}

/// What is to be done for an operation that has waited, or told to a place that holds slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelStep<V> {
    /// A receiver gets this value.
    Deliver(OperationId, V),
    /// The value of a sender is in the buffer or received; its place has so many slots more.
    Accept(OperationId, u32),
    /// A sender is refused, because the channel is closed; its value goes back, if it had been handed over.
    Refuse(OperationId, Option<V>),
    /// A receiver waits for nothing: the channel is closed and empty.
    End(OperationId),
    /// Who asked for a slot has one.
    Grant(OperationId),
    /// Slots of a place are free again.
    Announce(PlaceId, u32),
    /// A place shall return the slots that it has not used.
    Recall(PlaceId),
    /// The same, and there are no more: the channel is closed.
    Close(PlaceId),
    /// A place shall say when each value that went there has been taken or put back.
    Settle(PlaceId),
}

/// What became of an offer, or of the question for a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offered<V> {
    /// The value is in the buffer or received, or a slot is given; its place has so many slots more.
    Accepted(u32),
    /// It waits.
    Waits,
    /// The channel is closed.
    Refused(V),
    /// There is no room, and it was not to wait.
    Full(V),
}

/// What became of the question for a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted<V> {
    /// Here it is.
    Value(V),
    /// It waits.
    Waits,
    /// The channel is closed and empty.
    Ended,
    /// There is nothing, and it was not to wait.
    Empty,
}

/// A place uses or returns slots that it does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotViolation;

/// A place puts back more values than have gone to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PutBackViolation;

/// Who waits to send.
#[derive(Clone, Debug)]
enum Sending<V> {
    /// With a value.
    Offer(OperationId, V),
    /// For a slot.
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
    receiving: Receivers,
    windows: Windows,
    is_closed: bool,
    /// There are no receivers any more.
    is_abandoned: bool,
}

impl<V> ChannelHome<V> {
    /// An open channel of so many values, whose home is `here`.
    pub fn new(here: PlaceId, capacity: u32) -> ChannelHome<V> {
        ChannelHome {
            here,
            capacity,
            buffer: VecDeque::new(),
            sending: VecDeque::new(),
            receiving: Receivers::default(),
            windows: Windows::new(here),
            is_closed: false,
            is_abandoned: false,
        }
    }

    /// How many values it can hold.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// How many values it holds.
    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Whether nothing can be sent any more.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Whether a value can go into the buffer.
    fn has_room(&self) -> bool {
        self.buffer.len() + self.windows.reserved() < self.capacity as usize
    }

    /// Whether a receiver waits for whom no slot was given.
    fn has_receiver(&self) -> bool {
        let claimed = if self.capacity == 0 { self.windows.reserved() } else { 0 };
        self.receiving.len() > claimed
    }

    /// As [`ChannelHome::offer`] of a task of this place, where the value only goes into the buffer.
    ///
    /// # Errors
    /// With the value, if that is not all there is to do.
    #[inline]
    pub fn offer_at_once(&mut self, value: V) -> Result<(), V> {
        if self.is_closed || !self.sending.is_empty() || !self.receiving.is_empty() || !self.has_room() {
            return Err(value);
        }
        self.buffer.push_back((value, None));
        Ok(())
    }

    /// As [`ChannelHome::want`] of a task of this place, where a value only leaves the buffer; none if that is not all
    /// there is to do.
    #[inline]
    pub fn want_at_once(&mut self) -> Option<V> {
        if !self.sending.is_empty() || !matches!(self.buffer.front(), Some((_, None))) {
            return None;
        }
        self.buffer.pop_front().map(|(value, _)| value)
    }

    /// Someone sends `value`; if there is no room, it waits, if it `waits`.
    pub fn offer(
        &mut self,
        id: OperationId,
        value: V,
        waits: bool,
        steps: &mut Vec<ChannelStep<V>>,
    ) -> Offered<V> {
        if self.is_closed {
            return Offered::Refused(value);
        }
        if self.sending.is_empty() && self.has_receiver() {
            self.deliver_first(value, steps);
            return Offered::Accepted(self.give_more(id.place));
        }
        if self.sending.is_empty() && (self.has_room() || self.windows.take_idle() > 0) {
            self.buffer.push_back((value, None));
            return Offered::Accepted(self.give_more(id.place));
        }
        self.recall(steps);
        if !waits {
            return Offered::Full(value);
        }
        self.sending.push_back(Sending::Offer(id, value));
        Offered::Waits
    }

    /// Another place wants a slot for one value; if there is none, it waits, if it `waits`.
    pub fn ask(&mut self, id: OperationId, waits: bool, steps: &mut Vec<ChannelStep<V>>) -> Offered<()> {
        if self.is_closed {
            return Offered::Refused(());
        }
        if self.sending.is_empty() && (self.has_slot() || (self.capacity > 0 && self.windows.take_idle() > 0))
        {
            self.windows.reserve(id.place, 1);
            return Offered::Accepted(1);
        }
        self.recall(steps);
        if !waits {
            return Offered::Full(());
        }
        self.sending.push_back(Sending::Ask(id));
        Offered::Waits
    }

    /// Whether a slot can be given: of a rendezvous, one for each receiver that waits.
    fn has_slot(&self) -> bool {
        if self.capacity == 0 { self.has_receiver() } else { self.has_room() }
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
        self.windows.use_slot(place)?;
        if self.is_abandoned {
            return Ok(Some(value));
        }
        if self.receiving.is_empty() {
            self.windows.note_buffered(place);
            self.buffer.push_back((value, Some(place)));
        } else {
            self.deliver_first(value, steps);
            self.keep(place, steps);
            self.admit(steps);
        }
        self.end_if_over(steps);
        Ok(None)
    }

    /// Someone wants a value; if there is none, it waits, if it `waits`.
    pub fn want(&mut self, id: OperationId, waits: bool, steps: &mut Vec<ChannelStep<V>>) -> Wanted<V> {
        if let Some((value, from)) = self.buffer.pop_front() {
            // A task of this place has it at once.
            if id.place != self.here {
                self.windows.lend(id.place);
            }
            self.was_received(from, steps);
            return Wanted::Value(value);
        }
        // Of a rendezvous, and of a channel all of whose room is slots of others.
        if let Some(Sending::Offer(..)) = self.sending.front()
            && let Some(Sending::Offer(sender, value)) = self.sending.pop_front()
        {
            if id.place != self.here {
                self.windows.lend(id.place);
            }
            steps.push(ChannelStep::Accept(sender, 0));
            return Wanted::Value(value);
        }
        if self.is_over() {
            return Wanted::Ended;
        }
        if !waits {
            return Wanted::Empty;
        }
        self.receiving.push(id);
        self.admit(steps);
        self.end_if_over(steps);
        Wanted::Waits
    }

    /// A value that arrived at `place` for nobody; it is the next to be received. It is given back if nobody can
    /// receive it.
    ///
    /// # Errors
    /// Another place puts back more than has gone there.
    pub fn put_back(
        &mut self,
        place: PlaceId,
        value: V,
        steps: &mut Vec<ChannelStep<V>>,
    ) -> Result<Option<V>, PutBackViolation> {
        let was_there = self.windows.take_back(place);
        if !was_there && place != self.here {
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

    /// A value that went to a waiting operation of this place has been taken.
    pub fn taken(&mut self, steps: &mut Vec<ChannelStep<V>>) {
        self.windows.forget_lent();
        self.end_if_over(steps);
    }

    /// Each value that had gone to `place` when it was asked has been taken or put back.
    pub fn settled(&mut self, place: PlaceId, steps: &mut Vec<ChannelStep<V>>) {
        self.windows.settled(place);
        self.end_if_over(steps);
    }

    /// Nobody waits for this operation any more: whether it still waited, and its value if it was an offer.
    pub fn cancel(&mut self, id: OperationId, steps: &mut Vec<ChannelStep<V>>) -> Option<Option<V>> {
        let found = self.sending.iter().position(|sending| sending.id() == id);
        if let Some(sending) = found.and_then(|found| self.sending.remove(found)) {
            self.admit(steps);
            return Some(match sending {
                Sending::Offer(_, value) => Some(value),
                Sending::Ask(_) => None,
            });
        }
        self.receiving.remove(id).then_some(None)
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
        self.windows.return_slots(place, slots)?;
        self.admit(steps);
        self.end_if_over(steps);
        Ok(())
    }

    /// Nothing can be sent any more. What was sent can still be received.
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
        self.windows.take_idle();
        steps.extend(self.windows.recall_all().into_iter().map(ChannelStep::Close));
        self.end_if_over(steps);
    }

    /// Nobody can receive any more: closes it, and gives the values that nobody will have.
    #[must_use = "the values are to be dropped when nothing is borrowed"]
    pub fn abandon(&mut self, steps: &mut Vec<ChannelStep<V>>) -> Vec<V> {
        self.is_abandoned = true;
        self.close(steps);
        self.buffer.drain(..).map(|(value, _)| value).collect()
    }

    /// A place is dead, and all that it had sent has arrived; gives the values that it waited to send.
    #[must_use = "the values are to be dropped when nothing is borrowed"]
    pub fn place_died(&mut self, place: PlaceId, steps: &mut Vec<ChannelStep<V>>) -> Vec<V> {
        let (dead, living) =
            std::mem::take(&mut self.sending).into_iter().partition(|sending| sending.id().place == place);
        let dead: VecDeque<Sending<V>> = dead;
        self.sending = living;
        self.receiving.remove_place(place);
        self.windows.remove(place);
        self.admit(steps);
        self.end_if_over(steps);
        let value = |sending| match sending {
            Sending::Offer(_, value) => Some(value),
            Sending::Ask(_) => None,
        };
        dead.into_iter().filter_map(value).collect()
    }

    /// The longest waiting receiver gets `value`.
    fn deliver_first(&mut self, value: V, steps: &mut Vec<ChannelStep<V>>) {
        if let Some(id) = self.receiving.pop() {
            self.windows.lend(id.place);
            steps.push(ChannelStep::Deliver(id, value));
        }
    }

    /// A value has left the buffer, whose slot was kept for `from`.
    fn was_received(&mut self, from: Option<PlaceId>, steps: &mut Vec<ChannelStep<V>>) {
        if let Some(place) = from {
            self.windows.note_received(place);
            self.keep(place, steps);
        }
        self.admit(steps);
    }

    /// Keeps a slot for `place`, unless someone waits for it; announces what is kept when that is half of all.
    fn keep(&mut self, place: PlaceId, steps: &mut Vec<ChannelStep<V>>) {
        if !self.sending.is_empty() || self.is_closed || !self.has_room() || place == self.here {
            return;
        }
        if let Some(slots) = self.windows.keep(place) {
            steps.push(ChannelStep::Announce(place, slots));
        }
    }

    /// Slots that a place gets beside the answer to an offer: half of what is free.
    fn give_more(&mut self, place: PlaceId) -> u32 {
        if place == self.here || !self.sending.is_empty() {
            return 0;
        }
        let free = (self.capacity as usize).saturating_sub(self.buffer.len() + self.windows.reserved());
        let slots = free.div_ceil(2) as u32;
        if slots > 0 {
            self.windows.reserve(place, slots);
        }
        slots
    }

    /// Someone must wait: asks for slots that are out. Here nobody keeps one.
    fn recall(&mut self, steps: &mut Vec<ChannelStep<V>>) {
        steps.extend(self.windows.recall().into_iter().map(ChannelStep::Recall));
    }

    /// Serves those who wait to send, as far as there is room or a receiver.
    fn admit(&mut self, steps: &mut Vec<ChannelStep<V>>) {
        while let Some(first) = self.sending.front() {
            let is_possible = match first {
                Sending::Offer(..) => self.has_receiver() || self.has_room() || self.windows.take_idle() > 0,
                Sending::Ask(_) => self.has_slot() || (self.capacity > 0 && self.windows.take_idle() > 0),
            };
            if !is_possible {
                return self.recall(steps);
            }
            match self.sending.pop_front() {
                Some(Sending::Offer(id, value)) => {
                    if self.has_receiver() {
                        self.deliver_first(value, steps);
                    } else {
                        self.buffer.push_back((value, None));
                    }
                    steps.push(ChannelStep::Accept(id, 0));
                }
                Some(Sending::Ask(id)) => {
                    self.windows.reserve(id.place, 1);
                    steps.push(ChannelStep::Grant(id));
                }
                None => return,
            }
        }
    }

    /// Whether nothing can be received any more: it is closed, and nothing is here or under way, in either direction.
    fn is_over(&self) -> bool {
        self.is_closed && self.buffer.is_empty() && self.windows.are_quiet()
    }

    /// Tells those who wait to receive that there is nothing to wait for, if that is so; asks where it is not known.
    fn end_if_over(&mut self, steps: &mut Vec<ChannelStep<V>>) {
        if self.is_closed && self.buffer.is_empty() && !self.receiving.is_empty() {
            steps.extend(self.windows.settle().into_iter().map(ChannelStep::Settle));
        }
        if self.is_over() {
            while let Some(id) = self.receiving.pop() {
                steps.push(ChannelStep::End(id));
            }
        }
    }
}
