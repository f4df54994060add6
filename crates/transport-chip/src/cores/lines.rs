//! Transfers of lines and packets over the mesh.
//!
//! The lines that one operation moves between a core and a message buffer follow each other: each takes its uncontended
//! time, and all of them are delayed by what blocks the first, on the links and then at the port of the buffer's tile.
//! Hardware packets and lines of memory bypass the buffers and go to a node or a controller. Invariant: the links of a
//! route, and the port or controller at its end, are reserved for the whole transfer before its time is computed.

use super::Cores;
use crate::demand::WORD_BYTES;
use crate::report::{LinkLoad, TimeCategory};
use isles_chip::cost::{Access, HopCost, Mode};
use isles_chip::kernel::{JobTime, Train};
use isles_chip::quantity::Picoseconds;
use isles_chip::topology::{TileId, Topology};
use isles_transport::PlaceId;

/// Times of a core for a line in one gear, by the hops to the buffer.
#[derive(Clone, Debug)]
pub(super) struct LineTimes {
    written: Vec<Picoseconds>,
    read: Vec<Picoseconds>,
}

impl LineTimes {
    /// Returns the times of one access over 0 to `hops_max` hops.
    pub(super) fn of(access: &Access<HopCost>, hops_max: u32) -> LineTimes {
        let all = |span: HopCost| (0..=hops_max).map(|hops| span.over(hops)).collect();
        LineTimes { written: all(access.gap), read: all(access.read) }
    }
}

/// Number of a tile among those with places, which keeps the state for pairs of tiles small even on a large chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OccupiedTile(u32);

/// Numbers the tiles of places. Returns tile and number of each place, and the tiles by number.
pub(super) fn number_tiles(
    topology: &Topology,
    tiles: impl Iterator<Item = TileId>,
) -> (Vec<(TileId, OccupiedTile)>, Vec<TileId>) {
    let (mut known, mut used) = (vec![None; topology.tiles() as usize], Vec::new());
    let tile_number = |tile: TileId| {
        let tile_number = known[tile.0 as usize].get_or_insert_with(|| {
            used.push(tile);
            OccupiedTile(used.len() as u32 - 1)
        });
        (tile, *tile_number)
    };
    let tile_numbers = tiles.map(tile_number).collect();
    (tile_numbers, used)
}

/// Maximum number of tiles between which all paths are cached: 100 KB, which fit into a host's cache. With message
/// buffers the limit is higher, because each poll of a buffer needs a path.
const CACHED_MAX: usize = 64;
const CACHED_WITH_BUFFERS_MAX: usize = 256;

/// The cached links between each two tiles with places, if these are few.
pub(super) struct Paths {
    /// The tiles by number.
    tiles: Vec<TileId>,
    /// Start in `links` and length of the path of each ordered pair.
    pairs: Vec<(u32, u32)>,
    links: Vec<u32>,
}

impl Paths {
    /// Makes the paths among these tiles.
    pub(super) fn new(topology: &Topology, tiles: Vec<TileId>, has_buffers: bool) -> Paths {
        let most = if has_buffers { CACHED_WITH_BUFFERS_MAX } else { CACHED_MAX };
        let kept = if tiles.len() <= most { &tiles[..] } else { &[] };
        let pairs: Vec<_> = kept.iter().flat_map(|from| kept.iter().map(move |to| (*from, *to))).collect();
        let mut paths = Paths { tiles, pairs: Vec::new(), links: Vec::new() };
        for (from, to) in pairs {
            let start = paths.links.len() as u32;
            paths.links.extend(topology.route(from, to).map(|link| topology.link_id(link).0));
            paths.pairs.push((start, paths.links.len() as u32 - start));
        }
        paths
    }

    /// Returns `true` if no paths are cached.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    #[inline]
    fn between(&self, from: OccupiedTile, to: OccupiedTile) -> &[u32] {
        let (start, len) = self.pairs[from.0 as usize * self.tiles.len() + to.0 as usize];
        &self.links[start as usize..][..len as usize]
    }
}

impl Cores {
    /// Reads `lines` lines of the place's own buffer.
    #[inline]
    pub(crate) fn read_own_lines(&mut self, place: PlaceId, lines: u32, category: TimeCategory) {
        let (now, alone) = (self.now(place), self.own_read(place, lines));
        let start = self.reach_port(self.tile_number(place), lines, now);
        self.lines.read += u64::from(lines);
        self.spend(place, alone + (start - now), category);
    }

    /// Writes `lines` lines to the buffer of `target`; all have arrived at the new time of the clock.
    #[inline]
    pub(crate) fn write_lines(&mut self, place: PlaceId, target: PlaceId, lines: u32) {
        let time = self.write_time(place, target, lines, self.now(place));
        self.spend(place, time, TimeCategory::Copying);
    }

    /// Reads `lines` lines of the buffer of `source`.
    #[inline]
    pub(crate) fn read_lines(&mut self, place: PlaceId, source: PlaceId, lines: u32, category: TimeCategory) {
        let time = self.read_time(place, source, lines, self.now(place));
        self.spend(place, time, category);
    }

    /// Returns the time of the core of `place` for writing `lines` lines from `at` on; its clock does not advance.
    #[inline(always)]
    pub(crate) fn write_time(
        &mut self,
        place: PlaceId,
        target: PlaceId,
        lines: u32,
        at: Picoseconds,
    ) -> Picoseconds {
        let (from, to) = (self.tile_number(place), self.tile_number(target));
        self.lines.written += u64::from(lines);
        let (hops, wait) = self.transfer(lines, self.costs.line_flits, from, to, to, at);
        self.line(place).written[hops] * u64::from(lines) + wait
    }

    /// As [`Cores::write_time`], for reading lines.
    #[inline(always)]
    pub(crate) fn read_time(
        &mut self,
        place: PlaceId,
        source: PlaceId,
        lines: u32,
        at: Picoseconds,
    ) -> Picoseconds {
        let (from, to) = (self.tile_number(source), self.tile_number(place));
        self.lines.read += u64::from(lines);
        let (hops, wait) = self.transfer(lines, self.costs.line_flits, from, to, from, at);
        self.line(place).read[hops] * u64::from(lines) + wait
    }

    /// As [`Cores::write_time`], for the words of `lines` lines, written one by one and uncached.
    pub(crate) fn word_write_time(
        &mut self,
        place: PlaceId,
        target: PlaceId,
        lines: u32,
        at: Picoseconds,
    ) -> Picoseconds {
        let (from, to) = (self.tile_number(place), self.tile_number(target));
        self.lines.written += u64::from(lines);
        let words = self.words(lines);
        let (_, wait) = self.transfer(words, self.costs.word_flits, from, to, to, at);
        self.uncontended_word_write_time(place, target, lines) + wait
    }

    /// Returns the number of words in `lines` lines.
    fn words(&self, lines: u32) -> u32 {
        lines * self.costs.line_bytes / WORD_BYTES as u32
    }

    /// As [`Cores::word_write_time`], without contention.
    pub(crate) fn uncontended_word_write_time(
        &self,
        place: PlaceId,
        target: PlaceId,
        lines: u32,
    ) -> Picoseconds {
        let span = self.times(place).access(Mode::BufferWord).map(|word| word.gap).unwrap_or_default();
        span.over(self.hops(place, target) as u32) * u64::from(self.words(lines))
    }

    /// As [`Cores::read_time`], without contention.
    pub(crate) fn uncontended_read_time(&self, place: PlaceId, source: PlaceId, lines: u32) -> Picoseconds {
        self.line(place).read[self.hops(source, place)] * u64::from(lines)
    }

    /// As [`Cores::write_time`], without contention.
    pub(crate) fn uncontended_write_time(&self, place: PlaceId, target: PlaceId, lines: u32) -> Picoseconds {
        self.line(place).written[self.hops(place, target)] * u64::from(lines)
    }

    /// Returns the number of links between the cores of two places.
    fn hops(&self, from: PlaceId, to: PlaceId) -> usize {
        if self.paths.is_empty() {
            return self.costs.topology.route(self.tile(from), self.tile(to)).len();
        }
        self.paths.between(self.tile_number(from), self.tile_number(to)).len()
    }

    /// Returns the time of a place for reading `lines` lines of its own buffer without contention.
    #[inline]
    pub(crate) fn own_read(&self, place: PlaceId, lines: u32) -> Picoseconds {
        self.line(place).read[0] * u64::from(lines)
    }

    /// Returns the time of the core of `place` for an access to a register of the core of `of`.
    pub(crate) fn register(&self, place: PlaceId, of: PlaceId) -> Picoseconds {
        let hops = self.hops(place, of) as u32;
        self.times(place).test_and_set.unwrap_or_default().over(hops)
    }

    /// Returns the times of a line for the core of `place` in its present gear.
    #[inline]
    fn line(&self, place: PlaceId) -> &LineTimes {
        &self.costs.lines[usize::from(self.cores[place.index()].gear.0)]
    }

    /// Moves `count` packets of `flits` flits each between two tiles, from `at` on, through the port of one of them.
    /// Returns the hops and the delay by contention.
    #[inline(always)] // Where it is called, the tiles are often known to be the same.
    fn transfer(
        &mut self,
        count: u32,
        flits: u64,
        from: OccupiedTile,
        to: OccupiedTile,
        port: OccupiedTile,
        at: Picoseconds,
    ) -> (usize, Picoseconds) {
        let train = Train { packets: u64::from(count), flits };
        let (hops, delay) = if from == to { (0, Picoseconds::ZERO) } else { self.cross(train, from, to, at) };
        let start = self.reach_port(port, count, at + delay);
        (hops, start - at)
    }

    /// Reserves the links between two tiles; returns their number and the delay of the train by contention.
    pub(super) fn cross(
        &mut self,
        train: Train,
        from: OccupiedTile,
        to: OccupiedTile,
        at: Picoseconds,
    ) -> (usize, Picoseconds) {
        if self.paths.is_empty() {
            let [from, to] = [from, to].map(|tile_number| self.paths.tiles[tile_number.0 as usize]);
            return self.route(train, from, to, at);
        }
        let path = self.paths.between(from, to);
        let links = path.iter().map(|link| *link as usize);
        (path.len(), self.network.send(self.present, at, links, train))
    }

    /// Reserves the port of a tile's buffer for `count` accesses that arrive at `at`; returns their start.
    #[inline(always)]
    fn reach_port(&mut self, port: OccupiedTile, count: u32, at: Picoseconds) -> Picoseconds {
        let busy = self.costs.port * u64::from(count);
        self.ports[port.0 as usize].reserve(self.present, at, busy)
    }
}

impl Cores {
    /// Sends a packet of `flits` flits into the mesh and returns the time at which all of it has arrived. The core
    /// continues at once.
    #[inline]
    pub(crate) fn carry(
        &mut self,
        place: PlaceId,
        target: PlaceId,
        transit: HopCost,
        flits: u64,
    ) -> Picoseconds {
        let (now, train) = (self.now(place), Train { packets: 1, flits });
        let (hops, delay) = self.cross(train, self.tile_number(place), self.tile_number(target), now);
        now + transit.over(hops as u32) + self.network.pace().flit * flits + delay
    }

    /// As [`Cores::cross`], for paths that are not cached.
    fn route(&mut self, train: Train, from: TileId, to: TileId, at: Picoseconds) -> (usize, Picoseconds) {
        let topology = self.costs.topology;
        let route = topology.route(from, to);
        let hops = route.len();
        let links = route.map(|link| topology.link_id(link).0 as usize);
        (hops, self.network.send(self.present, at, links, train))
    }

    /// Makes `count` accesses of `place`, one after the other, to the memory of the controller at a tile.
    pub(crate) fn reach(&mut self, place: PlaceId, controller: u32, tile: TileId, span: HopCost, count: u32) {
        let now = self.now(place);
        let train = Train { packets: u64::from(count), flits: self.costs.line_flits };
        let (hops, delay) = self.route(train, tile, self.tile(place), now);
        self.spend(place, delay, TimeCategory::Copying);
        let alone = span.over(hops as u32) * u64::from(count);
        let served = self.memory_costs(place).controller_line * u64::from(count);
        let (start, length) = (self.now(place), JobTime { alone, served });
        self.wait_for_memory(place, controller, start, length, TimeCategory::Copying);
    }

    pub(crate) fn flit_hops(&self) -> u64 {
        self.network.flits().sum::<u64>() + self.flit_hops_fetched()
    }

    /// Returns the load of each link, in the order of the links' numbers.
    pub(crate) fn link_loads(&self) -> Vec<LinkLoad> {
        let topology = self.topology();
        let (latest, fetched) = (self.latest().0, self.flits_fetched_by_link());
        let load = |link| {
            let number = topology.link_id(link).0 as usize;
            let flits = self.network.flits_of(number) + fetched[number];
            let busy = self.network.pace().flit * flits;
            let utilisation = busy.0 as f64 / latest.max(1) as f64;
            topology.ends(link).map(|ends| LinkLoad { link, ends, flits, busy, utilisation })
        };
        topology.links().filter_map(load).collect()
    }
}
