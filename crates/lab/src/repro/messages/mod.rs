//! Experiments on messages: from core to core, by each protocol, by the library of C, on bare cores that QEMU runs, and
//! over the bisection.
//!
//! Only groups them. Invariant: what they compare with stands in them, as in all experiments.

pub mod bare_metal;
pub mod bisection;
pub mod ping_pong;
pub mod protocols;
pub mod rcce;
