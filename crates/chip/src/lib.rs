//! A many-core chip as data: its topology, clocks, access times, voltages and power.
//!
//! A chip is a file (`chips/scc.toml`); this crate reads it and answers what a model of that chip must know: how far
//! two cores are apart, what a line costs over that distance at these clocks, which voltage a frequency needs, what
//! power that draws. Each constant bears its source and its error; one without a source does not load. It is a crate
//! of its own because the model, the transport over it and the `isles` command use it independently.
//!
//! It runs no program and knows no place, task or message. Invariants: nothing here reads a clock, a file (but for
//! [`Chip::find`]) or the environment; all on the way to a time is integer arithmetic.
//!
//! Read on in `topology`, then `cost`, then `file`.

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
