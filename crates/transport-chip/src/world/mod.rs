//! The modelled chip as seen by the driver of its places.
//!
//! A thin shell around the state: it borrows the state for each call, handles wakeups from outside, and converts time
//! to nanoseconds. It runs no place and does not know the content of messages. Invariants: between [`ChipWorld::next`]
//! and [`ChipWorld::end_turn`] the driver runs only the returned place; recording does not change a run.

mod death;
mod interrupts;
pub(crate) mod messages;
mod scheduling;
pub(crate) mod state;

use crate::clocks::{ClockChange, ClockError};
use crate::cores::{Cores, Costs};
use crate::endpoint::ChipEndpoint;
use crate::energy::EnergyReading;
use crate::idle_policy::IdlePolicy;
use crate::placement::{CoreMap, Placement};
use crate::protocol::ProtocolConfig;
use crate::record::{Trace, TraceWriter};
use crate::report::{Flow, LinkLoad, Report, TimeCategory, Traffic};
use crate::shared::{MemoryRegion, SharedMemoryState};
use crate::world::state::WorldState;
use isles_chip::governor::{GovernorError, Policy};
use isles_chip::quantity::{Microvolts, PICOSECONDS_PER_SECOND, Picoseconds, Rate};
use isles_chip::shared::CachePolicy;
use isles_transport::{PlaceId, Unpark};
use std::cell::RefCell;
use std::io::Write;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fmt, io};

/// Outcome of a place's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnOutcome {
    /// The place wants another turn.
    Busy,
    /// The place waits for an arrival, for room after a refusal, or until its clock reaches `due`.
    Idle {
        /// The next deadline of the place, by its own clock.
        due: Option<Duration>,
    },
}

/// Set by [`Unpark::unpark`], cleared by the place's next turn.
pub(crate) struct UnparkFlag(pub(crate) AtomicBool);

impl Unpark for UnparkFlag {
    fn unpark(&self) {
        // PAIR chip.unparked: publish
        self.0.store(true, Ordering::Release);
    }
}

/// State shared by the world and its endpoints.
pub(crate) struct WorldShared {
    pub(crate) places: u32,
    pub(crate) unparked: Vec<Arc<UnparkFlag>>,
    pub(crate) state: RefCell<WorldState>,
}

/// A chip with places on its cores, in one thread; a cheap handle whose clones refer to the same world.
///
/// The driver runs the place that [`ChipWorld::next`] returns, and reports the outcome with [`ChipWorld::end_turn`].
#[derive(Clone)]
pub struct ChipWorld {
    shared: Rc<WorldShared>,
}

impl ChipWorld {
    /// Makes a chip with `places` places and its default protocol; `seed` permutes simultaneous events.
    ///
    /// # Errors
    /// [`WorldError`]: the chip cannot have that many places.
    pub fn new(places: u32, costs: Costs, seed: u64) -> Result<ChipWorld, WorldError> {
        let protocol = costs.default_protocol();
        ChipWorld::with_protocol(places, costs, protocol, seed)
    }

    /// As [`ChipWorld::new`], with another protocol configuration.
    ///
    /// # Errors
    /// [`WorldError`]: the chip cannot have that many places with this configuration.
    pub fn with_protocol(
        places: u32,
        costs: Costs,
        protocol_config: impl Into<ProtocolConfig>,
        seed: u64,
    ) -> Result<ChipWorld, WorldError> {
        let cores = costs.cores();
        let core_map = Placement::Linear.core_map(costs.topology(), places);
        ChipWorld::with_core_map(
            core_map.map_err(|_| WorldError::Cores { cores })?,
            costs,
            protocol_config,
            seed,
        )
    }

    /// As [`ChipWorld::with_protocol`], with the places on the cores of a core map.
    ///
    /// # Errors
    /// [`WorldError`]: the chip cannot have that many places with this configuration.
    ///
    /// # Panics
    /// If the core map is of another chip.
    pub fn with_core_map(
        core_map: CoreMap,
        costs: Costs,
        protocol_config: impl Into<ProtocolConfig>,
        seed: u64,
    ) -> Result<ChipWorld, WorldError> {
        assert_eq!(core_map.chip_cores(), costs.cores(), "a core map of another chip");
        let places = core_map.places();
        let layout = protocol_config.into().buffer_layout(places, &costs)?;
        let unparked = (0..places).map(|_| Arc::new(UnparkFlag(AtomicBool::new(false)))).collect();
        let state = RefCell::new(WorldState::new(costs, layout, core_map, seed));
        Ok(ChipWorld { shared: Rc::new(WorldShared { places, unparked, state }) })
    }

    /// Sets the governor of the run; call it before anything runs.
    ///
    /// # Errors
    /// [`GovernorError`]: the policy does not apply to this chip with that many places.
    pub fn govern(&self, policy: Policy) -> Result<(), GovernorError> {
        let mut state = self.shared.state.borrow_mut();
        let (governor, gears) = state.cores.governor(policy, None)?;
        state.set_governor(policy, governor, &gears);
        Ok(())
    }

    /// Changes the governor of the run from the clock of `place` on. Its initial voltages are set one domain after the
    /// other; a cap holds once all of them are set.
    ///
    /// # Errors
    /// [`ClockError`]: the policy is impossible for this run, or a voltage is changing.
    pub fn change_governor(&self, place: PlaceId, policy: Policy) -> Result<(), ClockError> {
        self.shared.state.borrow_mut().change_governor(place, policy, None)
    }

    /// Sets the governor of only the supply of `place`, from the clock of `place` on. A cap then applies to the cores
    /// of that supply.
    ///
    /// # Errors
    /// [`ClockError`]: the whole chip has a governor; otherwise as [`ChipWorld::change_governor`].
    pub fn change_supply_governor(&self, place: PlaceId, policy: Policy) -> Result<(), ClockError> {
        let mut state = self.shared.state.borrow_mut();
        let supply = state.cores.supply(place) as usize;
        state.change_governor(place, policy, Some(supply))
    }

    /// Returns the policy for the supply of `place`: its own, or that of the chip.
    pub fn supply_policy(&self, place: PlaceId) -> Policy {
        self.shared.state.borrow().policy_of(place)
    }

    /// Returns the policy of the chip's governor.
    pub fn policy(&self) -> Policy {
        self.shared.state.borrow().policy
    }

    /// Sets what places do while they wait; call it before anything runs. By default they poll.
    pub fn rest(&self, rest: IdlePolicy) {
        self.shared.state.borrow_mut().cores.rest = rest;
    }

    /// Disables the energy model for a run of which only the time is needed; its report has no energy then. On a chip
    /// of 100,000 cores this saves most of the host time of a short run. Call it before anything runs.
    pub fn disable_energy(&self) {
        self.shared.state.borrow_mut().cores.disable_energy();
    }

    /// Returns the endpoint of `place`; take one for each place.
    pub fn endpoint(&self, place: PlaceId) -> ChipEndpoint {
        assert!(place.0 < self.shared.places, "{place} does not exist");
        ChipEndpoint::new(place, Rc::clone(&self.shared))
    }

    /// Returns the place that has the next turn: the one with the least clock among those with something to do. `None`
    /// if nothing will ever happen again.
    pub fn next(&self) -> Option<PlaceId> {
        let place = self.shared.state.borrow_mut().next_turn()?;
        let unparked = &self.shared.unparked[place.index()].0;
        // Relaxed is enough here: a flag that is not seen yet is left for the next turn.
        if unparked.load(Ordering::Relaxed) {
            // PAIR chip.unparked: observe
            unparked.swap(false, Ordering::Acquire);
        }
        Some(place)
    }

    /// Ends the turn that [`ChipWorld::next`] began.
    pub fn end_turn(&self, place: PlaceId, turn: TurnOutcome) {
        // Relaxed is enough: `next` observes the flag before the place acts on it.
        let unparked = self.shared.unparked[place.index()].0.load(Ordering::Relaxed);
        let mut state = self.shared.state.borrow_mut();
        state.settle(place);
        match turn {
            TurnOutcome::Idle { due } if !unparked => state.park(place, due.and_then(picoseconds)),
            _ => state.go_on(place),
        }
    }

    /// Gives a waiting place a turn at its next poll, for work that the driver has queued for it.
    pub fn wake(&self, place: PlaceId) {
        let mut state = self.shared.state.borrow_mut();
        let present = state.cores.present();
        state.wake(place, present);
    }

    /// Returns the time at the core of `place`, rounded down to nanoseconds.
    pub fn now(&self, place: PlaceId) -> Duration {
        Duration::from_nanos(self.shared.state.borrow().cores.now(place).0 / 1_000)
    }

    /// Sets the clock divider of all cores that share the supply of `place`, with the lowest voltage that supports it.
    /// Returns `None`, without effect, unless `place` is the first of the supply, or if a governor enforces a cap.
    ///
    /// To slow down, dividers change at once and the voltage later; to speed up, the voltage rises first. The place
    /// waits until the controller has accepted the request, not until the change is complete.
    ///
    /// # Errors
    /// [`ClockError`]: nothing has changed.
    pub fn shift_supply(&self, place: PlaceId, divider: u32) -> Result<Option<ClockChange>, ClockError> {
        self.shared.state.borrow_mut().change_clocks(place, divider, true)
    }

    /// Sets the supply of `place` to its lowest voltage that is not below `voltage`; clocks are unchanged. Returns
    /// `None`, without effect, in the cases of [`ChipWorld::shift_supply`].
    ///
    /// # Errors
    /// [`ClockError`]: nothing has changed.
    pub fn set_supply_voltage(
        &self,
        place: PlaceId,
        voltage: Microvolts,
    ) -> Result<Option<ClockChange>, ClockError> {
        self.shared.state.borrow_mut().set_supply_voltage(place, voltage)
    }

    /// Returns the number of the supply of the core of `place`.
    pub fn supply(&self, place: PlaceId) -> u32 {
        self.shared.state.borrow().cores.supply(place)
    }

    /// Sets the clock divider of the tile of `place`, at once and at the present voltage. Returns `None`, without
    /// effect, if a governor enforces a cap.
    ///
    /// # Errors
    /// [`ClockError`]: nothing has changed.
    pub fn divide_tile(&self, place: PlaceId, divider: u32) -> Result<Option<ClockChange>, ClockError> {
        self.shared.state.borrow_mut().change_clocks(place, divider, false)
    }

    /// Blocks `place` until no change of its supply is in progress.
    pub fn await_supply(&self, place: PlaceId) {
        self.shared.state.borrow_mut().cores.await_supply(place);
    }

    /// Halts the core of `place` for `time`: it draws the power of a sleeping core and handles no messages.
    pub fn halt(&self, place: PlaceId, time: Picoseconds) {
        self.shared.state.borrow_mut().cores.spend(place, time, TimeCategory::Sleeping);
    }

    /// Charges `place` with a number of core cycles that the driver has measured.
    pub fn charge(&self, place: PlaceId, cycles: u64) {
        self.shared.state.borrow_mut().cores.compute(place, cycles, TimeCategory::Measured);
    }

    /// Returns the present divider of the clock of `place`; `None` if the chip cannot divide it.
    pub fn divider(&self, place: PlaceId) -> Option<u32> {
        self.shared.state.borrow().cores.divider(place)
    }

    /// Returns the present clock rate of the core of `place`, and the voltage of its supply, if the chip file has
    /// voltages.
    pub fn operating_point(&self, place: PlaceId) -> (Rate, Option<Microvolts>) {
        self.shared.state.borrow().cores.operating_point(place)
    }

    /// Kills `place` now: everything it has written still arrives, then the others are notified. The death of a place
    /// that has called [`leave`](isles_transport::Endpoint::leave) is not reported.
    pub fn kill(&self, place: PlaceId) {
        self.shared.state.borrow_mut().kill(place);
    }

    /// Returns `true` if `place` has not been killed.
    pub fn is_alive(&self, place: PlaceId) -> bool {
        self.shared.state.borrow().is_alive(place)
    }

    /// Returns the number of blocks that were sent and not dropped yet.
    pub fn live_blocks(&self) -> usize {
        self.shared.state.borrow().live_blocks.get()
    }

    /// Returns the time before which nothing will happen any more, rounded down to nanoseconds.
    pub fn present(&self) -> Duration {
        Duration::from_nanos(self.shared.state.borrow().cores.present().0 / 1_000)
    }

    /// Returns an energy reading at the start of the run; `None` if the chip has no power model.
    pub fn energy_reading(&self) -> Option<EnergyReading> {
        self.shared.state.borrow().cores.energy_reading()
    }

    /// Advances `reading` to the present; if the run is over, to the latest clock of a place, where it equals the
    /// energy of the report.
    pub fn read_energy(&self, reading: &mut EnergyReading, is_over: bool) {
        self.shared.state.borrow().cores.read_energy(reading, is_over);
    }

    /// Returns the report of the run so far.
    pub fn report(&self) -> Report {
        self.shared.state.borrow().report()
    }
}

/// The last time at which a place can be woken: an hour before the end of a core's clock, so that the operations after
/// a wakeup do not overflow it.
const DUE_MAX: Picoseconds = Picoseconds(u64::MAX - 3_600 * PICOSECONDS_PER_SECOND);

/// Returns the first picosecond at which a clock rounded down to nanoseconds shows `time`; `None` if that is beyond
/// [`DUE_MAX`], which counts as never.
fn picoseconds(time: Duration) -> Option<Picoseconds> {
    let due = time.as_nanos().checked_mul(1_000).and_then(|due| u64::try_from(due).ok());
    due.map(Picoseconds).filter(|due| *due <= DUE_MAX)
}

/// Reason why places cannot run on a chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorldError {
    /// The chip has fewer cores.
    Cores {
        /// Number of cores.
        cores: u32,
    },
    /// The message buffers are too small for that many places.
    Buffer {
        /// Lines of the buffer of one core.
        lines: u32,
        /// Lines that are needed.
        needed: u32,
    },
    /// The protocol keeps state for each pair of places.
    Places {
        /// Maximum number of places.
        most: u32,
    },
    /// The protocol needs message buffers, and the cores have none.
    NoBuffers,
    /// The protocol needs hardware packets, and the chip has none.
    NoPackets,
    /// The protocol does not support asynchronous broadcasts.
    NoRelays,
    /// The chip has no interrupt controller.
    NoInterrupts,
    /// The chip file lacks an entry that the protocol needs.
    Unknown {
        /// The key of the entry in a preset.
        key: &'static str,
    },
}

impl WorldError {
    /// Returns an error for the first of these keys without a value.
    pub(crate) fn of_missing(keys: &[(&'static str, bool)]) -> Result<(), WorldError> {
        let missing = keys.iter().find(|(_, is_known)| !is_known);
        missing.map_or(Ok(()), |(key, _)| Err(WorldError::Unknown { key }))
    }
}

impl fmt::Display for WorldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WorldError::Cores { cores } => write!(f, "the chip has {cores} cores"),
            WorldError::Buffer { lines, needed } => {
                let plural = if *lines == 1 { "line" } else { "lines" };
                write!(f, "the message buffer of a core has {lines} {plural}, but {needed} are needed")
            }
            WorldError::Places { most } => {
                write!(f, "the protocol keeps state for each pair of places, for at most {most} places")
            }
            WorldError::NoBuffers => f.write_str("the cores have no message buffers"),
            WorldError::NoPackets => f.write_str("the hardware carries no packets"),
            WorldError::NoRelays => f.write_str("asynchronous broadcasts need the protocol doorbell"),
            WorldError::NoInterrupts => f.write_str("asynchronous broadcasts need an interrupt controller"),
            WorldError::Unknown { key } => write!(f, "the chip's file does not give {key}"),
        }
    }
}

impl std::error::Error for WorldError {}

impl ChipWorld {
    /// Allocates zeroed shared memory behind the memory controller of `place`, for the rest of the run. Returns `None`
    /// if the chip file has no memory costs, or its lines are not 32 bytes long.
    pub fn take_shared(&self, place: PlaceId, kind: CachePolicy, bytes: u64) -> Option<MemoryRegion> {
        let state = &mut *self.shared.state.borrow_mut();
        if state.shared.is_none() {
            state.shared = state.cores.memory().map(SharedMemoryState::new);
        }
        let core = state.cores.core_map().core(place);
        Some(state.shared.as_mut()?.take(core, kind, bytes))
    }

    /// Allocates zeroed memory in the message buffer of the core of `place`, with write-through lines. Returns `None`
    /// if the chip file has no memory costs, or the lines reserved for this ([`Costs::with_window_lines`]) are used up.
    pub fn take_buffer(&self, place: PlaceId, bytes: u64) -> Option<MemoryRegion> {
        let state = &mut *self.shared.state.borrow_mut();
        if state.shared.is_none() {
            state.shared = state.cores.memory().map(SharedMemoryState::new);
        }
        let lines = state.cores.window_lines();
        state.shared.as_mut()?.take_buffer(place, lines, bytes)
    }

    /// Frees memory of [`ChipWorld::take_buffer`].
    pub fn give_back_buffer(&self, region: &MemoryRegion) {
        self.reach_shared(|shared, _| shared.give_back(region));
    }

    /// Returns `true` if the region is in allocated memory, in the message buffer of the core of `place` or behind its
    /// controller.
    pub fn is_taken_by(&self, place: PlaceId, region: &MemoryRegion) -> bool {
        let state = self.shared.state.borrow();
        let core = state.cores.core_map().core(place);
        state.shared.as_ref().is_some_and(|shared| shared.is_taken_by(place, core, region))
    }

    /// Returns the number of the tile of the core of `place`.
    pub fn tile(&self, place: PlaceId) -> u32 {
        self.shared.state.borrow().cores.tile(place).0
    }

    /// Returns the number of controllers of shared memory; 0 if the chip file has no memory costs.
    pub fn memory_controllers(&self) -> u32 {
        let state = self.shared.state.borrow();
        state.cores.memory().map_or(0, |memory| memory.controllers.len() as u32)
    }

    /// Reads the bytes from `offset` on as `place` sees them, which may be stale.
    ///
    /// # Panics
    /// If that is not within the region.
    pub fn read_shared(&self, place: PlaceId, region: &MemoryRegion, offset: u64, into: &mut [u8]) {
        self.reach_shared(|shared, cores| shared.read(cores, place, region, offset, into));
    }

    /// Writes bytes from `offset` on as `place`.
    ///
    /// # Panics
    /// If that is not within the region.
    pub fn write_shared(&self, place: PlaceId, region: &MemoryRegion, offset: u64, from: &[u8]) {
        self.reach_shared(|shared, cores| shared.write(cores, place, region, offset, from));
    }

    /// Invalidates the write-through lines in the first-level cache of the core of `place`.
    pub fn invalidate_shared(&self, place: PlaceId) {
        self.reach_shared(|shared, cores| shared.invalidate(cores, place));
    }

    /// Drains the write buffer of the core of `place` to memory behind the controller of the region.
    pub fn drain_shared(&self, place: PlaceId, region: &MemoryRegion) {
        self.reach_shared(|shared, cores| shared.drain(cores, place, region));
    }

    /// Writes back and invalidates the lines of the regions in the caches of the core of `place`, in one operation,
    /// which takes no longer than flushing the whole caches.
    pub fn flush_shared(&self, place: PlaceId, regions: &[MemoryRegion]) {
        self.reach_shared(|shared, cores| shared.flush(cores, place, regions));
    }

    fn reach_shared(&self, access: impl FnOnce(&mut SharedMemoryState, &mut Cores)) {
        let state = &mut *self.shared.state.borrow_mut();
        let shared = state.shared.as_mut().expect("a region was allocated before");
        access(shared, &mut state.cores);
    }
}

impl ChipWorld {
    /// Records the traffic between places from now on. It does not change the run, but takes host time.
    pub fn record(&self) {
        let state = &mut self.shared.state.borrow_mut();
        let recorder = state.cores.recorder.get_or_insert_default();
        recorder.traffic.get_or_insert_with(|| Traffic::new(self.shared.places as usize));
    }

    /// Records the activity of each core from now on as a Perfetto trace, which a thread of its own writes to `sink`;
    /// `run` is a description of the run.
    ///
    /// [`ChipWorld::end_trace`] returns the first error of the sink.
    ///
    /// # Errors
    /// The thread cannot be started; nothing has changed then.
    ///
    /// # Panics
    /// If there are more than 65,536 places. A panic of the sink is propagated, during the run or at its end.
    pub fn trace(&self, run: &str, sink: Box<dyn Write + Send>) -> io::Result<()> {
        let cores = &mut self.shared.state.borrow_mut().cores;
        let (initial_state, gears) = cores.initial_state();
        let trace_writer = TraceWriter::new(Trace::new(cores.topology(), &initial_state, gears, run, sink))?;
        cores.recorder.get_or_insert_default().trace_writer = Some(trace_writer);
        Ok(())
    }

    /// Ends the trace, if there is one, and writes the rest of it.
    ///
    /// # Errors
    /// The first error of the sink; everything after it is lost.
    pub fn end_trace(&self) -> io::Result<()> {
        let mut state = self.shared.state.borrow_mut();
        let trace_writer = state.cores.recorder.as_mut().and_then(|all| all.trace_writer.take());
        trace_writer.map_or(Ok(()), |trace_writer| trace_writer.finish(state.cores.energy()))
    }

    /// Returns the messages sent between places since [`ChipWorld::record`]; empty without that call.
    pub fn flows(&self) -> Vec<Flow> {
        let state = self.shared.state.borrow();
        let recorder = state.cores.recorder.as_ref();
        recorder.and_then(|recorder| recorder.traffic.as_ref()).map(Traffic::flows).unwrap_or_default()
    }

    /// Returns the load of each directed link, in the order of the links' numbers.
    pub fn link_loads(&self) -> Vec<LinkLoad> {
        self.shared.state.borrow().cores.link_loads()
    }
}
