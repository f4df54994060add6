//! The standing sender: what a place sends next that does nothing else until its send is over.
//!
//! It has no costs and tells nobody: that is the protocol's. Invariant: one message for each receiver and class at
//! most, if it is asked before a message is added.

use crate::energy::meter::NEVER;
use crate::message::MessageContent;
use crate::protocol::Outgoing;
use crate::unexpected_queue::UnexpectedQueue;
use isles_chip::quantity::Picoseconds;
use isles_transport::PlaceId;
use std::collections::VecDeque;

/// What one place has to send, and when it looks again.
#[derive(Default)]
pub(crate) struct BlockingSend {
    pending: VecDeque<(Outgoing, MessageContent)>,
    due: Option<Picoseconds>,
}

impl BlockingSend {
    /// Whether `out` may be sent or added: its receiver has wanted the last one of its class, and none is here.
    pub(crate) fn admits(&mut self, kept: &UnexpectedQueue, out: &Outgoing, present: Picoseconds) -> bool {
        self.expire(present);
        let until = kept.until(out.from, out.to, out.class);
        if until > present && until != NEVER {
            self.may_try(until);
        }
        until <= present
            && !self.pending.iter().any(|(other, _)| (other.to, other.class) == (out.to, out.class))
    }

    /// What its place was refused may go from `time` on.
    pub(crate) fn may_try(&mut self, time: Picoseconds) {
        self.due = Some(self.due.map_or(time, |due| due.min(time)));
    }

    /// What might go by now is tried now.
    pub(crate) fn expire(&mut self, present: Picoseconds) {
        self.due.take_if(|due| *due <= present);
    }

    /// When it may try again what was refused.
    pub(crate) fn due(&self) -> Option<Picoseconds> {
        self.due
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// To whom the next message goes.
    pub(crate) fn next(&self) -> Option<Outgoing> {
        self.pending.front().map(|(out, _)| *out)
    }

    /// Adds a message behind the others.
    pub(crate) fn push(&mut self, out: &Outgoing, load: MessageContent) {
        self.pending.push_back((*out, load));
    }

    /// Takes the next message out.
    pub(crate) fn pop(&mut self) -> Option<(Outgoing, MessageContent)> {
        self.pending.pop_front()
    }

    /// Drops what was to go to `gone`.
    pub(crate) fn forget(&mut self, gone: PlaceId) {
        self.pending.retain(|(out, _)| out.to != gone);
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self) {
        self.pending.clear();
    }
}
