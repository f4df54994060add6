//! A many-core chip as data: its topology, clocks, access times, voltages and power.
//!
//! A chip is a file (`chips/scc.toml`). This crate reads it and provides what a model of that chip needs: distances
//! between cores, costs of lines over a distance at given clocks, voltages of frequencies, and powers. Each constant
//! has a source and an error; a file with a constant without a source does not load. It is a crate of its own because
//! the model, the transport and the `isles` command use it independently.
//!
//! It runs no program and knows no places, tasks or messages. Invariants: nothing here reads a clock, a file (except
//! [`Chip::find`]) or the environment; times are computed in integer arithmetic only.
//!
//! Read `topology` first, then `cost`, then `file`.

#![forbid(unsafe_code)]

pub mod bare;
pub mod bound;
pub mod cache;
mod chip;
pub mod clock;
pub mod cost;
pub mod draw;
pub mod energy;
pub mod file;
pub mod gear;
pub mod governor;
pub mod kernel;
pub mod quantity;
pub mod shared;
pub mod supply;
pub mod topology;

pub use chip::{
    Caches, Chip, ControllerId, Dividers, Domains, FileServer, FrequencyDomainId, Interrupts, LinkTraits,
    Memory, MessageBuffer, Preset, TooFastLine, VoltageDomainId,
};
