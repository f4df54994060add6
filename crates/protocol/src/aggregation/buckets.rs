//! Buckets: the items of one place that are on their way.
//!
//! A bucket is filled for the next place of its items; when full, it departs, unless too many before it are
//! unacknowledged. All items of a bucket have one key (`K`: the finish that counts them). Invariant: a bucket has at
//! most the items, and a lane at most the buckets in flight, that [`BucketLimits`] allow; an acknowledged bucket has
//! been handed on in full.

use super::router::Router;
use crate::PlaceId;
use crate::credit::{SendCredit, TooMany};

/// Limits on what a place holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketLimits {
    /// Largest number of items in a bucket.
    pub capacity: usize,
    /// Largest number of unacknowledged buckets of a lane.
    pub in_flight: u32,
}

impl BucketLimits {
    /// Returns the limits with which a place holds at most `lookahead` items, filling or in flight; each bucket has at
    /// least one, and a lane at least one bucket in flight.
    pub fn within(router: &Router, lookahead: usize, in_flight: u32) -> BucketLimits {
        // The place's own bucket is applied at once.
        let buckets = |in_flight: u32| router.peers() * (1 + in_flight as usize) + 1;
        let fitting = (lookahead.saturating_sub(1) / router.peers().max(1)).saturating_sub(1);
        let in_flight = in_flight.min(u32::try_from(fitting).unwrap_or(u32::MAX)).max(1);
        BucketLimits { capacity: (lookahead / buckets(in_flight)).max(1), in_flight }
    }
}

/// A bucket that departs: send it to `peer`, which acknowledges it once its items are handed on.
#[derive(Debug, PartialEq, Eq)]
pub struct OutgoingBucket<T, K> {
    /// Key of its items.
    pub key: K,
    /// The next place; this place itself if the items have arrived, which then need no acknowledgement.
    pub peer: PlaceId,
    /// The items.
    pub items: Vec<T>,
    /// Destination of each item; empty if all are for `peer`.
    pub to: Vec<PlaceId>,
}

/// Outcome of storing an item.
#[derive(Debug, PartialEq, Eq)]
pub struct StoreOutcome<T, K> {
    /// True if the item begins a bucket.
    pub has_begun: bool,
    /// Buckets that depart before anything else happens: one of another key, one that is full.
    pub outgoing: Vec<OutgoingBucket<T, K>>,
}

/// The buckets of one place.
#[derive(Debug)]
pub struct Buckets<T, K> {
    router: Router,
    limits: BucketLimits,
    lanes: Vec<Lane<T, K>>,
    /// Number of lanes that hold items.
    held: usize,
}

#[derive(Debug)]
struct Lane<T, K> {
    /// Set while there are items.
    key: Option<K>,
    items: Vec<T>,
    /// Destination of each item; empty if all go to one place.
    to: Vec<PlaceId>,
    credit: SendCredit,
    /// True if it must depart as soon as it may, full or not.
    is_due: bool,
}

impl<T, K> Default for Lane<T, K> {
    fn default() -> Self {
        Lane { key: None, items: Vec::new(), to: Vec::new(), credit: SendCredit::default(), is_due: false }
    }
}

impl<T, K: Copy + Eq> Buckets<T, K> {
    /// Makes empty buckets.
    pub fn new(router: Router, limits: BucketLimits) -> Self {
        let lanes = (0..router.lanes()).map(|_| Lane::default()).collect();
        let limits = BucketLimits { capacity: limits.capacity.max(1), in_flight: limits.in_flight.max(1) };
        Buckets { router, limits, lanes, held: 0 }
    }

    /// Returns the router, which numbers the lanes of the place.
    pub fn router(&self) -> &Router {
        &self.router
    }

    /// Returns the largest number of items in a bucket.
    pub fn capacity(&self) -> usize {
        self.limits.capacity
    }

    /// Returns `true` if no bucket has an item.
    pub fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// Stores an item if its bucket has begun with this key and this does not fill it; otherwise returns the item.
    #[inline]
    pub fn store_within(&mut self, key: K, to: PlaceId, item: T) -> Result<(), T> {
        let Some(hop) = self.router.hop(to) else { return Err(item) };
        let lane = &mut self.lanes[hop.lane];
        if lane.key != Some(key) || lane.items.len() + 1 >= self.limits.capacity {
            return Err(item);
        }
        lane.items.push(item);
        if !self.router.is_last(hop.lane) {
            lane.to.push(to);
        }
        Ok(())
    }

    /// Stores an item for `to`, to which there must be a route; returns the item if there is no room before something
    /// is acknowledged.
    pub fn store(&mut self, key: K, to: PlaceId, item: T) -> Result<StoreOutcome<T, K>, T> {
        let Some(hop) = self.router.hop(to) else { return Err(item) };
        let lane = &mut self.lanes[hop.lane];
        let is_other = lane.key.is_some_and(|other| other != key);
        let is_blocked = !lane.credit.has_room(self.limits.in_flight);
        if is_blocked && (is_other || lane.items.len() >= self.limits.capacity) {
            lane.is_due = true;
            return Err(item);
        }
        let mut outgoing = Vec::new();
        if is_other || lane.items.len() >= self.limits.capacity {
            outgoing.extend(self.take_bucket(hop.lane));
        }
        let (is_last, lane) = (self.router.is_last(hop.lane), &mut self.lanes[hop.lane]);
        let has_begun = lane.key.is_none();
        if has_begun {
            lane.key = Some(key);
            self.held += 1;
            lane.items.reserve(self.limits.capacity);
        }
        lane.items.push(item);
        if !is_last {
            lane.to.push(to);
        }
        if lane.items.len() >= self.limits.capacity {
            outgoing.extend(self.take_bucket(hop.lane));
        }
        Ok(StoreOutcome { has_begun, outgoing })
    }

    /// Makes all buckets depart whose key is `due`: now, or once those before them are acknowledged.
    pub fn flush(&mut self, due: impl Fn(K) -> bool) -> Vec<OutgoingBucket<T, K>> {
        let mut outgoing = Vec::new();
        if self.held == 0 {
            return outgoing;
        }
        for index in 0..self.lanes.len() {
            if self.lanes[index].key.is_some_and(&due) {
                self.lanes[index].is_due = true;
                outgoing.extend(self.take_bucket(index));
            }
        }
        outgoing
    }

    /// Handles the acknowledgement of a bucket by `peer`; returns the bucket that may now depart, if any.
    ///
    /// # Errors
    /// [`TooMany`]: no bucket to `peer` is unacknowledged; the peer is at fault.
    pub fn acknowledged(&mut self, peer: PlaceId) -> Result<Option<OutgoingBucket<T, K>>, TooMany> {
        let index = self.router.lane_to(peer).ok_or(TooMany)?;
        let lane = &mut self.lanes[index];
        lane.credit.acknowledge(1)?;
        let is_due = lane.is_due || lane.items.len() >= self.limits.capacity;
        Ok(if is_due { self.take_bucket(index) } else { None })
    }

    /// Handles the death of `peer`: items for it no longer wait, and fail when they are sent.
    pub fn died(&mut self, peer: PlaceId) -> Option<OutgoingBucket<T, K>> {
        let index = self.router.lane_to(peer)?;
        self.lanes[index].credit.forget();
        self.take_bucket(index)
    }

    /// Takes back the memory of a bucket that was sent, for reuse.
    pub fn recycle(&mut self, peer: PlaceId, mut items: Vec<T>) {
        items.clear();
        if let Some(index) = self.router.lane_to(peer)
            && self.lanes[index].items.capacity() == 0
        {
            self.lanes[index].items = items;
        }
    }

    /// Takes the bucket of a lane if it has items and may depart.
    fn take_bucket(&mut self, index: usize) -> Option<OutgoingBucket<T, K>> {
        let peer = self.peer(index)?;
        let lane = &mut self.lanes[index];
        if !lane.credit.has_room(self.limits.in_flight) {
            return None;
        }
        lane.is_due = false;
        let key = lane.key.take()?;
        self.held -= 1;
        if peer != self.router.here() {
            lane.credit.take(self.limits.in_flight);
        }
        let (items, to) = (std::mem::take(&mut lane.items), std::mem::take(&mut lane.to));
        Some(OutgoingBucket { key, peer, items, to })
    }

    /// Returns the place to which a lane leads, or `None` if it was never used.
    fn peer(&self, index: usize) -> Option<PlaceId> {
        self.router.peer_of(index)
    }
}
