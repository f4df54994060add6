//! A call to a place that sleeps.
//!
//! Its own file because it is timed one call at a time. It does not ask whether the place sleeps: it leaves it
//! longer than it waits awake. The invariant: the pause is not in the figure.

use super::run;
use crate::child::batch::median;
use crate::child::say;
use crate::child::wake::{LONG_PAUSE, PAUSE, keep_busy};
use crate::options::Effort;
use isles::prelude::*;
use std::time::{Duration, Instant};

/// What a place with a processor of its own looks for work before it sleeps.
const AWAKE: Duration = Duration::from_micros(50);

/// Prints `there_and_back_us`, and `long_asleep_us` after a longer pause.
pub fn measure(effort: Effort) {
    run(move || async move {
        say("there_and_back_us", there_and_back(effort, PAUSE).await? * 1e6);
        say("long_asleep_us", there_and_back(effort, LONG_PAUSE).await? * 1e6);
        Ok(())
    });
}

/// Seconds of a call, after the place has slept for `pause`.
async fn there_and_back(effort: Effort, pause: Duration) -> isles::Result<f64> {
    let there = here().next();
    let mut seconds = Vec::new();
    for _ in 0..effort.batch.as_millis() as usize * effort.repetitions {
        keep_busy(AWAKE + pause);
        let start = Instant::now();
        at!(there, {}).await?;
        seconds.push(start.elapsed().as_secs_f64());
    }
    Ok(median(seconds))
}
