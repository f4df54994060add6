//! What receivers have taken and did not want yet: one message of each sender and class.
//!
//! Whose sender waits must be able to take in what it does not want, or two would wait for each other. It has no costs
//! and tells nobody: that is the protocol's. Invariant: a sender that asks before it sends has one message of a class
//! here at most, for each receiver.

use crate::energy::meter::NEVER;
use crate::lane_index::LaneIndex;
use crate::message::ReceivedMessage;
use isles_chip::quantity::Picoseconds;
use isles_transport::{Class, PlaceId};
use std::collections::VecDeque;

/// See the file header.
pub(crate) struct UnexpectedQueue {
    pairs: LaneIndex,
    /// By receiver, in the order in which they were taken.
    parcels: Vec<VecDeque<ReceivedMessage>>,
    /// By sender, receiver and class: until when a message waits there; [`NEVER`] if it does.
    until: Vec<Picoseconds>,
}

impl UnexpectedQueue {
    /// Nothing, of so many places.
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

    /// Until when a message of `from` waits at `to`; [`NEVER`] if that does not want it yet.
    pub(crate) fn until(&self, from: PlaceId, to: PlaceId, class: Class) -> Picoseconds {
        self.until[self.pairs.lane(from, to, class)]
    }

    /// When the first message that `place` keeps arrived.
    pub(crate) fn first_arrival(&self, place: PlaceId) -> Option<Picoseconds> {
        self.parcels[place.index()].front().map(|message| message.arrival)
    }

    /// Whether `place` keeps one of `source`.
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
