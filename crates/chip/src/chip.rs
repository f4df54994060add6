//! A chip: what its file says, checked.
//!
//! A [`Chip`] can only come out of a file, and only out of one without a fault: holding one proves that every tile
//! has a controller, every rate that a core may run at has a voltage in every table, and every name that is referred
//! to has a meaning. It never changes.

use crate::cost::{Access, Clocks, Cost, Costs, Mode, Operations, Span};
use crate::energy::{MeshPower, PowerModel, VoltageTable};
use crate::file::Constant;
use crate::kernel::Pace;
use crate::quantity::{Bytes, Picoseconds, Rate};
use crate::topology::{Coordinates, CoreId, TileId, Topology};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// A memory controller, counted from 0 in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ControllerId(pub u32);

/// Tiles that share a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrequencyDomainId(pub u32);

/// Tiles that share a supply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VoltageDomainId(pub u32);

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

/// What a directed link carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkTraits {
    /// The unit of transfer.
    pub flit: Bytes,
    /// How long a link is busy with one flit.
    pub flit_time: Cost,
    /// How long the head of a packet takes from one router to the next.
    pub head: Cost,
    /// The most that a packet carries.
    pub payload_max: Bytes,
    /// What a packet carries besides.
    pub overhead: Bytes,
    /// How long a link takes no packet after it has passed one.
    pub recovery: Cost,
}

impl LinkTraits {
    /// Flits of a packet that carries so many bytes.
    pub fn flits(&self, bytes: u64) -> u64 {
        (bytes + self.overhead.0).div_ceil(self.flit.0)
    }

    /// How fast packets move at these clocks.
    pub fn pace(&self, clocks: &Clocks) -> Pace {
        let length = |cost: &Cost| cost.at(clocks).over(0);
        Pace { hop: length(&self.head), flit: length(&self.flit_time), recovery: length(&self.recovery) }
    }
}

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

/// The clock source of the cores, and what it can be divided by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dividers {
    /// What is divided.
    pub source: Rate,
    /// By what.
    pub allowed: RangeInclusive<u32>,
}

impl Dividers {
    /// The rate with this divider, if it is allowed.
    pub fn rate(&self, divider: u32) -> Option<Rate> {
        if self.allowed.contains(&divider) { self.source.divided_by(divider) } else { None }
    }

    /// The divider that gives this rate, if one does.
    pub fn divider(&self, rate: Rate) -> Option<u32> {
        let cycles = |hertz: u64, divider: u32| u128::from(hertz) * u128::from(divider);
        let of = cycles(self.source.hertz(), rate.divider());
        let by = cycles(rate.hertz(), self.source.divider());
        let divider = u32::try_from(of / by).ok().filter(|_| of.is_multiple_of(by))?;
        self.allowed.contains(&divider).then_some(divider)
    }

    /// All rates, fastest first.
    pub fn rates(&self) -> impl Iterator<Item = Rate> {
        self.allowed.clone().filter_map(|divider| self.rate(divider))
    }
}

/// Which tiles share a clock, and which a supply: equal blocks of tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Domains {
    /// The size of a block with one clock.
    pub frequency: Coordinates,
    /// The size of a block with one supply.
    pub voltage: Coordinates,
}

/// A setting of the clocks, with what was measured at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preset {
    pub(crate) name: String,
    pub(crate) clocks: Clocks,
    pub(crate) costs: Costs<Cost>,
}

impl Preset {
    /// The name in the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The clocks.
    pub const fn clocks(&self) -> &Clocks {
        &self.clocks
    }

    /// The costs as the file has them.
    pub const fn costs(&self) -> &Costs<Cost> {
        &self.costs
    }

    /// The times at this preset's clocks.
    pub fn times(&self) -> Costs<Span> {
        self.costs.at(&self.clocks)
    }

    /// The times with the acting core at another rate; mesh and memory stay.
    pub fn times_at(&self, core: Rate) -> Costs<Span> {
        self.costs.at(&self.clocks.with_core(core))
    }
}

/// FNV-1a with 128 bits, from `start` on.
pub(crate) fn digest(start: u128, text: &str) -> u128 {
    let prime = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    text.bytes().fold(start, |hash: u128, byte| (hash ^ u128::from(byte)).wrapping_mul(prime))
}

/// A chip, out of its file.
#[derive(Clone, Debug, PartialEq)]
pub struct Chip {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) core_kind: String,
    pub(crate) topology: Topology,
    pub(crate) caches: Caches,
    pub(crate) operations: Operations,
    pub(crate) buffer: Option<MessageBuffer>,
    pub(crate) memory: Memory,
    pub(crate) links: LinkTraits,
    pub(crate) interrupts: Option<Interrupts>,
    pub(crate) dividers: Option<Dividers>,
    pub(crate) domains: Domains,
    pub(crate) presets: Vec<Preset>,
    pub(crate) default_preset: usize,
    /// The default of its file.
    pub(crate) own_preset: usize,
    pub(crate) voltages: Vec<VoltageTable>,
    /// The table by which all power models reckon, if that is not each one's own.
    pub(crate) chosen_voltages: Option<String>,
    pub(crate) power: Vec<PowerModel>,
    pub(crate) mesh_power: Option<MeshPower>,
    pub(crate) sources: BTreeMap<String, String>,
    pub(crate) constants: Vec<Constant>,
    /// Of the text of its file, and of what was chosen of it.
    pub(crate) fingerprint: u128,
}

impl Chip {
    /// A number made of the text of its file and of what was chosen of it: what differs has another one, for all
    /// practical purposes.
    pub fn fingerprint(&self) -> u128 {
        self.fingerprint
    }

    /// The same chip, with this preset as [`Chip::default_preset`]; none if its file has none of that name.
    pub fn with_preset(mut self, name: &str) -> Option<Chip> {
        let chosen = self.presets.iter().position(|preset| preset.name == name)?;
        if chosen != self.default_preset {
            self.default_preset = chosen;
            self.fingerprint = digest(self.fingerprint, name);
        }
        Some(self)
    }

    /// The same chip, with this power model as the first, by which energy and caps are reckoned; none if its file has
    /// none of that name.
    pub fn with_power_model(mut self, name: &str) -> Option<Chip> {
        let chosen = self.power.iter().position(|model| model.name == name)?;
        if chosen > 0 {
            self.power[..=chosen].rotate_right(1);
            self.fingerprint = digest(self.fingerprint, name);
        }
        Some(self)
    }

    /// The same chip, whose power models all reckon with this voltage table instead of the one that each was fitted
    /// with; none if its file has none of that name.
    pub fn with_voltages(mut self, name: &str) -> Option<Chip> {
        self.voltage_table(name)?;
        if self.power.iter().any(|model| model.voltages != name) {
            self.power.iter_mut().for_each(|model| name.clone_into(&mut model.voltages));
            self.chosen_voltages = Some(name.to_owned());
            self.fingerprint = digest(self.fingerprint, name);
        }
        Some(self)
    }

    /// The voltage table that was chosen for all power models, if that changed one of them.
    pub fn chosen_voltages(&self) -> Option<&str> {
        self.chosen_voltages.as_deref()
    }

    /// The name by which it was asked for.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is, in a line.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// What kind of core it has.
    pub fn core_kind(&self) -> &str {
        &self.core_kind
    }

    /// Where its cores are.
    pub const fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Lines and caches.
    pub const fn caches(&self) -> &Caches {
        &self.caches
    }

    /// What operations of a core take by class.
    pub const fn operations(&self) -> &Operations {
        &self.operations
    }

    /// The message buffer of each core, if it has one.
    pub const fn buffer(&self) -> Option<&MessageBuffer> {
        self.buffer.as_ref()
    }

    /// The memory behind the controllers.
    pub const fn memory(&self) -> &Memory {
        &self.memory
    }

    /// What links carry.
    pub const fn links(&self) -> &LinkTraits {
        &self.links
    }

    /// The interrupt controller, if it has one.
    pub const fn interrupts(&self) -> Option<&Interrupts> {
        self.interrupts.as_ref()
    }

    /// How the clock of the cores may be divided, if it may.
    pub const fn dividers(&self) -> Option<&Dividers> {
        self.dividers.as_ref()
    }

    /// The settings of the clocks, in the order of the file; at least one.
    pub fn presets(&self) -> &[Preset] {
        &self.presets
    }

    /// A setting of the clocks by its name.
    pub fn preset(&self, name: &str) -> Option<&Preset> {
        self.presets.iter().find(|preset| preset.name == name)
    }

    /// The setting that a run has without a word.
    pub fn default_preset(&self) -> &Preset {
        &self.presets[self.default_preset]
    }

    /// The setting that its file has as the default, whatever was chosen: power models are taken as measured with the
    /// mesh at its clock.
    pub fn own_preset(&self) -> &Preset {
        &self.presets[self.own_preset]
    }

    /// The voltage tables, in the order of the file.
    pub fn voltages(&self) -> &[VoltageTable] {
        &self.voltages
    }

    /// A voltage table by its name.
    pub fn voltage_table(&self, name: &str) -> Option<&VoltageTable> {
        self.voltages.iter().find(|table| table.name == name)
    }

    /// The power models, in the order of the file; none if nobody has published one.
    pub fn power_models(&self) -> &[PowerModel] {
        &self.power
    }

    /// A power model by its name.
    pub fn power_model(&self, name: &str) -> Option<&PowerModel> {
        self.power.iter().find(|model| model.name == name)
    }

    /// What the routers draw, if somebody has said so.
    pub const fn mesh_power(&self) -> Option<&MeshPower> {
        self.mesh_power.as_ref()
    }

    /// Every constant as it was written, with source and error, in the order of the file.
    pub fn constants(&self) -> &[Constant] {
        &self.constants
    }

    /// What the short name of a source stands for.
    pub fn source(&self, name: &str) -> Option<&str> {
        self.sources.get(name).map(String::as_str)
    }

    /// The sources: short name and what it stands for.
    pub fn sources(&self) -> impl Iterator<Item = (&str, &str)> {
        self.sources.iter().map(|(name, text)| (name.as_str(), text.as_str()))
    }

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

impl Costs<Span> {
    /// How long a read takes over so many hops, if there is such memory.
    pub fn read(&self, mode: Mode, hops: u32) -> Option<Picoseconds> {
        self.access(mode).map(|access| access.read.over(hops))
    }

    /// How long a write takes over so many hops until the next may be issued.
    pub fn write(&self, mode: Mode, hops: u32) -> Option<Picoseconds> {
        self.access(mode).map(|access: &Access<Span>| access.gap.over(hops))
    }

    /// How long a core is busy with beginning a write.
    pub fn issue(&self, mode: Mode) -> Option<Picoseconds> {
        self.access(mode).map(|access| access.issue.over(0))
    }

    /// From the raising of an interrupt of so many targets at once to the arrival at the last.
    pub fn interrupt(&self, targets: u32, port: &Interrupts) -> Option<Picoseconds> {
        let waiting = u64::from(targets.saturating_sub(port.targets_free));
        let more = self.interrupt_more.map_or(0, |more| more.over(0).0.saturating_mul(waiting));
        self.interrupt.map(|first| first.over(0).saturating_add(Picoseconds(more)))
    }

    /// How long the software flush of so many lines of the second cache takes: line by line, or all at once if that
    /// is shorter.
    pub fn flush(&self, lines: u32) -> Option<Picoseconds> {
        let each = self.flush_line?.over(0).0.saturating_mul(u64::from(lines));
        let by_line = self.flush_start?.over(0).saturating_add(Picoseconds(each));
        Some(self.flush_all.map_or(by_line, |all| by_line.min(all.over(0))))
    }
}
