//! Upper bounds of single accesses: the time without contention, plus the maximum delay by each other core at links, at
//! the port of a buffer and at a memory controller.

use super::errors::{ErrorBounds, Platform};
use super::terms::{Term, Terms};
use super::{Interference, NoBound};
use crate::Chip;
use crate::cost::{Access, HopCost, Mode, TimingTable};
use crate::quantity::{Bytes, Picoseconds, Rate};
use crate::topology::{CoreId, TileId};

/// The order in which links of the model serve packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkOrder {
    /// In the order of arrival, as in [`kernel::exact`](crate::kernel::exact): each interfering packet costs the time
    /// for which it holds a link.
    Arrival,
    /// Each packet reserves its route when it is issued, in the first gaps that are long enough, as in
    /// [`kernel::Network`](crate::kernel::Network). Before each interfering packet there may be a gap that is just too
    /// short, so it costs its own time on a link plus that of the waiting packet.
    Reserved,
}

/// Location of the private lines of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DataIn {
    /// In the first-level cache of their core.
    FirstCache,
    /// In the second-level cache; some may be in the first.
    SecondCache,
    /// In memory; some may be in caches, and dirty lines may have to be written back.
    Memory,
}

impl DataIn {
    /// Bytes of a page. It takes at most one way of each set of the first-level cache; the others are left to message
    /// buffers.
    const PAGE_BYTES: u64 = 4 << 10;
    /// Ways of both caches in the model.
    const WAYS: u64 = 4;

    /// Returns the level in which `bytes` bytes are guaranteed to stay once they were used.
    pub fn of_bytes(chip: &Chip, bytes: usize) -> DataIn {
        let caches = chip.caches();
        let holds =
            |cache: Option<Bytes>| cache.is_some_and(|cache| cache.0 >= Self::WAYS * Self::PAGE_BYTES);
        match bytes as u64 {
            bytes if holds(caches.first) && bytes <= Self::PAGE_BYTES => DataIn::FirstCache,
            // For any location of the pages, each has a way of its own.
            bytes if holds(caches.second) && bytes <= Self::WAYS * Self::PAGE_BYTES => DataIn::SecondCache,
            _ => DataIn::Memory,
        }
    }
}

/// Upper bounds of accesses on one chip, at one preset, under given interference.
#[derive(Clone, Debug)]
pub struct AccessBounds {
    interference: Interference,
    order: LinkOrder,
    data: DataIn,
    core_rate: Rate,
    line: Access<HopCost>,
    cached: Access<HopCost>,
    word: Access<HopCost>,
    second: Picoseconds,
    second_store: Picoseconds,
    controller_line: Picoseconds,
    port: Picoseconds,
    /// Time for which a packet with a line holds a link.
    hold: Picoseconds,
    words: u64,
}

impl AccessBounds {
    /// Returns the bounds on `platform`.
    ///
    /// # Errors
    /// [`NoBound::Missing`]: the chip file lacks costs of accesses. [`NoBound::ShortAccess`]: a core may have a second
    /// packet in flight before the first has passed.
    pub fn new(
        platform: Platform<'_>,
        interference: Interference,
        order: LinkOrder,
        data: DataIn,
    ) -> Result<AccessBounds, NoBound> {
        let Platform { chip, preset, constants } = platform;
        let times: TimingTable<HopCost> = preset.times();
        let ends = ErrorBounds::new(chip, preset, constants);
        let access = |mode: Mode| {
            let access = times.access(mode).ok_or(NoBound::Missing(mode.name()))?;
            let [gap, read] = [("gap", access.gap), ("read", access.read)]
                .map(|(key, cost)| ends.of_preset(&format!("{}.{key}", mode.name()), cost));
            Ok(Access { issue: access.issue, gap, read })
        };
        let single = |key: &'static str, cost: Option<HopCost>| {
            cost.map(|cost| ends.of_preset(key, cost).over(0)).ok_or(NoBound::Missing(key))
        };
        let buffer = chip.buffer().ok_or(NoBound::Missing("buffer"))?;
        let second = single("second_cache", times.second_cache)?;
        let line = access(Mode::BufferLine)?;
        let (pace, bytes) = (chip.links().pace(preset.clocks()), chip.caches().line.0);
        let flits = chip.links().flits(bytes);
        let [flit, recovery] = [("links.flit_time", pace.flit), ("links.recovery", pace.recovery)]
            .map(|(key, time)| ends.of(key, HopCost::fixed(time)).over(0));
        let port =
            ends.of("buffer.readers_free", HopCost::fixed(buffer.port_time(line.read.over(0)))).over(0);
        let bounds = AccessBounds {
            interference,
            order,
            data,
            core_rate: preset.clocks().core,
            cached: access(Mode::MemoryCached)?,
            word: access(Mode::MemoryWord)?,
            second,
            second_store: single("second_cache_store", times.second_cache_store.or(times.second_cache))?,
            controller_line: single("controller_line", times.controller_line)?,
            port,
            hold: Picoseconds(flit.0 * flits + recovery.0),
            words: bytes / 4,
            line,
        };
        let passed = |hops: u32| pace.alone(hops as usize, flits) + pace.recovery;
        let shortest = [bounds.line.read, bounds.line.gap, bounds.cached.read, bounds.word.gap];
        let is_short = |hops: u32| shortest.iter().any(|cost| cost.over(hops) < passed(hops));
        match (0..=chip.topology().diameter()).any(is_short) {
            true => Err(NoBound::ShortAccess),
            false => Ok(bounds),
        }
    }

    /// Returns the bound of `cycles` of instructions.
    pub fn instructions(&self, cycles: u64) -> Terms {
        Terms::of(Term::Instructions, self.cycles(cycles))
    }

    /// Returns the bound of `cycles` of the program's own work.
    pub fn work(&self, cycles: u64) -> Terms {
        Terms::of(Term::Work, self.cycles(cycles))
    }

    fn cycles(&self, cycles: u64) -> Picoseconds {
        let scaled = u128::from(cycles) * 1_000_000_000_000 * u128::from(self.core_rate.divider());
        Picoseconds(u64::try_from(scaled.div_ceil(u128::from(self.core_rate.hertz()))).unwrap_or(u64::MAX))
    }

    /// Returns the delay of `others` packets or accesses to one that takes `own` itself.
    fn interference_delay(&self, others: u64, own: Picoseconds) -> Picoseconds {
        match self.order {
            LinkOrder::Arrival => own * others,
            LinkOrder::Reserved => own * (2 * others),
        }
    }

    fn on_links(&self, core: CoreId, from: TileId, to: TileId) -> Terms {
        Terms::of(
            Term::Links,
            self.interference_delay(self.interference.others_on_route(core, from, to), self.hold),
        )
    }

    fn at_port(&self, core: CoreId, tile: TileId) -> Terms {
        Terms::of(Term::Ports, self.interference_delay(self.interference.at_port(core, tile), self.port))
    }

    /// Returns the bound of a read by `core` of a line of the message buffer of `of`.
    pub fn read(&self, core: CoreId, of: CoreId) -> Terms {
        let (here, there) = (self.interference.tile(core), self.interference.tile(of));
        let alone = Terms::of(Term::Accesses, self.line.read.over(self.interference.hops(there, here)));
        alone + self.on_links(core, there, here) + self.at_port(core, there) + self.evicted(core)
    }

    /// Returns the bound of a write by `core` of a line of the message buffer of `of`, until it has arrived.
    pub fn write(&self, core: CoreId, of: CoreId) -> Terms {
        let (here, there) = (self.interference.tile(core), self.interference.tile(of));
        let alone = Terms::of(Term::Accesses, self.line.gap.over(self.interference.hops(here, there)));
        alone + self.on_links(core, here, there) + self.at_port(core, there)
    }

    /// Returns the bound of a read of a private line.
    pub fn load(&self, core: CoreId) -> Terms {
        match self.data {
            DataIn::FirstCache => Terms::default(),
            DataIn::SecondCache => Terms::of(Term::Memory, self.second),
            // A dirty line of each cache may be written back for it.
            DataIn::Memory => {
                self.memory(core, self.cached.read, 1) + self.evicted(core) + self.evicted(core)
            }
        }
    }

    /// Returns the bound of a write of a private line, word by word.
    pub fn store(&self, core: CoreId) -> Terms {
        match self.data {
            DataIn::FirstCache => Terms::default(),
            DataIn::SecondCache => Terms::of(Term::Memory, self.second_store * self.words),
            DataIn::Memory => self.memory(core, self.word.gap, self.words),
        }
    }

    /// Returns the bound of the write-back of a line that a read may evict.
    fn evicted(&self, core: CoreId) -> Terms {
        match self.data {
            DataIn::Memory => self.memory(core, self.cached.gap, 1),
            DataIn::FirstCache | DataIn::SecondCache => Terms::default(),
        }
    }

    /// Returns the bound of one line between a core and its controller, in `accesses` accesses: its own time, or its
    /// share of the controller among all its possible users.
    fn memory(&self, core: CoreId, cost: HopCost, accesses: u64) -> Terms {
        let (controller, tile) = self.interference.memory_of(core);
        let here = self.interference.tile(core);
        let alone = cost.over(self.interference.hops(tile, here)) * accesses;
        let delay = self.on_links(core, tile, here);
        let clients = self.interference.at_memory(core, controller) + 1;
        // Rounding may lose a picosecond at each arrival or end of a client.
        let shared = self.controller_line * clients + Picoseconds(2 * clients);
        let waited = Picoseconds(shared.0.saturating_sub((alone + delay.total()).0));
        Terms::of(Term::Memory, alone + waited) + delay
    }

    /// Returns the bound of one poll of a flag in the core's own buffer, with `cycles` cycles of instructions.
    pub fn look(&self, core: CoreId, cycles: u64) -> Terms {
        self.read(core, core) + self.instructions(cycles)
    }
}
