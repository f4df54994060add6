//! A pool of two workers over a channel without a buffer: 50 jobs that each compute for 15 ms.
//!
//! The sender is beside one of the workers, as in the book. Measures the distribution of the jobs and the total time,
//! against two crossbeam threads and Go. Invariant: a job takes a fixed time by the clock on every side, so that other
//! programs of the host only affect which worker takes the next job.

use crate::child::ours::run;
use crate::child::timing::Effort;
use crate::child::timing::{median, print_figure, print_version};
use crossbeam_channel::bounded;
use isles::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const JOBS: u64 = 50;
const WORKERS: usize = 2;
const JOB: Duration = Duration::from_millis(15);

fn compute() {
    let start = Instant::now();
    while start.elapsed() < JOB {
        std::hint::spin_loop();
    }
}

/// Prints `pool_ms` and `lesser_share`, the medians over the repetitions.
fn report(rounds: Vec<(f64, u64)>) {
    print_figure("pool_ms", median(rounds.iter().map(|(seconds, _)| seconds * 1e3).collect()));
    print_figure("lesser_share", median(rounds.iter().map(|(_, lesser)| *lesser as f64).collect()));
}

/// Runs the workers at two places, and the sender at the first.
pub fn of_places(effort: Effort) {
    run(move || async move {
        let mut rounds = Vec::new();
        for _ in 0..effort.repetitions {
            rounds.push(round().await?);
        }
        report(rounds);
        Ok::<_, isles::Error>(())
    });
}

async fn round() -> isles::Result<(f64, u64)> {
    let done = PlaceLocal::new(|| 0_u64).await?;
    let (jobs, queue) = channel::<u64>(0);
    let start = Instant::now();
    finish(async {
        for place in places() {
            spawn_at!(place, [queue, done] {
                let mut jobs = queue.stream();
                while jobs.next().await?.is_some() {
                    compute();
                    *done.lock() += 1;
                }
            });
        }
        for job in 0..JOBS {
            jobs.send(job).await?;
        }
        drop(jobs);
        Ok::<_, isles::Error>(())
    })
    .await?;
    let seconds = start.elapsed().as_secs_f64();
    let shares = everywhere!([done] * done.lock()).await?;
    Ok((seconds, shares.into_iter().min().unwrap_or_default()))
}

/// Runs two threads that receive from one crossbeam channel.
pub fn of_threads(effort: Effort) {
    print_version("crossbeam-channel");
    let round = |_| {
        let (jobs, queue) = bounded::<u64>(0);
        let done = [const { AtomicU64::new(0) }; WORKERS];
        let start = Instant::now();
        thread::scope(|scope| {
            for done in &done {
                let queue = queue.clone();
                scope.spawn(move || {
                    for _ in queue {
                        compute();
                        // Relaxed is enough: the scope joins the threads before the count is read.
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            (0..JOBS).for_each(|job| jobs.send(job).expect("the workers receive"));
            drop(jobs);
        });
        let lesser = done.iter().map(|done| done.load(Ordering::Relaxed)).min();
        (start.elapsed().as_secs_f64(), lesser.unwrap_or_default())
    };
    report((0..effort.repetitions).map(round).collect());
}
