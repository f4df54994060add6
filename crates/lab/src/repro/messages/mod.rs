//! Experiments on messages: from core to core, by each protocol, by the C library, on bare cores that QEMU runs, and
//! over the bisection.
//!
//! This module only groups them. Invariant: the published figures are in the experiments, as everywhere.

pub mod bare_metal;
pub mod bisection;
pub mod ping_pong;
pub mod protocols;
pub mod rcce;
