//! Costs of idle places: many more places than cores, and the memory of one place.
//!
//! The first depends on how places wait, not on how they send; the forms are those of `peers/mpi.c`, section
//! `oversubscribed`. Memory is read from the kernel's accounts: resident pages in the process of one place, including
//! shared ones, minus those of the same program without places. Invariants: while the token travels, every other place
//! waits; the observed place does nothing else.

use super::{run, seconds_per_step, transfers};
use crate::child::timing::Effort;
use crate::child::timing::print_figure;
use crate::output::Output;
use isles::prelude::*;
use isles::{Launch, SMALL_TASK_BYTES};
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::process::Command;
use std::time::{Duration, Instant};

const IDLE: Duration = Duration::from_secs(2);

/// Time for which the token travels before it is timed, as in `peers/mpi.c`: until new processes are spread over the
/// processors, a hop takes up to twice as long.
const SETTLING: Duration = Duration::from_millis(500);

/// Prints `hop_us`, `barrier_us` and `idle_percent`.
pub fn oversubscribed(effort: Effort) {
    run(move || async move {
        let places = isles::place_count() as u64;
        let go_round = async |count: u64| {
            finish(async {
                let left: u64 = count * places - 1;
                spawn_at!(here().next(), pass(left));
            })
            .await
        };
        let start = Instant::now();
        while start.elapsed() < SETTLING {
            go_round(1).await?;
        }
        let seconds = seconds_per_step(effort, go_round).await?;
        print_figure("hop_us", seconds * 1e6 / places as f64);
        print_figure("barrier_us", transfers::barrier(effort).await? * 1e6);
        print_figure("idle_percent", idle_percent().await?);
        Ok(())
    });
}

/// Ends when each place has run a task. Prints `places`.
pub fn start(_effort: Effort) {
    run(|| async {
        finish(async {
            for place in places() {
                spawn_at!(place, {});
            }
        })
        .await?;
        print_figure("places", isles::place_count() as f64);
        Ok(())
    });
}

/// Prints `idle_percent` of waiting places.
pub fn idle(_effort: Effort) {
    run(|| async {
        print_figure("idle_percent", idle_percent().await?);
        Ok(())
    });
}

/// Passes the token on until it has made all its hops.
fn pass(left: u64) {
    if left > 0 {
        let left = left - 1;
        spawn_at!(here().next(), pass(left));
    }
}

/// Returns the processor time of all places while every task of the program waits, as a percentage of all cores.
async fn idle_percent() -> isles::Result<f64> {
    let (before, start) = (busy_seconds().await?, Instant::now());
    let waited = finish(std::future::pending::<()>()).deadline(IDLE).await;
    assert!(waited.is_err(), "nothing but the deadline ends it");
    let elapsed = start.elapsed().as_secs_f64();
    let spent = busy_seconds().await? - before;
    Ok(100.0 * spent / elapsed / crate::machine::cores() as f64)
}

/// Returns the processor time used by the processes of all places.
async fn busy_seconds() -> isles::Result<f64> {
    let mut seconds = 0.0;
    for place in places() {
        seconds += at!(place, own_busy_seconds()).await?;
    }
    Ok(seconds)
}

fn own_busy_seconds() -> f64 {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
}

const FLOOD: u64 = 1_000_000;
const ARRAYS: u64 = 64;
const WORDS: usize = (2 << 20) / size_of::<u64>();
const LIMIT: Duration = Duration::from_secs(10);

/// Prints `idle_mib` and `loaded_mib` of a place other than the first, in excess of the bare program, and the
/// documented bound on the latter.
pub fn memory(_effort: Effort) {
    run(move || async move {
        let there = here().next();
        let bare = bare_program();
        let idle = at!(there, resident_mib()).await?;
        print_figure("idle_mib", idle - bare);
        flood(there).await?;
        let loaded = at!(there, resident_mib()).await?;
        print_figure("loaded_mib", loaded - bare);
        let launch = Launch::from_environment()?;
        if let Some(bound) = launch.resident_bytes_max(SMALL_TASK_BYTES) {
            print_figure("stated_bound_mib", bound as f64 / (1 << 20) as f64);
        }
        Ok(())
    });
}

/// Runs the program without places. Prints `resident_mib`.
pub fn bare(_effort: Effort) {
    print_figure("resident_mib", resident_mib());
}

fn bare_program() -> f64 {
    let program = std::env::current_exe().expect("the own program can be found");
    let mut command = Command::new(program);
    command.args(["child", "bare", "1", "1"]);
    let output = Output::of(&mut command, LIMIT).unwrap_or_else(|error| panic!("{error}"));
    output.figures[0].1
}

async fn flood(there: Place) -> isles::Result<()> {
    finish(async {
        for number in 0..FLOOD {
            spawn_at!(there, {
                black_box(number);
            });
        }
    })
    .await?;
    let array = vec![1_u64; WORDS];
    finish(async {
        for _ in 0..ARRAYS {
            spawn_at!(there, {
                black_box(array.len());
            });
        }
    })
    .await
}

/// Returns the resident pages of this process in MiB, as counted exactly by the kernel.
fn resident_mib() -> f64 {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").expect("the kernel tells");
    let line = text.lines().find_map(|line| line.strip_prefix("Rss:")).expect("the kernel reports Rss");
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse().expect("Rss is a number");
    kib / 1024.0
}
