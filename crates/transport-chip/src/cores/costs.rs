//! What the operations of a core cost, by the file of its chip.
//!
//! [`Costs`] is worked out once, for every gear of a core, and nothing of a run changes it: what waits for whom is
//! added by the cores. It also says what a chip can carry.
//!
//! [`CopyCosts`] is what copies of messages take in private memory, beyond what the times of a buffer's lines hold
//! already. Those were measured with copies whose private lines are in the first cache. A message that does not fit
//! there beside the lines of the buffer comes out of the second cache or from behind a controller, and what is stored
//! goes back there ([`CopyMisses`]). Lines of memory take a share of the controller as those of work do. Lengths are
//! counted in steps of an eighth of a power of two. Invariants: every time is that of one core which nobody hinders; a
//! message that fits the first cache costs nothing beyond its lines.

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
    /// Lines of each core's buffer that messages do not use, for regions of windows.
    pub(super) window_lines: u32,
    /// Times a core takes for a line, by its gear.
    pub(super) lines: Vec<LineTimes>,
    /// All times of a core, by its gear.
    pub(super) times: Vec<TimingTable<HopCost>>,
    pub(super) pace: LinkTiming,
    /// Flits of a packet that carries a line, and of one that carries a word.
    pub(super) line_flits: u64,
    pub(super) word_flits: u64,
    /// Time that an access to one line occupies the buffer of a tile.
    pub(super) port: Picoseconds,
    packets: Option<PacketCosts>,
    /// The interrupt controller, if there is one.
    pub(super) interrupts: Option<Interrupts>,
    pub(super) files: Option<FileTimes>,
    /// Shared memory of all cores; `None` if the chip's file does not state its cost.
    pub(super) memory: Option<Arc<SharedMemoryCosts>>,
    /// Costs of the work of programs.
    pub(super) work: Arc<WorkCosts>,
    pub(super) plan: Arc<PowerTables>,
    /// Rates and voltages before anything runs; `None` if the chip cannot change them.
    pub(super) supplies: Option<Supplies>,
}

impl Costs {
    /// Returns the costs of `chip` at its default setting; `None` if its cores have no message buffers of lines and its
    /// hardware carries no packets either.
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

    /// Returns why a chip has no costs: the entries that its file lacks.
    pub fn lack(chip: &Chip) -> String {
        let preset = chip.default_preset().name();
        match chip.buffer() {
            Some(_) => format!("preset {preset:?} has no buffer_line"),
            None => format!("it has no [buffer], and preset {preset:?} lacks send, receive or transit"),
        }
    }

    /// The same with buffers of another size.
    pub fn with_buffer_lines(self, buffer_lines: u32) -> Costs {
        Costs { buffer_lines, ..self }
    }

    /// The same with `window_lines` lines of each buffer kept for windows; messages have the rest.
    pub fn with_window_lines(self, window_lines: u32) -> Costs {
        let buffer_lines = self.buffer_lines.saturating_sub(window_lines);
        Costs { buffer_lines, window_lines, ..self }
    }

    /// Checks that `policy` can govern the places of a core map on the chip.
    ///
    /// # Errors
    /// [`GovernorError`]: it cannot.
    pub fn check_policy(&self, policy: Policy, core_map: &CoreMap) -> Result<(), GovernorError> {
        self.governor(policy, core_map, None).map(|_| ())
    }

    /// A policy for the places of a core map, and the gear of each voltage domain to start in; of `only` one domain,
    /// if one is named: for the policy the chip then has no other cores, and draws nothing besides.
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

    /// As [`Costs::check_protocol`], with all that joins the places.
    ///
    /// # Errors
    /// [`WorldError`]: it cannot.
    pub fn check_protocol_config(
        &self,
        protocol_config: ProtocolConfig,
        places: u32,
    ) -> Result<(), WorldError> {
        protocol_config.buffer_layout(places, self).map(drop)
    }

    /// The times of a core that has not changed its rate.
    pub(crate) fn times(&self) -> &TimingTable<HopCost> {
        &self.times[usize::from(self.plan.gears.first().0)]
    }

    /// Checks that a core can interrupt several others at once.
    ///
    /// # Errors
    /// [`WorldError::NoInterrupts`], [`WorldError::Unknown`]: there is no controller, or the file does not say what an
    /// interrupt takes.
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

    /// Returns the layout of the chip's cores.
    pub(crate) fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Returns the number of cores.
    pub fn cores(&self) -> u32 {
        self.topology.cores()
    }

    /// Bytes of a line: what one access to a message buffer moves.
    pub fn line_bytes(&self) -> u32 {
        self.line_bytes
    }

    /// Returns the costs of packets, if the hardware carries any.
    pub(crate) fn packets(&self) -> Option<PacketCosts> {
        self.packets
    }

    /// Returns the protocol used if none is chosen.
    pub fn default_protocol(&self) -> Protocol {
        let is_bare = self.buffer_lines == 0 && self.packets.is_some();
        if is_bare { Protocol::Packets } else { Protocol::default() }
    }

    /// Returns `true` if the chip's file states what accesses to memory that all cores share cost.
    pub(crate) fn has_shared_memory(&self) -> bool {
        self.memory.is_some()
    }

    /// Lines of the message buffer of one core; none without message buffers.
    pub fn buffer_lines(&self) -> u32 {
        self.buffer_lines
    }
}

/// Steps of lengths between a power of two and the next.
const STEPS: u64 = 8;

/// Length, in sizes of the second cache, beyond which all messages have the same misses.
const LONGEST: u64 = 4;

/// Caches and buffer through which messages are copied.
pub(super) struct CopyCosts {
    caches: Caches,
    /// Lines of a buffer.
    buffer: u64,
    /// Bytes of the longest message that costs nothing.
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
        // Up to the length of a buffer as many of its lines pass the cache.
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
    /// Lets `place` load `lines` lines of a message of `bytes` bytes, which it writes into a buffer.
    #[inline]
    pub(crate) fn load_private(&mut self, place: PlaceId, lines: u32, bytes: usize) {
        if bytes > self.rounds.free {
            self.copy_private(place, lines, bytes, StorePolicy::Prefetching, Side::Load);
        }
    }

    /// Lets `place` store `lines` lines of a message of `bytes` bytes, which it reads from a buffer.
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
        // Words that are stored one by one are the library's way, and no surer than its instructions.
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
