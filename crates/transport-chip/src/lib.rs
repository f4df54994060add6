//! Places on the cores of a modelled chip.
//!
//! All places run in one thread. Each has the clock of its core, and every operation of the core (computing, writing
//! and reading lines of message buffers, polling) moves that clock. A driver gives the next turn to the place whose
//! clock is least, so whatever can arrive at it has been sent. The protocol by which messages cross the chip is
//! written against the operations of a core and knows nothing of turns.
//!
//! It runs nothing by itself: a driver asks the [`World`] who is next. Time and cost come out; what arrives, and in
//! which order from one place to another, does not depend on them. Read on in `docs/twin.md`.

#![forbid(unsafe_code)]

mod bands;
mod called;
mod chunks;
mod clocks;
mod cores;
mod demand;
mod endpoint;
mod energy;
pub mod export;
mod govern;
mod isles;
mod kept;
mod mail;
mod packets;
mod pairs;
mod parcel;
mod ping_pong;
mod placement;
mod rcce;
mod record;
mod relay;
mod report;
mod rest;
mod shared;
mod stand;
mod stands;
mod state;
mod system;
mod traffic;
mod wire;
mod wiring;
mod world;

pub use bands::{Bands, EnergyBands};
pub use clocks::{ClockChange, ClockError};
pub use cores::Costs;
pub use endpoint::ChipEndpoint;
pub use energy::{Energy, ModelEnergy, Peak, Profile};
pub use ping_pong::half_ping_pong;
pub use placement::{Misplacement, Placement, Seating};
pub use report::{Ledger, Report, Shifts, Spending};
pub use rest::Rest;
pub use shared::{Stale, Stretch};
pub use traffic::{Flow, LinkLoad};
pub use wire::Protocol;
pub use wiring::Wiring;
pub use world::{Misfit, Turn, World};
