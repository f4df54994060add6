//! Messages that have arrived for a team and are not yet taken, by sender.
//!
//! They are kept in one of two ways: in a run of few places, in a table of all places; in a run of thousands, each of
//! which receives from only a few, in a hash table. The queue of a sender is kept for its memory once it exists. The
//! file knows no collectives. Invariant: `blocks` is the number of all these messages that lie in the memory of their
//! sender.

use super::header::Arrival;
use isles_protocol::PlaceId;
use isles_runtime::service::NumberHasherBuilder;
use std::collections::{HashMap, VecDeque};

/// Largest number of places in a run for which each team has a queue for each place.
const FEW: u32 = 256;

type Queue = VecDeque<Arrival>;

/// The messages of a team that are pending at a place.
pub(super) struct PendingMessages {
    queues: Queues,
    blocks: usize,
}

enum Queues {
    /// Queues of all places, by number.
    All(Box<[Queue]>),
    /// Queues of the places that have sent something.
    Known(HashMap<PlaceId, Queue, NumberHasherBuilder>),
}

impl Queues {
    #[inline]
    fn of(&self, source: PlaceId) -> Option<&Queue> {
        match self {
            Queues::All(queues) => queues.get(source.index()),
            Queues::Known(queues) => queues.get(&source),
        }
    }

    #[inline]
    fn of_mut(&mut self, source: PlaceId) -> Option<&mut Queue> {
        match self {
            Queues::All(queues) => queues.get_mut(source.index()),
            Queues::Known(queues) => queues.get_mut(&source),
        }
    }
}

impl PendingMessages {
    /// Returns an empty set of messages, for a run of `places` places.
    pub(super) fn new(places: u32) -> PendingMessages {
        let queues = match places {
            0..=FEW => Queues::All((0..places).map(|_| Queue::new()).collect()),
            _ => Queues::Known(HashMap::default()),
        };
        PendingMessages { queues, blocks: 0 }
    }

    /// Appends a message of `source`.
    #[inline]
    pub(super) fn put(&mut self, source: PlaceId, arrival: Arrival) {
        self.blocks += usize::from(arrival.is_block());
        match &mut self.queues {
            Queues::All(queues) => queues[source.index()].push_back(arrival),
            Queues::Known(queues) => queues.entry(source).or_default().push_back(arrival),
        }
    }

    /// Returns `true` if a message of `source` is pending here.
    #[inline]
    pub(super) fn holds(&self, source: PlaceId) -> bool {
        self.queues.of(source).is_some_and(|queue| !queue.is_empty())
    }

    /// Takes the oldest message of `source`.
    #[inline]
    pub(super) fn pop(&mut self, source: PlaceId) -> Option<Arrival> {
        let arrival = self.queues.of_mut(source)?.pop_front()?;
        self.blocks -= usize::from(arrival.is_block());
        Some(arrival)
    }

    /// Copies the messages that lie in the memory of their sender.
    #[inline]
    pub(super) fn copy_blocks(&mut self) {
        if std::mem::take(&mut self.blocks) > 0 {
            match &mut self.queues {
                Queues::All(queues) => queues.iter_mut().flatten().for_each(Arrival::copy),
                Queues::Known(queues) => queues.values_mut().flatten().for_each(Arrival::copy),
            }
        }
    }

    /// Removes all messages; returns them, to be dropped when nothing is borrowed.
    pub(super) fn clear(&mut self) -> impl Sized + use<> {
        self.blocks = 0;
        match &mut self.queues {
            Queues::All(queues) => queues.iter_mut().map(std::mem::take).collect::<Vec<Queue>>(),
            Queues::Known(queues) => std::mem::take(queues).into_values().collect(),
        }
    }

    /// Returns the oldest message of each sender, in the order of the places.
    pub(super) fn oldest_by_sender(&self) -> Vec<(PlaceId, &Arrival)> {
        let mut fronts: Vec<(PlaceId, &Arrival)> = match &self.queues {
            Queues::All(queues) => {
                let queues = (0..).map(PlaceId).zip(queues);
                queues.filter_map(|(source, queue)| Some((source, queue.front()?))).collect()
            }
            Queues::Known(queues) => {
                queues.iter().filter_map(|(source, queue)| Some((*source, queue.front()?))).collect()
            }
        };
        fronts.sort_unstable_by_key(|(source, _)| *source);
        fronts
    }
}
