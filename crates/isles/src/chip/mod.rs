//! Modelled chips: the part of this crate that concerns only them.
//!
//! Built with the feature `chip`. Other modules know only the machine, through the table of `machine::driver`, and the
//! settings. Invariant: no name of `isles_chip` or `isles_transport_chip` is used outside of this folder.

pub mod clocks;
mod collectives;
mod drive;
mod export;
pub mod interrupts;
mod launch;
mod modelled;
mod observe;
mod settings;
pub mod shared_memory;
pub(crate) mod work;

pub use collectives::{Broadcast, Reduce};
pub use isles_chip::governor::Policy as GovernorPolicy;
pub use isles_services::Shape;
pub use isles_transport::{CoreList, CoreListError};
pub use isles_transport_chip::{
    Energy, IdlePolicy, Ledger, ModelEnergy, Placement, PlacementError, Protocol, Report as ChipReport,
    TimeCategory,
};
pub use modelled::{ModelledChip, ProtocolRoom};
pub(crate) use settings::{
    ChipSettings, read_governor, read_name, read_placement, read_protocol, read_rest, read_window_lines,
    read_work,
};
pub use work::CodeTime;
