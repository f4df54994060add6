//! The interrupt controller: what it serves at once, and how long a request takes.
//!
//! What a core does that is interrupted is not known here. Invariant: more targets never take less time.

use crate::cost::{HopCost, TimingTable};
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

impl Interrupts {
    /// How much later than alone an interrupt arrives that is through the port so long after it was raised, where each
    /// target takes `each`: a few are through before the first one of them arrives.
    pub fn late(&self, passing: Picoseconds, each: Picoseconds) -> Picoseconds {
        Picoseconds(passing.0.saturating_sub(each.0.saturating_mul(u64::from(self.targets_free))))
    }
}

impl TimingTable<HopCost> {
    /// From the raising of an interrupt of so many targets at once to the arrival at the last.
    pub fn interrupt(&self, targets: u32, port: &Interrupts) -> Option<Picoseconds> {
        let each = self.interrupt_more.unwrap_or_default().over(0);
        let passing = Picoseconds(each.0.saturating_mul(u64::from(targets)));
        self.interrupt.map(|alone| alone.over(0).saturating_add(port.late(passing, each)))
    }
}
