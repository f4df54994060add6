//! The smallest calls and tasks from one place to the other.
//!
//! Its own file because the two rows share a program. The bodies do next to nothing.
//! The invariant: every task of the rate has run; they are counted where they ran.

use super::{run, seconds_per_step};
use crate::child::say;
use crate::options::Effort;
use isles::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Tasks that have run in this process; a plain count, it orders nothing.
static TASKS: AtomicU64 = AtomicU64::new(0);

/// Prints `half_round_trip_us` of an empty `at!` and `rate_million` of a tiny `spawn_at!`.
pub fn measure(effort: Effort) {
    run(move || async move {
        let there = here().next();
        let seconds = seconds_per_step(effort, async |count| {
            for _ in 0..count {
                at!(there, {}).await?;
            }
            Ok(())
        })
        .await?;
        say("half_round_trip_us", seconds * 1e6 / 2.0);
        say("rate_million", 1e-6 / rate(effort, there).await?);
        Ok(())
    });
}

async fn rate(effort: Effort, there: Place) -> isles::Result<f64> {
    let mut started = 0;
    let seconds = seconds_per_step(effort, async |count| {
        started += count;
        finish(async {
            for _ in 0..count {
                spawn_at!(there, {
                    TASKS.fetch_add(1, Relaxed);
                });
            }
        })
        .await
    })
    .await?;
    let ended = at!(there, TASKS.load(Relaxed)).await?;
    assert_eq!(started, ended, "tasks started and tasks ended");
    Ok(seconds)
}
