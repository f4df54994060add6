//! Invented places in one thread: the order of everything is fixed by a seed.

use crate::launch::Launch;
use isles_runtime::capture::TaskOutcome;
use isles_runtime::run::{self, Root};
use isles_runtime::{Clock, Error, ErrorKind, Local, Result, RunReport, Step};
use isles_transport::PlaceId;
use isles_transport::loopback::World;
pub use isles_transport::loopback::{Loss, Plan};
use std::rc::Rc;
use std::time::Duration;

/// Lines of the error of a run that stands still, at most: what thousands of places wait for is mostly the same.
const TOLD_MAX: usize = 512;

/// Runs `main` over invented places, in the order that the launch's seed fixes.
pub(crate) fn run<M, F>(launch: &Launch, main: M) -> (Result<()>, RunReport)
where
    M: FnOnce() -> F,
    F: Future + 'static,
    F::Output: TaskOutcome,
{
    let (result, report, _) = simulate(launch.places, Plan::adversarial(launch.seed), main);
    (result, report)
}

/// Runs `main` over `places` invented places as `plan` says; the same plan gives the same run.
///
/// Gives the result of `main` (an error of kind [`ErrorKind::Misused`] that explains what everyone waits for,
/// if the run stands still), what the places did, and a digest of the order of events.
pub fn simulate<M, F>(places: u32, plan: Plan, main: M) -> (Result<()>, RunReport, u64)
where
    M: FnOnce() -> F,
    F: Future + 'static,
    F::Output: TaskOutcome,
{
    let world = World::new(places, plan);
    let locals: Vec<Rc<Local>> = (0..places)
        .map(|place| {
            let clock = world.clone();
            let clock = Clock::Invented(Box::new(move || Duration::from_micros(clock.step())));
            Local::new(Box::new(world.endpoint(PlaceId(place))), clock)
        })
        .collect();
    let root = locals[0].enter(|| Root::start(&locals[0], main()));
    let result = drive(&world, &locals, || root.take());
    let result = result.unwrap_or_else(|| Err(stalled(&locals)));
    let digest = world.digest();
    let places = locals.iter().map(|local| Some(local.report())).collect();
    for local in &locals {
        local.enter(|| run::close(local));
    }
    (result, RunReport { places }, digest)
}

/// Steps the places in the world's order until `over` has a result; `None` if nothing will ever happen again.
fn drive<R>(world: &World, locals: &[Rc<Local>], mut over: impl FnMut() -> Option<R>) -> Option<R> {
    let mut busy = vec![true; locals.len()];
    loop {
        if let Some(result) = over() {
            return Some(result);
        }
        let places = (0..locals.len() as u32).map(PlaceId);
        let runnable: Vec<PlaceId> =
            places.filter(|place| busy[place.index()] || world.wakes(*place)).collect();
        match world.choose(&runnable) {
            Some(place) => {
                let local = &locals[place.index()];
                busy[place.index()] = local.enter(|| local.step()) == Step::Busy;
            }
            None if world.advance() || pass_time(world, locals, &mut busy) => {}
            None => return None,
        }
    }
}

/// Lets time pass until the next deadline of a place; false if there is none.
fn pass_time(world: &World, locals: &[Rc<Local>], busy: &mut [bool]) -> bool {
    let due = locals.iter().enumerate().filter_map(|(place, local)| Some((local.next_due()?, place))).min();
    let Some((due, place)) = due else { return false };
    world.advance_to(due.as_micros() as u64 + 1);
    busy[place] = true;
    true
}

/// The error of a run of places in one thread in which nothing will ever happen again.
pub(crate) fn stalled(locals: &[Rc<Local>]) -> Error {
    let lines = locals.iter().flat_map(|local| local.enter(|| local.explain()));
    let mut lines: Vec<String> = lines.collect();
    let more = lines.len().saturating_sub(TOLD_MAX);
    if more > 0 {
        lines.truncate(TOLD_MAX);
        lines.push(format!("and {more} more like these"));
    }
    let text = lines.join("\n  ");
    Error::new(ErrorKind::Misused, format!("the run stands still; waiting for:\n  {text}"))
}
