//! The scheme within a tile: the external mode, velocities and a tracer, without places.
//!
//! `tile` defines the memory layout of a part of the grid and compiles loops over its rows. Invariant: a value is
//! computed from the same inputs at every tiling.

pub mod external;
pub mod momentum;
pub mod tile;
pub mod tracer;
