//! How an aggregator works: which way items go, and how many of them a place holds.

use isles_protocol::aggregation::ItemRoute;
use serde::{Deserialize, Serialize};

/// What an [`Aggregator`](crate::Aggregator) is made with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AggregatorOptions {
    pub(super) route: ItemRoute,
    pub(super) lookahead: usize,
    pub(super) bucket: Option<usize>,
}

/// Items that a place holds at most, if nothing else is said: what HPCC RandomAccess allows.
const LOOKAHEAD: usize = 1024;

impl Default for AggregatorOptions {
    /// Straight to each place, 1,024 items a place.
    fn default() -> Self {
        AggregatorOptions { route: ItemRoute::Direct, lookahead: LOOKAHEAD, bucket: None }
    }
}

impl AggregatorOptions {
    /// Which way items go.
    #[must_use]
    pub fn route(mut self, route: ItemRoute) -> Self {
        self.route = route;
        self
    }

    /// How many items a place may hold that are not applied: in its buckets, and on their way from there until they are
    /// handed on. They are shared out evenly among the buckets, each of which has at least one.
    #[must_use]
    pub fn lookahead(mut self, items: usize) -> Self {
        self.lookahead = items;
        self
    }

    /// How many items a bucket has, whatever the look-ahead.
    #[must_use]
    pub fn bucket(mut self, items: usize) -> Self {
        self.bucket = Some(items);
        self
    }
}
