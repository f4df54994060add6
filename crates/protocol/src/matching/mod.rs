//! Which receive gets which message, as one place sees it: the matching of two-sided messages, as in MPI.
//!
//! A receive gets the oldest message that it wants, and a message goes to the oldest receive that wants it (MPI 4.0,
//! 3.5, "order"). `docs/design/messages.md` has the protocol; `credit` bounds how much may lie here. It knows no
//! bytes and no tasks: `M` is whatever a message is.
//!
//! Invariants: no receive waits while a message that it wants lies here; a message that was put back is where it was.

mod credit;
#[cfg(test)]
mod tests;

pub use credit::{Acknowledgement, MessageCredit, TooMany, UNACKNOWLEDGED_MAX};

use crate::PlaceId;
use std::collections::{BTreeMap, VecDeque};

/// What a receive is chosen by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Envelope {
    /// The team.
    pub team: u64,
    /// The tag, chosen by the program.
    pub tag: u64,
    /// The sender.
    pub source: PlaceId,
}

/// What a receive wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The team.
    pub team: u64,
    /// The tag.
    pub tag: u64,
    /// The sender; none: any.
    pub source: Option<PlaceId>,
}

impl Wanted {
    /// Whether a message with this envelope is one of these.
    pub fn fits(&self, envelope: &Envelope) -> bool {
        self.team == envelope.team
            && self.tag == envelope.tag
            && self.source.is_none_or(|source| source == envelope.source)
    }
}

/// Queues from which on an empty one goes.
const EMPTY_QUEUES_MAX: usize = 64;

/// A receive that waits; a later one has a larger number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReceiveId(pub u64);

/// A message, and where it stands among all that came here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matched<M> {
    /// Its envelope.
    pub envelope: Envelope,
    /// Its place in the order.
    pub order: u64,
    /// The message.
    pub message: M,
}

/// The receives and messages of one place; see the module.
#[derive(Debug)]
pub struct Matching<M> {
    /// Messages that nobody has wanted yet, the oldest first. A few queues that are empty stay for their memory.
    lying: BTreeMap<Envelope, VecDeque<Matched<M>>>,
    /// Receives that wait.
    waiting: BTreeMap<ReceiveId, Wanted>,
    next_order: u64,
    next_receive: u64,
}

impl<M> Default for Matching<M> {
    fn default() -> Self {
        Matching { lying: BTreeMap::new(), waiting: BTreeMap::new(), next_order: 0, next_receive: 0 }
    }
}

impl<M> Matching<M> {
    /// A message has come: it goes to the oldest receive that wants it, or lies here.
    pub fn arrive(&mut self, envelope: Envelope, message: M) -> Option<(ReceiveId, Matched<M>)> {
        let order = self.next_order;
        self.next_order += 1;
        self.place(Matched { envelope, order, message })
    }

    /// A message that a receive got is not received: it goes to another one, or lies where it lay.
    pub fn put_back(&mut self, matched: Matched<M>) -> Option<(ReceiveId, Matched<M>)> {
        self.place(matched)
    }

    fn place(&mut self, matched: Matched<M>) -> Option<(ReceiveId, Matched<M>)> {
        let waiting = self.waiting.iter().find(|(_, wanted)| wanted.fits(&matched.envelope));
        if let Some(id) = waiting.map(|(id, _)| *id) {
            self.waiting.remove(&id);
            return Some((id, matched));
        }
        let queue = self.lying.entry(matched.envelope).or_default();
        let position = queue.partition_point(|other| other.order < matched.order);
        queue.insert(position, matched);
        None
    }

    /// Takes the oldest message that is wanted, if one lies here.
    pub fn take(&mut self, wanted: Wanted) -> Option<Matched<M>> {
        let envelope = self.oldest(wanted)?;
        let queue = self.lying.get_mut(&envelope)?;
        let matched = queue.pop_front();
        if queue.is_empty() && self.lying.len() > EMPTY_QUEUES_MAX {
            self.lying.remove(&envelope);
        }
        matched
    }

    fn oldest(&self, wanted: Wanted) -> Option<Envelope> {
        let Wanted { team, tag, source } = wanted;
        let of = |source| Envelope { team, tag, source };
        if let Some(source) = source {
            let lies = |envelope: &Envelope| self.lying.get(envelope).is_some_and(|queue| !queue.is_empty());
            return Some(of(source)).filter(lies);
        }
        let of_any = self.lying.range(of(PlaceId(0))..=of(PlaceId(u32::MAX)));
        let fronts = of_any.filter_map(|(envelope, queue)| Some((queue.front()?.order, *envelope)));
        fronts.min().map(|(_, envelope)| envelope)
    }

    /// Whether nothing lies here that is wanted, and no other receive waits for such a message: then the next one that
    /// comes is for this receive.
    pub fn is_next(&self, wanted: Wanted) -> bool {
        self.oldest(wanted).is_none()
            && !self.waiting.values().any(|other| {
                let apart = other.source.zip(wanted.source).is_some_and(|(one, other)| one != other);
                other.team == wanted.team && other.tag == wanted.tag && !apart
            })
    }

    /// Notes a receive that waits. To be called when [`Matching::take`] gave nothing.
    pub fn wait(&mut self, wanted: Wanted) -> ReceiveId {
        let id = ReceiveId(self.next_receive);
        self.next_receive += 1;
        self.waiting.insert(id, wanted);
        id
    }

    /// A receive that had got a message which is no more waits again, as old as it is; or it gets another one.
    pub fn wait_again(&mut self, id: ReceiveId, wanted: Wanted) -> Option<Matched<M>> {
        let taken = self.take(wanted);
        if taken.is_none() {
            self.waiting.insert(id, wanted);
        }
        taken
    }

    /// A receive waits no more.
    pub fn stop_waiting(&mut self, id: ReceiveId) {
        self.waiting.remove(&id);
    }

    /// Forgets the messages for which `is_gone` says so; returns them.
    pub fn remove(&mut self, is_gone: impl Fn(&Envelope, &M) -> bool) -> Vec<Matched<M>> {
        let mut gone = Vec::new();
        self.lying.retain(|envelope, queue| {
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

    /// Ends the receives that will get nothing because `dead` is dead: those from it, and those from any in a team for
    /// which `has_member` says that it was one. Returns them.
    pub fn place_died(&mut self, dead: PlaceId, has_member: impl Fn(u64) -> bool) -> Vec<ReceiveId> {
        let ended = |wanted: &Wanted| match wanted.source {
            Some(source) => source == dead,
            None => has_member(wanted.team),
        };
        let ids: Vec<ReceiveId> =
            self.waiting.iter().filter(|(_, wanted)| ended(wanted)).map(|(id, _)| *id).collect();
        ids.iter().for_each(|id| self.stop_waiting(*id));
        ids
    }

    /// How many messages lie here.
    pub fn len(&self) -> usize {
        self.lying.values().map(VecDeque::len).sum()
    }

    /// Whether none does.
    pub fn is_empty(&self) -> bool {
        self.lying.values().all(VecDeque::is_empty)
    }
}
