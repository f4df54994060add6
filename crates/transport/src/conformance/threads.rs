//! Runs promises with each place in a thread of its own.
//!
//! Endpoints stay in their thread, so the fixture passes functions that create them. An idle place waits without a
//! timeout: a lost wake-up stalls the run, and a stalled run fails at the deadline, the only use of the clock.
//! Invariant: no endpoint is dropped before all scripts are done, unless its place dies or leaves.

use super::{Fixture, Promise, Script, Step};
use crate::{Arrival, Endpoint, EndpointExt, Inbound, PlaceId, Unpark};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Set-up and end of one thread's endpoint.
pub struct EndpointSetup {
    /// Creates the endpoint; called in the thread of the place.
    pub open: Box<dyn FnOnce() -> Box<dyn Endpoint> + Send>,
    /// Kills the place: the others see a death, not an orderly end.
    pub kill: Box<dyn FnOnce(Box<dyn Endpoint>) + Send>,
}

/// Promises on endpoints of threads.
pub struct Threads<F> {
    /// Creates the endpoints of a new run of `places` places.
    pub setups: F,
    /// Time after which the run counts as stalled; it is generous, because nothing is measured.
    pub deadline: Duration,
}

impl<F: Fn(u32) -> Vec<EndpointSetup>> Threads<F> {
    /// Returns threads with a deadline of two minutes.
    pub fn new(setups: F) -> Threads<F> {
        Threads { setups, deadline: Duration::from_secs(120) }
    }
}

/// State shared by the threads of one run.
struct Run {
    /// Number of places whose script has not ended; also 0 after a failure.
    playing: AtomicUsize,
    unparkers: Mutex<Vec<Arc<dyn Unpark>>>,
}

impl Run {
    fn is_over(&self) -> bool {
        // PAIR conformance.playing: observe
        self.playing.load(Ordering::Acquire) == 0
    }

    /// Removes one place.
    fn step_down(&self) {
        // PAIR conformance.playing: publish
        let earlier =
            self.playing.fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| count.checked_sub(1));
        if earlier == Ok(1) {
            self.unpark_all();
        }
    }

    /// Ends the run for all.
    fn give_up(&self) {
        // PAIR conformance.playing: publish
        self.playing.store(0, Ordering::Release);
        self.unpark_all();
    }

    fn unpark_all(&self) {
        let unparkers = self.unparkers.lock().unwrap_or_else(PoisonError::into_inner);
        unparkers.iter().for_each(|unparker| unparker.unpark());
    }

    fn join(&self, endpoint: &dyn Endpoint) {
        self.unparkers.lock().unwrap_or_else(PoisonError::into_inner).push(endpoint.unparker());
    }
}

impl<F: Fn(u32) -> Vec<EndpointSetup>> Fixture for Threads<F> {
    fn keep(&self, promise: &Promise) {
        let setups = (self.setups)(promise.places);
        assert_eq!(setups.len(), promise.places as usize, "a seat for each place");
        let run = Arc::new(Run { playing: AtomicUsize::new(setups.len()), unparkers: Mutex::default() });
        let (report, reports) = mpsc::channel();
        for (here, setup) in (0..).map(PlaceId).zip(setups) {
            let (run, report, script) = (Arc::clone(&run), report.clone(), promise.script);
            thread::spawn(move || {
                let result = catch_unwind(AssertUnwindSafe(|| play(&run, setup, script(here))));
                let failed = result.is_err();
                // The report comes first, so that the cause precedes its consequences at other places. An error means
                // that the run has failed already.
                let _ = report.send(result);
                if failed {
                    run.give_up();
                }
            });
        }
        let end = Instant::now() + self.deadline;
        for _ in 0..promise.places {
            match reports.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(Ok(())) => {}
                Ok(Err(panic)) => resume_unwind(panic),
                Err(_) => {
                    run.give_up();
                    panic!("stalled: not over after {:?}", self.deadline);
                }
            }
        }
    }
}

fn play(run: &Run, setup: EndpointSetup, mut script: Box<dyn Script>) {
    let endpoint = (setup.open)();
    run.join(&*endpoint);
    loop {
        match script.step(&*endpoint) {
            Step::Busy => {}
            Step::Idle => script.wait(&*endpoint),
            Step::Done => break,
            Step::Die => {
                (setup.kill)(endpoint);
                run.step_down();
                return;
            }
            Step::Leave => {
                endpoint.leave();
                drop(endpoint);
                run.step_down();
                return;
            }
        }
        assert!(!run.is_over(), "given up: another place failed");
    }
    run.step_down();
    while !run.is_over() {
        expect_nothing(run, &*endpoint);
        endpoint.wait(None);
    }
    expect_nothing(run, &*endpoint);
    endpoint.leave();
}

/// Panics if a message arrives, or a death before the orderly end of the run.
fn expect_nothing(run: &Run, endpoint: &dyn Endpoint) {
    endpoint.progress(Inbound::All, &mut |arrival| match arrival {
        Arrival::Message(message) => panic!("one message too many from {}", message.source),
        Arrival::Died { place, .. } => assert!(run.is_over(), "{place} was told dead once too often"),
    });
}
