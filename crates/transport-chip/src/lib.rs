//! Places on the cores of a modelled chip.
//!
//! All places run in one thread. Each has the clock of its core, and every operation of the core (computing, writing
//! and reading lines of message buffers, polling) moves that clock. A driver gives the next turn to the place whose
//! clock is least, so whatever can arrive at it has been sent. The protocol by which messages cross the chip is
//! written against the operations of a core and knows nothing of turns.
//!
//! It runs nothing by itself: a driver asks the [`ChipWorld`] who is next. Time and cost come out; what arrives, and in
//! which order from one place to another, does not depend on them. Read on in `docs/design/chip-time.md`.

#![forbid(unsafe_code)]

mod bands;
mod clocks;
mod cores;
mod demand;
mod endpoint;
mod energy;
pub mod export;
mod governor;
mod idle_policy;
mod ping_pong;
mod placement;
mod protocol;
mod record;
mod report;
mod shared;
mod world;

pub use bands::{Bands, EnergyBands};
pub use clocks::{ClockChange, ClockError};
pub use cores::Costs;
pub use demand::undeclared::UndeclaredRegion;
pub use endpoint::ChipEndpoint;
pub use energy::{Energy, EnergyReading, ModelEnergy, Peak, Profile};
pub use idle_policy::IdlePolicy;
pub use ping_pong::half_ping_pong;
pub use placement::{CoreMap, Placement, PlacementError};
pub use protocol::{Protocol, ProtocolConfig};
pub use report::{FileTraffic, Flow, GearChanges, Ledger, LinkLoad, Report, TimeCategory};
pub use shared::{MemoryRegion, Stale};
pub use world::{ChipWorld, TurnOutcome, WorldError};
