//! Places that are blocked in sends: their pending messages, and the messages that they receive meanwhile.
//!
//! [`BlockingSend`] is the queue of one sender. [`UnexpectedQueue`] has the messages that receivers have taken before
//! they wanted them, one of each sender and class: a place blocked in a send must be able to receive, or two places
//! would wait for each other. This file has no costs; the protocol spends the time and decides when a message can be
//! sent. Invariants: a sender may send the next message of a class once it is notified that its last one was wanted; a
//! sender that checks this first has at most one message of a class in each queue.

use crate::energy::meter::NEVER;
use crate::protocol::inbox::{LaneIndex, MessageContent, ReceivedMessage};
use crate::protocol::{Outgoing, Wakeups};
use isles_chip::quantity::Picoseconds;
use isles_transport::{Class, PlaceId};
use std::collections::VecDeque;

/// Send queues of all places, and the messages that they took while blocked.
pub(crate) struct BlockingSends {
    /// The send queue of each place.
    blocking_sends: Vec<BlockingSend>,
    /// Messages that places have taken before they wanted them.
    pub(crate) kept: UnexpectedQueue,
    /// For each place, the places that it has notified by an answer, a register or a flag, with the times.
    answered: Vec<Wakeups>,
}

impl BlockingSends {
    /// Returns the queues of `places` places, none of which is blocked.
    pub(crate) fn new(places: usize) -> BlockingSends {
        BlockingSends {
            blocking_sends: std::iter::repeat_with(BlockingSend::default).take(places).collect(),
            kept: UnexpectedQueue::new(places),
            answered: vec![Wakeups::new(); places],
        }
    }

    /// Returns the send queue of `place`.
    pub(crate) fn of(&self, place: PlaceId) -> &BlockingSend {
        &self.blocking_sends[place.index()]
    }

    /// Returns the send queue of `place`, mutably.
    pub(crate) fn of_mut(&mut self, place: PlaceId) -> &mut BlockingSend {
        &mut self.blocking_sends[place.index()]
    }

    /// Returns `true` if `out` may be sent or added; see [`BlockingSend::admits`].
    pub(crate) fn admits(&mut self, out: &Outgoing, present: Picoseconds) -> bool {
        self.blocking_sends[out.from.index()].admits(&self.kept, out, present)
    }

    /// Records that `place` has answered `other`, which sees it at `time`.
    pub(crate) fn answer(&mut self, place: PlaceId, other: PlaceId, time: Picoseconds) {
        self.answered[place.index()].push((other, time));
    }

    /// Moves the recorded answers of `place` to `wakeups`.
    pub(crate) fn drain_wakeups(&mut self, place: PlaceId, wakeups: &mut Wakeups) {
        wakeups.append(&mut self.answered[place.index()]);
    }

    /// Takes a kept message that is wanted now; `flag` notifies its sender and returns the arrival time.
    pub(crate) fn take_deferred(
        &mut self,
        place: PlaceId,
        control_only: bool,
        flag: impl FnOnce(PlaceId) -> Picoseconds,
    ) -> Option<ReceivedMessage> {
        let message = self.kept.take(place, control_only)?;
        let time = flag(message.source);
        self.kept.release(place, &message, time);
        self.of_mut(message.source).may_try(time);
        self.answer(place, message.source, time);
        Some(message)
    }

    /// Returns the message that `place` has just taken if it is wanted now, otherwise keeps it.
    pub(crate) fn accept_or_defer(
        &mut self,
        place: PlaceId,
        message: ReceivedMessage,
        control_only: bool,
    ) -> Option<ReceivedMessage> {
        if control_only && message.class == Class::Data {
            self.kept.put(place, message);
            return None;
        }
        Some(message)
    }
}

/// Pending messages of one place, and the time of its next attempt.
#[derive(Default)]
pub(crate) struct BlockingSend {
    pending: VecDeque<(Outgoing, MessageContent)>,
    due: Option<Picoseconds>,
}

impl BlockingSend {
    /// Returns `true` if `out` may be sent or queued: its receiver has wanted the last message of its class, and none
    /// is queued.
    pub(crate) fn admits(&mut self, kept: &UnexpectedQueue, out: &Outgoing, present: Picoseconds) -> bool {
        self.expire(present);
        let until = kept.until(out.from, out.to, out.class);
        if until > present && until != NEVER {
            self.may_try(until);
        }
        until <= present
            && !self.pending.iter().any(|(other, _)| (other.to, other.class) == (out.to, out.class))
    }

    /// Allows a new attempt to send the refused message from `time` on.
    pub(crate) fn may_try(&mut self, time: Picoseconds) {
        self.due = Some(self.due.map_or(time, |due| due.min(time)));
    }

    /// Clears the due time if it has passed: refused messages are tried now.
    pub(crate) fn expire(&mut self, present: Picoseconds) {
        self.due.take_if(|due| *due <= present);
    }

    /// Returns the time at which the refused message may be tried again.
    pub(crate) fn due(&self) -> Option<Picoseconds> {
        self.due
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Returns the next message to send.
    pub(crate) fn next(&self) -> Option<Outgoing> {
        self.pending.front().map(|(out, _)| *out)
    }

    /// Appends a message.
    pub(crate) fn push(&mut self, out: &Outgoing, content: MessageContent) {
        self.pending.push_back((*out, content));
    }

    /// Takes the next message.
    pub(crate) fn pop(&mut self) -> Option<(Outgoing, MessageContent)> {
        self.pending.pop_front()
    }

    /// Drops the messages to `gone`.
    pub(crate) fn forget(&mut self, gone: PlaceId) {
        self.pending.retain(|(out, _)| out.to != gone);
    }

    /// Drops all messages.
    pub(crate) fn clear(&mut self) {
        self.pending.clear();
    }
}

/// Messages that receivers have taken before they wanted them.
pub(crate) struct UnexpectedQueue {
    pairs: LaneIndex,
    /// Messages by receiver, in the order in which they were taken.
    parcels: Vec<VecDeque<ReceivedMessage>>,
    /// By sender, receiver and class: the end of the last message's wait; [`NEVER`] while it waits.
    until: Vec<Picoseconds>,
}

impl UnexpectedQueue {
    /// Returns the empty queues of `places` places.
    pub(crate) fn new(places: usize) -> UnexpectedQueue {
        let pairs = LaneIndex::of(places);
        let until = vec![Picoseconds::ZERO; pairs.lanes()];
        UnexpectedQueue {
            pairs,
            parcels: std::iter::repeat_with(VecDeque::new).take(places).collect(),
            until,
        }
    }

    /// Keeps a message that `place` does not want yet.
    pub(crate) fn put(&mut self, place: PlaceId, message: ReceivedMessage) {
        self.until[self.pairs.lane(message.source, place, message.class)] = NEVER;
        self.parcels[place.index()].push_back(message);
    }

    /// Takes the first message that `place` wants now; the caller must call [`UnexpectedQueue::release`].
    pub(crate) fn take(&mut self, place: PlaceId, control_only: bool) -> Option<ReceivedMessage> {
        let parcels = &mut self.parcels[place.index()];
        let wanted = parcels.iter().position(|message| !control_only || message.class == Class::Control)?;
        parcels.remove(wanted)
    }

    /// Sets the time at which the sender of `message` knows that `place` has wanted it.
    pub(crate) fn release(&mut self, place: PlaceId, message: &ReceivedMessage, time: Picoseconds) {
        self.until[self.pairs.lane(message.source, place, message.class)] = time;
    }

    /// Returns the end of the wait of a message of `from` at `to`; [`NEVER`] if `to` does not want it yet.
    pub(crate) fn until(&self, from: PlaceId, to: PlaceId, class: Class) -> Picoseconds {
        self.until[self.pairs.lane(from, to, class)]
    }

    /// Returns the arrival time of the first message that `place` keeps.
    pub(crate) fn first_arrival(&self, place: PlaceId) -> Option<Picoseconds> {
        self.parcels[place.index()].front().map(|message| message.arrival)
    }

    /// Returns `true` if `place` keeps a message of `source`.
    pub(crate) fn has_from(&self, source: PlaceId, place: PlaceId) -> bool {
        self.parcels[place.index()].iter().any(|message| message.source == source)
    }

    /// Forgets `gone` as a receiver of `place`, which no longer waits for it.
    pub(crate) fn forget_receiver(&mut self, place: PlaceId, gone: PlaceId) {
        for lane in self.pairs.both(place, gone) {
            self.until[lane] = Picoseconds::ZERO;
        }
    }

    /// Drops all messages kept by `gone`.
    pub(crate) fn clear(&mut self, gone: PlaceId) {
        self.parcels[gone.index()].clear();
    }
}
