//! Tests of the phaser protocol: exact message counts, all interleavings of small worlds, random large ones.

mod counts;
mod explore;
mod world;
