//! The modelled chip, as the driver of its places sees it.
//!
//! A thin shell around the state: it borrows it for each call, knows what wakes a place from outside, and speaks of
//! time in nanoseconds. [`WorldError`] says why a chip cannot carry a run. It runs no place and does not know what a
//! message says. Invariants: between [`ChipWorld::next`] and [`ChipWorld::end_turn`] the driver runs the place that it
//! was given and no other; a run that is recorded is the same run.

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
    /// It wants another one.
    Busy,
    /// It waits for an arrival, for room where there was none, or for its own clock to reach `due`.
    Idle {
        /// The next deadline of the place, by its own clock.
        due: Option<Duration>,
    },
}

/// Set by [`Unpark::unpark`], cleared when the place has its turn.
pub(crate) struct UnparkFlag(pub(crate) AtomicBool);

impl Unpark for UnparkFlag {
    fn unpark(&self) {
        // PAIR chip.unparked: publish
        self.0.store(true, Ordering::Release);
    }
}

/// State that the world and its endpoints share.
pub(crate) struct WorldShared {
    pub(crate) places: u32,
    pub(crate) unparked: Vec<Arc<UnparkFlag>>,
    pub(crate) state: RefCell<WorldState>,
}

/// A chip with places on its cores, in one thread; a cheap handle, clones are the same world.
///
/// The driver asks [`ChipWorld::next`] whose turn it is, runs that place, and says with [`ChipWorld::end_turn`] what
/// came of it.
#[derive(Clone)]
pub struct ChipWorld {
    shared: Rc<WorldShared>,
}

impl ChipWorld {
    /// A chip with `places` places and the protocol that is its own; `seed` permutes what happens at one time.
    ///
    /// # Errors
    /// [`WorldError`]: the chip cannot have that many.
    pub fn new(places: u32, costs: Costs, seed: u64) -> Result<ChipWorld, WorldError> {
        let protocol = costs.default_protocol();
        ChipWorld::with_protocol(places, costs, protocol, seed)
    }

    /// As [`ChipWorld::new`], with another protocol, and what else joins the places.
    ///
    /// # Errors
    /// [`WorldError`]: the chip cannot have that many.
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

    /// As [`ChipWorld::with_protocol`], with the places of a core map, each on its core.
    ///
    /// # Errors
    /// [`WorldError`]: the chip cannot join that many in this way.
    ///
    /// # Panics
    /// If the core map is of another chip.
    pub fn with_core_map(
        core_map: CoreMap,
        costs: Costs,
        protocol_config: impl Into<ProtocolConfig>,
        seed: u64,
    ) -> Result<ChipWorld, WorldError> {
        assert_eq!(core_map.chip_cores(), costs.cores(), "a seating of another chip");
        let places = core_map.places();
        let layout = protocol_config.into().buffer_layout(places, &costs)?;
        let unparked = (0..places).map(|_| Arc::new(UnparkFlag(AtomicBool::new(false)))).collect();
        let state = RefCell::new(WorldState::new(costs, layout, core_map, seed));
        Ok(ChipWorld { shared: Rc::new(WorldShared { places, unparked, state }) })
    }

    /// Puts the run under a governor; to be said before anything runs.
    ///
    /// # Errors
    /// [`GovernorError`]: the policy does not apply to this chip with that many places.
    pub fn govern(&self, policy: Policy) -> Result<(), GovernorError> {
        let mut state = self.shared.state.borrow_mut();
        let (governor, gears) = state.cores.governor(policy, None)?;
        state.set_governor(policy, governor, &gears);
        Ok(())
    }

    /// Puts the run under another governor while it runs, from the clock of `place` on. The voltages that it begins
    /// with are changed one domain after the other; a cap holds when all of them are.
    ///
    /// # Errors
    /// [`ClockError`]: the policy is not for this run, or a change of a voltage is under way.
    pub fn change_governor(&self, place: PlaceId, policy: Policy) -> Result<(), ClockError> {
        self.shared.state.borrow_mut().change_governor(place, policy, None)
    }

    /// Puts the supply of `place` alone under another governor, from the clock of `place` on. A cap is then one of the
    /// cores of that supply.
    ///
    /// # Errors
    /// [`ClockError`]: a governor governs the whole chip; or as with [`ChipWorld::change_governor`].
    pub fn change_supply_governor(&self, place: PlaceId, policy: Policy) -> Result<(), ClockError> {
        let mut state = self.shared.state.borrow_mut();
        let supply = state.cores.supply(place) as usize;
        state.change_governor(place, policy, Some(supply))
    }

    /// The policy that the supply of `place` is under: its own, or that of the chip.
    pub fn supply_policy(&self, place: PlaceId) -> Policy {
        self.shared.state.borrow().policy_of(place)
    }

    /// The policy of the governor.
    pub fn policy(&self) -> Policy {
        self.shared.state.borrow().policy
    }

    /// Says what places do while they wait; before anything runs. They poll unless something else is said.
    pub fn rest(&self, rest: IdlePolicy) {
        self.shared.state.borrow_mut().cores.rest = rest;
    }

    /// Leaves out what the chip draws, for a run of which only the time is wanted: on a chip of 100,000 cores that is
    /// most of what a short one costs the host. Its report has no energy then. Before anything runs.
    pub fn disable_energy(&self) {
        self.shared.state.borrow_mut().cores.disable_energy();
    }

    /// The endpoint of `place`; take one for each place.
    pub fn endpoint(&self, place: PlaceId) -> ChipEndpoint {
        assert!(place.0 < self.shared.places, "{place} does not exist");
        ChipEndpoint::new(place, Rc::clone(&self.shared))
    }

    /// Returns the place whose turn it is: of those that have something to do, the one with the least clock. `None` if
    /// nothing will ever happen again.
    pub fn next(&self) -> Option<PlaceId> {
        let place = self.shared.state.borrow_mut().next_turn()?;
        let unparked = &self.shared.unparked[place.index()].0;
        // Relaxed is enough to ask: what is not seen yet stays for the next turn.
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

    /// Gives a place that waits a turn, at its first look from now on: for what a driver has put before it.
    pub fn wake(&self, place: PlaceId) {
        let mut state = self.shared.state.borrow_mut();
        let present = state.cores.present();
        state.wake(place, present);
    }

    /// The time at the core of `place`, cut to nanoseconds.
    pub fn now(&self, place: PlaceId) -> Duration {
        Duration::from_nanos(self.shared.state.borrow().cores.now(place).0 / 1_000)
    }

    /// `place` asks that all cores which share its supply run by another divider of their clock, at the lowest voltage
    /// that carries it. Nothing comes of it unless `place` is the first of them, because only one may ask, nor under a
    /// governor that keeps a cap.
    ///
    /// To slow down, dividers change at once and the voltage falls when the controller is done; to speed up, the
    /// voltage rises first. The place waits until the controller takes the request, not until it is done.
    ///
    /// # Errors
    /// [`ClockError`]: nothing has changed.
    pub fn shift_supply(&self, place: PlaceId, divider: u32) -> Result<Option<ClockChange>, ClockError> {
        self.shared.state.borrow_mut().change_clocks(place, divider, true)
    }

    /// `place` asks for the lowest voltage of its supply that is not below `voltage`; clocks stay. As with
    /// [`ChipWorld::shift_supply`], nothing comes of it unless `place` is the first of them, nor under a cap.
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

    /// The number of the supply of the core of `place`.
    pub fn supply(&self, place: PlaceId) -> u32 {
        self.shared.state.borrow().cores.supply(place)
    }

    /// `place` asks for another divider of the clock of its own tile, at once and at the present voltage. Nothing comes
    /// of it under a governor that keeps a cap.
    ///
    /// # Errors
    /// [`ClockError`]: nothing has changed.
    pub fn divide_tile(&self, place: PlaceId, divider: u32) -> Result<Option<ClockChange>, ClockError> {
        self.shared.state.borrow_mut().change_clocks(place, divider, false)
    }

    /// Lets `place` wait, and do nothing else, until no change of its supply is under way.
    pub fn await_supply(&self, place: PlaceId) {
        self.shared.state.borrow_mut().cores.await_supply(place);
    }

    /// Halts the core of `place` for `time`: it draws what a sleeping core draws and takes in no messages.
    pub fn halt(&self, place: PlaceId, time: Picoseconds) {
        self.shared.state.borrow_mut().cores.spend(place, time, TimeCategory::Sleeping);
    }

    /// Lets `place` compute for a number of cycles of its core that were measured, not stated. The measuring
    /// is the driver's: here is no clock of the host.
    pub fn charge(&self, place: PlaceId, cycles: u64) {
        self.shared.state.borrow_mut().cores.compute(place, cycles, TimeCategory::Measured);
    }

    /// Returns the present divider of the clock of `place`; `None` if the chip cannot divide it.
    pub fn divider(&self, place: PlaceId) -> Option<u32> {
        self.shared.state.borrow().cores.divider(place)
    }

    /// The rate of the core of `place` now, and the voltage of its supply, if the chip says any.
    pub fn operating_point(&self, place: PlaceId) -> (Rate, Option<Microvolts>) {
        self.shared.state.borrow().cores.operating_point(place)
    }

    /// Takes `place` away now: what it has written still arrives, then the others are told. A place that has said
    /// [`leave`](isles_transport::Endpoint::leave) ends without news.
    pub fn kill(&self, place: PlaceId) {
        self.shared.state.borrow_mut().kill(place);
    }

    /// Returns `true` if `place` has not been killed.
    pub fn is_alive(&self, place: PlaceId) -> bool {
        self.shared.state.borrow().is_alive(place)
    }

    /// Blocks sent and not dropped yet, wherever they are.
    pub fn live_blocks(&self) -> usize {
        self.shared.state.borrow().live_blocks.get()
    }

    /// The time before which nothing will happen any more, cut to nanoseconds.
    pub fn present(&self) -> Duration {
        Duration::from_nanos(self.shared.state.borrow().cores.present().0 / 1_000)
    }

    /// A reading of the energy at the start of the run; `None` if nothing is known of the chip's power.
    pub fn energy_reading(&self) -> Option<EnergyReading> {
        self.shared.state.borrow().cores.energy_reading()
    }

    /// Moves `reading` on to the present; of a run that is over to the latest clock of a place, where it has the energy
    /// of the report.
    pub fn read_energy(&self, reading: &mut EnergyReading, is_over: bool) {
        self.shared.state.borrow().cores.read_energy(reading, is_over);
    }

    /// Returns the report of the run so far.
    pub fn report(&self) -> Report {
        self.shared.state.borrow().report()
    }
}

/// The last time that a place can be woken for: an hour before the end of a core's clock, so that the looks, copies and
/// changes of clocks which follow a wake-up do not run past it.
const DUE_MAX: Picoseconds = Picoseconds(u64::MAX - 3_600 * PICOSECONDS_PER_SECOND);

/// The first picosecond at which a clock that is cut to nanoseconds shows `time`; none if that is beyond [`DUE_MAX`],
/// which is never.
fn picoseconds(time: Duration) -> Option<Picoseconds> {
    let due = time.as_nanos().checked_mul(1_000).and_then(|due| u64::try_from(due).ok());
    due.map(Picoseconds).filter(|due| *due <= DUE_MAX)
}

/// Error of a world: its places cannot run on the chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorldError {
    /// The chip has fewer cores.
    Cores {
        /// Number of cores.
        cores: u32,
    },
    /// The message buffers cannot be divided among that many places.
    Buffer {
        /// Lines of the buffer of one core.
        lines: u32,
        /// Lines that would be needed.
        needed: u32,
    },
    /// The protocol keeps something for each pair of places, whether they talk or not.
    Places {
        /// The most places.
        most: u32,
    },
    /// The protocol is one of message buffers, and the cores have none.
    NoBuffers,
    /// The protocol is one of packets, and the hardware carries none.
    NoPackets,
    /// An asynchronous broadcast is asked for, and the protocol has none.
    NoRelays,
    /// The same on a chip without an interrupt controller.
    NoInterrupts,
    /// The chip's file does not say what the protocol needs to know.
    Unknown {
        /// The key of its presets.
        key: &'static str,
    },
}

impl WorldError {
    /// The first of these keys whose value is not known, as an error.
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
    /// Takes memory of zeros that all cores share, behind the memory controller of `place`; for the rest of the run.
    /// None if the chip's file does not say what memory costs, or has other lines than those of 32 bytes.
    pub fn take_shared(&self, place: PlaceId, kind: CachePolicy, bytes: u64) -> Option<MemoryRegion> {
        let state = &mut *self.shared.state.borrow_mut();
        if state.shared.is_none() {
            state.shared = state.cores.memory().map(SharedMemoryState::new);
        }
        let core = state.cores.core_map().core(place);
        Some(state.shared.as_mut()?.take(core, kind, bytes))
    }

    /// Takes memory of zeros in the message buffer of the core of `place`, as lines that are written through. None if
    /// the chip's file does not say what memory costs, or the lines kept for this ([`Costs::with_window_lines`]) are
    /// taken.
    pub fn take_buffer(&self, place: PlaceId, bytes: u64) -> Option<MemoryRegion> {
        let state = &mut *self.shared.state.borrow_mut();
        if state.shared.is_none() {
            state.shared = state.cores.memory().map(SharedMemoryState::new);
        }
        let lines = state.cores.window_lines();
        state.shared.as_mut()?.take_buffer(place, lines, bytes)
    }

    /// Gives memory of [`ChipWorld::take_buffer`] back.
    pub fn give_back_buffer(&self, region: &MemoryRegion) {
        self.reach_shared(|shared, _| shared.give_back(region));
    }

    /// Returns `true` if the region lies in memory that has been taken, in the message buffer of the core of `place` or
    /// behind its controller.
    pub fn is_taken_by(&self, place: PlaceId, region: &MemoryRegion) -> bool {
        let state = self.shared.state.borrow();
        let core = state.cores.core_map().core(place);
        state.shared.as_ref().is_some_and(|shared| shared.is_taken_by(place, core, region))
    }

    /// Returns the number of the tile of the core of `place`.
    pub fn tile(&self, place: PlaceId) -> u32 {
        self.shared.state.borrow().cores.tile(place).0
    }

    /// Returns the number of controllers of shared memory; zero if the chip's file does not state its cost.
    pub fn memory_controllers(&self) -> u32 {
        let state = self.shared.state.borrow();
        state.cores.memory().map_or(0, |memory| memory.controllers.len() as u32)
    }

    /// `place` reads from `offset` on: what it sees, which may be old.
    ///
    /// # Panics
    /// If that is not within the region.
    pub fn read_shared(&self, place: PlaceId, region: &MemoryRegion, offset: u64, into: &mut [u8]) {
        self.reach_shared(|shared, cores| shared.read(cores, place, region, offset, into));
    }

    /// `place` writes from `offset` on.
    ///
    /// # Panics
    /// If that is not within the region.
    pub fn write_shared(&self, place: PlaceId, region: &MemoryRegion, offset: u64, from: &[u8]) {
        self.reach_shared(|shared, cores| shared.write(cores, place, region, offset, from));
    }

    /// The core of `place` forgets what its first cache has of memory that is written through.
    pub fn invalidate_shared(&self, place: PlaceId) {
        self.reach_shared(|shared, cores| shared.invalidate(cores, place));
    }

    /// The write buffer of the core of `place` lets its line go, to memory behind the controller of the region.
    pub fn drain_shared(&self, place: PlaceId, region: &MemoryRegion) {
        self.reach_shared(|shared, cores| shared.drain(cores, place, region));
    }

    /// The core of `place` writes back what its caches have of the regions, and forgets it; in one go, which takes no
    /// longer than to flush all that its caches hold.
    pub fn flush_shared(&self, place: PlaceId, regions: &[MemoryRegion]) {
        self.reach_shared(|shared, cores| shared.flush(cores, place, regions));
    }

    fn reach_shared(&self, access: impl FnOnce(&mut SharedMemoryState, &mut Cores)) {
        let state = &mut *self.shared.state.borrow_mut();
        let shared = state.shared.as_mut().expect("who has a stretch has taken it");
        access(shared, &mut state.cores);
    }
}

impl ChipWorld {
    /// Records from now on who sends how much to whom. The run stays what it was, and takes longer on the host.
    pub fn record(&self) {
        let state = &mut self.shared.state.borrow_mut();
        let recorder = state.cores.recorder.get_or_insert_default();
        recorder.traffic.get_or_insert_with(|| Traffic::new(self.shared.places as usize));
    }

    /// Records from now on what each core does when, as a Perfetto trace for `sink`, which a thread of its own writes
    /// beside the run; `run` says in words of which run.
    ///
    /// [`ChipWorld::end_trace`] returns the first error of the sink.
    ///
    /// # Errors
    /// A thread cannot be had; then nothing has changed.
    ///
    /// # Panics
    /// If there are more than 65,536 places; and what the sink panics with is raised here again, in the run or at its
    /// end.
    pub fn trace(&self, run: &str, sink: Box<dyn Write + Send>) -> io::Result<()> {
        let cores = &mut self.shared.state.borrow_mut().cores;
        let (initial_state, gears) = cores.initial_state();
        let trace_writer = TraceWriter::new(Trace::new(cores.topology(), &initial_state, gears, run, sink))?;
        cores.recorder.get_or_insert_default().trace_writer = Some(trace_writer);
        Ok(())
    }

    /// Ends the trace, if there is one, and writes what is left of it.
    ///
    /// # Errors
    /// The first error of its sink; what came after that is lost.
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
