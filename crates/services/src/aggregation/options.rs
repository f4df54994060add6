//! Options of an aggregator: the route of items, and the number of them that a place may hold.

use isles_protocol::aggregation::{BucketLimits, ItemRoute, Router};
use isles_runtime::limits::AGGREGATED_ITEMS_MAX as ITEMS_MAX;
use isles_runtime::{Cycles, Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

/// Options of an [`Aggregator`](crate::Aggregator).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AggregatorOptions {
    pub(super) route: ItemRoute,
    pub(super) lookahead: usize,
    pub(super) bucket: Option<usize>,
    pub(super) in_flight: u32,
    pub(super) forward_cycles: u64,
}

/// Default look-ahead in items: what HPCC RandomAccess allows.
const LOOKAHEAD: usize = 1024;

/// Default number of buckets in flight to one place: while one is handed on, others arrive.
const IN_FLIGHT: u32 = 3;

impl Default for AggregatorOptions {
    /// Straight to each place, 1,024 items a place, three buckets in flight to each other place.
    fn default() -> Self {
        AggregatorOptions {
            route: ItemRoute::Direct,
            lookahead: LOOKAHEAD,
            bucket: None,
            in_flight: IN_FLIGHT,
            forward_cycles: 0,
        }
    }
}

impl AggregatorOptions {
    /// Sets the route of the items.
    #[must_use]
    pub fn route(mut self, route: ItemRoute) -> Self {
        self.route = route;
        self
    }

    /// Sets how many items a place may hold that are not applied: in its buckets, and in flight until the next place
    /// has handed them on; at most 2^20. They are divided evenly among the buckets, each of which holds at least one.
    #[must_use]
    pub fn lookahead(mut self, items: usize) -> Self {
        self.lookahead = items;
        self
    }

    /// Sets the number of items in a bucket, which overrides the look-ahead; at most 2^20.
    #[must_use]
    pub fn bucket(mut self, items: usize) -> Self {
        self.bucket = Some(items);
        self
    }

    /// Sets how many buckets for one place may be in flight; at least one.
    #[must_use]
    pub fn in_flight(mut self, buckets: u32) -> Self {
        self.in_flight = buckets;
        self
    }

    /// Checks the numbers of items.
    ///
    /// # Errors
    /// [`Misused`](ErrorKind::Misused): the option, its value and the bound.
    pub(super) fn check(&self) -> Result<()> {
        let said = [("lookahead", Some(self.lookahead)), ("bucket", self.bucket)];
        let beyond = said.into_iter().find(|(_, items)| items.is_some_and(|items| items > ITEMS_MAX));
        let Some((option, Some(items))) = beyond else { return Ok(()) };
        let text = format!("{option} of an aggregator is {items} items; allowed: at most {ITEMS_MAX}");
        Err(Error::new(ErrorKind::Misused, text))
    }

    /// Returns the limits on what a place holds.
    pub(super) fn limits(&self, router: &Router) -> BucketLimits {
        match self.bucket {
            Some(capacity) => BucketLimits { capacity, in_flight: self.in_flight },
            None => BucketLimits::within(router, self.lookahead, self.in_flight),
        }
    }

    /// Sets the cost of handing on an arrived item on a modelled core, in addition to the message. Real machines ignore
    /// it, and items that are applied where they arrive cost nothing.
    #[must_use]
    pub fn forward_work(mut self, each: Cycles) -> Self {
        self.forward_cycles = each.0;
        self
    }
}
