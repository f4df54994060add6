//! Calls and tasks: the smallest ones to the other place, to one that sleeps or has slept, beside busy processes, a
//! million at one place, a million between neighbours, and pairs of forms that should cost the same.
//!
//! The pairs have no peer: two forms of a call that differ in one thing are compared in the same process, batch by
//! batch in turn. Invariants: every task and call of a batch has ended when its clock is read; the pause before a call
//! to a sleeping place is not in the figure.

use super::{run, seconds_of_both, seconds_per_step};
use crate::child::timing::Effort;
use crate::child::timing::{median, print_figure};
use crate::child::two_cores::{LONG_PAUSE, PAUSE, keep_busy};
use isles::CanTravel;
use isles::prelude::*;
use std::hint::black_box;
use std::process::{Child, Command};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Number of tasks that have run in this process; a plain count without ordering.
static TASKS_RUN: AtomicU64 = AtomicU64::new(0);

/// Prints `half_round_trip_us` of an empty `at!` and `rate_million` of a tiny `spawn_at!`.
pub fn messages(effort: Effort) {
    run(move || async move {
        let there = here().next();
        let seconds = seconds_per_step(effort, async |count| {
            for _ in 0..count {
                at!(there, {}).await?;
            }
            Ok(())
        })
        .await?;
        print_figure("half_round_trip_us", seconds * 1e6 / 2.0);
        print_figure("rate_million", 1e-6 / tasks_per_second(effort, there).await?);
        Ok(())
    });
}

async fn tasks_per_second(effort: Effort, there: Place) -> isles::Result<f64> {
    let mut started = 0;
    let seconds = seconds_per_step(effort, async |count| {
        started += count;
        finish(async {
            for _ in 0..count {
                spawn_at!(there, {
                    TASKS_RUN.fetch_add(1, Relaxed);
                });
            }
        })
        .await
    })
    .await?;
    let ended = at!(there, TASKS_RUN.load(Relaxed)).await?;
    assert_eq!(started, ended, "tasks started and tasks ended");
    Ok(seconds)
}

/// Prints `there_and_back_us`, and `long_asleep_us` after a longer pause.
pub fn sleeping(effort: Effort) {
    run(move || async move {
        print_figure("there_and_back_us", round_trip(effort, PAUSE).await? * 1e6);
        print_figure("long_asleep_us", round_trip(effort, LONG_PAUSE).await? * 1e6);
        Ok(())
    });
}

/// Returns the seconds of a call after the place was idle for `pause`.
async fn round_trip(effort: Effort, pause: Duration) -> isles::Result<f64> {
    let there = here().next();
    let mut seconds = Vec::new();
    for _ in 0..effort.batch.as_millis() as usize * effort.repetitions {
        keep_busy(pause);
        let start = Instant::now();
        at!(there, {}).await?;
        seconds.push(start.elapsed().as_secs_f64());
    }
    Ok(median(seconds))
}

/// Sleep of the places before a round of calls, and number of calls in a round.
const SLEEP: Duration = Duration::from_millis(30);
const CALLS_A_ROUND: u32 = 100_000;

/// Busy processes beside the run for [`crowded`], all of the lowest priority.
const BUSY: usize = 4;

/// Prints `half_round_trip_us` of successive calls, in rounds before which both places sleep.
pub fn after_sleep(effort: Effort) {
    run(move || rounds(effort));
}

/// Prints the same beside busy processes.
pub fn crowded(effort: Effort) {
    run(move || async move {
        let _busy = BusyProcesses::start(BUSY);
        rounds(effort).await
    });
}

async fn rounds(effort: Effort) -> isles::Result<()> {
    let there = here().next();
    let mut seconds = Vec::new();
    // One round per repetition of the other figures, and an uncounted one.
    for round in 0..=effort.repetitions {
        isles::sleep(SLEEP).await;
        let start = Instant::now();
        for _ in 0..CALLS_A_ROUND {
            at!(there, {}).await?;
        }
        if round > 0 {
            seconds.push(start.elapsed().as_secs_f64() / f64::from(CALLS_A_ROUND));
        }
    }
    print_figure("half_round_trip_us", median(seconds) * 1e6 / 2.0);
    Ok(())
}

/// Busy processes, killed on drop.
struct BusyProcesses(Vec<Child>);

impl BusyProcesses {
    fn start(count: usize) -> BusyProcesses {
        let start = |_| {
            let mut command = Command::new("nice");
            command.args(["-n", "19", "sh", "-c", "while :; do :; done"]);
            command.spawn().expect("a shell can be started")
        };
        BusyProcesses((0..count).map(start).collect())
    }
}

impl Drop for BusyProcesses {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // One may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

const TASKS: usize = 1_000_000;

/// Prints `spawn_ns`.
pub fn spawns(effort: Effort) {
    run(move || async move {
        million().await?;
        let mut seconds = Vec::new();
        for _ in 0..effort.repetitions {
            let start = Instant::now();
            million().await?;
            seconds.push(start.elapsed().as_secs_f64());
        }
        print_figure("spawn_ns", median(seconds) * 1e9 / TASKS as f64);
        Ok(())
    });
}

async fn million() -> isles::Result<()> {
    finish(async {
        for number in 0..TASKS {
            spawn(async move {
                black_box(number);
            });
        }
    })
    .await
}

/// Number of tasks of a flood, over all places.
const FLOOD: u64 = 1_000_000;

/// Number of tasks of a short flood, whose events all fit in a trace.
const SHORT_FLOOD: u64 = 100_000;

/// Number of tasks that a place starts before it yields.
const TURN: u64 = 1_000;

/// Prints `flood_ms` of a million tasks, the median of several floods.
pub fn flood(effort: Effort) {
    floods(FLOOD, effort.repetitions);
}

/// Prints `flood_ms` of a hundred thousand tasks, once.
pub fn flood_short(_effort: Effort) {
    floods(SHORT_FLOOD, 1);
}

/// Prints `flood_ms` of a million tasks, once.
pub fn flood_once(_effort: Effort) {
    floods(FLOOD, 1);
}

fn floods(tasks: u64, repetitions: usize) {
    run(move || async move {
        let each = tasks / place_count() as u64;
        flood_by(TURN).await?; // connections, memory, the server's first look
        let mut seconds = Vec::new();
        for _ in 0..repetitions {
            let before = tasks_run().await?;
            let started = Instant::now();
            flood_by(each).await?;
            seconds.push(started.elapsed().as_secs_f64());
            assert_eq!(tasks_run().await? - before, each * place_count() as u64, "tasks that have run");
        }
        print_figure("flood_ms", median(seconds) * 1e3);
        Ok(())
    });
}

/// Starts `each` tasks from each place at the next one.
async fn flood_by(each: u64) -> isles::Result<()> {
    finish(async {
        for place in places() {
            spawn_at!(place, start(each).await);
        }
    })
    .await
}

async fn start(each: u64) {
    let there = here().next();
    for number in 1..=each {
        spawn_at!(there, {
            TASKS_RUN.fetch_add(1, Relaxed);
        });
        if number % TURN == 0 {
            isles::yield_now().await;
        }
    }
}

/// Returns the number of tasks that have run at all places, some of which may share a count.
async fn tasks_run() -> isles::Result<u64> {
    let mut counts = std::collections::BTreeMap::new();
    for place in places() {
        let (process, count) = at!(place, (std::process::id(), TASKS_RUN.load(Relaxed))).await?;
        counts.insert(process, count);
    }
    Ok(counts.values().sum())
}

/// Elements of the vector that is sent, once by generic code.
const ELEMENTS: usize = 1_024;

const MIB: usize = 1 << 20;

/// Sum that the tasks add to; its accesses are relaxed.
static SUM: AtomicU64 = AtomicU64::new(0);

/// Prints `generic_us` and `concrete_us`: an `at!` that captures a vector of 1,024 numbers, in a generic function and
/// in one with a concrete type.
pub fn generic(effort: Effort) {
    run(move || async move {
        let there = here().next();
        let vector = vec![1.0_f64; ELEMENTS];
        let (generic, concrete) = seconds_of_both(
            effort,
            async |count| {
                for _ in 0..count {
                    send_any(there, &vector).await?;
                }
                Ok(())
            },
            async |count| {
                for _ in 0..count {
                    send_vector(there, &vector).await?;
                }
                Ok(())
            },
        )
        .await?;
        print_figure("generic_us", generic * 1e6);
        print_figure("concrete_us", concrete * 1e6);
        Ok(())
    });
}

async fn send_any<T: CanTravel>(there: Place, value: &T) -> isles::Result<()> {
    at!(there, {
        black_box(value);
    })
    .await
}

async fn send_vector(there: Place, value: &Vec<f64>) -> isles::Result<()> {
    at!(there, {
        black_box(value);
    })
    .await
}

/// Prints `of_33_mib_gb` and `of_30_mib_gb`: 10⁹ bytes per second for a slice of 33 or 30 MiB moved by `at!`.
pub fn sizes(effort: Effort) {
    run(move || async move {
        let there = here().next();
        let bytes = vec![1_u64; 33 * MIB / size_of::<u64>()];
        let (longer, shorter) = (&bytes[..], &bytes[..30 * MIB / size_of::<u64>()]);
        let (of_33, of_30) = seconds_of_both(
            effort,
            async |count| move_often(there, longer, count).await,
            async |count| move_often(there, shorter, count).await,
        )
        .await?;
        print_figure("of_33_mib_gb", (33 * MIB) as f64 / of_33 / 1e9);
        print_figure("of_30_mib_gb", (30 * MIB) as f64 / of_30 / 1e9);
        Ok(())
    });
}

async fn move_often(there: Place, slice: &[u64], count: u64) -> isles::Result<()> {
    for _ in 0..count {
        assert_eq!(at!(there, slice.len() as u64).await?, slice.len() as u64);
    }
    Ok(())
}

/// Prints `handle_ns` and `number_ns`: a `spawn_at!` whose body captures a handle, and one that captures a number.
pub fn handle(effort: Effort) {
    run(move || async move {
        let there = here().next();
        let total = PlaceLocal::new(|| 0_u64).await?;
        let (handle, number) = seconds_of_both(
            effort,
            async |count| {
                finish(async {
                    for _ in 0..count {
                        spawn_at!(there, {
                            *total.lock() += 1;
                        });
                    }
                })
                .await
            },
            async |count| {
                finish(async {
                    for number in 0..count {
                        spawn_at!(there, {
                            SUM.fetch_add(number, Relaxed);
                        });
                    }
                })
                .await
            },
        )
        .await?;
        print_figure("handle_ns", handle * 1e9);
        print_figure("number_ns", number * 1e9);
        Ok(())
    });
}
