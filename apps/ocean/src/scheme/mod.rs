//! The scheme within a tile: the external mode, velocities and a tracer, without places.
//!
//! `tile` says how a part of the grid lies in memory and how loops over its rows are compiled. Invariant: a value is
//! computed from the same ones at every tiling.

pub mod external;
pub mod momentum;
pub mod tile;
pub mod tracer;
