//! Places on the cores of a modelled chip, without a runtime.

mod asynchronous;
mod blocking_send;
mod cells;
mod clocks;
mod conformance;
mod energy;
mod multicast;
mod placement;
mod protobuf;
mod protocols;
mod record;
mod sink;
mod work;
mod world;
