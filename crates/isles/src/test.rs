//! One test on one machine: what `#[isles::test]` expands to.

use crate::launch::{Launch, MainFuture, future_of};
use crate::machine::{Machine, STACK_BYTES, processes};
use crate::settings::Environment;
use crate::settings::table::setting;
use isles_runtime::capture::MainOutcome;
use isles_runtime::run::Stall;
use isles_transport_shm::processes::{JOIN_VARIABLE, Program, unmute};
use std::ops::Range;
use std::panic::resume_unwind;
use std::time::Duration;

/// Default times without progress before a test reports what it waits for, and before it fails.
const STALL: Stall = Stall { report: Some(Duration::from_secs(10)), limit: Some(Duration::from_secs(60)) };

/// Number of seeds of a test on the loopback, unless `ISLES_SEED` names one.
const SEEDS: u64 = 8;

/// Runs `body` at the first of `places` places of `machine`, and fails if it fails.
///
/// `name` is the path of the test function, with which the other processes start as places.
///
/// # Panics
/// If the body fails, if nothing happens at the first place for a minute (or `ISLES_STALL_LIMIT` seconds), or if the
/// machine cannot be set up.
pub fn test<M, F>(machine: Machine, places: u32, name: &'static str, body: M)
where
    M: Fn() -> F + Sync,
    F: Future + 'static,
    F::Output: MainOutcome,
{
    run_on_thread(machine, places, name, &|| future_of(&body, MainOutcome::into_main_result));
}

/// Body of a test, run once for each seed.
pub(crate) type TestBody<'a> = &'a (dyn Fn() -> MainFuture + Sync);

/// As [`test()`].
fn run_on_thread(machine: Machine, places: u32, name: &'static str, body: TestBody<'_>) {
    // The threads of the harness have a quarter of the stack that the first thread of a program has.
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    let thread = match std::thread::current().name() {
        Some(name) => thread.name(name.to_owned()),
        None => thread,
    };
    let ended = std::thread::scope(|scope| {
        let thread = thread.spawn_scoped(scope, || run(machine, places, name, body));
        thread.unwrap_or_else(|error| panic!("the thread of the test could not be started: {error}")).join()
    });
    // The thread has printed its message.
    ended.unwrap_or_else(|panic| resume_unwind(panic));
}

/// As [`test()`], on this thread.
fn run(machine: Machine, places: u32, name: &'static str, body: TestBody<'_>) {
    if std::env::var_os(JOIN_VARIABLE).is_some() {
        // A failure loses only the output of the place.
        let _ = unmute();
    }
    processes::serve_if_place();
    let environment = Environment::read(&[]).unwrap_or_else(|error| panic!("{error}"));
    let stall = environment.stall(STALL);
    let launch = Launch { stall, ..Launch::of(environment.of_test(), machine, places) };
    machine.driver().run_test(&launch, name, body).unwrap_or_else(|error| panic!("{error}"));
}

/// Returns the seeds of a test on the loopback.
pub(crate) fn seeds_of_tests() -> Range<u64> {
    let named = std::env::var(setting("seed").variable).ok().and_then(|seed| seed.parse().ok());
    named.map_or(0..SEEDS, |seed: u64| seed..seed + 1)
}

/// Returns this test program, with arguments to run only the test `name`.
pub(crate) fn same_test(name: &str) -> Program {
    // The harness names tests without their crate.
    let name = name.split_once("::").map_or(name, |(_, rest)| rest);
    let arguments = [name, "--exact", "--nocapture", "--include-ignored"].map(Into::into).to_vec();
    // Muted, because the harness of each process would announce a test.
    Program { arguments, muted: true, ..Program::current() }
}
