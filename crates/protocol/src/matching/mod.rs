//! Matching of two-sided messages, as in MPI: which receive gets which message at one place.
//!
//! A receive gets the oldest message that it wants, and a message goes to the oldest receive that wants it (MPI 4.0,
//! 3.5, "order"). `docs/design/messages.md` has the protocol; `credit` bounds the messages here. It knows no bytes and
//! no tasks: `M` is the caller's message.
//!
//! Invariants: no receive is posted while it wants an unexpected message; a message that is put back has its old
//! position.

mod credit;
#[cfg(test)]
mod tests;

pub use credit::{Acknowledgement, UNACKNOWLEDGED_MAX};

use crate::PlaceId;
use std::collections::{BTreeMap, VecDeque};

/// Properties that decide which receive a message matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Envelope {
    /// The team.
    pub team: u64,
    /// The tag, chosen by the program.
    pub tag: u64,
    /// The sender.
    pub source: PlaceId,
}

/// Messages that a receive accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivePattern {
    /// The team.
    pub team: u64,
    /// The tag.
    pub tag: u64,
    /// The sender; `None` for any.
    pub source: Option<PlaceId>,
}

impl ReceivePattern {
    /// Returns `true` if a message with this envelope is accepted.
    pub fn fits(&self, envelope: &Envelope) -> bool {
        self.team == envelope.team
            && self.tag == envelope.tag
            && self.source.is_none_or(|source| source == envelope.source)
    }
}

/// Number of queues beyond which empty ones are removed.
const EMPTY_QUEUES_MAX: usize = 64;

/// A posted receive; a later one has a larger number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReceiveId(pub u64);

/// A message, and its position among all that arrived here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matched<M> {
    /// Its envelope.
    pub envelope: Envelope,
    /// Position in the order of arrival.
    pub order: u64,
    /// The message.
    pub message: M,
}

/// Outcome of [`Matching::take_if`] for the oldest wanted message.
#[derive(Debug, PartialEq, Eq)]
pub enum TakeOutcome<M> {
    /// It was taken.
    Taken(Matched<M>),
    /// It was left here.
    Left,
    /// There is none.
    Nothing,
}

/// The receives and messages of one place; see the module.
#[derive(Debug)]
pub struct Matching<M> {
    /// The unexpected messages by envelope, the oldest first. A few empty queues are kept for their memory.
    unexpected: BTreeMap<Envelope, VecDeque<Matched<M>>>,
    /// The waiting receives. A `BTreeMap` because each receive goes through it.
    posted: BTreeMap<ReceiveId, ReceivePattern>,
    next_order: u64,
    next_receive: u64,
}

impl<M> Default for Matching<M> {
    fn default() -> Self {
        Matching { unexpected: BTreeMap::new(), posted: BTreeMap::new(), next_order: 0, next_receive: 0 }
    }
}

impl<M> Matching<M> {
    /// Matches an arriving `message` with the oldest receive that wants it; without one, keeps the message as
    /// unexpected.
    pub fn arrive(&mut self, envelope: Envelope, message: M) -> Option<(ReceiveId, Matched<M>)> {
        let order = self.next_order;
        self.next_order += 1;
        self.admit(Matched { envelope, order, message })
    }

    /// Puts back a matched message that was not received: another receive gets it, or it takes its old position.
    pub fn put_back(&mut self, matched: Matched<M>) -> Option<(ReceiveId, Matched<M>)> {
        self.admit(matched)
    }

    fn admit(&mut self, matched: Matched<M>) -> Option<(ReceiveId, Matched<M>)> {
        let posted = self.posted.iter().find(|(_, wanted)| wanted.fits(&matched.envelope));
        if let Some(id) = posted.map(|(id, _)| *id) {
            self.posted.remove(&id);
            return Some((id, matched));
        }
        let queue = self.unexpected.entry(matched.envelope).or_default();
        let is_newest = queue.back().is_none_or(|newest| newest.order < matched.order);
        let position =
            if is_newest { queue.len() } else { queue.partition_point(|other| other.order < matched.order) };
        queue.insert(position, matched);
        None
    }

    /// Takes the oldest wanted message, if there is one.
    pub fn take(&mut self, wanted: ReceivePattern) -> Option<Matched<M>> {
        match self.take_if(wanted, |_| true) {
            TakeOutcome::Taken(matched) => Some(matched),
            TakeOutcome::Left | TakeOutcome::Nothing => None,
        }
    }

    /// Takes the oldest wanted message if `takes` returns `true` for it; otherwise leaves it.
    #[inline]
    pub fn take_if(&mut self, wanted: ReceivePattern, takes: impl FnOnce(&M) -> bool) -> TakeOutcome<M> {
        let envelope = match wanted.source {
            Some(source) => Some(Envelope { team: wanted.team, tag: wanted.tag, source }),
            None => self.oldest(wanted),
        };
        let found = envelope.and_then(|envelope| Some((envelope, self.unexpected.get_mut(&envelope)?)));
        let Some((envelope, queue)) = found else { return TakeOutcome::Nothing };
        let Some(oldest) = queue.front() else { return TakeOutcome::Nothing };
        if !takes(&oldest.message) {
            return TakeOutcome::Left;
        }
        let taken = queue.pop_front();
        if queue.is_empty() && self.unexpected.len() > EMPTY_QUEUES_MAX {
            self.unexpected.remove(&envelope);
        }
        taken.map_or(TakeOutcome::Nothing, TakeOutcome::Taken)
    }

    /// Returns the envelope of the oldest wanted message, of any source.
    fn oldest(&self, wanted: ReceivePattern) -> Option<Envelope> {
        let of = |source| Envelope { team: wanted.team, tag: wanted.tag, source };
        let of_any = self.unexpected.range(of(PlaceId(0))..=of(PlaceId(u32::MAX)));
        let fronts = of_any.filter_map(|(envelope, queue)| Some((queue.front()?.order, *envelope)));
        fronts.min().map(|(_, envelope)| envelope)
    }

    /// Returns `true` if the next arriving message that `wanted` accepts would go to a receive that is not posted yet.
    /// Call it when none is here ([`TakeOutcome::Nothing`]).
    #[inline]
    pub fn is_next(&self, wanted: ReceivePattern) -> bool {
        !self.posted.values().any(|other| {
            let apart = other.source.zip(wanted.source).is_some_and(|(one, other)| one != other);
            other.team == wanted.team && other.tag == wanted.tag && !apart
        })
    }

    /// Posts a receive, which waits for a message. Call it when [`Matching::take`] returned nothing.
    pub fn post(&mut self, wanted: ReceivePattern) -> ReceiveId {
        let id = ReceiveId(self.next_receive);
        self.next_receive += 1;
        self.posted.insert(id, wanted);
        id
    }

    /// Posts a receive again, in its old position, because its message was withdrawn; or returns another message for
    /// it.
    pub fn post_again(&mut self, id: ReceiveId, wanted: ReceivePattern) -> Option<Matched<M>> {
        let taken = self.take(wanted);
        if taken.is_none() {
            self.posted.insert(id, wanted);
        }
        taken
    }

    /// Cancels a posted receive.
    pub fn cancel(&mut self, id: ReceiveId) {
        self.posted.remove(&id);
    }

    /// Removes and returns the unexpected messages for which `is_gone` holds.
    pub fn remove(&mut self, is_gone: impl Fn(&Envelope, &M) -> bool) -> Vec<Matched<M>> {
        let mut gone = Vec::new();
        self.unexpected.retain(|envelope, queue| {
            for matched in std::mem::take(queue) {
                match is_gone(envelope, &matched.message) {
                    true => gone.push(matched),
                    false => queue.push_back(matched),
                }
            }
            !queue.is_empty()
        });
        gone
    }

    /// Ends the receives that will get nothing because `dead` is dead, and returns them: those from it, and those from
    /// any in a team of which it was a member by `has_member`.
    pub fn place_died(&mut self, dead: PlaceId, has_member: impl Fn(u64) -> bool) -> Vec<ReceiveId> {
        let ended = |wanted: &ReceivePattern| match wanted.source {
            Some(source) => source == dead,
            None => has_member(wanted.team),
        };
        let ids: Vec<ReceiveId> =
            self.posted.iter().filter(|(_, wanted)| ended(wanted)).map(|(id, _)| *id).collect();
        ids.iter().for_each(|id| self.cancel(*id));
        ids
    }

    /// Returns the number of unexpected messages.
    pub fn len(&self) -> usize {
        self.unexpected.values().map(VecDeque::len).sum()
    }

    /// Returns `true` if there is no unexpected message.
    pub fn is_empty(&self) -> bool {
        self.unexpected.values().all(VecDeque::is_empty)
    }
}
