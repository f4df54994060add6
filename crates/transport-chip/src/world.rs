//! The modelled chip, as the driver of its places sees it.

use crate::clocks::{ClockChange, ClockError};
use crate::cores::{Cores, Costs};
use crate::endpoint::ChipEndpoint;
use crate::placement::{Placement, Seating};
use crate::record::{Scribe, Trace};
use crate::report::{Report, Spending};
use crate::rest::Rest;
use crate::shared::{Shared as SharedLines, Stretch};
use crate::state::State;
use crate::traffic::{Flow, LinkLoad, Traffic};
use crate::wire::Protocol;
use isles_chip::governor::{Policy, Unfit};
use isles_chip::quantity::Picoseconds;
use isles_chip::shared::Kind;
use isles_transport::{PlaceId, Unpark};
use std::cell::RefCell;
use std::fmt;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Why so many places cannot run on a chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// There are not so many cores.
    Cores {
        /// How many there are.
        cores: u32,
    },
    /// The message buffers cannot be divided among so many places.
    Buffer {
        /// Lines of the buffer of one core.
        lines: u32,
        /// Lines that would be needed.
        needed: u32,
    },
    /// The protocol is one of message buffers, and the cores have none.
    NoBuffers,
    /// The protocol is one of packets, and the hardware carries none.
    NoPackets,
    /// The chip's file does not say what the protocol needs to know.
    Unknown {
        /// The key of its presets.
        key: &'static str,
    },
}

impl Misfit {
    /// The first of these keys whose value is not known, as an error.
    pub(crate) fn of_missing(keys: &[(&'static str, bool)]) -> Result<(), Misfit> {
        let missing = keys.iter().find(|(_, is_known)| !is_known);
        missing.map_or(Ok(()), |(key, _)| Err(Misfit::Unknown { key }))
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Misfit::Cores { cores } => write!(f, "the chip has {cores} cores"),
            Misfit::Buffer { lines, needed } => {
                let plural = if *lines == 1 { "line" } else { "lines" };
                write!(f, "the message buffer of a core has {lines} {plural}, and {needed} are needed")
            }
            Misfit::NoBuffers => f.write_str("the cores have no message buffers"),
            Misfit::NoPackets => f.write_str("the hardware carries no packets"),
            Misfit::Unknown { key } => write!(f, "the chip's file does not give {key}"),
        }
    }
}

impl std::error::Error for Misfit {}

/// What a place comes to at the end of its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It wants another one.
    Busy,
    /// It waits for an arrival, for room where there was none, or for its own clock to reach `due`.
    Idle {
        /// The next deadline of the place, by its own clock.
        due: Option<Duration>,
    },
}

/// Set by [`Unpark::unpark`], cleared when the place has its turn.
pub(crate) struct UnparkFlag(AtomicBool);

impl Unpark for UnparkFlag {
    fn unpark(&self) {
        // PAIR chip.unparked: publish
        self.0.store(true, Ordering::Release);
    }
}

/// What the world and its endpoints share.
pub(crate) struct Shared {
    pub(crate) places: u32,
    pub(crate) unparked: Vec<Arc<UnparkFlag>>,
    pub(crate) state: RefCell<State>,
}

/// A chip with places on its cores, in one thread; a cheap handle, clones are the same world.
///
/// The driver asks [`World::next`] whose turn it is, runs that place, and says with [`World::end_turn`] what came of
/// it.
#[derive(Clone)]
pub struct World {
    shared: Rc<Shared>,
}

impl World {
    /// A chip with `places` places and the protocol that is its own; `seed` permutes what happens at one time.
    ///
    /// # Errors
    /// [`Misfit`]: the chip cannot have so many.
    pub fn new(places: u32, costs: Costs, seed: u64) -> Result<World, Misfit> {
        let protocol = costs.default_protocol();
        World::with_protocol(places, costs, protocol, seed)
    }

    /// As [`World::new`], with another protocol.
    ///
    /// # Errors
    /// [`Misfit`]: the chip cannot have so many.
    pub fn with_protocol(places: u32, costs: Costs, protocol: Protocol, seed: u64) -> Result<World, Misfit> {
        let cores = costs.cores();
        let seating = Placement::Linear.seat(costs.topology(), places);
        World::seated(seating.map_err(|_| Misfit::Cores { cores })?, costs, protocol, seed)
    }

    /// As [`World::with_protocol`], with the places of a seating, each on its core.
    ///
    /// # Errors
    /// [`Misfit`]: the chip cannot carry that protocol among so many.
    ///
    /// # Panics
    /// If the seating is of another chip.
    pub fn seated(seating: Seating, costs: Costs, protocol: Protocol, seed: u64) -> Result<World, Misfit> {
        assert_eq!(seating.chip_cores(), costs.cores(), "a seating of another chip");
        let places = seating.places();
        let division = protocol.divide(places, &costs)?;
        let unparked = (0..places).map(|_| Arc::new(UnparkFlag(AtomicBool::new(false)))).collect();
        let state = RefCell::new(State::new(costs, division, seating, seed));
        Ok(World { shared: Rc::new(Shared { places, unparked, state }) })
    }

    /// Puts the run under a governor; to be said before anything runs.
    ///
    /// # Errors
    /// [`Unfit`]: that policy is not for this chip with so many places.
    pub fn govern(&self, policy: Policy) -> Result<(), Unfit> {
        let mut state = self.shared.state.borrow_mut();
        let (governor, gears) = state.cores.governor(policy)?;
        state.set_governor(governor, &gears);
        Ok(())
    }

    /// Says what places do while they wait; before anything runs. They poll unless something else is said.
    pub fn rest(&self, rest: Rest) {
        self.shared.state.borrow_mut().cores.rest = rest;
    }

    /// The endpoint of `place`; take one for each place.
    pub fn endpoint(&self, place: PlaceId) -> ChipEndpoint {
        assert!(place.0 < self.shared.places, "{place} does not exist");
        ChipEndpoint::new(place, Rc::clone(&self.shared))
    }

    /// Whose turn it is: of the places that have something to do, the one whose clock is least. `None` if nothing will
    /// ever happen again.
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

    /// Ends the turn that [`World::next`] began.
    pub fn end_turn(&self, place: PlaceId, turn: Turn) {
        // Relaxed is enough: `next` observes the flag before the place acts on it.
        let unparked = self.shared.unparked[place.index()].0.load(Ordering::Relaxed);
        let mut state = self.shared.state.borrow_mut();
        state.settle(place);
        match turn {
            Turn::Idle { due } if !unparked => state.park(place, due.map(picoseconds)),
            _ => state.go_on(place),
        }
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

    /// Lets `place` compute for so many cycles of its core, which were measured of it and not said by it. The measuring
    /// is the driver's: here is no clock of the host.
    pub fn charge(&self, place: PlaceId, cycles: u64) {
        self.shared.state.borrow_mut().cores.compute(place, cycles, Spending::Measured);
    }

    /// By what the clock of `place` is divided now; none if the chip cannot divide it.
    pub fn divider(&self, place: PlaceId) -> Option<u32> {
        self.shared.state.borrow().cores.divider(place)
    }

    /// Takes memory of zeros that all cores share, behind the memory controller of `place`; for the rest of the run.
    /// None if the chip's file does not say what memory costs, or has other lines than those of 32 bytes.
    pub fn take_shared(&self, place: PlaceId, kind: Kind, bytes: u64) -> Option<Stretch> {
        let state = &mut *self.shared.state.borrow_mut();
        if state.shared.is_none() {
            state.shared = state.cores.memory().map(SharedLines::new);
        }
        let core = state.cores.seating().core(place);
        Some(state.shared.as_mut()?.take(core, kind, bytes))
    }

    /// `place` reads from `offset` on: what it sees, which may be old.
    ///
    /// # Panics
    /// If that is not within the stretch.
    pub fn read_shared(&self, place: PlaceId, stretch: &Stretch, offset: u64, into: &mut [u8]) {
        self.reach_shared(|shared, cores| shared.read((cores, place), stretch, offset, into));
    }

    /// `place` writes from `offset` on.
    ///
    /// # Panics
    /// If that is not within the stretch.
    pub fn write_shared(&self, place: PlaceId, stretch: &Stretch, offset: u64, from: &[u8]) {
        self.reach_shared(|shared, cores| shared.write((cores, place), stretch, offset, from));
    }

    /// The core of `place` forgets what its first cache has of memory that is written through.
    pub fn invalidate_shared(&self, place: PlaceId) {
        self.reach_shared(|shared, cores| shared.invalidate((cores, place)));
    }

    /// The write buffer of the core of `place` lets its line go, to memory behind the controller of the stretch.
    pub fn drain_shared(&self, place: PlaceId, stretch: &Stretch) {
        self.reach_shared(|shared, cores| shared.drain((cores, place), stretch));
    }

    /// The core of `place` writes back what its caches have of the stretch, and forgets it.
    pub fn flush_shared(&self, place: PlaceId, stretch: &Stretch) {
        self.reach_shared(|shared, cores| shared.flush((cores, place), stretch));
    }

    fn reach_shared(&self, access: impl FnOnce(&mut SharedLines, &mut Cores)) {
        let state = &mut *self.shared.state.borrow_mut();
        let shared = state.shared.as_mut().expect("who has a stretch has taken it");
        access(shared, &mut state.cores);
    }

    /// Takes `place` away now: what it has written still arrives, then the others are told. A place that has said
    /// [`leave`](isles_transport::Endpoint::leave) ends without news.
    pub fn kill(&self, place: PlaceId) {
        self.shared.state.borrow_mut().kill(place);
    }

    /// Whether `place` has not been killed.
    pub fn is_alive(&self, place: PlaceId) -> bool {
        self.shared.state.borrow().is_alive(place)
    }

    /// Blocks sent and not dropped yet, wherever they are.
    pub fn live_blocks(&self) -> usize {
        self.shared.state.borrow().live_blocks.get()
    }

    /// Records from now on who sends how much to whom. The run stays what it was, and takes longer on the host.
    pub fn record(&self) {
        let state = &mut self.shared.state.borrow_mut();
        let recorder = state.cores.recorder.get_or_insert_default();
        recorder.traffic.get_or_insert_with(|| Traffic::new(self.shared.places as usize));
    }

    /// Records from now on what each core does when, as a Perfetto trace for `sink`, which a thread of its own writes
    /// beside the run; `run` says in words of which run.
    ///
    /// What the sink refuses is told by [`World::end_trace`].
    ///
    /// # Errors
    /// A thread cannot be had; then nothing has changed.
    ///
    /// # Panics
    /// If there are more than 65,536 places; and what the sink panics with is raised here again, in the run or at its
    /// end.
    pub fn trace(&self, run: &str, sink: Box<dyn Write + Send>) -> io::Result<()> {
        let cores = &mut self.shared.state.borrow_mut().cores;
        let (outset, gears) = cores.outset();
        let scribe = Scribe::new(Trace::new(cores.topology(), (&outset, gears), run, sink))?;
        cores.recorder.get_or_insert_default().scribe = Some(scribe);
        Ok(())
    }

    /// Ends the trace, if there is one, and writes what is left of it.
    ///
    /// # Errors
    /// The first error of its sink; what came after that is lost.
    pub fn end_trace(&self) -> io::Result<()> {
        let mut state = self.shared.state.borrow_mut();
        let scribe = state.cores.recorder.as_mut().and_then(|all| all.scribe.take());
        scribe.map_or(Ok(()), |scribe| scribe.finish(state.cores.energy()))
    }

    /// What was sent between places since [`World::record`]; nothing without that.
    pub fn flows(&self) -> Vec<Flow> {
        let state = self.shared.state.borrow();
        let recorder = state.cores.recorder.as_ref();
        recorder.and_then(|recorder| recorder.traffic.as_ref()).map(Traffic::flows).unwrap_or_default()
    }

    /// What each directed link has carried, in the order of the links' numbers.
    pub fn link_loads(&self) -> Vec<LinkLoad> {
        self.shared.state.borrow().cores.link_loads()
    }

    /// What has happened so far.
    pub fn report(&self) -> Report {
        self.shared.state.borrow().report()
    }
}

/// The first picosecond at which a clock that is cut to nanoseconds shows `time`.
fn picoseconds(time: Duration) -> Picoseconds {
    Picoseconds(u64::try_from(time.as_nanos().saturating_mul(1_000)).unwrap_or(u64::MAX))
}
