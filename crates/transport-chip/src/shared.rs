//! Shared memory as accessed by places: the costs of accesses, and stale reads.
//!
//! `isles_chip::shared` decides the result of a read; this file has addresses, the controllers or message buffers
//! behind them, and time. Invariant: an access takes effect at its start, so accesses of one place are in order.

use crate::cores::Cores;
use crate::report::TimeCategory;
use isles_chip::cost::{Access, HopCost, Mode};
use isles_chip::gear::Gears;
use isles_chip::quantity::Picoseconds;
use isles_chip::shared::{AccessTraffic, CachePolicy, LINE_BYTES, SharedMemory, StaleRead};
use isles_chip::topology::{CoreId, TileId};
use isles_chip::{Caches, Chip, ControllerId};
use isles_transport::PlaceId;
use isles_transport::ordered::OrderedMap;
use std::ops::Range;
use std::sync::Arc;

/// Core cycles of CL1INVMB, which invalidates the tagged lines of the first-level cache.
const INVALIDATE_CYCLES: u64 = 1;

/// Costs of accesses for a core in one gear.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryCosts {
    word: Access<HopCost>,
    pub(crate) through: Access<HopCost>,
    cached: Access<HopCost>,
    second: Picoseconds,
    first: Picoseconds,
    flush_start: Picoseconds,
    flush_line: Picoseconds,
    flush_all: Picoseconds,
    /// Time for which a line occupies its controller.
    pub(crate) controller_line: Picoseconds,
}

impl MemoryCosts {
    /// Returns the costs from a timing table; `None` if the chip file lacks one of them.
    pub(crate) fn of(times: &isles_chip::cost::TimingTable<HopCost>) -> Option<MemoryCosts> {
        let near = |span: Option<HopCost>| span.map(|span| span.over(0));
        Some(MemoryCosts {
            word: *times.access(Mode::MemoryWord)?,
            through: *times.access(Mode::MemoryThrough)?,
            cached: *times.access(Mode::MemoryCached)?,
            first: near(times.first_cache)?,
            second: near(times.second_cache)?,
            flush_start: near(times.flush_start)?,
            flush_line: near(times.flush_line)?,
            flush_all: near(times.flush_all)?,
            controller_line: near(times.controller_line)?,
        })
    }
}

/// Description of the shared memory, from the chip file.
#[derive(Debug)]
pub(crate) struct SharedMemoryCosts {
    /// Costs for a core, by its gear.
    pub(crate) gears: Vec<MemoryCosts>,
    caches: Caches,
    /// Tiles of the controllers.
    pub(crate) controllers: Vec<TileId>,
    /// Number of each core's own controller.
    own: Vec<u32>,
}

impl SharedMemoryCosts {
    /// Returns the costs; `None` if the file lacks them, or its lines differ in size from those of the model.
    pub(crate) fn of(chip: &Chip, gears: &Gears) -> Option<SharedMemoryCosts> {
        let (caches, topology, preset) = (*chip.caches(), chip.topology(), chip.default_preset());
        let costs = gears.all().map(|(_, gear)| MemoryCosts::of(&preset.times_at(gear.rate)));
        let gears = costs.collect::<Option<_>>().filter(|_| caches.line.0 == LINE_BYTES as u64)?;
        let own = |core| chip.controller_of(topology.tile_of(CoreId(core))).0;
        Some(SharedMemoryCosts {
            gears,
            caches,
            controllers: (0..chip.controllers())
                .map(|number| chip.controller_tile(ControllerId(number)))
                .collect(),
            own: (0..topology.cores()).map(own).collect(),
        })
    }
}

/// Location of a region: the unit that serves its lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MemoryHome {
    /// The controller with this number.
    Controller(u32),
    /// Lines of the message buffer of this place's core.
    Buffer(PlaceId),
}

/// First number of a region's home that means the message buffer of a place.
const BUFFERS: u32 = 1 << 31;

impl MemoryHome {
    fn of_number(number: u32) -> MemoryHome {
        match number.checked_sub(BUFFERS) {
            Some(place) => MemoryHome::Buffer(PlaceId(place)),
            None => MemoryHome::Controller(number),
        }
    }

    fn number(self) -> u32 {
        match self {
            MemoryHome::Controller(number) => number,
            MemoryHome::Buffer(place) => BUFFERS | place.0,
        }
    }
}

/// A region of shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRegion {
    /// Address of the first byte.
    pub start: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Cache policy of the cores.
    pub kind: CachePolicy,
    home: MemoryHome,
}

impl MemoryRegion {
    /// Makes a region with the [`MemoryRegion::home`] of another, to send regions between places.
    pub fn new(start: u64, bytes: u64, kind: CachePolicy, home: u32) -> MemoryRegion {
        MemoryRegion { start, bytes, kind, home: MemoryHome::of_number(home) }
    }

    /// Returns the number of its controller, or of its message buffer.
    pub fn home(&self) -> u32 {
        self.home.number()
    }

    fn range(&self, offset: u64, len: usize) -> Range<u64> {
        let end = offset.checked_add(len as u64);
        let fits = end.is_some_and(|end| end <= self.bytes);
        assert!(fits, "{len} bytes from {offset} on are not in {} bytes of shared memory", self.bytes);
        self.start + offset..self.start + offset + len as u64
    }
}

/// Returns the core of `place` for the memory, which numbers cores by place, as its reports do; the position of a core
/// does not matter for its caches.
fn side(place: PlaceId) -> CoreId {
    CoreId(place.0)
}

/// State of the shared memory of a run.
pub(crate) struct SharedMemoryState {
    memory: SharedMemory,
    plan: Arc<SharedMemoryCosts>,
    /// Address of the first free byte.
    free: u64,
    /// Number of allocated lines of each message buffer, by place.
    buffers: OrderedMap<PlaceId, u32>,
}

/// Reads of shared memory that missed a write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stale {
    /// Number of stale reads.
    pub number: u64,
    /// The first stale reads.
    pub first: Vec<StaleRead>,
}

impl SharedMemoryState {
    pub(crate) fn new(plan: Arc<SharedMemoryCosts>) -> SharedMemoryState {
        SharedMemoryState {
            memory: SharedMemory::new(&plan.caches, plan.own.len() as u32),
            plan,
            free: 0,
            buffers: OrderedMap::new(),
        }
    }

    /// Allocates a zeroed region behind the controller of core number `core`, starting at a line.
    pub(crate) fn take(&mut self, core: usize, kind: CachePolicy, bytes: u64) -> MemoryRegion {
        let home = MemoryHome::Controller(self.plan.own[core]);
        MemoryRegion { start: self.take_lines(bytes), bytes, kind, home }
    }

    /// Allocates addresses for `bytes` bytes, starting at a line.
    fn take_lines(&mut self, bytes: u64) -> u64 {
        let start = self.free;
        self.free += bytes.max(1).next_multiple_of(LINE_BYTES as u64);
        start
    }

    /// Allocates a zeroed region in the message buffer of the core of `place`, which has `lines_max` lines for regions;
    /// `None` if there is no room.
    pub(crate) fn take_buffer(&mut self, place: PlaceId, lines_max: u32, bytes: u64) -> Option<MemoryRegion> {
        let needed = u32::try_from(bytes.max(1).div_ceil(LINE_BYTES as u64)).ok()?;
        let taken = self.buffers.get(place).copied().unwrap_or_default();
        let taken = taken.checked_add(needed).filter(|taken| *taken <= lines_max)?;
        self.buffers.insert(place, taken);
        let home = MemoryHome::Buffer(place);
        Some(MemoryRegion { start: self.take_lines(bytes), bytes, kind: CachePolicy::Through, home })
    }

    /// Frees the lines of a region in a message buffer. Other memory stays allocated.
    pub(crate) fn give_back(&mut self, region: &MemoryRegion) {
        if let MemoryHome::Buffer(place) = region.home {
            let lines = region.bytes.max(1).div_ceil(LINE_BYTES as u64) as u32;
            let taken = self.buffers.get(place).copied().unwrap_or_default();
            self.buffers.insert(place, taken.saturating_sub(lines));
        }
    }

    /// Returns `true` if the region is in allocated memory, in the message buffer of `place` or behind the controller
    /// of its core.
    pub(crate) fn is_taken_by(&self, place: PlaceId, core: usize, region: &MemoryRegion) -> bool {
        let is_at_place = match region.home {
            MemoryHome::Controller(controller) => controller == self.plan.own[core],
            MemoryHome::Buffer(owner) => owner == place && region.kind == CachePolicy::Through,
        };
        is_at_place && region.start.checked_add(region.bytes).is_some_and(|end| end <= self.free)
    }

    pub(crate) fn stale(&self) -> Stale {
        Stale { number: self.memory.stale_count(), first: self.memory.stale_reads().to_vec() }
    }

    pub(crate) fn read(
        &mut self,
        cores: &mut Cores,
        place: PlaceId,
        region: &MemoryRegion,
        offset: u64,
        into: &mut [u8],
    ) {
        let range = region.range(offset, into.len());
        self.memory.set_present(cores.present());
        let (core, now) = (side(place), cores.now(place));
        let moved = self.memory.read(core, now, region.kind, range.start, into);
        self.charge(cores, place, region, &moved);
    }

    pub(crate) fn write(
        &mut self,
        cores: &mut Cores,
        place: PlaceId,
        region: &MemoryRegion,
        offset: u64,
        from: &[u8],
    ) {
        let range = region.range(offset, from.len());
        self.memory.set_present(cores.present());
        let (core, now) = (side(place), cores.now(place));
        let moved = self.memory.write(core, now, region.kind, range.start, from);
        self.charge(cores, place, region, &moved);
    }

    pub(crate) fn invalidate(&mut self, cores: &mut Cores, place: PlaceId) {
        self.memory.invalidate(side(place));
        cores.compute(place, INVALIDATE_CYCLES, TimeCategory::Copying);
    }

    pub(crate) fn drain(&mut self, cores: &mut Cores, place: PlaceId, region: &MemoryRegion) {
        let moved = self.memory.drain(side(place), cores.now(place));
        self.charge(cores, place, region, &moved);
    }

    /// Flushes regions in one operation. Lines of the second-level cache can be flushed only by reading others in their
    /// place, so all lines of the regions cost, cached or not, but at most the whole cache.
    pub(crate) fn flush(&mut self, cores: &mut Cores, place: PlaceId, regions: &[MemoryRegion]) {
        let mut lines = 0;
        for region in regions {
            let range = region.range(0, region.bytes as usize);
            let moved = self.memory.flush(side(place), cores.now(place), range);
            self.charge(cores, place, region, &moved);
            let is_cached = region.kind == CachePolicy::Cached;
            lines += if is_cached { region.bytes.div_ceil(LINE_BYTES as u64) } else { 0 };
        }
        if lines > 0 {
            let costs = *cores.memory_costs(place);
            let time = costs.flush_start.0.saturating_add(costs.flush_line.0.saturating_mul(lines));
            cores.spend(place, Picoseconds(time.min(costs.flush_all.0)), TimeCategory::Copying);
        }
    }

    /// Charges `place` for an access, whose lines are transferred one after the other.
    fn charge(&self, cores: &mut Cores, place: PlaceId, region: &MemoryRegion, moved: &AccessTraffic) {
        let costs = *cores.memory_costs(place);
        let AccessTraffic { first, second, fetched, written_back, drained, words_read, words_written } =
            *moved;
        let cached = costs.first * u64::from(first) + costs.second * u64::from(second);
        if cached > Picoseconds::ZERO {
            cores.spend(place, cached, TimeCategory::Copying);
        }
        let controller = match region.home {
            MemoryHome::Controller(controller) => controller,
            MemoryHome::Buffer(owner) => {
                // Only write-through lines are in buffers.
                if fetched > 0 {
                    cores.read_lines(place, owner, fetched, TimeCategory::Copying);
                }
                if drained > 0 {
                    cores.write_lines(place, owner, drained);
                }
                return;
            }
        };
        let line = if region.kind == CachePolicy::Through { costs.through } else { costs.cached };
        // A word occupies the controller for as long as a line, because the access itself takes the time.
        let trips = [
            (line.read, fetched),
            (costs.cached.gap, written_back),
            (costs.through.gap, drained),
            (costs.word.read, words_read),
            (costs.word.gap, words_written),
        ];
        let tile = self.plan.controllers[controller as usize];
        for (span, count) in trips.into_iter().filter(|(_, count)| *count > 0) {
            cores.reach(place, controller, tile, span, count);
        }
    }
}
