//! The parts of a chip: caches, buffers and controllers, links, clocks and domains, interrupts, times of operations.
//!
//! Their file format is in `file`, contention in the kernel. Invariants: every tile has a controller, and every
//! controller is at a tile; blocks of tiles divide the chip without a remainder, so every tile is in one domain of each
//! kind; only allowed dividers yield rates; a packet fills whole flits; times are integers and saturate.

use super::Chip;
use crate::cost::{Access, Clocks, Cost, HopCost, Mode, TimingTable};
use crate::kernel::LinkTiming;
use crate::quantity::{Bytes, Picoseconds, Rate};
use crate::topology::{Coordinates, CoreId, TileId, Topology};
use std::fmt;
use std::ops::RangeInclusive;

/// Clock source of the cores, and its allowed divisors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dividers {
    /// Undivided rate.
    pub source: Rate,
    /// Allowed divisors.
    pub allowed: RangeInclusive<u32>,
}

impl Dividers {
    /// Returns the rate with this divider, if it is allowed.
    pub fn rate(&self, divider: u32) -> Option<Rate> {
        if self.allowed.contains(&divider) { self.source.divided_by(divider) } else { None }
    }

    /// Returns the divider with this rate, if there is one.
    pub fn divider(&self, rate: Rate) -> Option<u32> {
        let cycles = |hertz: u64, divider: u32| u128::from(hertz) * u128::from(divider);
        let of = cycles(self.source.hertz(), rate.divider());
        let by = cycles(rate.hertz(), self.source.divider());
        let divider = u32::try_from(of / by).ok().filter(|_| of.is_multiple_of(by))?;
        self.allowed.contains(&divider).then_some(divider)
    }

    /// Returns all rates, fastest first.
    pub fn rates(&self) -> impl Iterator<Item = Rate> {
        self.allowed.clone().filter_map(|divider| self.rate(divider))
    }
}

/// Tiles that share a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrequencyDomainId(pub u32);

/// Tiles that share a supply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VoltageDomainId(pub u32);

/// Sizes of the blocks of tiles that share a clock or a supply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Domains {
    /// The size of a block with one clock.
    pub frequency: Coordinates,
    /// The size of a block with one supply.
    pub voltage: Coordinates,
}

impl Chip {
    /// Returns the blocks of tiles that share clocks and supplies.
    pub const fn domains(&self) -> &Domains {
        &self.domains
    }

    /// Returns the number of frequency domains.
    pub fn frequency_domains(&self) -> u32 {
        blocks(&self.topology, self.domains.frequency)
    }

    /// Returns the number of voltage domains.
    pub fn voltage_domains(&self) -> u32 {
        blocks(&self.topology, self.domains.voltage)
    }

    /// Returns the frequency domain of a tile.
    pub fn frequency_domain(&self, tile: TileId) -> FrequencyDomainId {
        FrequencyDomainId(block(&self.topology, self.domains.frequency, tile))
    }

    /// Returns the voltage domain of a tile; on the SCC, `x/2 + 3·(y/2)` as RCCE counts.
    pub fn voltage_domain(&self, tile: TileId) -> VoltageDomainId {
        VoltageDomainId(block(&self.topology, self.domains.voltage, tile))
    }
}

/// Returns the number of blocks of `size` in the chip.
fn blocks(topology: &Topology, size: Coordinates) -> u32 {
    [0, 1, 2].map(|axis| topology.extent()[axis] / size[axis]).into_iter().product()
}

/// Returns the block of `size` that contains a tile.
fn block(topology: &Topology, size: Coordinates, tile: TileId) -> u32 {
    let (at, extent) = (topology.coordinates(tile), topology.extent());
    let [x, y, z] = [0, 1, 2].map(|axis| at[axis] / size[axis]);
    (z * (extent[1] / size[1]) + y) * (extent[0] / size[0]) + x
}

/// The interrupt controller, whose requests all pass one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupts {
    /// Tile of the port.
    pub tile: TileId,
    /// Number of targets that the port serves at once without one waiting for another.
    pub targets_free: u32,
    /// Maximum number of targets of one request.
    pub targets_max: u32,
}

impl Interrupts {
    /// Returns the delay of an interrupt that passes the port after `passing`, where each target takes `each`. A few
    /// targets have passed before the first interrupt arrives.
    pub fn late(&self, passing: Picoseconds, each: Picoseconds) -> Picoseconds {
        Picoseconds(passing.0.saturating_sub(each.0.saturating_mul(u64::from(self.targets_free))))
    }
}

/// The file server: a disk, and memory that caches everything read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileServer {
    /// Time until the first byte of a file comes from the disk.
    pub cold_latency: Cost,
    /// Time of the server for each KiB after that, which all cores share.
    pub cold_kib: Cost,
    /// Time until the first byte of a file in the server's memory.
    pub warm_latency: Cost,
    /// Time of the server for each KiB of such a file.
    pub warm_kib: Cost,
    /// Time of the calling core for each KiB, without contention: blocks of a network file system arrive one after the
    /// other. Zero if the chip file has none.
    pub core_kib: Cost,
}

impl TimingTable<HopCost> {
    /// Returns the time from raising an interrupt of `targets` targets to its arrival at the last one.
    pub fn interrupt(&self, targets: u32, port: &Interrupts) -> Option<Picoseconds> {
        let each = self.interrupt_more.unwrap_or_default().over(0);
        let passing = Picoseconds(each.0.saturating_mul(u64::from(targets)));
        self.interrupt.map(|alone| alone.over(0).saturating_add(port.late(passing, each)))
    }
}

/// Properties of a directed link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkTraits {
    /// The unit of transfer.
    pub flit: Bytes,
    /// Time for which a flit occupies a link.
    pub flit_time: Cost,
    /// Time of a packet's head from one router to the next.
    pub head: Cost,
    /// Maximum payload of a packet.
    pub payload_max: Bytes,
    /// Bytes of a packet besides its payload.
    pub overhead: Bytes,
    /// Time after a packet during which a link takes no other.
    pub recovery: Cost,
}

impl LinkTraits {
    /// Returns the flits of a packet that carries `bytes` bytes.
    pub fn flits(&self, bytes: u64) -> u64 {
        (bytes + self.overhead.0).div_ceil(self.flit.0)
    }

    /// Returns the timing of packets at these clocks.
    pub fn pace(&self, clocks: &Clocks) -> LinkTiming {
        let length = |cost: &Cost| cost.at(clocks).over(0);
        LinkTiming {
            hop: length(&self.head),
            flit: length(&self.flit_time),
            recovery: length(&self.recovery),
        }
    }
}

/// A memory controller, counted from 0 in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ControllerId(pub u32);

/// Line size and caches of a core; `None` for a missing cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caches {
    /// The unit of transfer between memories.
    pub line: Bytes,
    /// The first-level data cache.
    pub first: Option<Bytes>,
    /// The first-level instruction cache.
    pub instructions: Option<Bytes>,
    /// The second-level cache.
    pub second: Option<Bytes>,
}

/// On-tile memory that all cores may access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageBuffer {
    /// Size for each core.
    pub size: Bytes,
    /// Test-and-set registers of each core.
    pub registers: u32,
    /// Number of cores that can read from the buffer of one tile at once without slowing each other down; `None` for
    /// any number.
    pub readers_free: Option<u32>,
}

impl MessageBuffer {
    /// Returns the time for which an access to one line occupies the buffer of a tile, if `read` is the time of a local
    /// read.
    pub fn port_time(&self, read: Picoseconds) -> Picoseconds {
        self.readers_free.map_or(Picoseconds::ZERO, |readers| Picoseconds(read.0 / u64::from(readers)))
    }
}

/// Positions of memory controllers, and the controller that each tile uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Controllers {
    /// Each tile has its own.
    EachTile,
    /// Controllers at these tiles; the second list has the controller of each tile.
    At(Vec<TileId>, Vec<ControllerId>),
}

/// The memory behind the controllers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    pub(crate) controllers: Controllers,
    /// Number of cores that can read from one controller at once without slowing each other down.
    pub readers_free: u32,
    /// Private memory of each core, if the chip file has it.
    pub per_core: Option<Bytes>,
}

impl Chip {
    /// Returns `true` if each tile has a memory of its own, behind a controller of its own.
    pub(crate) fn has_memory_at_each_tile(&self) -> bool {
        self.memory.controllers == Controllers::EachTile
    }

    /// Returns the number of memory controllers.
    pub fn controllers(&self) -> u32 {
        match &self.memory.controllers {
            Controllers::EachTile => self.topology.tiles(),
            Controllers::At(tiles, _) => tiles.len() as u32,
        }
    }

    /// Returns the tile of a controller.
    pub fn controller_tile(&self, controller: ControllerId) -> TileId {
        match &self.memory.controllers {
            Controllers::EachTile => TileId(controller.0),
            Controllers::At(tiles, _) => tiles[controller.0 as usize],
        }
    }

    /// Returns the controller of the private memory of a tile's cores.
    pub fn controller_of(&self, tile: TileId) -> ControllerId {
        match &self.memory.controllers {
            Controllers::EachTile => ControllerId(tile.0),
            Controllers::At(_, of_tile) => of_tile[tile.0 as usize],
        }
    }

    /// Returns the hops from a core to the controller of its private memory.
    pub fn hops_to_memory(&self, core: CoreId) -> u32 {
        let tile = self.topology.tile_of(core);
        self.topology.hops(tile, self.controller_tile(self.controller_of(tile)))
    }
}

/// A setting of the clocks, with the times measured at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preset {
    pub(crate) name: String,
    pub(crate) clocks: Clocks,
    pub(crate) costs: TimingTable<Cost>,
}

impl Preset {
    /// Returns the name in the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the clocks.
    pub const fn clocks(&self) -> &Clocks {
        &self.clocks
    }

    /// Returns the costs as the file has them.
    pub const fn costs(&self) -> &TimingTable<Cost> {
        &self.costs
    }

    /// Returns the times at this preset's clocks.
    pub fn times(&self) -> TimingTable<HopCost> {
        self.costs.at(&self.clocks)
    }

    /// Returns the times with another rate of the acting core; mesh and memory are unchanged.
    pub fn times_at(&self, core: Rate) -> TimingTable<HopCost> {
        self.costs.at(&self.clocks.with_core(core))
    }
}

/// A line access that a preset makes faster than the links allow. Its cost contradicts the link parameters of the file,
/// and the model uses the cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooFastLine {
    preset: String,
    mode: Mode,
    hops: u32,
    taken: Picoseconds,
    least: Picoseconds,
}

impl TooFastLine {
    /// Returns the first mode, with the smallest number of hops, for which a read is faster than its data can travel.
    pub(super) fn of(chip: &Chip, preset: &Preset) -> Option<TooFastLine> {
        let (links, times) = (chip.links(), preset.times());
        let pace = links.pace(preset.clocks());
        let flits = links.flits(chip.caches().line.0);
        let topology = chip.topology();
        let to_memory = (0..topology.cores()).map(|core| chip.hops_to_memory(CoreId(core))).max();
        let ways = [
            (Mode::BufferLine, topology.diameter()),
            (Mode::MemoryThrough, topology.diameter()),
            (Mode::MemoryCached, to_memory.unwrap_or(0)),
        ];
        ways.into_iter().find_map(|(mode, farthest)| {
            (1..=farthest).find_map(|hops| {
                let least = u64::from(hops).saturating_mul(pace.hop.0);
                let least = Picoseconds(least.saturating_add(flits.saturating_mul(pace.flit.0)));
                let taken = times.read(mode, hops).filter(|taken| *taken < least)?;
                Some(TooFastLine { preset: preset.name.clone(), mode, hops, taken, least })
            })
        })
    }
}

impl fmt::Display for TooFastLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TooFastLine { preset, mode, hops, taken, least } = self;
        let [taken, least] = [taken, least].map(|time| time.0 as f64 / 1e3);
        let (mode, several) = (mode.name(), if *hops == 1 { "hop" } else { "hops" });
        write!(
            f,
            "{mode}.read of {preset} takes {taken} ns over {hops} {several}, but its flits alone take \
             {least} ns by links.head and links.flit_time; without contention, the first holds"
        )
    }
}

impl TimingTable<HopCost> {
    /// Returns the time of a read over `hops` hops, if there is such memory.
    pub fn read(&self, mode: Mode, hops: u32) -> Option<Picoseconds> {
        self.access(mode).map(|access| access.read.over(hops))
    }

    /// Returns the time of a write over `hops` hops until the next may be issued, if there is such memory.
    pub fn write(&self, mode: Mode, hops: u32) -> Option<Picoseconds> {
        self.access(mode).map(|access: &Access<HopCost>| access.gap.over(hops))
    }

    /// Returns the time of a core for issuing a write, if there is such memory.
    pub fn issue(&self, mode: Mode) -> Option<Picoseconds> {
        self.access(mode).map(|access| access.issue.over(0))
    }

    /// Returns the time of a software flush of `lines` lines of the second-level cache: line by line, or of the whole
    /// cache if that is shorter.
    pub fn flush(&self, lines: u32) -> Option<Picoseconds> {
        let each = self.flush_line?.over(0).0.saturating_mul(u64::from(lines));
        let by_line = self.flush_start?.over(0).saturating_add(Picoseconds(each));
        Some(self.flush_all.map_or(by_line, |all| by_line.min(all.over(0))))
    }
}
