//! The simulated world, as its driver sees it.
//!
//! The driver owns the places and runs them one at a time; the world says who is next, moves the modelled
//! time, takes places away, and sums up what happened. It runs nothing itself.

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
/// A driver that calls [`World::choose`] only with places that are busy or that [`World::wakes`] names, and
/// [`World::advance`] when there are none, is as unkind to a lost wake-up as a real machine.
#[derive(Clone)]
pub struct World {
    shared: Rc<WorldShared>,
}

impl World {
    /// A world of `places` places, all alive, at step 0.
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

    /// The endpoint of `place`; take one for each place.
    pub fn endpoint(&self, place: PlaceId) -> LoopbackEndpoint {
        assert!(place.index() < self.shared.words.len(), "{place} does not exist");
        LoopbackEndpoint::new(place, Rc::clone(&self.shared))
    }

    /// Draws which of the `runnable` places has the next turn, and lets one step pass.
    ///
    /// `None` if none of them is alive, or if the last one died in this step: then ask
    /// [`World::advance`]. A wait of the chosen place counts as returned: its unpark flag is
    /// cleared and what [`World::wakes`] said about full queues is forgotten.
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

    /// Draws whether a send that found no room waits for it, or goes on waiting; never where the plan says that sends
    /// do not wait.
    pub fn waits_on(&self) -> bool {
        self.shared.state.borrow_mut().waits_on()
    }

    /// Runs `others` while `place` waits in the middle of its turn, for room to send: it may give other places turns,
    /// and `place` is not taken away meanwhile.
    pub fn suspended<R>(&self, place: PlaceId, others: impl FnOnce() -> R) -> R {
        self.shared.state.borrow_mut().suspend(place);
        let result = others();
        self.shared.state.borrow_mut().resume();
        result
    }

    /// Returns `true` if a wait of `place` would return now: an arrival, another answer than
    /// [`Full`](crate::SendError::Full) to a send of its last turn, or an unpark. Never for a place that is dead or
    /// stopped.
    pub fn wakes(&self, place: PlaceId) -> bool {
        self.shared.wakes(place)
    }

    /// Moves modelled time to the next step at which a message becomes deliverable, a death becomes known, a
    /// planned death happens or a stopped place continues; time stays if some place wakes already. False if nothing
    /// will ever happen by itself.
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

    /// The next step at which something becomes possible by itself, if nobody does anything.
    pub fn next_change(&self) -> Option<u64> {
        self.shared.state.borrow().next_change()
    }

    /// Moves modelled time on to `step`, for a driver that waits for a deadline of its own; never back.
    pub fn advance_to(&self, step: u64) {
        let mut state = self.shared.state.borrow_mut();
        let step = step.max(state.step);
        state.record(Event::Advanced, PlaceId(0), step);
        state.move_to(step);
    }

    /// Takes `place` away now. Of what it sent and nobody has taken, a drawn first part of each lane still
    /// arrives; then the others are told. Killing it twice is killing it once; a place that has said
    /// [`leave`](crate::Endpoint::leave) ends without loss and without news.
    pub fn kill(&self, place: PlaceId) {
        self.shared.state.borrow_mut().kill(place);
    }

    /// Returns `true` if `place` has not been killed.
    pub fn is_alive(&self, place: PlaceId) -> bool {
        self.shared.state.borrow().is_alive(place)
    }

    /// Returns `true` if `place` gets no turn now, as the plan says.
    pub fn is_stopped(&self, place: PlaceId) -> bool {
        self.shared.state.borrow().is_stopped(place)
    }

    /// Messages, and news of deaths, that living places have still to take.
    pub fn in_flight(&self) -> usize {
        self.shared.state.borrow().in_flight()
    }

    /// Returns the number of blocks sent and not dropped yet, wherever they are.
    pub fn live_blocks(&self) -> usize {
        let state = self.shared.state.borrow();
        (0..self.shared.words.len() as u32).map(|place| state.live_blocks(PlaceId(place))).sum()
    }

    /// Steps since the world began.
    pub fn step(&self) -> u64 {
        self.shared.state.borrow().step
    }

    /// A hash of all that has happened, contents of messages included. Two runs of one seed that differ here
    /// differ in something that the seed does not fix: a real clock, the order of a hash map, an address.
    pub fn digest(&self) -> u64 {
        self.shared.state.borrow().digest
    }
}
