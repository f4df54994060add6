//! Aggregation: many small items for unpredictable places travel together, straight or by way of other places.
//!
//! [`Buckets`] are what one place holds of items on their way; [`Router`] says which place is next for each. Both are
//! state machines without clock or messages. The scheme is that of Garg and Sabharwal (SC 2006): items are routed along
//! the dimensions of a virtual torus, so that a place talks to X + Y + Z others and not to X · Y · Z.
//! `docs/design/aggregation.md` says why it ends and what it holds.

mod buckets;
mod router;
#[cfg(test)]
mod tests;
mod torus;

pub use buckets::{BucketLimits, Buckets, OutgoingBucket, StoreOutcome};
pub use router::{Hop, ItemRoute, RouteFault, Router};
pub use torus::Torus;
