//! Tests of the finish protocol: exact message counts, all interleavings of small worlds, random large ones, and
//! nonsense from peers.

mod counts;
mod explore;
mod nonsense;
mod random;
mod world;
