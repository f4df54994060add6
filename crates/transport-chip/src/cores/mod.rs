//! The cores of a chip and their operations.
//!
//! Every operation belongs to one place, advances the clock of its core and books the time in its ledger. Operations
//! reserve the links and buffer ports that they use, so cores wait for each other; `costs` has the uncontended costs.
//! `gear_change` handles operations during which a rate may change. This module knows neither messages nor protocols.
//! Invariant: a clock only advances, and every advance is in the ledger.

mod costs;
mod draw;
mod files;
mod gear_change;
pub(crate) mod interrupt;
mod lines;
mod work;

pub use costs::Costs;

use crate::demand::LineCount;
use crate::energy::Sampler;
use crate::energy::meter::{Meters, NEVER};
use crate::energy::power_tables::PowerTables;
use crate::idle_policy::IdlePolicy;
use crate::placement::CoreMap;
use crate::record::Recorder;
use crate::report::{GearChanges, Ledger, TimeCategory};
use crate::shared::{MemoryCosts, SharedMemoryCosts};
use costs::CopyCosts;
use isles_chip::clock::Clock;
use isles_chip::cost::{HopCost, TimingTable};
use isles_chip::gear::GearId;
use isles_chip::kernel::{MaxMinServer, Network, Timeline};
use isles_chip::quantity::{Cycles, Picoseconds};
use isles_chip::supply::Supplies;
use isles_chip::topology::{TileId, Topology};
use isles_transport::PlaceId;
use lines::{OccupiedTile, Paths};
use std::sync::Arc;
use work::MemoryWait;

/// Numbers of lines transferred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineTraffic {
    /// Lines written to message buffers.
    pub written: u64,
    /// Lines read from message buffers.
    pub read: u64,
}

/// The core of one place.
struct PlacedCore {
    tile: TileId,
    /// Number of the tile among those with places, for paths and ports.
    tile_number: OccupiedTile,
    clock: Clock,
    now: Picoseconds,
    ledger: Ledger,
    gear: GearId,
    /// Time of the next change of rate or voltage.
    next_shift: Picoseconds,
    /// Remaining fraction of a cycle from operations, in billionths.
    nanocycles: u64,
    /// Lines of private memory fetched over the mesh.
    fetched: LineCount,
    /// Last wait for a memory controller, while its end may still move.
    memory_wait: Option<MemoryWait>,
}

impl PlacedCore {
    /// Makes a core in the first gear, at time 0.
    fn new(tile: TileId, tile_number: OccupiedTile, plan: &PowerTables) -> PlacedCore {
        let first = plan.gears.first();
        PlacedCore {
            tile,
            tile_number,
            clock: Clock::new(plan.gears.gear(first).rate),
            now: Picoseconds::ZERO,
            ledger: Ledger::default(),
            gear: first,
            next_shift: NEVER,
            nanocycles: 0,
            fetched: LineCount::default(),
            memory_wait: None,
        }
    }
}

/// The cores with places, and their shared state.
pub(crate) struct Cores {
    costs: Costs,
    /// The core of each place.
    cores: Vec<PlacedCore>,
    /// Map from places to cores.
    core_map: CoreMap,
    paths: Paths,
    network: Network,
    /// Buffer ports of the tiles with places.
    ports: Vec<Timeline>,
    /// The port of the interrupt controller.
    interrupts: Timeline,
    /// Memory controllers; empty until first used.
    controllers: Vec<MaxMinServer>,
    files: files::Files,
    /// Costs of copying long messages in private memory.
    rounds: CopyCosts,
    /// Lower bound of the time of all further operations.
    present: Picoseconds,
    lines: LineTraffic,
    meters: Meters,
    supplies: Option<Supplies>,
    /// `true` once a program has declared operations by class.
    pub(crate) by_class: bool,
    /// Policy of waiting places.
    pub(crate) rest: IdlePolicy,
    /// `true` if a waiting place is halted until an interrupt wakes it, regardless of `rest`.
    pub(crate) is_interrupt_driven: bool,
    /// Duration of the last poll of a place that halts between polls.
    look: Picoseconds,
    /// Number of changes of rates and voltages.
    pub(crate) shifts: GearChanges,
    /// Samples power over time, if the chip has a power model.
    sampler: Option<Sampler>,
    /// Recorder, if the run is recorded.
    pub(crate) recorder: Option<Box<Recorder>>,
}

impl Cores {
    /// Makes the cores of the places of `core_map`.
    pub(crate) fn new(costs: Costs, core_map: CoreMap) -> Cores {
        let tiles = core_map.cores().iter().map(|core| costs.topology.tile_of(*core));
        let (tile_numbers, used) = lines::number_tiles(&costs.topology, tiles);
        Cores {
            cores: tile_numbers
                .into_iter()
                .map(|(tile, tile_number)| PlacedCore::new(tile, tile_number, &costs.plan))
                .collect(),
            ports: vec![Timeline::default(); used.len()],
            paths: Paths::new(&costs.topology, used, costs.buffer_lines > 0),
            network: Network::new(costs.topology.link_slots() as usize, costs.pace),
            interrupts: Timeline::default(),
            controllers: Vec::new(),
            files: files::Files::default(),
            rounds: CopyCosts::new(&costs.work.caches, costs.buffer_lines),
            present: Picoseconds::ZERO,
            lines: LineTraffic::default(),
            sampler: draw::sampler(&costs.plan),
            supplies: costs.supplies.clone(),
            shifts: GearChanges::default(),
            by_class: false,
            rest: IdlePolicy::Poll,
            is_interrupt_driven: false,
            look: Picoseconds::ZERO,
            meters: Meters::new(Arc::clone(&costs.plan)),
            recorder: None,
            core_map,
            costs,
        }
    }

    /// Returns the size of a line in bytes.
    pub(crate) fn line_bytes(&self) -> u32 {
        self.costs.line_bytes
    }

    /// Declares that nothing will happen before `present` any more.
    #[inline]
    pub(crate) fn set_present(&mut self, present: Picoseconds) {
        self.present = present;
    }

    /// Returns the start of the current turn.
    ///
    /// Credit that arrives later waits for the next turn: if a later poll of the same turn took it after a refusal, no
    /// event would be left to wake the refused sender.
    #[inline]
    pub(crate) fn present(&self) -> Picoseconds {
        self.present
    }

    /// Returns all times of the core of `place` in its present gear.
    pub(crate) fn times(&self, place: PlaceId) -> &TimingTable<HopCost> {
        &self.costs.times[usize::from(self.cores[place.index()].gear.0)]
    }

    /// Returns the costs of shared memory, if known.
    pub(crate) fn memory(&self) -> Option<Arc<SharedMemoryCosts>> {
        self.costs.memory.clone()
    }

    /// Returns the costs of shared memory for the core of `place` in its present gear.
    ///
    /// # Panics
    /// If the costs are not known.
    pub(crate) fn memory_costs(&self, place: PlaceId) -> &MemoryCosts {
        let memory = self.costs.memory.as_ref().expect("shared memory has costs");
        &memory.gears[usize::from(self.cores[place.index()].gear.0)]
    }

    pub(crate) fn lines(&self) -> LineTraffic {
        self.lines
    }

    pub(crate) fn topology(&self) -> &Topology {
        &self.costs.topology
    }

    /// Returns the number of lines of each message buffer reserved for windows.
    pub(crate) fn window_lines(&self) -> u32 {
        self.costs.window_lines
    }

    /// Returns the map from places to cores.
    pub(crate) fn core_map(&self) -> &CoreMap {
        &self.core_map
    }

    pub(crate) fn ledger(&self, place: PlaceId) -> Ledger {
        self.cores[place.index()].ledger
    }

    /// Returns the latest clock of all places.
    fn latest(&self) -> Picoseconds {
        self.cores.iter().map(|core| core.now).max().unwrap_or_default()
    }

    #[inline]
    pub(crate) fn tile(&self, place: PlaceId) -> TileId {
        self.cores[place.index()].tile
    }

    #[inline]
    fn tile_number(&self, place: PlaceId) -> OccupiedTile {
        self.cores[place.index()].tile_number
    }
}

impl PlacedCore {
    /// Spends `time`. If a change falls before its end, spends nothing and returns that end.
    #[inline(always)]
    fn spend(
        &mut self,
        place: PlaceId,
        time: Picoseconds,
        category: TimeCategory,
        recorder: &mut Option<Box<Recorder>>,
    ) -> Option<Picoseconds> {
        let start = self.now;
        let end = end(place, start, time);
        if end >= self.next_shift {
            return Some(end);
        }
        self.now = end;
        self.ledger.add(category, time);
        if let Some(recorder) = recorder {
            recorder.spend(place, start, end, category);
        }
        None
    }
}

/// Returns `start + time`.
#[inline(always)]
fn end(place: PlaceId, start: Picoseconds, time: Picoseconds) -> Picoseconds {
    start.0.checked_add(time.0).map_or_else(|| beyond(place, time), Picoseconds)
}

/// Panics, because the clock exceeds 64 bits of picoseconds.
#[cold]
fn beyond(place: PlaceId, time: Picoseconds) -> ! {
    panic!("the core of {place} cannot work or wait for {time} more: a modelled run ends before 213 days")
}

impl Cores {
    /// Returns the time at the core of `place`.
    #[inline]
    pub(crate) fn now(&self, place: PlaceId) -> Picoseconds {
        self.cores[place.index()].now
    }

    /// Computes at `place` for `cycles` cycles.
    #[inline]
    pub(crate) fn compute(&mut self, place: PlaceId, cycles: u64, category: TimeCategory) {
        let core = &mut self.cores[place.index()];
        if core.next_shift != NEVER {
            return self.compute_across(place, Cycles(cycles), category);
        }
        let time = core.clock.advance(Cycles(cycles));
        core.spend(place, time, category, &mut self.recorder);
    }

    /// Returns the time of `cycles` cycles of the core of `place`, rounded down to the picosecond.
    pub(crate) fn cycles(&self, place: PlaceId, cycles: u64) -> Picoseconds {
        self.cores[place.index()].clock.length(Cycles(cycles))
    }

    /// Makes `place` wait until `time`, if that is in the future.
    #[inline]
    pub(crate) fn wait_until(&mut self, place: PlaceId, time: Picoseconds) {
        let now = self.now(place);
        if time > now {
            let category =
                if self.is_interrupt_driven { TimeCategory::Sleeping } else { TimeCategory::Waiting };
            self.spend(place, time - now, category);
        }
    }

    /// Books the part of the time until `time` in which a waiting `place` is halted, if a poll takes it `look`. All
    /// halts are booked before all polls.
    pub(crate) fn halt(&mut self, place: PlaceId, time: Picoseconds, look: Picoseconds) {
        let wait = Picoseconds(time.0.saturating_sub(self.now(place).0));
        self.look = look;
        let halted = self.rest.halted(wait, look);
        self.spend(place, halted, TimeCategory::Sleeping);
    }

    /// Returns the main category of a place's waiting time.
    pub(crate) fn idle(&self) -> TimeCategory {
        if self.rest == IdlePolicy::Poll && !self.is_interrupt_driven {
            TimeCategory::Waiting
        } else {
            TimeCategory::Sleeping
        }
    }

    /// Spends `time` at `place`.
    #[inline]
    pub(crate) fn spend(&mut self, place: PlaceId, time: Picoseconds, category: TimeCategory) {
        let core = &mut self.cores[place.index()];
        if let Some(end) = core.spend(place, time, category, &mut self.recorder) {
            self.spend_across(place, end, category);
        }
    }
}
