//! Costs of a core's operations, from the chip file.
//!
//! [`Costs`] is computed once, for every gear of a core, and does not change during a run; waits for shared resources
//! are added by the cores. It also determines the protocols that a chip supports.
//!
//! [`CopyCosts`] has the additional cost of copying messages in private memory. The times of a buffer's lines were
//! measured with private lines in the first-level cache. A message that does not fit there beside the lines of the
//! buffer comes from the second-level cache or from memory, and stored lines are written back there ([`CopyMisses`]).
//! Lines from memory share the controller with those of work. Lengths are rounded up in steps of an eighth of a power
//! of two. Invariants: every time is that of a core without contention; a message that fits the first-level cache has
//! no additional cost.

use super::Cores;
use super::files::FileTimes;
use super::lines::LineTimes;
use crate::demand::{LineCosts, LineCount, WORD_BYTES, WorkCosts};
use crate::energy::power_tables::PowerTables;
use crate::placement::CoreMap;
use crate::protocol::packets::PacketCosts;
use crate::protocol::{Protocol, ProtocolConfig};
use crate::report::TimeCategory;
use crate::shared::SharedMemoryCosts;
use crate::world::WorldError;
use isles_chip::cache::{CopyMisses, MissCounts, StorePolicy};
use isles_chip::cost::{HopCost, Mode, TimingTable};
use isles_chip::gear::GearId;
use isles_chip::governor::{Governor, GovernorContext, GovernorError, Policy};
use isles_chip::kernel::{JobTime, LinkTiming};
use isles_chip::quantity::Picoseconds;
use isles_chip::supply::Supplies;
use isles_chip::topology::Topology;
use isles_chip::{Caches, Chip, Interrupts};
use isles_transport::PlaceId;
use std::sync::Arc;

/// Costs of a core's operations at one setting of the clocks.
#[derive(Clone, Debug)]
pub struct Costs {
    pub(super) topology: Topology,
    pub(super) line_bytes: u32,
    pub(super) buffer_lines: u32,
    /// Lines of each core's buffer reserved for windows.
    pub(super) window_lines: u32,
    /// Times of a core for a line, by its gear.
    pub(super) lines: Vec<LineTimes>,
    /// All times of a core, by its gear.
    pub(super) times: Vec<TimingTable<HopCost>>,
    pub(super) pace: LinkTiming,
    /// Flits of a packet with a line, and of one with a word.
    pub(super) line_flits: u64,
    pub(super) word_flits: u64,
    /// Time for which an access to one line occupies the port of a tile's buffer.
    pub(super) port: Picoseconds,
    packets: Option<PacketCosts>,
    /// The interrupt controller, if there is one.
    pub(super) interrupts: Option<Interrupts>,
    pub(super) files: Option<FileTimes>,
    /// Costs of shared memory; `None` if the chip file has none.
    pub(super) memory: Option<Arc<SharedMemoryCosts>>,
    /// Costs of the work of programs.
    pub(super) work: Arc<WorkCosts>,
    pub(super) plan: Arc<PowerTables>,
    /// Initial rates and voltages; `None` if the chip cannot change them.
    pub(super) supplies: Option<Supplies>,
}

impl Costs {
    /// Returns the costs of `chip` at its default preset; `None` if it has neither message buffers nor hardware
    /// packets.
    pub fn of(chip: &Chip) -> Option<Costs> {
        let (preset, links, packets) = (chip.default_preset(), chip.links(), PacketCosts::of(chip));
        let line = preset.times().access(Mode::BufferLine).copied();
        let buffer = chip.buffer().map(|buffer| buffer.size.0).zip(line);
        if buffer.is_none() && packets.is_none() {
            return None;
        }
        let (buffer_bytes, line) = buffer.unwrap_or_default();
        let plan = PowerTables::new(chip, 0);
        let times: Vec<_> = plan.gears.all().map(|(_, gear)| preset.times_at(gear.rate)).collect();
        let line_in =
            |times: &TimingTable<HopCost>| times.access(Mode::BufferLine).copied().unwrap_or_default();
        let diameter = chip.topology().diameter();
        let lines = times.iter().map(|times| LineTimes::of(&line_in(times), diameter)).collect();
        let memory = SharedMemoryCosts::of(chip, &plan.gears).map(Arc::new);
        let work = Arc::new(WorkCosts::of(chip, &plan.gears));
        let line_bytes = chip.caches().line.0;
        Some(Costs {
            topology: *chip.topology(),
            line_bytes: line_bytes as u32,
            buffer_lines: u32::try_from(buffer_bytes / line_bytes).unwrap_or(u32::MAX),
            window_lines: 0,
            packets,
            interrupts: chip.interrupts().copied(),
            files: FileTimes::of(chip),
            memory,
            work,
            lines,
            times,
            pace: links.pace(preset.clocks()),
            line_flits: links.flits(line_bytes),
            word_flits: links.flits(WORD_BYTES),
            port: chip.buffer().map_or(Picoseconds::ZERO, |buffer| buffer.port_time(line.read.over(0))),
            supplies: Supplies::of(chip, &plan.gears),
            plan: Arc::new(plan),
        })
    }

    /// Returns the reason why a chip has no costs: the entries that its file lacks.
    pub fn lack(chip: &Chip) -> String {
        let preset = chip.default_preset().name();
        match chip.buffer() {
            Some(_) => format!("preset {preset:?} has no buffer_line"),
            None => format!("it has no [buffer], and preset {preset:?} lacks send, receive or transit"),
        }
    }

    /// Returns the costs with buffers of another size.
    pub fn with_buffer_lines(self, buffer_lines: u32) -> Costs {
        Costs { buffer_lines, ..self }
    }

    /// Returns the costs with `window_lines` lines of each buffer reserved for windows; messages use the rest.
    pub fn with_window_lines(self, window_lines: u32) -> Costs {
        let buffer_lines = self.buffer_lines.saturating_sub(window_lines);
        Costs { buffer_lines, window_lines, ..self }
    }

    /// Checks that `policy` can govern the places of a core map on the chip.
    ///
    /// # Errors
    /// [`GovernorError`]: the policy is impossible.
    pub fn check_policy(&self, policy: Policy, core_map: &CoreMap) -> Result<(), GovernorError> {
        self.governor(policy, core_map, None).map(|_| ())
    }

    /// Returns the governor for the places of a core map, and the initial gear of each voltage domain. With `only` one
    /// domain, the governor ignores all other cores and the constant power of the chip.
    pub(super) fn governor(
        &self,
        policy: Policy,
        core_map: &CoreMap,
        only: Option<usize>,
    ) -> Result<(Governor, Vec<GearId>), GovernorError> {
        let plan = &self.plan;
        if policy != Policy::Fixed && self.supplies.is_none() {
            return Err(GovernorError::Clocks);
        }
        let mut cores = vec![[0, 0]; plan.domains()];
        for (core, supply) in plan.supplies.iter().enumerate() {
            let domain = *supply as usize;
            if only.is_none_or(|only| only == domain) {
                cores[domain][usize::from(core_map.place(core).is_none())] += 1;
            }
        }
        let own = plan.models.first();
        let context = GovernorContext {
            gears: plan.gears.clone(),
            table: own.map(|model| model.table.clone()),
            constant: own.filter(|_| only.is_none()).map(|model| model.constant).unwrap_or_default(),
            cores,
        };
        Governor::new(policy, context)
    }

    /// Checks that the chip supports `protocol` with `places` places.
    ///
    /// # Errors
    /// [`WorldError`]: the chip does not support it.
    pub fn check_protocol(&self, protocol: Protocol, places: u32) -> Result<(), WorldError> {
        protocol.buffer_layout(places, self).map(drop)
    }

    /// As [`Costs::check_protocol`], for a protocol configuration.
    ///
    /// # Errors
    /// [`WorldError`]: the chip does not support it.
    pub fn check_protocol_config(
        &self,
        protocol_config: ProtocolConfig,
        places: u32,
    ) -> Result<(), WorldError> {
        protocol_config.buffer_layout(places, self).map(drop)
    }

    /// Returns the times of a core at its initial rate.
    pub(crate) fn times(&self) -> &TimingTable<HopCost> {
        &self.times[usize::from(self.plan.gears.first().0)]
    }

    /// Checks that the chip has interrupts with known costs.
    ///
    /// # Errors
    /// [`WorldError::NoInterrupts`]: the chip has no interrupt controller. [`WorldError::Unknown`]: its file lacks the
    /// costs of an interrupt.
    pub(crate) fn check_interrupts(&self) -> Result<(), WorldError> {
        let times = self.times();
        self.interrupts.ok_or(WorldError::NoInterrupts)?;
        WorldError::of_missing(&[
            ("test_and_set", times.test_and_set.is_some()),
            ("interrupt", times.interrupt.is_some()),
            ("interrupt_more", times.interrupt_more.is_some()),
        ])
    }

    /// Returns the costs of work on the chip's cores.
    pub(crate) fn work(&self) -> &WorkCosts {
        &self.work
    }

    /// Returns the topology of the chip.
    pub(crate) fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Returns the number of cores.
    pub fn cores(&self) -> u32 {
        self.topology.cores()
    }

    /// Returns the size of a line in bytes, the unit of access to a message buffer.
    pub fn line_bytes(&self) -> u32 {
        self.line_bytes
    }

    /// Returns the costs of hardware packets, if the chip has them.
    pub(crate) fn packets(&self) -> Option<PacketCosts> {
        self.packets
    }

    /// Returns the protocol used if none is chosen.
    pub fn default_protocol(&self) -> Protocol {
        let is_bare = self.buffer_lines == 0 && self.packets.is_some();
        if is_bare { Protocol::Packets } else { Protocol::default() }
    }

    /// Returns `true` if the chip file has the costs of shared memory.
    pub(crate) fn has_shared_memory(&self) -> bool {
        self.memory.is_some()
    }

    /// Returns the number of lines of a core's message buffer; 0 without message buffers.
    pub fn buffer_lines(&self) -> u32 {
        self.buffer_lines
    }
}

/// Number of length steps from a power of two to the next.
const STEPS: u64 = 8;

/// Length, in sizes of the second-level cache, from which on all messages have the same misses per line.
const LONGEST: u64 = 4;

/// Costs of copying messages through caches and buffer.
pub(super) struct CopyCosts {
    caches: Caches,
    /// Lines of a buffer.
    buffer: u64,
    /// Length of the longest message without additional cost, in bytes.
    free: usize,
}

/// A side of a copy.
#[derive(Clone, Copy)]
enum Side {
    Load,
    Store,
}

impl CopyCosts {
    pub(super) fn new(caches: &Caches, buffer_lines: u32) -> CopyCosts {
        let bytes = caches.first.map_or(0, |first| first.0);
        let buffer = u64::from(buffer_lines);
        // A message no longer than a buffer brings an equal number of buffer lines into the cache.
        let free = (bytes / 2).max(bytes.saturating_sub(buffer * caches.line.0));
        CopyCosts { caches: *caches, buffer, free: free as usize }
    }

    /// Returns the misses per line on one side of a message of `bytes` bytes.
    fn found(&self, bytes: usize, copy: StorePolicy, side: Side) -> MissCounts {
        let most = self.caches.second.or(self.caches.first).map_or(0, |cache| cache.0 * LONGEST);
        let bytes = (bytes as u64).min(most).max(STEPS);
        let step = (1 << bytes.ilog2()) / STEPS;
        let lines = bytes.next_multiple_of(step) / self.caches.line.0;
        let CopyMisses { loaded, stored } = CopyMisses::of(&self.caches, lines, self.buffer, copy);
        match side {
            Side::Load => loaded,
            Side::Store => stored,
        }
    }
}

impl Cores {
    /// Charges `place` for loading `lines` lines of a message of `bytes` bytes that it writes to a buffer.
    #[inline]
    pub(crate) fn load_private(&mut self, place: PlaceId, lines: u32, bytes: usize) {
        if bytes > self.rounds.free {
            self.copy_private(place, lines, bytes, StorePolicy::Prefetching, Side::Load);
        }
    }

    /// Charges `place` for storing `lines` lines of a message of `bytes` bytes that it reads from a buffer.
    #[inline]
    pub(crate) fn store_private(&mut self, place: PlaceId, lines: u32, bytes: usize, copy: StorePolicy) {
        if bytes > self.rounds.free {
            self.copy_private(place, lines, bytes, copy, Side::Store);
        }
    }

    #[cold]
    fn copy_private(&mut self, place: PlaceId, lines: u32, bytes: usize, copy: StorePolicy, side: Side) {
        let Some(costs) = self.line_costs(place) else { return };
        let found = self.rounds.found(bytes, copy, side);
        let [second, memory, back] =
            [found.second, found.memory, found.back].map(|share| LineCount::part(lines, share));
        let hops = self.way_to_memory(place).len() as u32;
        let LineCosts { near, far, back: gap, .. } = costs;
        // Storing word by word is the library's method, with the uncertainty of its instruction costs.
        let (near, far, category) = match (copy, side) {
            (StorePolicy::Storing, Side::Store) => {
                (costs.store_near, costs.store_far.over(hops), TimeCategory::Handling)
            }
            _ => (near, far.over(hops), TimeCategory::Fetching),
        };
        let alone = second.times(near) + memory.times(far) + back.times(gap.over(hops));
        let served = memory.times(costs.served) + back.times(costs.served);
        self.cores[place.index()].fetched.add(memory);
        self.share_controller(place, self.now(place), JobTime { alone, served }, category);
    }
}
