//! A run from its first task to the farewell of the last place.

use crate::capture::TaskOutcome;
use crate::error::Result;
use crate::finish::finish;
use crate::limits::FAREWELL_WAIT;
use crate::local::{Local, Step};
use crate::report::{self, RunMessage, RunReport};
use crate::scope::Scope;
use crate::site::INTERNAL;
use crate::task::Priority;
use isles_protocol::PlaceId;
use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

/// The program's main task, under way at the first place.
pub struct Root(Rc<Ending>);

/// How the main task ended.
#[derive(Default)]
struct Ending {
    /// Whether it has; looked at in every turn of the worker.
    over: Cell<bool>,
    result: Cell<Option<Result<()>>>,
}

impl Root {
    /// Starts `main` as the task from which everything else comes; the place must be entered.
    ///
    /// The run is a finish: it is over when everything that `main` has started, anywhere, has ended.
    pub fn start<F>(local: &Local, main: F) -> Root
    where
        F: Future + 'static,
        F::Output: TaskOutcome,
    {
        let ending = Rc::new(Ending::default());
        let root = Root(Rc::clone(&ending));
        let task = async move {
            let body = async move { main.await.into_result() };
            ending.result.set(Some(finish(body).await));
            ending.over.set(true);
            Ok(())
        };
        // NEED: starting a task of any lifetime is unsafe.
        // SOUND: the future is 'static.
        unsafe { local.start(task, Scope::Detached, &INTERNAL, Priority::Normal) };
        root
    }

    /// Whether the main task has ended.
    pub fn is_over(&self) -> bool {
        self.0.over.get()
    }

    /// The result, once there is one.
    pub fn take(&self) -> Option<Result<()>> {
        self.0.result.take()
    }
}

/// Runs `main` at the first place until everything it has started has ended, then lets the other places go.
///
/// After `stall` without anything to do, prints what each open finish waits for, once for each silence.
pub fn lead<F>(local: &Rc<Local>, main: F, stall: Option<Duration>) -> (Result<()>, RunReport)
where
    F: Future + 'static,
    F::Output: TaskOutcome,
{
    let _entered = local.enter();
    let root = Root::start(local, main);
    drive(local, stall, || root.is_over());
    let report = dismiss(local);
    leave(local);
    (root.take().unwrap_or(Ok(())), report)
}

/// Serves at any other place until the first one says that the run is over.
pub fn serve(local: &Rc<Local>) {
    let _entered = local.enter();
    drive(local, None, || local.dismissed.get());
    let report = Box::new(local.report());
    if !local.is_dead(PlaceId(0)) {
        report::tell(local, PlaceId(0), &RunMessage::Farewell(report));
    }
    leave(local);
}

/// Steps and waits until `over` says so; after `stall` of silence says what everyone waits for.
fn drive(local: &Local, stall: Option<Duration>, mut over: impl FnMut() -> bool) {
    let mut silence = Silence { stall, since: None, told: false };
    while !over() {
        if local.step() == Step::Busy {
            silence.since = None;
            continue;
        }
        if over() {
            return;
        }
        local.wait(None);
        silence.watch(local);
    }
}

/// A time in which nothing happens at a place.
struct Silence {
    stall: Option<Duration>,
    /// When it was first noticed, by the place's clock.
    since: Option<Duration>,
    /// Whether it was told; once is enough.
    told: bool,
}

impl Silence {
    /// Tells what everyone waits for, if the silence has lasted. Reads the clock only from the second idle turn on.
    fn watch(&mut self, local: &Local) {
        let Some(stall) = self.stall else { return };
        let Some(since) = self.since else {
            (self.since, self.told) = (Some(Duration::MAX), false);
            return;
        };
        let now = local.clock().now();
        if since == Duration::MAX {
            self.since = Some(now);
        } else if !self.told && now.saturating_sub(since) >= stall {
            self.told = true;
            report::print_stall(local, stall);
        }
    }
}

/// Tells all places that the run is over, and gathers what they did.
fn dismiss(local: &Local) -> RunReport {
    let others: Vec<PlaceId> =
        (0..local.places()).map(PlaceId).filter(|place| *place != local.here()).collect();
    for place in &others {
        report::tell(local, *place, &RunMessage::Dismiss);
    }
    let until = local.clock().now() + FAREWELL_WAIT;
    let answered = || {
        let farewells = local.farewells.borrow();
        others.iter().all(|place| farewells[place.index()].is_some() || local.is_dead(*place))
    };
    drive(local, None, || answered() || local.clock().now() > until);
    let mut places = local.farewells.take();
    if let Some(own) = places.get_mut(local.here().index()) {
        *own = Some(local.report());
    }
    RunReport { places }
}

/// Drops all that the place still holds.
pub fn close(local: &Local) {
    local.drop_tasks();
    let values = local.parts.borrow_mut().clear();
    drop(values);
}

/// Closes the place, and says to the others that nothing more will come from it.
fn leave(local: &Local) {
    close(local);
    local.empty_outbox(FAREWELL_WAIT);
    local.endpoint().leave();
}
