//! A million tasks that do nothing, started and waited for, with the task libraries of Rust.
//!
//! Its own file because they answer one question. Each library is used the way its documents show.
//! The invariant: every task has ended when the step returns.

use super::batch::seconds_of_whole;
use super::{say, say_version};
use crate::options::Effort;
use std::hint::black_box;

const TASKS: usize = 1_000_000;

fn say_task(seconds: f64) {
    say("spawn_ns", seconds * 1e9 / TASKS as f64);
}

/// rayon: spawn in a scope; one worker, and as many as cores. Prints `spawn_ns` and `spawn_all_cores_ns`.
pub fn rayon(effort: Effort) {
    say_version("rayon");
    let one = rayon_seconds(effort, 1);
    say_task(one);
    say("spawn_all_cores_ns", rayon_seconds(effort, crate::machine::cores()) * 1e9 / TASKS as f64);
}

fn rayon_seconds(effort: Effort, workers: usize) -> f64 {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(workers).build().expect("threads can be started");
    pool.install(|| {
        seconds_of_whole(effort, || {
            rayon::scope(|scope| {
                for number in 0..TASKS {
                    scope.spawn(move |_| {
                        black_box(number);
                    });
                }
            });
        })
    })
}

/// tokio on the calling thread. Prints `spawn_ns`.
pub fn tokio_one(effort: Effort) {
    tokio(effort, tokio::runtime::Builder::new_current_thread());
}

/// tokio on as many workers as cores. Prints `spawn_ns`.
pub fn tokio_many(effort: Effort) {
    tokio(effort, tokio::runtime::Builder::new_multi_thread());
}

fn tokio(effort: Effort, mut builder: tokio::runtime::Builder) {
    say_version("tokio");
    let runtime = builder.build().expect("threads can be started");
    let seconds = seconds_of_whole(effort, || {
        runtime.block_on(async {
            let tasks: Vec<_> = (0..TASKS)
                .map(|number| {
                    tokio::spawn(async move {
                        black_box(number);
                    })
                })
                .collect();
            for task in tasks {
                task.await.expect("the task does not panic");
            }
        });
    });
    say_task(seconds);
}

/// smol's executor on the calling thread. Prints `spawn_ns`.
pub fn smol(effort: Effort) {
    say_version("async-executor");
    let executor = async_executor::LocalExecutor::new();
    let seconds = seconds_of_whole(effort, || {
        futures_lite::future::block_on(executor.run(async {
            let tasks: Vec<_> = (0..TASKS)
                .map(|number| {
                    executor.spawn(async move {
                        black_box(number);
                    })
                })
                .collect();
            for task in tasks {
                task.await;
            }
        }));
    });
    say_task(seconds);
}
