//! The modelled chip, as the driver of its places sees it.
//!
//! A thin shell around the state: it borrows it for each call, knows what wakes a place from outside, and speaks of
//! time in nanoseconds. It runs no place and does not know what a message says. Invariant: between [`ChipWorld::next`]
//! and [`ChipWorld::end_turn`] the driver runs the place that it was given and no other.

mod error;
mod memory;
mod record;

pub use error::WorldError;

use crate::clocks::{ClockChange, ClockError};
use crate::cores::Costs;
use crate::endpoint::ChipEndpoint;
use crate::idle_policy::IdlePolicy;
use crate::placement::{CoreMap, Placement};
use crate::protocol_config::ProtocolConfig;
use crate::report::{Report, TimeCategory};
use crate::state::WorldState;
use isles_chip::governor::{GovernorError, Policy};
use isles_chip::quantity::Picoseconds;
use isles_transport::{PlaceId, Unpark};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What a place comes to at the end of its turn.
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
pub(crate) struct UnparkFlag(AtomicBool);

impl Unpark for UnparkFlag {
    fn unpark(&self) {
        // PAIR chip.unparked: publish
        self.0.store(true, Ordering::Release);
    }
}

/// What the world and its endpoints share.
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
    /// [`WorldError`]: the chip cannot have so many.
    pub fn new(places: u32, costs: Costs, seed: u64) -> Result<ChipWorld, WorldError> {
        let protocol = costs.default_protocol();
        ChipWorld::with_protocol(places, costs, protocol, seed)
    }

    /// As [`ChipWorld::new`], with another protocol, and what else joins the places.
    ///
    /// # Errors
    /// [`WorldError`]: the chip cannot have so many.
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

    /// As [`ChipWorld::with_protocol`], with the places of a seating, each on its core.
    ///
    /// # Errors
    /// [`WorldError`]: the chip cannot join so many in that way.
    ///
    /// # Panics
    /// If the seating is of another chip.
    pub fn with_core_map(
        core_map: CoreMap,
        costs: Costs,
        protocol_config: impl Into<ProtocolConfig>,
        seed: u64,
    ) -> Result<ChipWorld, WorldError> {
        assert_eq!(core_map.chip_cores(), costs.cores(), "a seating of another chip");
        let places = core_map.places();
        let division = protocol_config.into().buffer_layout(places, &costs)?;
        let unparked = (0..places).map(|_| Arc::new(UnparkFlag(AtomicBool::new(false)))).collect();
        let state = RefCell::new(WorldState::new(costs, division, core_map, seed));
        Ok(ChipWorld { shared: Rc::new(WorldShared { places, unparked, state }) })
    }

    /// Puts the run under a governor; to be said before anything runs.
    ///
    /// # Errors
    /// [`GovernorError`]: that policy is not for this chip with so many places.
    pub fn govern(&self, policy: Policy) -> Result<(), GovernorError> {
        let mut state = self.shared.state.borrow_mut();
        let (governor, gears) = state.cores.governor(policy)?;
        state.set_governor(governor, &gears);
        Ok(())
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

    /// Ends the turn that [`ChipWorld::next`] began.
    pub fn end_turn(&self, place: PlaceId, turn: TurnOutcome) {
        // Relaxed is enough: `next` observes the flag before the place acts on it.
        let unparked = self.shared.unparked[place.index()].0.load(Ordering::Relaxed);
        let mut state = self.shared.state.borrow_mut();
        state.settle(place);
        match turn {
            TurnOutcome::Idle { due } if !unparked => state.park(place, due.map(picoseconds)),
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
        self.shared.state.borrow_mut().cores.compute(place, cycles, TimeCategory::Measured);
    }

    /// By what the clock of `place` is divided now; none if the chip cannot divide it.
    pub fn divider(&self, place: PlaceId) -> Option<u32> {
        self.shared.state.borrow().cores.divider(place)
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

    /// What has happened so far.
    pub fn report(&self) -> Report {
        self.shared.state.borrow().report()
    }
}

/// The first picosecond at which a clock that is cut to nanoseconds shows `time`.
fn picoseconds(time: Duration) -> Picoseconds {
    Picoseconds(u64::try_from(time.as_nanos().saturating_mul(1_000)).unwrap_or(u64::MAX))
}
