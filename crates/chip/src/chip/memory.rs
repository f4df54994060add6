//! Where a chip keeps what: caches, message buffers, and the memory behind controllers.
//!
//! It says what is there and which tile uses what; what an access costs is in the costs, what a cache holds in
//! `cache`. Invariant: every tile has a controller, and every controller stands at a tile.

use super::Chip;
use crate::quantity::{Bytes, Picoseconds};
use crate::topology::{CoreId, TileId};

/// A memory controller, counted from 0 in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ControllerId(pub u32);

/// Lines and the caches of one core; a cache that is not there is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caches {
    /// The unit of transfer between memories.
    pub line: Bytes,
    /// The first cache for data.
    pub first: Option<Bytes>,
    /// The first cache for instructions.
    pub instructions: Option<Bytes>,
    /// The second cache.
    pub second: Option<Bytes>,
}

/// Memory on the tiles that all cores may read and write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageBuffer {
    /// What each core has of it.
    pub size: Bytes,
    /// Test-and-set registers of each core.
    pub registers: u32,
    /// How many cores may read from the buffer of one tile at once before they slow each other down; none if any number
    /// may.
    pub readers_free: Option<u32>,
}

impl MessageBuffer {
    /// For how long an access to one line keeps the buffer of a tile busy, if reading one in the core's own takes
    /// `read`.
    pub fn port_time(&self, read: Picoseconds) -> Picoseconds {
        self.readers_free.map_or(Picoseconds::ZERO, |readers| Picoseconds(read.0 / u64::from(readers)))
    }
}

/// Where memory controllers are and which tiles use which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Controllers {
    /// Each tile has its own.
    EachTile,
    /// They stand at these tiles; the second list says which one each tile uses.
    At(Vec<TileId>, Vec<ControllerId>),
}

/// The memory behind the controllers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    pub(crate) controllers: Controllers,
    /// How many cores may read from one controller at once before they slow each other down.
    pub readers_free: u32,
}

impl Chip {
    /// Whether each tile has a memory of its own, behind a controller of its own.
    pub fn has_memory_at_each_tile(&self) -> bool {
        self.memory.controllers == Controllers::EachTile
    }

    /// How many memory controllers there are.
    pub fn controllers(&self) -> u32 {
        match &self.memory.controllers {
            Controllers::EachTile => self.topology.tiles(),
            Controllers::At(tiles, _) => tiles.len() as u32,
        }
    }

    /// The tile that a controller of this chip is at.
    pub fn controller_tile(&self, controller: ControllerId) -> TileId {
        match &self.memory.controllers {
            Controllers::EachTile => TileId(controller.0),
            Controllers::At(tiles, _) => tiles[controller.0 as usize],
        }
    }

    /// The controller that the private memory of a tile's cores is behind.
    pub fn controller_of(&self, tile: TileId) -> ControllerId {
        match &self.memory.controllers {
            Controllers::EachTile => ControllerId(tile.0),
            Controllers::At(_, of_tile) => of_tile[tile.0 as usize],
        }
    }

    /// Hops from a core to the controller of its private memory.
    pub fn hops_to_memory(&self, core: CoreId) -> u32 {
        let tile = self.topology.tile_of(core);
        self.topology.hops(tile, self.controller_tile(self.controller_of(tile)))
    }
}
