//! Steps the places on a modelled chip, in one thread.
//!
//! The place whose core's clock is least has the next turn; the world of `isles_transport_chip` determines it. Runs and
//! trials of collectives are driven alike. Invariant: a place has one turn at a time, and the stopwatch runs only
//! during turns.

use super::interrupts;
use super::observe::ChipObservation;
use super::shared_memory::ChipMemory;
use super::work::stopwatch::{Stopwatch, TimedEndpoint};
use crate::machine::CollectiveMismatchCheck;
use isles_runtime::{Clock, Local, Step, run};
use isles_transport::PlaceId;
use isles_transport_chip::{ChipWorld, TurnOutcome};
use std::rc::Rc;

/// Maximum number of turns of [`drain_messages`].
const ATTENDED_MAX: usize = 100_000;

/// Makes the places of a world, with the stopwatch of their code.
pub(crate) fn all_locals(stopwatch: &Rc<Stopwatch>, places: u32) -> Vec<Rc<Local>> {
    (0..places).map(|place| local(stopwatch, PlaceId(place))).collect()
}

/// Makes all places drop their values; the chip no longer models that.
pub(crate) fn close_all(stopwatch: &Stopwatch, locals: &[Rc<Local>]) {
    stopwatch.close();
    for local in locals {
        local.enter(|| run::close(local));
    }
}

fn local(stopwatch: &Rc<Stopwatch>, place: PlaceId) -> Rc<Local> {
    let clock = Rc::clone(stopwatch);
    let clock = Clock::Modelled(Box::new(move || clock.now(place)));
    let local = Local::new(Box::new(TimedEndpoint::new(place, stopwatch)), clock, isles_services::services);
    isles_services::set_incoherent_memory(&local, Rc::new(ChipMemory));
    local
}

/// Lets all places handle messages in flight without running tasks, for messages of finished collectives.
pub(crate) fn drain_messages(world: &ChipWorld, locals: &[Rc<Local>]) {
    for _ in 0..ATTENDED_MAX {
        let Some(place) = world.next() else { return };
        let local = &locals[place.index()];
        let turn = match local.enter(|| local.progress_messages()) {
            Step::Busy => TurnOutcome::Busy,
            Step::Idle => TurnOutcome::Idle { due: None },
        };
        world.end_turn(place, turn);
    }
}

/// Gives turns until `over` returns a result; `None` if the run stalls or departs from its tape.
pub(crate) fn drive<R>(
    world: &ChipWorld,
    stopwatch: &Stopwatch,
    locals: &[Rc<Local>],
    observation: Option<&ChipObservation>,
    mut over: impl FnMut() -> Option<R>,
) -> Option<R> {
    let mut compared = CollectiveMismatchCheck::default();
    loop {
        if let Some(result) = over() {
            return Some(result);
        }
        let Some(place) = world.next().filter(|_| !stopwatch.has_diverged()) else {
            if stopwatch.has_diverged() || !compared.may_continue(locals, |place| world.wake(place)) {
                return None;
            }
            continue;
        };
        let local = &locals[place.index()];
        stopwatch.begin_turn();
        let step = local.enter(|| {
            interrupts::dispatch(world, place);
            local.step()
        });
        let turn = match step {
            Step::Busy => TurnOutcome::Busy,
            Step::Idle => TurnOutcome::Idle { due: local.next_due() },
        };
        stopwatch.end_turn(place);
        world.end_turn(place, turn);
        if let Some(observation) = observation {
            observation.turn(world);
        }
    }
}
