//! A call to a place that sleeps.
//!
//! Its own file because it is timed one call at a time. It does not ask whether the place sleeps: it leaves it
//! much longer than it waits awake. The invariant: the pause is not in the figure.

use super::run;
use crate::child::batch::median;
use crate::child::say;
use crate::options::Effort;
use isles::prelude::*;
use std::time::{Duration, Instant};

/// Many times what a place looks for work before it sleeps.
const PAUSE: Duration = Duration::from_millis(1);

/// Prints `there_and_back_us`.
pub fn measure(effort: Effort) {
    run(move || async move {
        let there = here().next();
        let rounds = effort.batch.as_millis() as usize * effort.repetitions;
        let mut seconds = Vec::new();
        for _ in 0..rounds {
            let pause = Instant::now();
            while pause.elapsed() < PAUSE {}
            let start = Instant::now();
            at!(there, {}).await?;
            seconds.push(start.elapsed().as_secs_f64());
        }
        say("there_and_back_us", median(seconds) * 1e6);
        Ok(())
    });
}
