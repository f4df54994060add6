//! What crossed the chip: over each link, and from each place to each other one.
//!
//! Plain counts, and the values that reports of them are made of.

use isles_chip::quantity::Picoseconds;
use isles_chip::topology::{Link, Stop};
use isles_transport::PlaceId;
use std::collections::BTreeMap;

/// What one directed link carried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkLoad {
    /// Which it is.
    pub link: Link,
    /// Where it begins and ends.
    pub ends: (Stop, Stop),
    /// Flits that have passed.
    pub flits: u64,
    /// For how long they did.
    pub busy: Picoseconds,
    /// The same as a share of the run, from its start to the latest clock of a place.
    pub utilisation: f64,
}

/// What one place has sent to another one, as far as that has taken it in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Who sent.
    pub source: PlaceId,
    /// Who took it in.
    pub target: PlaceId,
    /// Messages.
    pub messages: u64,
    /// Their bytes, without headers.
    pub bytes: u64,
}

/// The counts of the pairs of places that have exchanged anything.
pub(crate) struct Traffic {
    /// By source.
    counts: Vec<BTreeMap<PlaceId, [u64; 2]>>,
}

impl Traffic {
    pub(crate) fn new(places: usize) -> Traffic {
        Traffic { counts: vec![BTreeMap::new(); places] }
    }

    pub(crate) fn count(&mut self, source: PlaceId, target: PlaceId, bytes: u64) {
        let [messages, sum] = self.counts[source.index()].entry(target).or_default();
        *messages += 1;
        *sum += bytes;
    }

    /// The pairs, in the order of their numbers.
    pub(crate) fn flows(&self) -> Vec<Flow> {
        let by_source = (0..).map(PlaceId).zip(&self.counts);
        let flows = by_source.flat_map(|(source, targets)| {
            targets.iter().map(move |(target, [messages, bytes])| Flow {
                source,
                target: *target,
                messages: *messages,
                bytes: *bytes,
            })
        });
        flows.collect()
    }
}
