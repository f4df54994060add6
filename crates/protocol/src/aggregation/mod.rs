//! Aggregation: many small items for unpredictable places travel together, directly or by way of other places.
//!
//! [`Buckets`] are the items that one place has on their way; [`Router`] returns the next place of each. Both are state
//! machines without clock or messages. The scheme is that of Garg and Sabharwal (SC 2006): items are routed along the
//! dimensions of a virtual torus, so that a place sends to X + Y + Z others instead of X · Y · Z.
//! `docs/design/aggregation.md` has the proof that it ends, and its memory.

mod buckets;
mod router;
#[cfg(test)]
mod tests;
mod torus;

pub use buckets::{BucketLimits, Buckets, OutgoingBucket, StoreOutcome};
pub use router::{Hop, ItemRoute, RouteFault, Router};
pub use torus::Torus;
