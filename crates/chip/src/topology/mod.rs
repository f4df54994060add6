//! The topology of a chip: tiles with cores on a grid, links, distances and routes.
//!
//! Everything is computed from a few numbers without tables, so a machine of 32,768 nodes costs as little as a chip of
//! 24 tiles. This module knows no times and no traffic: a [`Link`] here is a position, not a resource.
//!
//! Invariant: ids are dense. Cores are `0..cores()`, tiles `0..tiles()`; the cores of tile `t` are `t * cores_per_tile
//! ..`, and tiles count along x first, then y, then z, as RCCE numbers those of the SCC.

mod route;
#[cfg(test)]
mod tests;

pub use route::Route;

use std::fmt;

/// A core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CoreId(pub u32);

/// A tile: a node of the mesh, with its cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TileId(pub u32);

/// Position of a tile: column, row, level.
pub type Coordinates = [u32; 3];

/// Shape of the network between the tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A grid; each tile is linked to its neighbours, and packets go along x, then y, then z.
    Mesh,
    /// A grid with linked ends; packets go the shorter way round, along x, then y, then z.
    Torus,
    /// Each tile is linked to one central switch.
    Crossbar,
}

/// A port of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Port {
    /// Towards larger x.
    East,
    /// Towards smaller x.
    West,
    /// Towards larger y.
    North,
    /// Towards smaller y.
    South,
    /// Towards larger z.
    Up,
    /// Towards smaller z.
    Down,
    /// From the tile to the switch of a crossbar.
    Out,
    /// From the switch of a crossbar to the tile.
    In,
}

/// A directed link, named by a port of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link {
    /// The tile that it leaves; with [`Port::In`], the tile that it enters.
    pub tile: TileId,
    /// The port of that tile.
    pub port: Port,
}

/// End of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEnd {
    /// A tile's router.
    Tile(TileId),
    /// The switch of a crossbar.
    Switch,
}

/// The number of a link in a table of [`Topology::link_slots`] entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

/// The tiles of a chip and their network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topology {
    shape: Shape,
    extent: Coordinates,
    cores_per_tile: u32,
}

impl Topology {
    /// Maximum number of cores of a chip, which keeps ids and tables small.
    pub const CORES_MAX: u32 = 1 << 20;

    /// Returns the topology of `extent` columns, rows and levels of tiles with `cores_per_tile` cores each; `None` if
    /// one of them is zero or the cores are more than [`Topology::CORES_MAX`].
    pub fn new(shape: Shape, extent: Coordinates, cores_per_tile: u32) -> Option<Self> {
        let numbers = [extent[0], extent[1], extent[2], cores_per_tile];
        let cores = numbers.into_iter().try_fold(1_u32, u32::checked_mul)?;
        (1..=Self::CORES_MAX).contains(&cores).then_some(Self { shape, extent, cores_per_tile })
    }

    /// Returns the shape of the network.
    pub const fn shape(&self) -> Shape {
        self.shape
    }

    /// Columns, rows and levels.
    pub const fn extent(&self) -> Coordinates {
        self.extent
    }

    /// Cores of each tile.
    pub const fn cores_per_tile(&self) -> u32 {
        self.cores_per_tile
    }

    /// Returns the number of tiles.
    pub const fn tiles(&self) -> u32 {
        self.extent[0] * self.extent[1] * self.extent[2]
    }

    /// Returns the number of cores.
    pub const fn cores(&self) -> u32 {
        self.tiles() * self.cores_per_tile
    }

    /// The tile of a core of this chip.
    #[inline]
    pub const fn tile_of(&self, core: CoreId) -> TileId {
        TileId(core.0 / self.cores_per_tile)
    }

    /// Returns the cores of a tile of this chip.
    pub(crate) fn cores_of(&self, tile: TileId) -> impl Iterator<Item = CoreId> + use<> {
        let first = tile.0 * self.cores_per_tile;
        (first..first + self.cores_per_tile).map(CoreId)
    }

    /// Returns the tile at these coordinates, if they are on the grid.
    pub(crate) fn tile_at(&self, at: Coordinates) -> Option<TileId> {
        let [columns, rows, _] = self.extent;
        let inside = at.iter().zip(self.extent).all(|(at, end)| *at < end);
        inside.then(|| TileId((at[2] * rows + at[1]) * columns + at[0]))
    }

    /// Returns the position of a tile of this chip.
    #[inline]
    pub const fn coordinates(&self, tile: TileId) -> Coordinates {
        let [columns, rows, _] = self.extent;
        [tile.0 % columns, tile.0 / columns % rows, tile.0 / columns / rows]
    }

    /// Returns the number of links that a packet crosses between two tiles of this chip; zero from a tile to itself.
    pub fn hops(&self, from: TileId, to: TileId) -> u32 {
        self.route(from, to).remaining()
    }

    /// The links that a packet crosses between two tiles of this chip, in order.
    #[inline]
    pub fn route(&self, from: TileId, to: TileId) -> Route {
        Route::new(self, from, to)
    }

    /// Returns the largest distance between two tiles, in hops.
    pub fn diameter(&self) -> u32 {
        match self.shape {
            Shape::Mesh => self.extent.iter().map(|end| end - 1).sum(),
            Shape::Torus => self.extent.iter().map(|end| end / 2).sum(),
            Shape::Crossbar => 2 * u32::from(self.tiles() > 1),
        }
    }

    /// Returns the length of a table with a row for each [`LinkId`]. At the edges of a mesh some rows are unused.
    pub const fn link_slots(&self) -> u32 {
        self.tiles() * self.ports().len() as u32
    }

    /// The number of a link of this chip.
    #[inline]
    pub fn link_id(&self, link: Link) -> LinkId {
        let ports = self.ports();
        // The ports of a shape are consecutive, in the order of their declaration.
        let port = (link.port as u32).wrapping_sub(ports[0] as u32);
        assert!((port as usize) < ports.len(), "{link:?} is on no {:?}", self.shape);
        LinkId(link.tile.0 * ports.len() as u32 + port)
    }

    /// Returns the links of the chip, in the order of their numbers.
    pub fn links(&self) -> impl Iterator<Item = Link> + use<> {
        let topology = *self;
        let tiles = (0..self.tiles()).map(TileId);
        let links = tiles.flat_map(move |tile| topology.ports().iter().map(move |&port| Link { tile, port }));
        links.filter(move |link| topology.ends(*link).is_some())
    }

    /// Returns the start and the end of a link; `None` if it would leave the chip.
    pub fn ends(&self, link: Link) -> Option<(LinkEnd, LinkEnd)> {
        let here = LinkEnd::Tile(link.tile);
        match link.port {
            Port::Out => Some((here, LinkEnd::Switch)),
            Port::In => Some((LinkEnd::Switch, here)),
            _ => self.neighbour(link.tile, link.port).map(|there| (here, LinkEnd::Tile(there))),
        }
    }

    /// Returns the tile beyond a port of the grid, if there is one.
    pub fn neighbour(&self, tile: TileId, port: Port) -> Option<TileId> {
        let (axis, forward) = port.direction()?;
        let end = self.extent[axis];
        let mut at = self.coordinates(tile);
        at[axis] = match (self.shape, forward) {
            (Shape::Crossbar, _) => return None,
            (Shape::Torus, _) if end == 1 => return None,
            (Shape::Torus, true) => (at[axis] + 1) % end,
            (Shape::Torus, false) => (at[axis] + end - 1) % end,
            (Shape::Mesh, true) => at[axis] + 1,
            (Shape::Mesh, false) => at[axis].checked_sub(1)?,
        };
        self.tile_at(at)
    }

    /// Returns the ports of each tile, in the order in which links are numbered.
    const fn ports(&self) -> &'static [Port] {
        use Port::{Down, East, In, North, Out, South, Up, West};
        match self.shape {
            Shape::Crossbar => &[Out, In],
            Shape::Mesh | Shape::Torus if self.extent[2] == 1 => &[East, West, North, South],
            Shape::Mesh | Shape::Torus => &[East, West, North, South, Up, Down],
        }
    }
}

impl Port {
    /// Returns the axis of the port, and `true` if it leads towards larger coordinates.
    const fn direction(self) -> Option<(usize, bool)> {
        match self {
            Self::East => Some((0, true)),
            Self::West => Some((0, false)),
            Self::North => Some((1, true)),
            Self::South => Some((1, false)),
            Self::Up => Some((2, true)),
            Self::Down => Some((2, false)),
            Self::Out | Self::In => None,
        }
    }

    /// Returns the port along an axis, towards larger or smaller coordinates.
    const fn along(axis: usize, forward: bool) -> Self {
        match (axis, forward) {
            (0, true) => Self::East,
            (0, false) => Self::West,
            (1, true) => Self::North,
            (1, false) => Self::South,
            (_, true) => Self::Up,
            (_, false) => Self::Down,
        }
    }
}

impl fmt::Display for CoreId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl fmt::Display for TileId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}
