//! Many more places than processors: everything still works, and an idle run uses almost no processor time.
//!
//! 48 places as processes and 256 as threads, on any host. The tests measure the processor time of an idle run, as the
//! system accounts it, and no other time; speed is measured by the bench.

use isles::prelude::*;
use isles::{ErrorKind, Result};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Time for which an idle run is watched.
const WATCHED: Duration = Duration::from_secs(3);

/// Largest share of the processors that an idle run may use.
const IDLE_SHARE: f64 = 0.01;

/// Every place greets every other; the greetings that the first place collected are complete.
async fn greetings() -> Result<()> {
    let greeted = PlaceLocal::new(BTreeSet::new).await?;
    finish(async {
        for place in places() {
            spawn_at!(place, {
                for other in places() {
                    let source = here().index();
                    spawn_at!(other, assert!(greeted.lock().insert(source)));
                }
            });
        }
    })
    .await?;
    let all: BTreeSet<usize> = places().map(Place::index).collect();
    for place in places() {
        assert_eq!(at!(place, greeted.lock().clone()).await?, all, "at {place}");
    }
    Ok(())
}

/// A token goes round: each place passes it on itself, and the first place gets the result.
async fn pass(token: u64, rounds: u64) -> Result<u64> {
    let (next, last) = (here().next(), rounds * isles::place_count() as u64);
    if token == last {
        return Ok(token);
    }
    at!(next, Box::pin(pass(token + 1, rounds)).await?).await
}

async fn sums() -> Result<()> {
    let sums = PlaceLocal::new(|| 0u64).await?;
    let next = Counter::new();
    const NUMBERS: u64 = 10_000;
    finish(async {
        for place in places() {
            spawn_at!(place, {
                while let Some(number) = next.take_below(NUMBERS).await? {
                    *sums.lock() += number;
                }
            });
        }
    })
    .await?;
    assert_eq!(sums.reduce(|a, b| a + b).await?, NUMBERS * (NUMBERS - 1) / 2);
    Ok(())
}

async fn everything() -> Result<()> {
    greetings().await?;
    let rounds = 2;
    assert_eq!(pass(0, rounds).await?, rounds * isles::place_count() as u64);
    sums().await
}

#[isles::test(places = 48, machines = [processes, threads, loopback])]
async fn places_48_work() -> Result<()> {
    everything().await
}

#[isles::test(places = 256, machines = [threads])]
async fn places_256_work() -> Result<()> {
    everything().await
}

/// The threads that work for the calling place, as folders in which the system keeps their accounts: all of its
/// process, or its own alone where it shares the process with the first place.
fn threads(first_process: u32) -> Vec<String> {
    if std::process::id() == first_process {
        return vec![format!("/proc/{}", std::fs::read_link("/proc/thread-self").unwrap().display())];
    }
    let folder = format!("/proc/{}/task", std::process::id());
    let threads = std::fs::read_dir(folder).unwrap();
    threads.map(|thread| thread.unwrap().path().display().to_string()).collect()
}

/// Looks at the idle places, at most.
const LOOKS: u32 = 10;

/// Returns the time for which the threads have had a processor.
fn busy_time(threads: &[String]) -> Duration {
    let nanoseconds = threads.iter().map(|thread| {
        let text = std::fs::read_to_string(format!("{thread}/schedstat")).unwrap();
        text.split_whitespace().next().unwrap().parse::<u64>().unwrap()
    });
    Duration::from_nanos(nanoseconds.sum())
}

/// Every place has a task that waits; nothing happens until the first place has seen enough.
async fn idleness() -> Result<()> {
    let first = std::process::id();
    let mut watched = Vec::new();
    for place in places() {
        watched.extend(at!(place, threads(first)).await?);
    }
    assert!(watched.len() >= isles::place_count());
    let seen = std::cell::RefCell::new(f64::INFINITY);
    let waiting = finish(async {
        for place in places() {
            spawn_at!(place, std::future::pending::<()>().await);
        }
        for place in places() {
            at!(place, ()).await?; // arrives after the task
        }
        // Other tests run meanwhile, so the quietest of a few looks counts.
        let mut least = f64::INFINITY;
        for _ in 0..LOOKS {
            let (before, since) = (busy_time(&watched), Instant::now());
            let silence = finish(std::future::pending::<()>()).deadline(WATCHED).await;
            let by_deadline = silence.is_err_and(|error| *error.kind() == ErrorKind::DeadlinePassed);
            if !by_deadline {
                break;
            }
            least = least.min(share(busy_time(&watched) - before, since.elapsed()));
            if least < IDLE_SHARE {
                break;
            }
        }
        // Before anything is judged: the tasks wait for ever.
        isles::cancel("seen enough");
        *seen.borrow_mut() = least;
        Ok::<_, isles::Error>(())
    });
    assert_eq!(waiting.await.unwrap_err().kind(), &ErrorKind::Cancelled);
    let least = *seen.borrow();
    assert!(least < IDLE_SHARE, "idle places use {:.3} % of the processors", least * 100.0);
    Ok(())
}

/// The share of all processors that was used.
fn share(used: Duration, whole: Duration) -> f64 {
    let processors = std::thread::available_parallelism().unwrap().get() as u32;
    used.as_secs_f64() / (whole * processors).as_secs_f64()
}

#[isles::test(places = 48, machines = [processes])]
async fn places_48_that_wait_use_less_than_a_hundredth_of_the_machine() -> Result<()> {
    idleness().await
}

#[isles::test(places = 256, machines = [threads])]
async fn places_256_that_wait_use_less_than_a_hundredth_of_the_machine() -> Result<()> {
    idleness().await
}
