//! The interrupt controller: what it serves at once, and how long a request takes.
//!
//! What a core does that is interrupted is not known here. Invariant: more targets never take less time.

use crate::cost::{Costs, Span};
use crate::quantity::Picoseconds;
use crate::topology::TileId;

/// The interrupt controller: all requests go through one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupts {
    /// The tile that the port is at.
    pub tile: TileId,
    /// How many targets the port serves at once without one waiting for another.
    pub targets_free: u32,
    /// How many targets one request may name.
    pub targets_max: u32,
}

impl Costs<Span> {
    /// From the raising of an interrupt of so many targets at once to the arrival at the last.
    pub fn interrupt(&self, targets: u32, port: &Interrupts) -> Option<Picoseconds> {
        let waiting = u64::from(targets.saturating_sub(port.targets_free));
        let more = self.interrupt_more.map_or(0, |more| more.over(0).0.saturating_mul(waiting));
        self.interrupt.map(|first| first.over(0).saturating_add(Picoseconds(more)))
    }
}
