//! The task libraries of Rust: a million empty tasks, started and awaited, and a channel between two tasks.
//!
//! None keeps a handle for each of the million, and neither does ours. Invariant: every task has ended when the step
//! returns.

use super::ours::pipelines;
use crate::child::timing::Effort;
use crate::child::timing::{print_figure, print_version, seconds_of_whole, seconds_per_step};
use std::future::poll_fn;
use std::hint::black_box;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Instant;

const TASKS: usize = 1_000_000;

fn print_task_time(seconds: f64) {
    print_figure("spawn_ns", seconds * 1e9 / TASKS as f64);
}

/// rayon: spawn in a scope, with one worker and with one per core. Prints `spawn_ns` and `spawn_all_cores_ns`.
pub fn rayon(effort: Effort) {
    print_version("rayon");
    let one = rayon_seconds(effort, 1);
    print_task_time(one);
    print_figure("spawn_all_cores_ns", rayon_seconds(effort, crate::machine::cores()) * 1e9 / TASKS as f64);
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

/// tokio with one worker per core. Prints `spawn_ns`.
pub fn tokio_many(effort: Effort) {
    tokio(effort, tokio::runtime::Builder::new_multi_thread());
}

fn tokio(effort: Effort, mut builder: tokio::runtime::Builder) {
    print_version("tokio");
    let runtime = builder.build().expect("threads can be started");
    let seconds = seconds_of_whole(effort, || {
        runtime.block_on(async {
            let open = OpenTasks::new(TASKS);
            for number in 0..TASKS {
                let one = open.clone();
                drop(tokio::spawn(async move {
                    black_box(number);
                    one.ended();
                }));
            }
            open.wait().await;
        });
    });
    print_task_time(seconds);
}

/// Capacity of the channel, as everywhere in the suite `channels`.
const CAPACITY: usize = 1_024;

/// tokio's bounded channel, from one task to another on the calling thread. Prints `rate_million` of items of 8 bytes.
pub fn tokio_channel(effort: Effort) {
    print_version("tokio");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("the thread is there");
    let seconds = seconds_per_step(effort, |count| {
        let received = runtime.block_on(async {
            let (sender, mut receiver) = tokio::sync::mpsc::channel::<u64>(CAPACITY);
            drop(tokio::spawn(async move {
                for number in 0..count {
                    sender.send(number).await.expect("the receiver takes all");
                }
            }));
            let receiving = tokio::spawn(async move {
                let mut received = 0;
                while let Some(number) = receiver.recv().await {
                    black_box(number);
                    received += 1;
                }
                received
            });
            receiving.await.expect("nothing panics")
        });
        assert_eq!(received, count, "items sent and items received");
    });
    print_figure("rate_million", 1e-6 / seconds);
}

/// smol's executor on the calling thread. Prints `spawn_ns`.
pub fn smol(effort: Effort) {
    print_version("async-executor");
    let executor = async_executor::LocalExecutor::new();
    let seconds = seconds_of_whole(effort, || {
        futures_lite::future::block_on(executor.run(async {
            let open = OpenTasks::new(TASKS);
            for number in 0..TASKS {
                let one = open.clone();
                let task = executor.spawn(async move {
                    black_box(number);
                    one.ended();
                });
                task.detach();
            }
            open.wait().await;
        }));
    });
    print_task_time(seconds);
}

/// The tasks that have not ended, used with tokio and smol like a scope in rayon and a finish in Isles: waiting for
/// all needs no handle for each.
#[derive(Clone)]
struct OpenTasks(Arc<(AtomicUsize, Mutex<Option<Waker>>)>);

impl OpenTasks {
    fn new(tasks: usize) -> OpenTasks {
        OpenTasks(Arc::new((AtomicUsize::new(tasks), Mutex::new(None))))
    }

    fn ended(self) {
        // PAIR bench.tasks.open: publish, observe
        if self.0.0.fetch_sub(1, AcqRel) == 1
            && let Some(waker) = self.0.1.lock().expect("no holder panics").take()
        {
            waker.wake();
        }
    }

    async fn wait(&self) {
        poll_fn(|context| {
            *self.0.1.lock().expect("no holder panics") = Some(context.waker().clone());
            // PAIR bench.tasks.open: observe
            if self.0.0.load(Acquire) == 0 { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

/// Sends items through 8 trivial stages over tokio's bounded channels, a task per stage, on the calling thread. Prints
/// `rate_million`.
pub fn tokio_pipeline(effort: Effort) {
    print_version("tokio");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("the thread is there");
    let seconds = seconds_per_step(effort, |count| {
        let sum = runtime.block_on(async {
            let (first, mut numbers) = tokio::sync::mpsc::channel::<u64>(pipelines::QUEUE);
            drop(tokio::spawn(async move {
                for number in 0..count {
                    first.send(number).await.expect("the stage takes all");
                }
            }));
            for stage in 0..pipelines::SHORT_STAGES {
                let (next, numbers_of_next) = tokio::sync::mpsc::channel::<u64>(pipelines::QUEUE);
                let mut own = std::mem::replace(&mut numbers, numbers_of_next);
                drop(tokio::spawn(async move {
                    while let Some(value) = own.recv().await {
                        next.send(value + black_box(stage)).await.expect("the next stage takes all");
                    }
                }));
            }
            let receiving = tokio::spawn(async move {
                let mut sum = 0;
                while let Some(value) = numbers.recv().await {
                    sum += value;
                }
                sum
            });
            receiving.await.expect("nothing panics")
        });
        assert_eq!(sum, pipelines::short_sum(count));
    });
    print_figure("rate_million", 1e-6 / seconds);
}

/// Runs two tasks that signal each other with two tokio semaphores, on the calling thread. Prints `loop_us`.
pub fn tokio_semaphore_loop(effort: Effort) {
    use std::sync::Arc;
    use tokio::sync::Semaphore;
    print_version("tokio");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("the thread is there");
    let seconds = seconds_per_step(effort, |count| {
        runtime.block_on(async {
            let (ping, pong) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
            let play = |signals: &Arc<Semaphore>, tests: &Arc<Semaphore>, begins: bool| {
                let (signals, tests) = (Arc::clone(signals), Arc::clone(tests));
                tokio::spawn(async move {
                    for _ in 0..count {
                        if begins {
                            signals.add_permits(1);
                        }
                        tests.acquire().await.expect("it is open").forget();
                        if !begins {
                            signals.add_permits(1);
                        }
                    }
                })
            };
            let (left, right) = (play(&ping, &pong, true), play(&pong, &ping, false));
            left.await.expect("nothing panics");
            right.await.expect("nothing panics");
        });
    });
    print_figure("loop_us", seconds * 1e6);
}

/// Runs the 18 long stages of a pipeline in a plain loop. Prints `seconds`.
pub fn loop_pipeline(_effort: Effort) {
    let started = Instant::now();
    let through =
        |item| (0..pipelines::LONG_STAGES).fold(item, |value, stage| pipelines::long_step(stage, value));
    let sum = (0..pipelines::LONG_ITEMS).fold(0_u64, |sum, item| sum.wrapping_add(through(item)));
    black_box(sum);
    print_figure("seconds", started.elapsed().as_secs_f64());
}
