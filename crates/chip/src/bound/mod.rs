//! Upper bounds of the time of accesses, messages and patterns of messages on a chip, under any other load.
//!
//! The bounds are of the model, not of silicon: packets use dimension-order routing, a link serves one packet at a
//! time, and a core has one access in flight. Under these rules each other core can delay an access once, at the links
//! of its route, at the port of a buffer, or at a memory controller; the maximum of that delay is added to the
//! uncontended time of the chip file. Lists of steps ([`StaticProgram`]) are bounded by adding up their accesses and,
//! at waits, taking the later of both sides: nothing in such a program ends later because something else ends earlier.
//!
//! Read `flow` (formulas of the literature), `interference` (possible delays), then `access`, `program` and `pattern`.
//! `docs/design/bounds.md` has the proofs.

mod access;
mod errors;
pub mod flow;
mod interference;
pub mod mutex;
pub mod pattern;
pub mod periodic;
mod program;
mod terms;
#[cfg(test)]
mod tests;

pub use crate::bare::program::{ProgramStep, StaticProgram};
pub use access::{AccessBounds, DataIn, LinkOrder};
pub use errors::{Constants, Platform};
pub use interference::{CORES_MAX, Interference};
pub use program::{Others, ProgramBounds};
pub use terms::{Term, Terms};

use crate::topology::{Port, TileId};
use std::fmt;

/// Reason why there is no bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoBound {
    /// The chip has too many cores.
    Cores {
        /// Number of cores of the chip.
        cores: u32,
        /// Maximum number of cores.
        most: u32,
    },
    /// The chip file lacks this section or cost.
    Missing(&'static str),
    /// An access may end before its packet has left the last link, so that a core has two in flight.
    ShortAccess,
    /// The program has more participants than the chip has cores, or too many to leave room for messages.
    Participants {
        /// Number of participants.
        participants: u32,
        /// Maximum number of participants.
        most: u32,
    },
    /// Flows use the whole capacity of a link, so that its queue may grow without bound.
    Overload {
        /// The tile that the link leaves.
        tile: TileId,
        /// Direction of the link.
        port: Port,
        /// Numbers of the flows that use the link.
        flows: Vec<usize>,
    },
    /// A step names a participant that does not exist, or itself.
    Partner {
        /// Participant that takes the step.
        participant: u32,
        /// Participant that the step names.
        partner: u32,
    },
    /// Participants deadlock.
    Stuck {
        /// Waiting participants, each with its step.
        waiting: Vec<(u32, ProgramStep)>,
    },
}

impl fmt::Display for NoBound {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoBound::Cores { cores, most } => {
                write!(out, "the chip has {cores} cores; allowed for bounds: at most {most}")
            }
            NoBound::Missing(what) => write!(out, "the chip file has no {what}; bounds need it"),
            NoBound::ShortAccess => {
                out.write_str("an access may end before its packet has passed the last link")
            }
            NoBound::Participants { participants, most } => {
                write!(out, "{participants} participants; allowed: 1 to {most}")
            }
            NoBound::Overload { tile, port, flows } => {
                let flows: Vec<String> = flows.iter().map(|flow| format!("{}", flow + 1)).collect();
                let flows = flows.join(", ");
                write!(
                    out,
                    "the link {port:?} of tile {tile} is overloaded by the flows {flows}: no bound exists"
                )
            }
            NoBound::Partner { participant, partner } => {
                write!(
                    out,
                    "participant {participant} names {partner} as its partner, but that is not a \
                     participant"
                )
            }
            NoBound::Stuck { waiting } => {
                out.write_str("these participants wait for each other forever:")?;
                waiting.iter().try_for_each(|(participant, step)| match step {
                    ProgramStep::Send { to, .. } => write!(out, " {participant} (sends to {to})"),
                    ProgramStep::Receive { from, .. } => write!(out, " {participant} (receives from {from})"),
                    _ => write!(out, " {participant} (barrier)"),
                })
            }
        }
    }
}

impl std::error::Error for NoBound {}
