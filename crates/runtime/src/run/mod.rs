//! A run from its first task to the farewell of the last place.

pub(crate) mod process;
pub(crate) mod region;
pub(crate) mod report;

use crate::call::site::INTERNAL;
use crate::capture::TaskOutcome;
use crate::error::Result;
use crate::error::panic::{self, WatchedRun};
use crate::finish::{Scope, finish_at};
use crate::limits::{COMPARE_WAIT, EXPLAIN_WAIT, FINAL_POLLS, FINAL_REPORT_WAIT};
use crate::local::{Local, Step};
use crate::part;
use crate::run::report::{RunMessage, RunReport};
use crate::task::Priority;
use isles_protocol::PlaceId;
use isles_transport::Class;
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

/// The program's main task, in progress at the first place.
pub struct MainTask {
    ending: Rc<MainResult>,
    _watched: WatchedRun,
}

/// Result of the main task.
#[derive(Default)]
struct MainResult {
    /// True once it has ended; checked in every turn of the worker.
    over: Cell<bool>,
    result: Cell<Option<Result<()>>>,
    /// True once its body has failed, while tasks that the body has started may go on; and the description of the
    /// error, if there is one.
    failed: Cell<bool>,
    fault: Cell<Option<String>>,
}

/// Records that the body of the main task has failed, unless it has succeeded before.
struct BodyGuard {
    ending: Rc<MainResult>,
    is_good: bool,
}

impl Drop for BodyGuard {
    fn drop(&mut self) {
        self.ending.failed.set(!self.is_good);
    }
}

impl MainTask {
    /// Starts `main` as the task that starts all others; the place must be entered.
    ///
    /// The run is a finish: it ends when everything that `main` has started, anywhere, has ended.
    pub fn start<F>(local: &Local, main: F) -> MainTask
    where
        F: Future + 'static,
        F::Output: TaskOutcome,
    {
        let ending = Rc::new(MainResult::default());
        let root = MainTask { ending: Rc::clone(&ending), _watched: WatchedRun::begin() };
        let task = async move {
            let mut guard = BodyGuard { ending: Rc::clone(&ending), is_good: false };
            let body = async move {
                let result = watched(main).await.into_result();
                guard.is_good = result.is_ok();
                guard.ending.fault.set(result.as_ref().err().map(ToString::to_string));
                result
            };
            ending.result.set(Some(finish_at(None, body).await));
            ending.over.set(true);
            Ok(())
        };
        // NEED: starting a task of any lifetime is unsafe.
        // SOUND: the future is 'static.
        unsafe { local.start(task, Scope::DETACHED, &INTERNAL, Priority::Normal) };
        root
    }

    /// Returns `true` if the main task has ended.
    pub fn is_over(&self) -> bool {
        self.ending.over.get()
    }

    /// Returns `true` if its body has failed, while what it has started may go on.
    fn has_failed(&self) -> bool {
        self.ending.failed.get()
    }

    /// Returns the result, once there is one.
    pub fn take(&self) -> Option<Result<()>> {
        self.ending.result.take()
    }
}

/// Runs `main`, with our panic hook before the one that the program has set by the end of its first turn.
async fn watched<F: Future>(main: F) -> F::Output {
    let (mut main, mut is_first) = (pin!(main), true);
    poll_fn(|context| {
        let polled = main.as_mut().poll(context);
        if std::mem::take(&mut is_first) {
            panic::watch();
        }
        polled
    })
    .await
}

/// Runs `main` at the first place until everything it has started has ended, then lets the other places go.
///
/// `stall` says what to do when nothing happens for a while; a run that is given up ends with an error of kind
/// [`Misused`](crate::ErrorKind::Misused) that explains what all places wait for. A run whose `main` has failed is
/// given up after the same limit even if it is not silent, because a place may poll for ever for something that never
/// comes.
pub fn run_first_place<F>(local: &Rc<Local>, main: F, stall: Stall) -> (Result<()>, RunReport)
where
    F: Future + 'static,
    F::Output: TaskOutcome,
{
    local.enter(|| {
        let root = MainTask::start(local, main);
        let mut failed_since = None;
        let mut is_given_up = || {
            let limit = stall.limit.filter(|_| root.has_failed());
            limit.is_some_and(|limit| {
                let now = local.clock().now();
                now.saturating_sub(*failed_since.get_or_insert(now)) >= limit
            })
        };
        let driven = drive(local, Local::step, stall, || root.is_over() || is_given_up());
        let driven = driven.and_then(|()| match stall.limit {
            Some(limit) if !root.is_over() => Err(report::outlived(local, limit, root.ending.fault.take())),
            _ => Ok(()),
        });
        let report = shut_down(local);
        let unreported = local.check_unreported_faults();
        leave(local);
        (root.take().unwrap_or(driven).and(unreported), report)
    })
}

/// Serves at any other place until the first one says that the run is over.
pub fn serve(local: &Rc<Local>) {
    local.enter(|| {
        panic::watch_once();
        // Only the first place judges silence.
        let _ = drive(local, Local::step, Stall::default(), || local.run.is_shut_down.get());
        // Messages of teams that were sent before the shutdown may still be in other queues.
        (0..FINAL_POLLS).take_while(|_| local.progress_messages() == Step::Busy).for_each(drop);
        part::settle(local);
        let report = Box::new(local.report());
        if !local.is_dead(PlaceId(0)) {
            let unreported = local.check_unreported_faults().err();
            report::send(local, PlaceId(0), &RunMessage::FinalReport(report, unreported));
            local.settle_outbox(PlaceId(0), Class::Control, FINAL_REPORT_WAIT);
        }
        leave(local);
    });
}

/// Steps and waits until `over` returns `true`, or the silence has lasted too long: the error then lists the waits.
fn drive(
    local: &Local,
    step: impl Fn(&Local) -> Step,
    stall: Stall,
    mut over: impl FnMut() -> bool,
) -> Result<()> {
    let mut silence = StallWatch {
        stall,
        since: None,
        compared: false,
        reported_at: None,
        has_named_unresponsive: false,
        wait_reports: 0,
    };
    while !over() {
        if step(local) == Step::Busy {
            silence.note_progress(local);
            continue;
        }
        if over() {
            return Ok(());
        }
        local.wait(silence.longest_wait(local));
        silence.watch(local)?;
    }
    Ok(())
}

/// Limits on the time without an event at the first place; without any if nothing is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stall {
    /// Time after which the waits of all places are printed, once for each silence.
    pub report: Option<Duration>,
    /// Time after which the run is given up.
    pub limit: Option<Duration>,
}

impl Stall {
    /// Returns the shorter of the limits that are set, so that a silence is noticed by then.
    fn soonest(&self) -> Option<Duration> {
        [self.report, self.limit].into_iter().flatten().min()
    }
}

/// A time during which nothing happens at a place.
struct StallWatch {
    stall: Stall,
    /// Time at which it was first noticed, by the place's clock.
    since: Option<Duration>,
    /// True if the places have reported to each other in which collectives they wait.
    compared: bool,
    /// Time at which it was reported; once is enough.
    reported_at: Option<Duration>,
    /// True if the places that did not answer the report have been named.
    has_named_unresponsive: bool,
    /// Number of earlier reports of waits by other places, as [`Local::wait_reports_received`] counts them.
    wait_reports: usize,
}

impl StallWatch {
    /// Returns the longest time that the place may sleep: the first place checks again when something is due.
    fn longest_wait(&self, local: &Local) -> Option<Duration> {
        let is_first_place = local.here() == PlaceId(0);
        is_first_place.then(|| self.stall.soonest().map_or(COMPARE_WAIT, |soonest| soonest.min(COMPARE_WAIT)))
    }

    /// Ends the silence, because something has happened; another place's report of its waits does not count.
    #[inline]
    fn note_progress(&mut self, local: &Local) {
        if self.since.is_some() {
            let wait_reports = local.wait_reports_received();
            if std::mem::replace(&mut self.wait_reports, wait_reports) == wait_reports {
                self.since = None;
            }
        }
    }

    /// Acts on the limits that the silence has reached. Reads the clock only from the second idle turn on.
    fn watch(&mut self, local: &Local) -> Result<()> {
        if local.here() != PlaceId(0) {
            return Ok(());
        }
        let Some(since) = self.since else {
            (self.since, self.reported_at, self.compared) = (Some(Duration::MAX), None, false);
            self.wait_reports = local.wait_reports_received();
            return Ok(());
        };
        let now = local.clock().now();
        if since == Duration::MAX {
            self.since = Some(now);
            return Ok(());
        }
        let silence = now.saturating_sub(since);
        if silence >= COMPARE_WAIT && !std::mem::replace(&mut self.compared, true) {
            local.services().compare_waits(local);
            for place in local.others().filter(|place| !local.is_dead(*place)) {
                report::send(local, place, &RunMessage::CompareWaits);
            }
        }
        let Some(earliest) = self.stall.soonest() else { return Ok(()) };
        let Some(reported_at) = self.reported_at else {
            if silence >= earliest {
                (self.reported_at, self.has_named_unresponsive) = (Some(now), false);
                report::print_stall(local, silence);
                self.wait_reports = local.wait_reports_received();
            }
            return Ok(());
        };
        if now.saturating_sub(reported_at) < EXPLAIN_WAIT {
            return Ok(());
        }
        if !std::mem::replace(&mut self.has_named_unresponsive, true) {
            report::print_unresponsive(local);
        }
        match self.stall.limit {
            Some(limit) if silence >= limit => Err(report::stalled(local, silence)),
            _ => Ok(()),
        }
    }
}

/// Tells all places that the run is over, and gathers their reports. No task runs here any more: those that are left
/// are detached, and may call places that have ended.
fn shut_down(local: &Local) -> RunReport {
    part::settle(local);
    for place in local.others() {
        report::send(local, place, &RunMessage::ShutDown);
    }
    let until = local.clock().now() + FINAL_REPORT_WAIT;
    let answered = || {
        let final_reports = local.run.final_reports.borrow();
        local.others().all(|place| final_reports.contains_key(place) || local.is_dead(place))
    };
    let _ = drive(local, Local::progress_messages, Stall::default(), || {
        answered() || local.clock().now() > until
    });
    let mut final_reports = local.run.final_reports.take();
    final_reports.insert(local.here(), local.report());
    let places = (0..local.places()).map(|place| final_reports.remove(PlaceId(place)));
    RunReport { places: places.collect() }
}

/// Drops everything that the place still holds, and what destructors start and keep meanwhile.
pub fn close(local: &Local) {
    loop {
        local.drop_tasks();
        let values = local.parts.borrow_mut().clear();
        if values.is_empty() {
            break;
        }
        values.into_iter().for_each(panic::drop_caught);
    }
    local.close_injector();
    local.note_end();
}

/// Closes the place, and tells the others that nothing more will come from it.
fn leave(local: &Local) {
    close(local);
    local.endpoint().leave();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_place_looks_again_as_soon_as_something_is_due() {
        let [short, long] = [1, 60].map(|tenths| Some(Duration::from_millis(100 * tenths)));
        for (report, limit, soonest) in [
            (short, long, short),
            (long, short, short),
            (None, long, long),
            (short, None, short),
            (None, None, None),
        ] {
            assert_eq!(Stall { report, limit }.soonest(), soonest);
        }
    }
}
