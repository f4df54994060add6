//! Possible interference: the cores that may use each link, buffer and controller.
//!
//! A core has at most one access in flight, which uses the route of one of its possible accesses. So each other core
//! interferes at most once, wherever it meets the route.

use super::NoBound;
use crate::topology::{CoreId, TileId, Topology};
use crate::{Chip, ControllerId};

/// Maximum number of cores: the number of intervals that a resource of the model keeps.
pub const CORES_MAX: u32 = 64;

/// A set of cores.
type CoreSet = u64;

/// The possible accesses of cores, which determine the cores that they may delay.
#[derive(Clone, Debug)]
pub struct Interference {
    topology: Topology,
    controllers: Vec<TileId>,
    own_controller: Vec<ControllerId>,
    /// Possible users by link, by tile and by controller.
    links: Vec<CoreSet>,
    ports: Vec<CoreSet>,
    memories: Vec<CoreSet>,
}

impl Interference {
    /// Makes the interference of cores without accesses.
    ///
    /// # Errors
    /// [`NoBound::Cores`]: the chip has more than [`CORES_MAX`].
    pub fn none(chip: &Chip) -> Result<Interference, NoBound> {
        let topology = *chip.topology();
        if topology.cores() > CORES_MAX {
            return Err(NoBound::Cores { cores: topology.cores(), most: CORES_MAX });
        }
        let controllers: Vec<TileId> =
            (0..chip.controllers()).map(|number| chip.controller_tile(ControllerId(number))).collect();
        Ok(Interference {
            topology,
            links: vec![0; topology.link_slots() as usize],
            ports: vec![0; topology.tiles() as usize],
            memories: vec![0; controllers.len()],
            own_controller: (0..topology.tiles()).map(|tile| chip.controller_of(TileId(tile))).collect(),
            controllers,
        })
    }

    /// The tile of a core.
    pub(super) fn tile(&self, core: CoreId) -> TileId {
        self.topology.tile_of(core)
    }

    /// Hops between two tiles.
    pub(super) fn hops(&self, from: TileId, to: TileId) -> u32 {
        self.topology.hops(from, to)
    }

    /// Returns the controller of a core's private memory, and its tile.
    pub(super) fn memory_of(&self, core: CoreId) -> (ControllerId, TileId) {
        let controller = self.own_controller[self.tile(core).0 as usize];
        (controller, self.controllers[controller.0 as usize])
    }

    fn add_route(&mut self, core: CoreId, from: TileId, to: TileId) {
        for link in self.topology.route(from, to) {
            self.links[self.topology.link_id(link).0 as usize] |= 1 << core.0;
        }
    }

    /// Allows `core` to read lines of the message buffer of `of`.
    pub fn add_read(&mut self, core: CoreId, of: CoreId) {
        let (here, there) = (self.tile(core), self.tile(of));
        self.add_route(core, there, here);
        self.ports[there.0 as usize] |= 1 << core.0;
    }

    /// Allows `core` to write lines of the message buffer of `of`.
    pub(crate) fn add_write(&mut self, core: CoreId, of: CoreId) {
        let (here, there) = (self.tile(core), self.tile(of));
        self.add_route(core, here, there);
        self.ports[there.0 as usize] |= 1 << core.0;
    }

    /// Allows `core` to access the memory behind its own controller.
    pub(crate) fn add_memory(&mut self, core: CoreId) {
        let (controller, _) = self.memory_of(core);
        self.add_controller(core, controller);
    }

    fn add_controller(&mut self, core: CoreId, controller: ControllerId) {
        self.add_route(core, self.controllers[controller.0 as usize], self.tile(core));
        self.memories[controller.0 as usize] |= 1 << core.0;
    }

    /// Allows `core` every access: to any buffer, and to the memory behind any controller.
    pub fn add_unrestricted(&mut self, core: CoreId) {
        for of in (0..self.topology.cores()).map(CoreId) {
            self.add_read(core, of);
            self.add_write(core, of);
        }
        for controller in (0..self.controllers.len() as u32).map(ControllerId) {
            self.add_controller(core, controller);
        }
    }

    /// Returns the number of other cores whose packets may use links of a route.
    pub(super) fn others_on_route(&self, core: CoreId, from: TileId, to: TileId) -> u64 {
        let all = self.topology.route(from, to);
        let users = all.fold(0, |users, link| users | self.links[self.topology.link_id(link).0 as usize]);
        others(users, core)
    }

    /// Returns the number of other cores that may access the buffer of a tile.
    pub(super) fn at_port(&self, core: CoreId, tile: TileId) -> u64 {
        others(self.ports[tile.0 as usize], core)
    }

    /// Returns the number of other cores that may access the memory behind a controller.
    pub(super) fn at_memory(&self, core: CoreId, controller: ControllerId) -> u64 {
        others(self.memories[controller.0 as usize], core)
    }
}

fn others(users: CoreSet, core: CoreId) -> u64 {
    u64::from((users & !(1 << core.0)).count_ones())
}
