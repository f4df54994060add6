//! Many more places than processors: everything still works, and a run that waits costs nothing.
//!
//! 48 places as processes and 256 as threads, on whatever this machine has. What is measured is the processor time of
//! an idle run, by the system's own accounts; nothing else here looks at a clock. Speed is the bench's business.

use isles::prelude::*;
use isles::{ErrorKind, Result};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long an idle run is watched.
const WATCHED: Duration = Duration::from_secs(3);

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

/// A token goes round: each place passes it on itself, and the first place is told of its end.
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

/// Where the system keeps the account of the calling place: its thread, or all threads of a process of its own.
fn account() -> PathBuf {
    let thread = std::fs::read_link("/proc/thread-self").unwrap();
    match std::env::var_os("ISLES_PLACE_ZERO") {
        _ if here().index() == 0 => Path::new("/proc").join(thread),
        _ => Path::new("/proc").join(thread),
    }
}

/// Processor time that an account has seen.
fn processor_time(account: &Path) -> Duration {
    let text = std::fs::read_to_string(account.join("schedstat")).unwrap();
    let nanoseconds = text.split_whitespace().next().unwrap().parse().unwrap();
    Duration::from_nanos(nanoseconds)
}
