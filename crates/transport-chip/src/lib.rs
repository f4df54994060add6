//! Places on the cores of a modelled chip.
//!
//! All places run in one thread. Each has the clock of its core, and every operation of the core (computing, accessing
//! lines of message buffers, polling) advances that clock. A driver gives the next turn to the place whose clock is
//! least, so everything that can arrive there has already been sent. Message protocols are written in terms of the
//! operations of a core and know nothing of turns.
//!
//! The crate runs nothing by itself: a driver asks the [`ChipWorld`] for the next place. The results are times and
//! costs; the contents of messages, and their order between two places, do not depend on them.
//! `docs/design/chip-time.md` has the details.

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
