//! Domains: which tiles share a clock, and which a supply.
//!
//! Equal blocks of tiles, counted along the axes. It does not know at what rate or voltage they run. Invariant: a block
//! divides the chip without a rest, so every tile is in one domain of each kind.

use super::Chip;
use crate::topology::{Coordinates, TileId, Topology};

/// Tiles that share a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrequencyDomainId(pub u32);

/// Tiles that share a supply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VoltageDomainId(pub u32);

/// Which tiles share a clock, and which a supply: equal blocks of tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Domains {
    /// The size of a block with one clock.
    pub frequency: Coordinates,
    /// The size of a block with one supply.
    pub voltage: Coordinates,
}

impl Chip {
    /// The blocks of tiles that share clocks and supplies.
    pub const fn domains(&self) -> &Domains {
        &self.domains
    }

    /// How many frequency domains there are.
    pub fn frequency_domains(&self) -> u32 {
        blocks(&self.topology, self.domains.frequency)
    }

    /// How many voltage domains there are.
    pub fn voltage_domains(&self) -> u32 {
        blocks(&self.topology, self.domains.voltage)
    }

    /// The frequency domain of a tile.
    pub fn frequency_domain(&self, tile: TileId) -> FrequencyDomainId {
        FrequencyDomainId(block(&self.topology, self.domains.frequency, tile))
    }

    /// The voltage domain of a tile; on the SCC, `x/2 + 3·(y/2)` as RCCE counts.
    pub fn voltage_domain(&self, tile: TileId) -> VoltageDomainId {
        VoltageDomainId(block(&self.topology, self.domains.voltage, tile))
    }
}

/// How many blocks of that size the tiles make.
fn blocks(topology: &Topology, size: Coordinates) -> u32 {
    [0, 1, 2].map(|axis| topology.extent()[axis] / size[axis]).into_iter().product()
}

/// The block of that size that a tile is in.
fn block(topology: &Topology, size: Coordinates, tile: TileId) -> u32 {
    let (at, extent) = (topology.coordinates(tile), topology.extent());
    let [x, y, z] = [0, 1, 2].map(|axis| at[axis] / size[axis]);
    (z * (extent[1] / size[1]) + y) * (extent[0] / size[0]) + x
}
