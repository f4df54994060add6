//! The application suite of Isles.
//!
//! Exists so that programs, tests and benchmarks share one implementation of each application. This crate
//! uses nothing of the runtime but the façade, and its sequential parts ([`graph`], the kernels) not even that.
//! Invariant: an application's answer is the same, bit for bit, at every place count and on every machine.

#![forbid(unsafe_code)]

pub mod bc;
pub mod console;
pub mod frame;
pub mod graph;
pub mod hf;
pub mod pi;
pub mod registry;
