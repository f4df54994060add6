//! Tests of the finish protocol: exact message counts, all interleavings of small worlds, random large ones.

mod explore;
mod world;
