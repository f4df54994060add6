//! Replicas of a group: the choice of the replica for a message, and the order restored behind them.
//!
//! The sender numbers its messages from 0. An item goes to one replica, a marker to all of them. Each replica sends on
//! what it receives, in order and with the number, over its own channel. [`OrderedMerge`] holds at most one message of
//! each replica and accepts no more from that one meanwhile, so channels fill up and the sender waits: memory is
//! bounded, and a slow replica delays the others only once their channels are full.
//!
//! Invariant: the message whose turn it is is in the merge, or the merge accepts the next message of its replica. So
//! the merge never waits for ever, whichever replica each item went to.

use std::fmt;

/// The turns of the replicas of a group.
///
/// Turns depend only on the number of items, so they are the same in each run; replicas have the same stages, so their
/// items take about the same time.
#[derive(Clone, Debug)]
pub struct ReplicaTurns {
    replicas: usize,
    next: usize,
    number: u64,
}

impl ReplicaTurns {
    /// Makes the turns of `replicas` replicas, beginning with the first.
    ///
    /// # Panics
    /// If there are none.
    pub fn new(replicas: usize) -> ReplicaTurns {
        assert!(replicas > 0, "a group has at least one replica");
        ReplicaTurns { replicas, next: 0, number: 0 }
    }

    /// Returns the replica of the next item.
    pub fn peek(&self) -> usize {
        self.next
    }

    /// Numbers an item, which goes to the replica that [`ReplicaTurns::peek`] has returned.
    pub fn number_item(&mut self) -> u64 {
        self.next = (self.next + 1) % self.replicas;
        self.number_marker()
    }

    /// Numbers a marker, which goes to all replicas.
    pub fn number_marker(&mut self) -> u64 {
        self.number += 1;
        self.number - 1
    }
}

/// A message that a replica cannot have sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeFault {
    /// The last message of this replica has not left the merge yet, or there is no such replica.
    NotTakenFrom {
        /// The number of the replica.
        replica: usize,
    },
    /// The replica has sent `number` after `last`.
    OutOfOrder {
        /// The number of the replica.
        replica: usize,
        /// The number of the message.
        number: u64,
        /// The number of the message before.
        last: u64,
    },
}

impl fmt::Display for MergeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MergeFault::NotTakenFrom { replica } => {
                write!(f, "replica {replica} sent a message while none was taken from it")
            }
            MergeFault::OutOfOrder { replica, number, last } => {
                write!(f, "replica {replica} sent message {number} after message {last}")
            }
        }
    }
}

impl std::error::Error for MergeFault {}

/// A reorder buffer behind replicas, of at most one message for each.
///
/// Messages leave in the order of their numbers, from 0, each once: a marker that all replicas have sent leaves with
/// the first copy.
#[derive(Clone, Debug)]
pub struct OrderedMerge<T> {
    /// The message of each replica that has not left yet.
    heads: Vec<Option<(u64, T)>>,
    /// The last number of each replica.
    last: Vec<Option<u64>>,
    /// The number of the message that leaves next.
    next: u64,
}

impl<T> OrderedMerge<T> {
    /// Makes a merge of `replicas` streams.
    pub fn new(replicas: usize) -> OrderedMerge<T> {
        OrderedMerge { heads: (0..replicas).map(|_| None).collect(), last: vec![None; replicas], next: 0 }
    }

    /// Returns `true` if the next message of `replica` can be accepted.
    pub fn takes_from(&self, replica: usize) -> bool {
        self.heads.get(replica).is_some_and(Option::is_none)
    }

    /// Returns the number of messages that have not left yet; at most one for each replica.
    pub fn len(&self) -> usize {
        self.heads.iter().flatten().count()
    }

    /// Returns `true` if no message waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Accepts a message of a replica. Drops another replica's copy of a marker that has left.
    ///
    /// # Errors
    /// No message of this replica can be accepted now, or its numbers do not increase.
    pub fn put(&mut self, replica: usize, number: u64, message: T) -> Result<(), MergeFault> {
        if !self.takes_from(replica) {
            return Err(MergeFault::NotTakenFrom { replica });
        }
        if let Some(last) = self.last[replica].filter(|last| *last >= number) {
            return Err(MergeFault::OutOfOrder { replica, number, last });
        }
        self.last[replica] = Some(number);
        if number >= self.next {
            self.heads[replica] = Some((number, message));
        }
        Ok(())
    }

    /// Removes the next message in order and returns it; `None` if it has not arrived.
    pub fn pop(&mut self) -> Option<T> {
        let next = self.next;
        let mut found = None;
        for head in &mut self.heads {
            if let Some((_, message)) = head.take_if(|(number, _)| *number == next) {
                found = found.or(Some(message));
            }
        }
        self.next += u64::from(found.is_some());
        found
    }
}
