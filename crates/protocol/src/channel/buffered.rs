//! A channel with a buffer, at its home: the buffer, the tasks that wait to send or to receive, and the slots of other
//! places.
//!
//! Generic over the values. Invariants: the buffer and the granted room together do not exceed the capacity, except for
//! values that used slots or were put back; no task waits to receive while the buffer has a value; no task waits to
//! send while there is room.

use super::credits::{Receivers, SlotCredits};
use super::queue::ValueQueue;
use super::step::{Cancelled, ChannelStep, HeldResource, OfferOutcome, OperationId, WantOutcome};
use super::step::{PutBackViolation, SlotViolation};
use crate::PlaceId;
use std::collections::VecDeque;
use std::num::NonZeroU32;

/// A waiting send.
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

/// The state of a channel with a buffer at its home.
#[derive(Clone, Debug)]
pub struct Buffered<V> {
    here: PlaceId,
    /// Number of values.
    capacity: NonZeroU32,
    /// Values, each with the place whose slot it used, if any.
    buffer: ValueQueue<(V, Option<PlaceId>)>,
    sending: VecDeque<Sending<V>>,
    /// Operations that asked for room and have been granted it.
    granted: Vec<OperationId>,
    receiving: Receivers,
    credits: SlotCredits,
    is_closed: bool,
    /// True if there are no receivers any more.
    is_abandoned: bool,
}

impl<V> Buffered<V> {
    /// Creates an open channel of `capacity` values, whose home is `here`.
    pub(super) fn new(here: PlaceId, capacity: NonZeroU32) -> Buffered<V> {
        Buffered {
            here,
            capacity,
            buffer: ValueQueue::new(),
            sending: VecDeque::new(),
            granted: Vec::new(),
            receiving: Receivers::default(),
            credits: SlotCredits::new(here),
            is_closed: false,
            is_abandoned: false,
        }
    }

    /// Returns the capacity, in values.
    pub(super) fn capacity(&self) -> u32 {
        self.capacity.get()
    }

    /// As [`ChannelHome::len`](super::ChannelHome::len).
    pub(super) fn len(&self) -> usize {
        self.buffer.len()
    }

    /// As [`ChannelHome::is_closed`](super::ChannelHome::is_closed).
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// As [`ChannelHome::holders`](super::ChannelHome::holders).
    pub(super) fn holders(&self) -> Vec<(PlaceId, HeldResource)> {
        let granted: &[OperationId] = if self.sending.is_empty() { &[] } else { &self.granted };
        granted.iter().map(|id| (id.place, HeldResource::Room)).collect()
    }

    /// Returns the number of values and of granted room that count against the capacity. Slots of other places do not
    /// count, so that no task waits for room that a place only keeps; values that use slots may therefore exceed the
    /// capacity.
    #[inline]
    fn used(&self) -> usize {
        self.buffer.len() + self.granted.len()
    }

    #[inline]
    fn has_room(&self) -> bool {
        self.used() < self.capacity.get() as usize
    }

    /// Returns the room that is not reserved by slots.
    #[inline]
    fn spare(&self) -> usize {
        (self.capacity.get() as usize).saturating_sub(self.used() + self.credits.reserved())
    }

    /// As [`ChannelHome::offer_at_once`](super::ChannelHome::offer_at_once).
    #[inline]
    pub(super) fn offer_at_once(&mut self, value: V) -> Result<(), V> {
        if self.is_closed || !self.sending.is_empty() || !self.receiving.is_empty() || self.spare() == 0 {
            return Err(value);
        }
        self.buffer.push_back((value, None));
        Ok(())
    }

    /// As [`ChannelHome::want_at_once`](super::ChannelHome::want_at_once).
    #[inline]
    pub(super) fn want_at_once(&mut self, steps: &mut Vec<ChannelStep<V>>) -> Option<V> {
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

    /// As [`ChannelHome::offer`](super::ChannelHome::offer).
    pub(super) fn offer(
        &mut self,
        id: OperationId,
        value: V,
        waits: bool,
        steps: &mut Vec<ChannelStep<V>>,
    ) -> OfferOutcome<V> {
        if self.is_closed {
            return OfferOutcome::Refused(value);
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

    /// As [`ChannelHome::ask`](super::ChannelHome::ask).
    pub(super) fn ask(
        &mut self,
        id: OperationId,
        waits: bool,
        steps: &mut Vec<ChannelStep<V>>,
    ) -> OfferOutcome<()> {
        if self.is_closed {
            return OfferOutcome::Refused(());
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

    /// As [`ChannelHome::choose`](super::ChannelHome::choose).
    pub(super) fn choose(
        &mut self,
        id: OperationId,
        value: V,
        steps: &mut Vec<ChannelStep<V>>,
    ) -> Result<OfferOutcome<V>, SlotViolation> {
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

    /// As [`ChannelHome::item`](super::ChannelHome::item).
    pub(super) fn item(
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

    /// As [`ChannelHome::may_pass`](super::ChannelHome::may_pass).
    #[inline]
    pub(super) fn may_pass(&self) -> bool {
        self.buffer.is_empty() && self.sending.is_empty() && self.receiving.is_empty()
    }

    /// As [`ChannelHome::pass`](super::ChannelHome::pass).
    #[inline]
    pub(super) fn pass(
        &mut self,
        place: PlaceId,
        steps: &mut Vec<ChannelStep<V>>,
    ) -> Result<(), SlotViolation> {
        self.credits.use_slot(place)?;
        self.keep(place, steps);
        Ok(())
    }

    /// As [`ChannelHome::receivers`](super::ChannelHome::receivers).
    pub(super) fn receivers(&self) -> usize {
        self.receiving.len()
    }

    /// As [`ChannelHome::want`](super::ChannelHome::want).
    pub(super) fn want(
        &mut self,
        id: OperationId,
        waits: bool,
        steps: &mut Vec<ChannelStep<V>>,
    ) -> WantOutcome<V> {
        if let Some((value, from)) = self.buffer.pop_front() {
            // A task of this place takes the value at once.
            if id.place != self.here {
                self.credits.lend(id.place);
            }
            self.was_received(from, steps);
            return WantOutcome::Value(value);
        }
        // The buffer is empty, so all room is granted to other senders.
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

    /// As [`ChannelHome::put_back`](super::ChannelHome::put_back).
    pub(super) fn put_back(
        &mut self,
        place: PlaceId,
        value: V,
        steps: &mut Vec<ChannelStep<V>>,
    ) -> Result<Option<V>, PutBackViolation> {
        let was_there = self.credits.take_back(place);
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

    /// As [`ChannelHome::taken`](super::ChannelHome::taken): only values that went to a task of this place are counted
    /// until they are taken.
    ///
    /// # Errors
    /// `receiver` is at another place.
    pub(super) fn taken(
        &mut self,
        receiver: OperationId,
        steps: &mut Vec<ChannelStep<V>>,
    ) -> Result<(), PutBackViolation> {
        if receiver.place != self.here {
            return Err(PutBackViolation);
        }
        self.credits.forget_lent();
        self.end_if_over(steps);
        Ok(())
    }

    /// As [`ChannelHome::settled`](super::ChannelHome::settled).
    pub(super) fn settled(&mut self, place: PlaceId, steps: &mut Vec<ChannelStep<V>>) {
        self.credits.settled(place);
        self.end_if_over(steps);
    }

    /// As [`ChannelHome::cancel`](super::ChannelHome::cancel).
    pub(super) fn cancel(&mut self, id: OperationId, steps: &mut Vec<ChannelStep<V>>) -> Cancelled<V> {
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

    /// As [`ChannelHome::return_slots`](super::ChannelHome::return_slots).
    pub(super) fn return_slots(
        &mut self,
        place: PlaceId,
        slots: u32,
        steps: &mut Vec<ChannelStep<V>>,
    ) -> Result<(), SlotViolation> {
        self.credits.return_slots(place, slots)?;
        self.end_if_over(steps);
        Ok(())
    }

    /// As [`ChannelHome::close`](super::ChannelHome::close).
    pub(super) fn close(&mut self, steps: &mut Vec<ChannelStep<V>>) {
        if std::mem::replace(&mut self.is_closed, true) {
            return;
        }
        for sending in std::mem::take(&mut self.sending) {
            steps.push(match sending {
                Sending::Offer(id, value) => ChannelStep::Refuse(id, Some(value)),
                Sending::Ask(id) => ChannelStep::Refuse(id, None),
            });
        }
        self.credits.take_idle();
        steps.extend(self.credits.recall_all().into_iter().map(ChannelStep::Close));
        self.end_if_over(steps);
    }

    /// As [`ChannelHome::abandon`](super::ChannelHome::abandon).
    pub(super) fn abandon(&mut self, steps: &mut Vec<ChannelStep<V>>) -> Vec<V> {
        self.is_abandoned = true;
        self.close(steps);
        self.buffer.take_all().map(|(value, _)| value).collect()
    }

    /// As [`ChannelHome::place_died`](super::ChannelHome::place_died).
    pub(super) fn place_died(&mut self, place: PlaceId, steps: &mut Vec<ChannelStep<V>>) -> Vec<V> {
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

    /// Frees the room of a value that has left the buffer; keeps its slot for `from`.
    fn was_received(&mut self, from: Option<PlaceId>, steps: &mut Vec<ChannelStep<V>>) {
        if let Some(place) = from {
            self.credits.note_received(place);
            self.keep(place, steps);
        }
        self.admit(steps);
    }

    /// Keeps a slot for `place`, unless a task waits for room. Announces the kept slots when they are a quarter of all.
    fn keep(&mut self, place: PlaceId, steps: &mut Vec<ChannelStep<V>>) {
        if !self.sending.is_empty() || self.is_closed || self.spare() == 0 || !self.may_give(place) {
            return;
        }
        if let Some(slots) = self.credits.keep(place) {
            steps.push(ChannelStep::Announce(place, slots));
        }
    }

    /// Returns `true` if a place may have slots. In a channel of one value, a slot would be room that others see but
    /// cannot use.
    fn may_give(&self, place: PlaceId) -> bool {
        place != self.here && self.capacity.get() > 1
    }

    /// Returns the number of further slots that a place gets with the answer to an offer: half of the free room.
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

    /// Makes spare room if there is none: takes the slots kept for other places, or else recalls the slots that places
    /// have, so that the capacity is not exceeded for long.
    fn take_room(&mut self, steps: &mut Vec<ChannelStep<V>>) {
        if self.spare() == 0 && self.credits.take_idle() == 0 {
            self.recall(steps);
        }
    }

    fn recall(&mut self, steps: &mut Vec<ChannelStep<V>>) {
        steps.extend(self.credits.recall().into_iter().map(ChannelStep::Recall));
    }

    /// Serves the operations that wait to send, as far as there is room or a receiver.
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

    /// Returns `true` if no value can be received any more: the channel is closed, and no value is here or in transit,
    /// in either direction.
    fn is_over(&self) -> bool {
        self.is_closed && self.buffer.is_empty() && self.granted.is_empty() && self.credits.are_quiet()
    }

    /// If the channel is closed and has only values that were sent to other places, asks these places if any can come
    /// back.
    fn settle_if_closed(&mut self, steps: &mut Vec<ChannelStep<V>>) {
        if self.is_closed && self.buffer.is_empty() {
            steps.extend(self.credits.settle().into_iter().map(ChannelStep::Settle));
        }
    }

    /// Ends the operations that wait to receive, if no value can come any more; asks the places from which one may
    /// still come.
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
