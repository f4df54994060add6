//! The simulated world, as its driver sees it.
//!
//! The driver owns the places and runs them one at a time; the world chooses the next place, advances the modelled
//! time, kills places, and computes a digest of all events. It runs nothing itself.

use super::endpoint::LoopbackEndpoint;
use super::memory::{LentCopies, RegionMemory};
use super::plan::Plan;
use super::state::{Event, State};
use crate::{PlaceId, Unpark};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// State that the world and its endpoints share.
pub(super) struct WorldShared {
    pub(super) words: Vec<Vec<AtomicU64>>,
    pub(super) regions: Vec<RegionMemory>,
    pub(super) loans: RefCell<LentCopies>,
    pub(super) places_per_host: u32,
    pub(super) unparked: Vec<Arc<UnparkFlag>>,
    pub(super) state: RefCell<State>,
}

impl WorldShared {
    /// As [`World::wakes`].
    pub(super) fn wakes(&self, place: PlaceId) -> bool {
        let state = self.state.borrow();
        // Relaxed is enough: `choose` observes the flag before the place acts on it.
        let unparked = self.unparked[place.index()].0.load(Ordering::Relaxed);
        let goes_on = state.is_alive(place) && !state.is_stopped(place);
        goes_on && (unparked || state.has_arrival(place) || state.has_new_send_result(place))
    }
}

/// Set by [`Unpark::unpark`], cleared when the place is chosen.
pub(super) struct UnparkFlag(AtomicBool);

impl Unpark for UnparkFlag {
    fn unpark(&self) {
        // PAIR loopback.unparked: publish
        self.0.store(true, Ordering::Release);
    }
}

/// A world of places in one thread; a cheap handle, clones are the same world.
///
/// A driver that calls [`World::choose`] only with places that are busy or for which [`World::wakes`] is true, and
/// [`World::advance`] when there are none, exposes a lost wake-up as a real machine does.
#[derive(Clone)]
pub struct World {
    shared: Rc<WorldShared>,
}

impl World {
    /// Creates a world of `places` places, all alive, at step 0.
    ///
    /// # Panics
    /// If there are no places, or the plan has an empty range, a capacity of 0, or hosts without places.
    pub fn new(places: u32, plan: Plan) -> World {
        assert!(places > 0, "a world needs a place");
        assert!(plan.control.capacity > 0 && plan.data.capacity > 0, "a lane needs room for a message");
        assert!(plan.batch_max > 0 && plan.blocks_max > 0, "nothing would ever arrive");
        let words = (0..places).map(|_| (0..plan.words).map(|_| AtomicU64::new(0)).collect()).collect();
        let unparked = (0..places).map(|_| Arc::new(UnparkFlag(AtomicBool::new(false)))).collect();
        let regions = (0..places).map(|_| RegionMemory::new()).collect();
        let places_per_host = plan.places_per_host;
        assert!(places_per_host > 0, "a host has a place");
        let state = RefCell::new(State::new(places, plan));
        let loans = RefCell::default();
        World { shared: Rc::new(WorldShared { words, regions, loans, places_per_host, unparked, state }) }
    }

    /// Creates the endpoint of `place`; call it once for each place.
    pub fn endpoint(&self, place: PlaceId) -> LoopbackEndpoint {
        assert!(place.index() < self.shared.words.len(), "{place} does not exist");
        LoopbackEndpoint::new(place, Rc::clone(&self.shared))
    }

    /// Draws which of the `runnable` places has the next turn, and advances by one step.
    ///
    /// Returns `None` if none of them is alive, or if the last one died in this step: then call [`World::advance`]. A
    /// wait of the chosen place counts as returned: its unpark flag is cleared, and its refused sends are forgotten.
    pub fn choose(&self, runnable: &[PlaceId]) -> Option<PlaceId> {
        let mut state = self.shared.state.borrow_mut();
        if !runnable.iter().any(|place| state.is_alive(*place)) {
            return None;
        }
        let next = state.step + 1;
        state.move_to(next);
        let living: Vec<PlaceId> = runnable.iter().copied().filter(|place| state.is_alive(*place)).collect();
        if living.is_empty() {
            return None;
        }
        let place = living[state.random.index(living.len())];
        state.start_turn(place);
        state.record(Event::Chosen, place, living.len() as u64);
        // PAIR loopback.unparked: observe
        self.shared.unparked[place.index()].0.swap(false, Ordering::Acquire);
        Some(place)
    }

    /// Draws whether a send that found no room waits, or continues to wait; always `false` if the plan does not let
    /// sends wait.
    pub fn waits_on(&self) -> bool {
        self.shared.state.borrow_mut().waits_on()
    }

    /// Runs `others` while `place` waits in the middle of its turn for room to send: `others` may run turns of other
    /// places, and `place` is not killed meanwhile.
    pub fn suspended<R>(&self, place: PlaceId, others: impl FnOnce() -> R) -> R {
        self.shared.state.borrow_mut().suspend(place);
        let result = others();
        self.shared.state.borrow_mut().resume();
        result
    }

    /// Returns `true` if a wait of `place` would return now: there is an arrival, a result other than
    /// [`Full`](crate::SendError::Full) for a send of its last turn, or an unpark. Always `false` for a place that is
    /// dead or stopped.
    pub fn wakes(&self, place: PlaceId) -> bool {
        self.shared.wakes(place)
    }

    /// Advances the modelled time to the next step at which a message becomes deliverable, a death becomes known, a
    /// planned death happens or a stopped place continues; not at all if a place wakes already. Returns `false` if
    /// nothing will ever happen by itself.
    pub fn advance(&self) -> bool {
        if (0..self.shared.words.len() as u32).any(|place| self.wakes(PlaceId(place))) {
            return true;
        }
        let mut state = self.shared.state.borrow_mut();
        let Some(step) = state.next_change() else { return false };
        state.record(Event::Advanced, PlaceId(0), step);
        state.move_to(step);
        true
    }

    /// Returns the next step at which something happens by itself, without an action of a place.
    pub fn next_change(&self) -> Option<u64> {
        self.shared.state.borrow().next_change()
    }

    /// Advances the modelled time to `step`, for a driver that waits for a deadline of its own; never moves it back.
    pub fn advance_to(&self, step: u64) {
        let mut state = self.shared.state.borrow_mut();
        let step = step.max(state.step);
        state.record(Event::Advanced, PlaceId(0), step);
        state.move_to(step);
    }

    /// Kills `place` now. Of its messages in flight, a drawn prefix of each lane still arrives; then the others learn
    /// of the death. Killing a dead place has no effect; the end of a place that has called
    /// [`leave`](crate::Endpoint::leave) loses nothing and is not reported.
    pub fn kill(&self, place: PlaceId) {
        self.shared.state.borrow_mut().kill(place);
    }

    /// Returns `true` if `place` has not been killed.
    pub fn is_alive(&self, place: PlaceId) -> bool {
        self.shared.state.borrow().is_alive(place)
    }

    /// Returns `true` if `place` gets no turn now, according to the plan.
    pub fn is_stopped(&self, place: PlaceId) -> bool {
        self.shared.state.borrow().is_stopped(place)
    }

    /// Returns the number of messages and death notices that living places have not taken yet.
    pub fn in_flight(&self) -> usize {
        self.shared.state.borrow().in_flight()
    }

    /// Returns the number of blocks sent and not dropped yet, wherever they are.
    pub fn live_blocks(&self) -> usize {
        let state = self.shared.state.borrow();
        (0..self.shared.words.len() as u32).map(|place| state.live_blocks(PlaceId(place))).sum()
    }

    /// Returns the number of steps since the world began.
    pub fn step(&self) -> u64 {
        self.shared.state.borrow().step
    }

    /// Returns a hash of all events, contents of messages included. If two runs of one seed differ here, something
    /// depends on more than the seed: a real clock, the order of a hash map, an address.
    pub fn digest(&self) -> u64 {
        self.shared.state.borrow().digest
    }
}
