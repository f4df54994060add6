//! Simulated places in one thread; a seed fixes the order of all events.

pub use isles_transport::loopback::{Plan, PlannedDeath, PlannedStop};

use crate::launch::{Launch, Main, future_of, processors};
use crate::machine::driver::{LaunchResult, MachineDriver, test_outcome};
use crate::machine::{CollectiveMismatchCheck, check_collectives};
use crate::output::WriteError;
use crate::settings::Environment;
use crate::test::{TestBody, seeds_of_tests};
use crate::trace::Collector;
use isles_runtime::capture::TaskOutcome;
use isles_runtime::run::MainTask;
use isles_runtime::{Clock, Error, ErrorKind, Local, Result, RunReport, Step, run};
use isles_transport::PlaceId;
use isles_transport::loopback::World;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// Maximum number of lines in each part of the error of a stalled run. Equal lines are merged, and the rest are mostly
/// alike.
const LISTED_MAX: usize = 32;

/// Driver of the machine `loopback`: runs a program over simulated places, in the order fixed by the seed of the
/// launch.
pub(crate) struct Driver;

impl MachineDriver for Driver {
    fn name(&self) -> &'static str {
        "loopback"
    }

    fn places(&self, _: &Environment) -> u32 {
        processors()
    }

    fn run(
        &self,
        launch: &Launch,
        _: Option<Collector>,
        main: Main<'_>,
        _: &mut Vec<WriteError>,
    ) -> LaunchResult {
        let (result, report, _) = run_plan(launch.places, Plan::adversarial(launch.seed), main);
        Ok((result, report))
    }

    fn run_test(
        &self,
        launch: &Launch,
        _: &'static str,
        body: TestBody<'_>,
    ) -> std::result::Result<(), String> {
        seeds_of_tests().try_for_each(|seed| {
            let launch = Launch { seed, ..launch.clone() };
            let ended = self.run(&launch, None, Box::new(body), &mut Vec::new());
            test_outcome(ended).map_err(|error| format!("with ISLES_SEED={seed}: {error}"))
        })
    }
}

/// Runs `main` over `places` simulated places under `plan`; the same plan gives the same run.
///
/// Returns the result of `main`, the report of the places, and a digest of the order of events. If the run stalls, the
/// result is an error of kind [`ErrorKind::Misused`] that lists what the places wait for.
pub fn simulate<M, F>(places: u32, plan: Plan, main: M) -> (Result<()>, RunReport, u64)
where
    M: FnOnce() -> F,
    F: Future + 'static,
    F::Output: TaskOutcome,
{
    run_plan(places, plan, Box::new(|| future_of(main, TaskOutcome::into_result)))
}

/// As [`simulate`].
fn run_plan(places: u32, plan: Plan, main: Main<'_>) -> (Result<()>, RunReport, u64) {
    let driver = WorldDriver::new(places, plan);
    let locals = driver.locals.clone();
    let root = locals[0].enter(|| MainTask::start(&locals[0], main()));
    let result = driver.drive(|| root.take());
    let result = result.unwrap_or_else(|| Err(stalled(&locals)));
    let result = result.and_then(|()| driver.drain_and_check_teams());
    let digest = driver.world.digest();
    let places = locals.iter().map(|local| Some(local.report())).collect();
    // From here on no send runs the other places while it waits.
    drop(driver);
    for local in &locals {
        local.enter(|| run::close(local));
    }
    (result, RunReport { places }, digest)
}

/// Maximum number of steps in which the driver lets messages of finished collectives arrive.
const SETTLED_STEPS_MAX: usize = 10_000;

/// Maximum number of suspended turns nested in each other; bounds the stack.
const SUSPENDED_MAX: usize = 4;

/// Steps the places of a world.
///
/// A turn may be suspended while a send waits for room; other places then have turns nested within it, as other threads
/// would run meanwhile. Invariant: a place has one turn at a time.
struct WorldDriver {
    world: World,
    locals: Vec<Rc<Local>>,
    busy: RefCell<Vec<bool>>,
    /// The places whose turns are suspended, the outermost first.
    suspended: RefCell<Vec<PlaceId>>,
}

impl WorldDriver {
    fn new(places: u32, plan: Plan) -> Rc<WorldDriver> {
        let world = World::new(places, plan);
        let local = |place| {
            let clock = world.clone();
            let clock = Clock::Steps(Box::new(move || Duration::from_micros(clock.step())));
            Local::new(Box::new(world.endpoint(PlaceId(place))), clock, isles_services::services)
        };
        let locals: Vec<Rc<Local>> = (0..places).map(local).collect();
        let busy = RefCell::new(vec![true; locals.len()]);
        let driver = Rc::new(WorldDriver { world, locals, busy, suspended: RefCell::default() });
        for (local, place) in driver.locals.iter().zip(0..) {
            let weak = Rc::downgrade(&driver);
            local.set_others(move || weak.upgrade().is_some_and(|driver| driver.run_others(PlaceId(place))));
        }
        driver
    }

    /// Steps places in the world's order until `over` returns a result; `None` if the run stalls.
    fn drive<R>(&self, mut over: impl FnMut() -> Option<R>) -> Option<R> {
        let mut compared = CollectiveMismatchCheck::default();
        loop {
            if let Some(result) = over() {
                return Some(result);
            }
            if !self.advance() && !compared.may_continue(&self.locals, |_| ()) {
                return None;
            }
        }
    }

    /// Lets messages of finished collectives arrive, and checks that the members of each team called the same
    /// collectives.
    fn drain_and_check_teams(&self) -> Result<()> {
        if self.locals.iter().any(|local| isles_services::teams_may_be_apart(local)) {
            // Bounded, because places may send to each other forever; messages of a team arrive within that many steps.
            for _ in 0..SETTLED_STEPS_MAX {
                let attended = self
                    .locals
                    .iter()
                    .filter(|local| local.enter(|| local.progress_messages()) == Step::Busy);
                if attended.count() == 0 && !self.world.advance() {
                    break;
                }
            }
        }
        check_collectives(&self.locals)
    }

    /// Gives one place a turn or advances time; returns `false` if the run has stalled.
    fn advance(&self) -> bool {
        let runnable: Vec<PlaceId> = {
            let (busy, suspended) = (self.busy.borrow(), self.suspended.borrow());
            let now = self.world.step();
            let is_due = |place| self.due_step(place).is_some_and(|due| due <= now);
            let places = (0..self.locals.len() as u32).map(PlaceId);
            let places = places.filter(|place| !suspended.contains(place) && !self.world.is_stopped(*place));
            places.filter(|place| busy[place.index()] || self.world.wakes(*place) || is_due(*place)).collect()
        };
        let Some(place) = self.world.choose(&runnable) else { return self.advance_time() };
        let local = &self.locals[place.index()];
        let is_busy = local.enter(|| local.step()) == Step::Busy;
        self.busy.borrow_mut()[place.index()] = is_busy;
        true
    }

    /// Returns the step at which the next timer of a living place is due.
    fn due_step(&self, place: PlaceId) -> Option<u64> {
        let due = self.locals[place.index()].next_due().filter(|_| self.world.is_alive(place))?;
        // Rounded up, because the clock counts whole steps. An endless sleep does not fit and is never due.
        u64::try_from(due.as_nanos().div_ceil(1_000)).ok()
    }

    /// Lets other places run while a send of `place` waits; returns `false` if it must stop waiting.
    fn run_others(&self, place: PlaceId) -> bool {
        if self.suspended.borrow().len() == SUSPENDED_MAX || !self.world.waits_on() {
            return false;
        }
        self.suspended.borrow_mut().push(place);
        let goes_on = self.world.suspended(place, || self.advance());
        self.suspended.borrow_mut().pop();
        goes_on
    }

    /// Advances time to the next arrival of a message or the next timer; returns `false` if there is neither. Within a
    /// suspended turn, time advances for messages only: no deadline may expire while that turn could go on.
    fn advance_time(&self) -> bool {
        let places = (0..self.locals.len() as u32).map(PlaceId);
        let places = places.filter(|place| !self.world.is_stopped(*place));
        let due = places.filter_map(|place| self.due_step(place)).min();
        match due.filter(|due| self.world.next_change().is_none_or(|change| *due < change)) {
            Some(_) if !self.suspended.borrow().is_empty() => false,
            Some(due) if due > self.world.step() => {
                self.world.advance_to(due);
                true
            }
            _ => self.world.advance(),
        }
    }
}

/// Returns the error of a stalled run whose places share a thread.
///
/// Failures come first, because the waits are often for a task that has failed.
pub(crate) fn stalled(locals: &[Rc<Local>]) -> Error {
    let (mut failures, mut causes) = (Vec::new(), Vec::new());
    for local in locals {
        local.enter(|| {
            failures.extend(local.failures().iter().map(Error::to_string));
            causes.extend(local.explain().into_iter().map(|line| (local.here(), line)));
        });
    }
    let causes = summarize_lines(isles_runtime::together(causes));
    let mut text = String::from("the run is stalled; ");
    if !failures.is_empty() {
        text += &format!("failures:\n  {}\n", summarize_lines(failures));
    }
    Error::new(ErrorKind::Misused, format!("{text}waiting for:\n  {causes}"))
}

/// Joins the first lines, followed by the number of lines left out.
fn summarize_lines(mut lines: Vec<String>) -> String {
    let more = lines.len().saturating_sub(LISTED_MAX);
    if more > 0 {
        lines.truncate(LISTED_MAX);
        lines.push(format!("and {more} similar ones"));
    }
    lines.join("\n  ")
}
