//! Places that stand in sends: what each sends next, what it takes meanwhile, and whom it answers.
//!
//! It has no costs and does not know when a message may go: that is the protocol's, which spends the time and says when
//! a flag is there. Invariant: who is told that a message was wanted may send the next one of that class from then on.

use crate::blocking_send::BlockingSend;
use crate::message::ReceivedMessage;
use crate::protocol::{Outgoing, Wakeups};
use crate::unexpected_queue::UnexpectedQueue;
use isles_chip::quantity::Picoseconds;
use isles_transport::{Class, PlaceId};

/// See the file header.
pub(crate) struct BlockingSends {
    /// By place.
    blocking_sends: Vec<BlockingSend>,
    /// What places have taken and did not want yet.
    pub(crate) kept: UnexpectedQueue,
    /// By place: who is to be told of an answer, a register or a flag, and when that is there.
    answered: Vec<Wakeups>,
}

impl BlockingSends {
    /// Of so many places, none of which stands.
    pub(crate) fn new(places: usize) -> BlockingSends {
        BlockingSends {
            blocking_sends: std::iter::repeat_with(BlockingSend::default).take(places).collect(),
            kept: UnexpectedQueue::new(places),
            answered: vec![Wakeups::new(); places],
        }
    }

    /// What `place` has to send.
    pub(crate) fn of(&self, place: PlaceId) -> &BlockingSend {
        &self.blocking_sends[place.index()]
    }

    /// The same, to change it.
    pub(crate) fn of_mut(&mut self, place: PlaceId) -> &mut BlockingSend {
        &mut self.blocking_sends[place.index()]
    }

    /// Whether `out` may be sent or added; see [`BlockingSend::admits`].
    pub(crate) fn admits(&mut self, out: &Outgoing, present: Picoseconds) -> bool {
        self.blocking_sends[out.from.index()].admits(&self.kept, out, present)
    }

    /// `place` has answered `other`, who is to be told that it is there at `time`.
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

    /// What `place` has just taken, if that is wanted now; else it is kept.
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
