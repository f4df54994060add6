//! Places that are blocked in sends: what each sends next, what it takes meanwhile, and whom it answers.
//!
//! [`BlockingSend`] is the queue of one sender, [`UnexpectedQueue`] what receivers have taken and did not want yet, one
//! message of each sender and class: a place whose send blocks must be able to take in what it does not want, or two
//! would wait for each other. Nothing here has costs or knows when a message may go: that is the protocol's, which
//! spends the time and says when a flag is there. Invariants: a sender that is told that its message was wanted may
//! send the next one of that class from then on; one that asks before it sends has one message of a class in each
//! queue.

use crate::energy::meter::NEVER;
use crate::protocol::inbox::{LaneIndex, MessageContent, ReceivedMessage};
use crate::protocol::{Outgoing, Wakeups};
use isles_chip::quantity::Picoseconds;
use isles_transport::{Class, PlaceId};
use std::collections::VecDeque;

/// Send queues of all places, and the messages that they took while blocked.
pub(crate) struct BlockingSends {
    /// By place.
    blocking_sends: Vec<BlockingSend>,
    /// Messages that places have taken and did not want yet.
    pub(crate) kept: UnexpectedQueue,
    /// Places to notify of an answer, a register or a flag, with the time of each; by place.
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

    /// The same, to change it.
    pub(crate) fn of_mut(&mut self, place: PlaceId) -> &mut BlockingSend {
        &mut self.blocking_sends[place.index()]
    }

    /// Returns `true` if `out` may be sent or added; see [`BlockingSend::admits`].
    pub(crate) fn admits(&mut self, out: &Outgoing, present: Picoseconds) -> bool {
        self.blocking_sends[out.from.index()].admits(&self.kept, out, present)
    }

    /// Notes that `place` has answered `other`, which is notified at `time`.
    pub(crate) fn answer(&mut self, place: PlaceId, other: PlaceId, time: Picoseconds) {
        self.answered[place.index()].push((other, time));
    }

    /// Tells whom `place` has answered, each time once.
    pub(crate) fn drain_wakeups(&mut self, place: PlaceId, wakeups: &mut Wakeups) {
        wakeups.append(&mut self.answered[place.index()]);
    }

    /// A message that was kept and is wanted now; `flag` tells its sender, and gives when that is there.
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

/// Messages that one place has to send, and when it looks again.
#[derive(Default)]
pub(crate) struct BlockingSend {
    pending: VecDeque<(Outgoing, MessageContent)>,
    due: Option<Picoseconds>,
}

impl BlockingSend {
    /// Returns `true` if `out` may be sent or added: its receiver has wanted the last one of its class, and none is
    /// here.
    pub(crate) fn admits(&mut self, kept: &UnexpectedQueue, out: &Outgoing, present: Picoseconds) -> bool {
        self.expire(present);
        let until = kept.until(out.from, out.to, out.class);
        if until > present && until != NEVER {
            self.may_try(until);
        }
        until <= present
            && !self.pending.iter().any(|(other, _)| (other.to, other.class) == (out.to, out.class))
    }

    /// Allows the place's refused message to be tried again from `time` on.
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

    /// Adds a message behind the others.
    pub(crate) fn push(&mut self, out: &Outgoing, content: MessageContent) {
        self.pending.push_back((*out, content));
    }

    /// Takes the next message out.
    pub(crate) fn pop(&mut self) -> Option<(Outgoing, MessageContent)> {
        self.pending.pop_front()
    }

    /// Drops the messages to `gone`.
    pub(crate) fn forget(&mut self, gone: PlaceId) {
        self.pending.retain(|(out, _)| out.to != gone);
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self) {
        self.pending.clear();
    }
}

/// Messages that receivers have taken and did not want yet.
pub(crate) struct UnexpectedQueue {
    pairs: LaneIndex,
    /// By receiver, in the order in which they were taken.
    parcels: Vec<VecDeque<ReceivedMessage>>,
    /// By sender, receiver and class: until when a message waits there; [`NEVER`] if it does.
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

    /// Keeps what `place` does not want yet.
    pub(crate) fn put(&mut self, place: PlaceId, message: ReceivedMessage) {
        self.until[self.pairs.lane(message.source, place, message.class)] = NEVER;
        self.parcels[place.index()].push_back(message);
    }

    /// The first message that `place` wants now. [`UnexpectedQueue::release`] must follow.
    pub(crate) fn take(&mut self, place: PlaceId, control_only: bool) -> Option<ReceivedMessage> {
        let parcels = &mut self.parcels[place.index()];
        let wanted = parcels.iter().position(|message| !control_only || message.class == Class::Control)?;
        parcels.remove(wanted)
    }

    /// From `time` on the sender of `message` knows that `place` has wanted it.
    pub(crate) fn release(&mut self, place: PlaceId, message: &ReceivedMessage, time: Picoseconds) {
        self.until[self.pairs.lane(message.source, place, message.class)] = time;
    }

    /// Returns the time until which a message of `from` waits at `to`; [`NEVER`] if `to` does not want it yet.
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

    /// `gone` wants nothing more of `place`, which waits for it no longer.
    pub(crate) fn forget_receiver(&mut self, place: PlaceId, gone: PlaceId) {
        for lane in self.pairs.both(place, gone) {
            self.until[lane] = Picoseconds::ZERO;
        }
    }

    /// Drops all that `gone` keeps.
    pub(crate) fn clear(&mut self, gone: PlaceId) {
        self.parcels[gone.index()].clear();
    }
}
