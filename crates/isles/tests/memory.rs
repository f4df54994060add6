//! Floods: the memory of a place under load stays within the documented bound.
//!
//! The places are processes, because the system accounts memory by process. There is one test in this file, because the
//! first place is the process of the test. It compares the peak resident memory of the sender and the receiver.

use isles::prelude::*;
use isles::{Launch, Machine, Result, SMALL_TASK_BYTES};
use std::hint::black_box;

/// Tasks of a few words.
const TASKS: u64 = 1_000_000;

/// Tasks that both places send to each other at once.
const MUTUAL: u64 = 200_000;

/// Sends between two yields of a sender.
const BREATH: u64 = 1024;

/// Captures that pass through the rings.
const LONG: u64 = 10_000;
const LONG_BYTES: usize = 16 << 10;

/// Captures sent as blocks; together several times the bound.
const ARRAYS: u64 = 400;
const WORDS: usize = (2 << 20) / size_of::<u64>();

/// Returns the value of a line of `/proc/self/status`, in bytes.
fn account(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() << 10
}

async fn small(there: Place) -> Result<()> {
    finish(async {
        for number in 0..TASKS {
            spawn_at!(there, {
                black_box(number);
            });
        }
    })
    .await
}

async fn mutual() -> Result<()> {
    finish(async {
        for place in places() {
            spawn_at!(place, {
                let there = here().next();
                for number in 0..MUTUAL {
                    spawn_at!(there, {
                        black_box(number);
                    });
                    if number % BREATH == 0 {
                        isles::yield_now().await;
                    }
                }
            });
        }
    })
    .await
}

async fn long(there: Place) -> Result<()> {
    let bytes = vec![1_u8; LONG_BYTES];
    finish(async {
        for _ in 0..LONG {
            spawn_at!(there, {
                black_box(bytes.len());
            });
        }
    })
    .await
}

async fn large(there: Place) -> Result<()> {
    let words = vec![1_u64; WORDS];
    finish(async {
        for _ in 0..ARRAYS {
            spawn_at!(there, {
                // Slower than sending it.
                assert_eq!(words.iter().sum::<u64>(), WORDS as u64);
            });
        }
    })
    .await
}

#[isles::test(places = 2, machines = [processes])]
async fn floods_leave_both_places_within_the_stated_bound() -> Result<()> {
    let launch = Launch::from_environment()?.machine(Machine::Processes).places(2);
    let bound = launch.resident_bytes_max(SMALL_TASK_BYTES).unwrap();
    assert!(ARRAYS * 8 * WORDS as u64 > 2 * bound, "the flood is larger than the bound");
    let there = here().next();
    let before = [account("VmRSS:"), at!(there, account("VmRSS:")).await?];
    small(there).await?;
    mutual().await?;
    long(there).await?;
    large(there).await?;
    let peaks = [account("VmHWM:"), at!(there, account("VmHWM:")).await?];
    for (place, (before, peak)) in before.into_iter().zip(peaks).enumerate() {
        let grown = peak.saturating_sub(before);
        println!("place {place} grew by {} MiB of {}", grown >> 20, bound >> 20);
        assert!(grown <= bound, "place {place} grew by {grown} bytes; stated are {bound}");
    }
    Ok(())
}
