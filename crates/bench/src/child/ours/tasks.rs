//! A million tasks that do nothing, at one place.
//!
//! Its own file as the peers' `tasks` is. Nothing leaves the place.
//! The invariant: the finish has waited for every task.

use super::run;
use crate::child::batch::median;
use crate::child::say;
use crate::options::Effort;
use isles::prelude::*;
use std::hint::black_box;
use std::time::Instant;

const TASKS: usize = 1_000_000;

/// Prints `spawn_ns`.
pub fn measure(effort: Effort) {
    run(move || async move {
        million().await?;
        let mut seconds = Vec::new();
        for _ in 0..effort.repetitions {
            let start = Instant::now();
            million().await?;
            seconds.push(start.elapsed().as_secs_f64());
        }
        say("spawn_ns", median(seconds) * 1e9 / TASKS as f64);
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
