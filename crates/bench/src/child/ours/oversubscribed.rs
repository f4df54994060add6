//! Many more places than cores.
//!
//! Its own file because what counts here is how places wait, not how they send. The forms are those of
//! `peers/mpi.c`, section `oversubscribed`. The invariant: while the token travels, every other place waits.

use super::{run, seconds_per_step};
use crate::child::say;
use crate::options::Effort;
use isles::prelude::*;
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

const IDLE: Duration = Duration::from_secs(2);

/// How long the token travels before it is timed, as in `peers/mpi.c`: until new processes are spread over the
/// processors a hop takes up to twice as long.
const SETTLING: Duration = Duration::from_millis(500);

/// Prints `hop_us`, `barrier_us` and `idle_percent`.
pub fn measure(effort: Effort) {
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
        say("hop_us", seconds * 1e6 / places as f64);
        say("barrier_us", super::collective::barrier(effort).await? * 1e6);
        say("idle_percent", idle_percent().await?);
        Ok(())
    });
}

/// Hands the token on until it has made all its hops.
fn pass(left: u64) {
    if left > 0 {
        let left = left - 1;
        spawn_at!(here().next(), pass(left));
    }
}

/// Processor time of all places while every task of the program waits, in percent of all cores.
async fn idle_percent() -> isles::Result<f64> {
    let (before, start) = (busy_seconds().await?, Instant::now());
    let waited = finish(std::future::pending::<()>()).deadline(IDLE).await;
    assert!(waited.is_err(), "nothing but the deadline ends it");
    let elapsed = start.elapsed().as_secs_f64();
    let spent = busy_seconds().await? - before;
    Ok(100.0 * spent / elapsed / crate::machine::cores() as f64)
}

/// Processor time that the processes of all places have used.
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
