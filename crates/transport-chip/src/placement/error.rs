//! Why places cannot be put on cores as was asked.
//!
//! A value for whoever reads or seats a placement; whose word it was is not known here. Invariant: the text of a
//! variant says in one line what is allowed.

use isles_transport::CoreListFault;
use std::fmt;

/// Why places cannot be put on cores so. As a text it says what is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacementError {
    /// It is none of the names, nor a list.
    Unreadable,
    /// A core is listed more than once.
    Twice {
        /// Which.
        core: u32,
    },
    /// A core is listed that the chip does not have.
    NoCore {
        /// Which.
        core: u32,
        /// How many the chip has.
        cores: u32,
    },
    /// There are more places than cores.
    TooFew {
        /// How many cores there are.
        cores: u32,
        /// How many places.
        places: u32,
    },
}

impl From<CoreListFault> for PlacementError {
    fn from(fault: CoreListFault) -> PlacementError {
        match fault {
            CoreListFault::Unreadable => PlacementError::Unreadable,
            CoreListFault::Twice { core } => PlacementError::Twice { core },
        }
    }
}

impl fmt::Display for PlacementError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlacementError::Unreadable => write!(f, "linear, spread, or {}", CoreListFault::Unreadable),
            PlacementError::Twice { core } => CoreListFault::Twice { core: *core }.fmt(f),
            PlacementError::NoCore { core, cores } => {
                write!(f, "cores from 0 to {} of the chip ({core} is none)", cores - 1)
            }
            PlacementError::TooFew { cores, places } => {
                write!(f, "at least as many cores as places, which are {places} (here are {cores})")
            }
        }
    }
}

impl std::error::Error for PlacementError {}
