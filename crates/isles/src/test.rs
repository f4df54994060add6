//! One test on one machine: what `#[isles::test]` expands to.

use crate::launch::{Launch, MainFuture, future_of};
use crate::machine::{Machine, STACK_BYTES};
use crate::machine::{loopback, processes, threads};
use crate::settings::Environment;
use crate::settings::table::setting;
use isles_runtime::capture::MainOutcome;
use isles_runtime::run::Stall;
use isles_transport_shm::processes::{JOIN_VARIABLE, Program, unmute};
use std::panic::resume_unwind;
use std::time::Duration;

/// How long nothing may happen before a test says what it waits for, and before it fails, unless the environment
/// says otherwise.
const STALL: Stall = Stall { report: Some(Duration::from_secs(10)), limit: Some(Duration::from_secs(60)) };

/// Seeds that a test on the loopback is run with, unless `ISLES_SEED` names one.
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

/// What a test runs, once for each seed.
type Body<'a> = &'a (dyn Fn() -> MainFuture + Sync);

/// As [`test`].
fn run_on_thread(machine: Machine, places: u32, name: &'static str, body: Body<'_>) {
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
    // Its message was printed by the thread.
    ended.unwrap_or_else(|panic| resume_unwind(panic));
}

/// As [`test`], on this thread.
fn run(machine: Machine, places: u32, name: &'static str, body: Body<'_>) {
    if std::env::var_os(JOIN_VARIABLE).is_some() {
        // Where it fails, what the place prints is lost, and nothing else.
        let _ = unmute();
    }
    processes::serve_if_joined();
    let environment = Environment::read(&[]).unwrap_or_else(|error| panic!("{error}"));
    let stall = environment.stall(STALL);
    let chip = environment.chip.clone().of_test();
    // Nothing is reported or written, and the seed is said below.
    let (reports, exports, seed, record) = (Vec::new(), Vec::new(), 0, None);
    let launch =
        Launch { stall, chip, reports, exports, seed, record, ..Launch::of(environment, machine, places) };
    let (result, _) = match machine {
        Machine::Threads => {
            threads::run(&launch, None, Box::new(body)).unwrap_or_else(|error| panic!("{error}"))
        }
        Machine::Processes => processes::run_program(&launch, (&same_test(name), None), Box::new(body))
            .unwrap_or_else(|error| panic!("{error}")),
        Machine::Mpi => panic!("a test starts its places itself, and ranks are started by a launcher"),
        Machine::Loopback => return simulate(&launch, body),
        Machine::Chip(chip) => {
            chip.run_silently(&launch, Box::new(body)).unwrap_or_else(|error| panic!("{error}"))
        }
    };
    result.unwrap_or_else(|error| panic!("{error}"));
}

fn simulate(launch: &Launch, body: Body<'_>) {
    let named = std::env::var(setting("seed").variable).ok().and_then(|seed| seed.parse().ok());
    let seeds = named.map_or(0..SEEDS, |seed: u64| seed..seed + 1);
    for seed in seeds {
        let (result, _) = loopback::run(&Launch { seed, ..launch.clone() }, Box::new(body));
        result.unwrap_or_else(|error| panic!("with ISLES_SEED={seed}: {error}"));
    }
}

/// This test program, told to run the one test `name` only.
fn same_test(name: &str) -> Program {
    // The harness knows the test without the name of its crate.
    let name = name.split_once("::").map_or(name, |(_, rest)| rest);
    let arguments = [name, "--exact", "--nocapture", "--include-ignored"].map(Into::into).to_vec();
    // Muted, because the harness of each process would announce a test.
    Program { arguments, muted: true, ..Program::current() }
}
