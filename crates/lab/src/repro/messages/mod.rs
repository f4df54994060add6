//! Experiments on messages: from core to core, by each protocol, and over the bisection of the mesh.
//!
//! Only groups them. Invariant: what they compare with stands in them, as in all experiments.

pub mod bisection;
pub mod ping_pong;
pub mod protocols;
