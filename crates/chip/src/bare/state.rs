//! The shared state of the cores: the queue of events, buffers, links, ports, controllers, and waits.
//!
//! A state machine below the programs. Every call that takes time returns its end, or records the core to resume.
//! Invariant: a core is resumed by at most one of an event of the queue, a job at a controller, and a watch.

use super::interrupts::InterruptPort;
use super::{LINE_BYTES, Line};
use crate::cache::{Hierarchy, Level};
use crate::chip::{Caches, Chip, ControllerId, Preset};
use crate::cost::{Access, HopCost, Mode, TimingTable};
use crate::kernel::{
    EventClass, FairShareServer, Job, JobId, Key, Network, Queue, TieBreak, Timeline, Train,
};
use crate::quantity::{Picoseconds, Rate};
use crate::topology::{CoreId, TileId, Topology};
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

/// Words of a line, the units of a store.
const WORDS: u64 = LINE_BYTES as u64 / 4;

/// Event of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoreEvent {
    /// A core continues.
    Resume(CoreId),
    /// A controller has completed a job.
    Served(usize),
}

/// A core that polls lines of its buffer, or waits for an interrupt.
#[derive(Clone, Debug)]
struct FlagWait {
    since: Picoseconds,
    /// Time of one poll.
    period: Picoseconds,
    lines: Range<u32>,
    /// `true` if it waits for a write to any buffer.
    anywhere: bool,
    interruptible: bool,
}

impl FlagWait {
    /// Returns the start of the first poll at `now` or later.
    fn first_look(&self, now: Picoseconds) -> Picoseconds {
        let looks = (now - self.since).0.div_ceil(self.period.0.max(1));
        self.since + self.period * looks
    }
}

struct Controller {
    tile: TileId,
    sharing: FairShareServer,
    jobs: Vec<(JobId, CoreId)>,
    /// Shared memory, by line.
    shared: BTreeMap<u64, Line>,
}

struct CoreState {
    tile: TileId,
    controller: usize,
    buffer: Vec<Line>,
    private: PrivateMemory,
    watch: Option<FlagWait>,
    sequence: u32,
    /// Times at the rate of this core.
    times: Rc<Times>,
}

/// The times of a preset at one rate of a core.
struct Times {
    core_rate: Rate,
    /// The length of each number of cycles below [`FEW_CYCLES`].
    few_cycles: Vec<Picoseconds>,
    line: Access<HopCost>,
    cached: Access<HopCost>,
    through: Access<HopCost>,
    word: Access<HopCost>,
    register: HopCost,
    second: Picoseconds,
    /// Time of a write of a word in the second-level cache.
    second_store: Picoseconds,
    /// Time for which a line occupies a controller.
    controller_line: Picoseconds,
    /// Time from the end of a core's own counter to the handler of its interrupt, if the chip file has it.
    counter_interrupt: Option<Picoseconds>,
    /// Time for which a line occupies the buffer of a tile.
    port: Picoseconds,
    /// A packet with a line.
    packet: Train,
}

/// Number of cached cycle lengths, because a division would dominate the host time of a short computation.
const FEW_CYCLES: u64 = 256;

/// Returns the length of `cycles` cycles, rounded up to the picosecond.
fn cycles_at(rate: Rate, cycles: u64) -> Picoseconds {
    let scaled = u128::from(cycles) * 1_000_000_000_000 * u128::from(rate.divider());
    Picoseconds(scaled.div_ceil(u128::from(rate.hertz())) as u64)
}

impl Times {
    fn new(chip: &Chip, preset: &Preset, core_rate: Rate) -> Option<Times> {
        let times: TimingTable<HopCost> = preset.times_at(core_rate);
        let line = *times.access(Mode::BufferLine)?;
        let links = chip.links();
        Some(Times {
            core_rate,
            few_cycles: (0..FEW_CYCLES).map(|cycles| cycles_at(core_rate, cycles)).collect(),
            line,
            cached: *times.access(Mode::MemoryCached)?,
            through: *times.access(Mode::MemoryThrough)?,
            word: *times.access(Mode::MemoryWord)?,
            register: times.test_and_set?,
            second: times.second_cache?.over(0),
            second_store: times.second_cache_store.or(times.second_cache)?.over(0),
            controller_line: times.controller_line?.over(0),
            counter_interrupt: times.counter_interrupt.map(|span| span.over(0)),
            port: chip.buffer()?.port_time(line.read.over(0)),
            packet: Train { packets: 1, flits: links.flits(LINE_BYTES as u64) },
        })
    }
}

/// The shared state of the cores.
pub struct BareState {
    pub now: Picoseconds,
    /// The next event of each core, and after these of each controller.
    queue: Queue,
    tie_break: TieBreak,
    topology: Topology,
    /// Number of cores that wait for a write to any buffer.
    anywhere: u32,
    network: Network,
    ports: Vec<Timeline>,
    controllers: Vec<Controller>,
    core_states: Vec<CoreState>,
    interrupts: Option<InterruptPort>,
    port_tile: TileId,
}

impl BareState {
    pub fn new(chip: &Chip, preset: &Preset) -> Option<BareState> {
        let (topology, buffer, links) = (*chip.topology(), chip.buffer()?, chip.links());
        if chip.caches().line.0 != LINE_BYTES as u64 {
            return None;
        }
        let own = Rc::new(Times::new(chip, preset, preset.clocks().core)?);
        let core_state = |core: u32| {
            let tile = topology.tile_of(CoreId(core));
            CoreState {
                tile,
                controller: chip.controller_of(tile).0 as usize,
                buffer: vec![[0; LINE_BYTES]; buffer.size.0 as usize / LINE_BYTES],
                private: PrivateMemory::new(chip.caches(), u64::from(core)),
                watch: None,
                sequence: 0,
                times: Rc::clone(&own),
            }
        };
        let controller = |number| Controller {
            tile: chip.controller_tile(ControllerId(number)),
            sharing: FairShareServer::default(),
            jobs: Vec::new(),
            shared: BTreeMap::new(),
        };
        let times = preset.times();
        let port = |traits| {
            let (alone, each) = (times.interrupt?.over(0), times.interrupt_more?.over(0));
            Some(InterruptPort::new(traits, alone, each, topology.cores()))
        };
        Some(BareState {
            now: Picoseconds::ZERO,
            queue: Queue::new((topology.cores() + chip.controllers()) as usize),
            tie_break: TieBreak::new(0),
            anywhere: 0,
            network: Network::new(topology.link_slots() as usize, links.pace(preset.clocks())),
            ports: vec![Timeline::default(); topology.tiles() as usize],
            controllers: (0..chip.controllers()).map(controller).collect(),
            core_states: (0..topology.cores()).map(core_state).collect(),
            interrupts: chip.interrupts().and_then(port),
            port_tile: chip.interrupts().map_or(TileId(0), |traits| traits.tile),
            topology,
        })
    }

    pub fn cores(&self) -> u32 {
        self.core_states.len() as u32
    }

    pub fn buffer_lines(&self) -> u32 {
        self.core_states[0].buffer.len() as u32
    }

    /// Sets the rate of a core, with the other clocks of `preset`; ignored if the times at that rate are unknown.
    pub fn set_rate(&mut self, core: CoreId, chip: &Chip, preset: &Preset, rate: Rate) {
        if let Some(times) = Times::new(chip, preset, rate) {
            self.core_state(core).times = Rc::new(times);
        }
    }

    /// The times at a core's rate.
    #[inline]
    fn times(&self, core: CoreId) -> &Times {
        &self.core_states[core.0 as usize].times
    }

    /// Returns the length of `cycles` cycles of a core, rounded up to the picosecond.
    #[inline]
    pub fn cycles(&self, core: CoreId, cycles: u64) -> Picoseconds {
        let times = self.times(core);
        times.few_cycles.get(cycles as usize).copied().unwrap_or_else(|| cycles_at(times.core_rate, cycles))
    }

    fn core_state(&mut self, core: CoreId) -> &mut CoreState {
        &mut self.core_states[core.0 as usize]
    }

    pub fn tile(&self, core: CoreId) -> TileId {
        self.core_states[core.0 as usize].tile
    }

    /// Takes the next event, whose time becomes the present.
    #[inline]
    pub fn next(&mut self) -> Option<CoreEvent> {
        let (key, owner) = self.queue.pop()?;
        self.now = key.time();
        if let Some(controller) = owner.checked_sub(self.cores()) {
            return Some(CoreEvent::Served(controller as usize));
        }
        let core = CoreId(owner);
        let watch = self.core_state(core).watch.take();
        self.anywhere -= u32::from(watch.is_some_and(|watch| watch.anywhere));
        Some(CoreEvent::Resume(core))
    }

    /// Returns the key for the next event of a core, at `time`.
    #[inline]
    fn next_key(&mut self, core: CoreId, time: Picoseconds) -> Key {
        let core_state = self.core_state(core);
        core_state.sequence = core_state.sequence.wrapping_add(1);
        let sequence = core_state.sequence;
        self.tie_break.key(time, EventClass::Ready, core.0, sequence)
    }

    /// Resumes a core at `time`.
    pub(crate) fn resume_at(&mut self, core: CoreId, time: Picoseconds) {
        let key = self.next_key(core, time);
        self.queue.set(core.0, key);
    }

    /// Resumes the running core at `time`. If no event comes before, advances the present to `time` and returns `true`,
    /// so that the core can continue at once.
    #[inline]
    pub(crate) fn resume_or_pass(&mut self, core: CoreId, time: Picoseconds) -> bool {
        let key = self.next_key(core, time);
        let is_next = self.queue.first().is_none_or(|(first, _)| key < first);
        match is_next {
            true => self.now = time,
            false => self.queue.set(core.0, key),
        }
        is_next
    }

    /// Resumes a watching core at `time`, unless it is due earlier.
    fn wake(&mut self, core: CoreId, time: Picoseconds) {
        if self.queue.key_of(core.0).is_none_or(|due| due.time() > time) {
            self.resume_at(core, time);
        }
    }

    /// Moves a line between two tiles, of which `port` owns the buffer or register, from `start` on, now or later.
    /// Returns the end.
    fn transfer(
        &mut self,
        core: CoreId,
        span: HopCost,
        start: Picoseconds,
        from: TileId,
        to: TileId,
        port: TileId,
    ) -> Picoseconds {
        let (now, topology) = (self.now, self.topology);
        let (packet, busy) = (self.times(core).packet, self.times(core).port);
        let (mut at, mut hops) = (start, 0);
        if from != to {
            let route = topology.route(from, to);
            hops = route.remaining();
            let path = route.map(|link| topology.link_id(link).0 as usize);
            at += self.network.send(now, start, path, packet);
        }
        span.over(hops) + self.ports[port.0 as usize].reserve(now, at, busy)
    }

    /// Returns the end of a read of a line of the buffer of `of`, started at `start`, now or later.
    pub(crate) fn read_end(&mut self, core: CoreId, of: CoreId, start: Picoseconds) -> Picoseconds {
        let (from, to) = (self.tile(of), self.tile(core));
        let span = self.times(core).line.read;
        self.transfer(core, span, start, from, to, from)
    }

    /// Returns the end of a write of a line to the buffer of `of`, started at `start`, now or later.
    pub(crate) fn write_end(&mut self, core: CoreId, of: CoreId, start: Picoseconds) -> Picoseconds {
        let (from, to) = (self.tile(core), self.tile(of));
        let span = self.times(core).line.gap;
        self.transfer(core, span, start, from, to, to)
    }

    /// Returns the end of a write of a register of the interrupt controller, started now.
    pub(crate) fn register_end(&mut self, core: CoreId) -> Picoseconds {
        let hops = self.topology.hops(self.tile(core), self.port_tile);
        self.now + self.times(core).register.over(hops)
    }

    /// Returns the time from the expiry of a core's own counter to the handler of its interrupt, if known.
    pub fn counter_interrupt(&self, core: CoreId) -> Option<Picoseconds> {
        self.times(core).counter_interrupt
    }

    /// Returns the end of an access to the test-and-set register of `of`, started now.
    pub(crate) fn test_and_set_end(&self, core: CoreId, of: CoreId) -> Picoseconds {
        let hops = self.topology.hops(self.tile(core), self.tile(of));
        self.now + self.times(core).register.over(hops)
    }

    /// Returns the time of a read of a line of a core's own buffer.
    pub fn own_read(&self, core: CoreId) -> Picoseconds {
        self.times(core).line.read.over(0)
    }

    pub fn line(&self, of: CoreId, line: u32) -> Line {
        self.core_states[of.0 as usize].buffer[line as usize]
    }

    /// Stores a line that has arrived in the buffer of `of`; a polling core sees it with its first poll from now on.
    pub(crate) fn set_line(&mut self, of: CoreId, line: u32, content: Line) {
        self.core_state(of).buffer[line as usize] = content;
        self.touch_line(of, line);
    }

    /// As [`BareState::set_line`], for a line whose content is kept elsewhere.
    pub(crate) fn touch_line(&mut self, of: CoreId, line: u32) {
        let now = self.now;
        let core_state = self.core_state(of);
        if let Some(watch) = core_state.watch.as_ref().filter(|watch| watch.lines.contains(&line)) {
            let time = watch.first_look(now);
            self.wake(of, time);
        }
        self.notify_anywhere();
    }

    /// Wakes all cores that wait for a write to any buffer.
    pub fn notify_anywhere(&mut self) {
        if self.anywhere == 0 {
            return;
        }
        for core in (0..self.cores()).map(CoreId) {
            let watch = self.core_states[core.0 as usize].watch.as_ref().filter(|watch| watch.anywhere);
            if let Some(time) = watch.map(|watch| watch.first_look(self.now)) {
                self.wake(core, time);
            }
        }
    }

    /// Makes a core poll, once per `period`, until any buffer is written.
    pub(crate) fn watch_anywhere(&mut self, core: CoreId, period: Picoseconds) {
        let since = self.now;
        self.anywhere += 1;
        let watch = FlagWait { since, period, lines: 0..0, anywhere: true, interruptible: false };
        self.core_state(core).watch = Some(watch);
    }

    /// Makes a core poll lines of its own buffer until one is written, or until it is interrupted.
    pub fn watch(&mut self, core: CoreId, lines: Range<u32>, period: Picoseconds, interruptible: bool) {
        let since = self.now;
        self.core_state(core).watch = Some(FlagWait { since, period, lines, anywhere: false, interruptible });
        let interrupt = self.interrupts.as_ref().and_then(|port| port.first(core));
        if let Some(arrival) = interrupt.filter(|_| interruptible) {
            self.wake(core, arrival.max(since));
        }
    }

    /// Interrupts `target`.
    ///
    /// # Panics
    /// If the chip has no interrupt controller.
    pub fn raise(&mut self, source: CoreId, target: CoreId) {
        let hops = self.topology.hops(self.tile(target), self.port_tile);
        let register = self.times(source).register;
        let way = register.over(hops) - register.over(0);
        let port = self.interrupts.as_mut().expect("the chip has an interrupt controller");
        let arrival = port.raise(self.now, source, target, way);
        if self.core_state(target).watch.as_ref().is_some_and(|watch| watch.interruptible) {
            self.wake(target, arrival);
        }
    }

    pub fn take_interrupt(&mut self, core: CoreId) -> Option<CoreId> {
        let now = self.now;
        self.interrupts.as_mut()?.take(now, core)
    }

    /// Returns the wait of a core that requests the registers of the interrupt controller now.
    pub(crate) fn registers_wait(&mut self) -> Picoseconds {
        let now = self.now;
        self.interrupts.as_mut().map_or(Picoseconds::ZERO, |port| port.wait(now))
    }

    pub fn targets_max(&self) -> u32 {
        self.interrupts.as_ref().map_or(0, |port| port.traits.targets_max)
    }

    /// Returns the private memory of a core.
    pub fn private(&mut self, core: CoreId) -> &mut PrivateMemory {
        &mut self.core_state(core).private
    }

    /// Starts a read of a private line at this level. Returns the time at the core, or `None` if the core waits for its
    /// controller.
    pub(crate) fn begin_load(&mut self, core: CoreId, level: Level) -> Option<Picoseconds> {
        match level {
            // The times of the buffer's lines include this, because they were measured with private lines in the
            // first-level cache.
            Level::First => Some(Picoseconds::ZERO),
            Level::Second => Some(self.times(core).second),
            Level::Memory => {
                self.begin_own_job(core, self.times(core).cached.read, 1);
                None
            }
        }
    }

    /// As [`BareState::begin_load`], for a write.
    pub(crate) fn begin_store(&mut self, core: CoreId, level: Level) -> Option<Picoseconds> {
        match level {
            Level::First => Some(Picoseconds::ZERO),
            Level::Second => Some(self.times(core).second_store * WORDS),
            Level::Memory => {
                self.begin_own_job(core, self.times(core).word.gap, WORDS);
                None
            }
        }
    }

    /// Starts the write-back of a line to memory.
    pub(crate) fn begin_write_back(&mut self, core: CoreId) {
        self.begin_own_job(core, self.times(core).cached.gap, 1);
    }

    /// Starts a read of a line of the shared memory behind a controller.
    pub(crate) fn begin_shared_read(&mut self, core: CoreId, controller: ControllerId) {
        self.begin_job(core, controller.0 as usize, self.times(core).through.read, 1);
    }

    /// Starts a write of a line of the shared memory behind a controller.
    pub(crate) fn begin_shared_write(&mut self, core: CoreId, controller: ControllerId) {
        self.begin_job(core, controller.0 as usize, self.times(core).through.gap, 1);
    }

    pub(crate) fn shared_line(&self, controller: ControllerId, line: u64) -> Line {
        self.controllers[controller.0 as usize].shared.get(&line).copied().unwrap_or([0; LINE_BYTES])
    }

    pub(crate) fn set_shared_line(&mut self, controller: ControllerId, line: u64, content: Line) {
        self.controllers[controller.0 as usize].shared.insert(line, content);
    }

    fn begin_own_job(&mut self, core: CoreId, span: HopCost, accesses: u64) {
        self.begin_job(core, self.core_states[core.0 as usize].controller, span, accesses);
    }

    /// Makes a core wait for a controller, for one line in `accesses` accesses.
    fn begin_job(&mut self, core: CoreId, index: usize, span: HopCost, accesses: u64) {
        let tile = self.tile(core);
        let (now, topology, at) = (self.now, self.topology, self.controllers[index].tile);
        let path = topology.route(at, tile).map(|link| topology.link_id(link).0 as usize);
        let (packet, served) = (self.times(core).packet, self.times(core).controller_line);
        let delay = self.network.send(now, now, path, packet);
        let alone = span.over(topology.hops(at, tile)) * accesses + delay;
        let job = Job { units: 1, alone, served };
        let controller = &mut self.controllers[index];
        let id = controller.sharing.join(now, job);
        controller.jobs.push((id, core));
        self.set_event(index);
    }

    /// Schedules the event of a controller at the end of its next job.
    fn set_event(&mut self, index: usize) {
        let owner = self.cores() + index as u32;
        match self.controllers[index].sharing.next_end() {
            Some((at, _)) => self.queue.set(owner, self.tie_break.key(at, EventClass::Arrival, owner, 0)),
            None => _ = self.queue.remove(owner),
        }
    }

    /// Ends a job of a controller and returns its core.
    pub fn served(&mut self, index: usize) -> CoreId {
        let controller = &mut self.controllers[index];
        let (_, id) = controller.sharing.end_next().expect("a controller with an event has a job");
        let at = controller.jobs.iter().position(|(job, _)| *job == id).expect("each job is of a core");
        let (_, core) = controller.jobs.swap_remove(at);
        self.set_event(index);
        core
    }

    /// Returns a waiting core with the line that it waits for; `None` if it waits for an interrupt.
    pub fn waits_for(&self, core: CoreId) -> (CoreId, Option<u32>) {
        let watch = self.core_states[core.0 as usize].watch.as_ref();
        (core, watch.filter(|watch| !watch.lines.is_empty()).map(|watch| watch.lines.start))
    }
}

/// The memory of one core.
pub struct PrivateMemory {
    lines: BTreeMap<u64, Line>,
    /// Its caches, which have tags only.
    pub caches: Hierarchy,
}

impl PrivateMemory {
    pub fn new(caches: &Caches, seed: u64) -> PrivateMemory {
        PrivateMemory { lines: BTreeMap::new(), caches: Hierarchy::new(caches, seed) }
    }

    /// Returns the content of a line.
    pub fn line(&self, line: u64) -> Line {
        self.lines.get(&line).copied().unwrap_or([0; LINE_BYTES])
    }

    /// Sets the content of a line.
    pub(crate) fn set_line(&mut self, line: u64, content: Line) {
        self.lines.insert(line, content);
    }
}
