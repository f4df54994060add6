//! Programs that start many runs, one after the other: each run releases its resources.
//!
//! `ISLES_TEST_RUNS` is the number of runs on each machine.

use super::after_all;
use isles::Launch;
use isles::prelude::*;
use std::future::poll_fn;
use std::sync::Mutex;
use std::task::{Poll, Waker};
use std::time::Instant;

/// Runs after which a process has all that it keeps, such as the arenas of its allocator.
const FIRST: usize = 10;

/// Runs after these.
const RUNS: usize = 200;

/// Bytes that go to each place and back in a run, so that a run which leaves its memory behind is noticed.
const BYTES: usize = 1 << 20;

/// Largest growth of the allocator and the stacks of threads beyond the first runs, in bytes, however many follow.
const GROWTH_MAX: usize = 4 << 20;

/// The wakers of a task of each of the first runs.
static LEFT: Mutex<Vec<Waker>> = Mutex::new(Vec::new());

/// Resources of the system that a process holds.
#[derive(Debug)]
struct Account {
    descriptors: usize,
    segments: usize,
    resident: usize,
}

impl Account {
    fn now() -> Account {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
        Account {
            descriptors: std::fs::read_dir("/proc/self/fd").unwrap().count(),
            segments: maps.lines().filter(|line| line.contains("memfd")).count(),
            // The second number counts pages, of which none of our machines has smaller ones.
            resident: pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096,
        }
    }
}

/// Sends bytes everywhere and back; what it leaves of a task is kept if `leaves`.
async fn work(leaves: bool) -> isles::Result<()> {
    if leaves {
        let mut is_first = true;
        poll_fn(|context| {
            LEFT.lock().unwrap().push(context.waker().clone());
            context.waker().wake_by_ref();
            if std::mem::take(&mut is_first) { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
    }
    for place in places() {
        let bytes = vec![1_u8; BYTES];
        assert_eq!(at!(place, bytes).await?.len(), BYTES);
    }
    Ok(())
}

/// Starts run after run, and compares what is left of them.
pub(crate) fn many_runs() -> std::process::ExitCode {
    let launch = Launch::from_environment().unwrap();
    let runs = std::env::var("ISLES_TEST_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(RUNS);
    let mut times = Vec::new();
    let mut run = |leaves: bool| {
        let begun = Instant::now();
        launch.clone().run(move || work(leaves)).unwrap().0.unwrap();
        times.push(begun.elapsed());
        // Tasks of runs that have ended.
        LEFT.lock().unwrap().iter().for_each(Waker::wake_by_ref);
    };
    (0..FIRST).for_each(|_| run(true));
    let before = Account::now();
    (0..runs).for_each(|_| run(false));
    let after = Account::now();
    LEFT.lock().unwrap().drain(..).for_each(Waker::wake);
    let median = |times: &mut [std::time::Duration]| {
        times.sort_unstable();
        times[times.len() / 2]
    };
    let (first, last) = times.split_at_mut(FIRST);
    eprintln!("{before:?}, then {after:?} after {runs} runs of {:?}, then {:?}", median(first), median(last));
    let is_constant = (before.descriptors, before.segments) == (after.descriptors, after.segments);
    let is_freed = after.resident <= before.resident + GROWTH_MAX;
    std::process::ExitCode::from(u8::from(!(is_constant && is_freed)))
}

/// Runs this program on `machine`.
pub(crate) fn check(machine: &str) {
    let (code, said) = after_all("many runs", machine);
    assert_eq!(code, Some(0), "on {machine}: {said}");
    println!("{machine}: {said}");
}
