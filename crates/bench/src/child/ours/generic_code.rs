//! Pairs of calls that should cost about the same.
//!
//! Its own file because none of them has a peer: each is compared with another form of itself, in the same process and
//! batch by batch in turn. The forms differ in one thing only.
//! The invariant: every task and call of a batch has ended when its clock is read.

use super::{run, seconds_of_both};
use crate::child::say;
use crate::options::Effort;
use isles::{CanTravel, prelude::*};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Elements of the vector that is sent, once by generic code.
const ELEMENTS: usize = 1_024;

const MIB: usize = 1 << 20;

/// What the tasks add to; a plain sum, it orders nothing.
static SUM: AtomicU64 = AtomicU64::new(0);

/// Prints `generic_us` and `concrete_us`: an `at!` that takes along a vector of 1,024 numbers, by a function that
/// knows its type and by one that does not.
pub fn generic(effort: Effort) {
    run(move || async move {
        let there = here().next();
        let vector = vec![1.0_f64; ELEMENTS];
        let (generic, concrete) = seconds_of_both(
            effort,
            async |count| {
                for _ in 0..count {
                    send_any(there, &vector).await?;
                }
                Ok(())
            },
            async |count| {
                for _ in 0..count {
                    send_vector(there, &vector).await?;
                }
                Ok(())
            },
        )
        .await?;
        say("generic_us", generic * 1e6);
        say("concrete_us", concrete * 1e6);
        Ok(())
    });
}

async fn send_any<T: CanTravel>(there: Place, value: &T) -> isles::Result<()> {
    at!(there, {
        black_box(value);
    })
    .await
}

async fn send_vector(there: Place, value: &Vec<f64>) -> isles::Result<()> {
    at!(there, {
        black_box(value);
    })
    .await
}

/// Prints `of_33_mib_gb` and `of_30_mib_gb`: 10⁹ bytes a second of a slice of so many MiB moved by `at!`.
pub fn sizes(effort: Effort) {
    run(move || async move {
        let there = here().next();
        let bytes = vec![1_u64; 33 * MIB / size_of::<u64>()];
        let (longer, shorter) = (&bytes[..], &bytes[..30 * MIB / size_of::<u64>()]);
        let (of_33, of_30) = seconds_of_both(
            effort,
            async |count| move_often(there, longer, count).await,
            async |count| move_often(there, shorter, count).await,
        )
        .await?;
        say("of_33_mib_gb", (33 * MIB) as f64 / of_33 / 1e9);
        say("of_30_mib_gb", (30 * MIB) as f64 / of_30 / 1e9);
        Ok(())
    });
}

async fn move_often(there: Place, slice: &[u64], count: u64) -> isles::Result<()> {
    for _ in 0..count {
        assert_eq!(at!(there, slice.len() as u64).await?, slice.len() as u64);
    }
    Ok(())
}

/// Prints `handle_ns` and `number_ns`: a `spawn_at!` whose body captures a handle, and one that captures a number.
pub fn handle(effort: Effort) {
    run(move || async move {
        let there = here().next();
        let total = PlaceLocal::new(|| 0_u64).await?;
        let (handle, number) = seconds_of_both(
            effort,
            async |count| {
                finish(async {
                    for _ in 0..count {
                        spawn_at!(there, {
                            *total.lock() += 1;
                        });
                    }
                })
                .await
            },
            async |count| {
                finish(async {
                    for number in 0..count {
                        spawn_at!(there, {
                            SUM.fetch_add(number, Relaxed);
                        });
                    }
                })
                .await
            },
        )
        .await?;
        say("handle_ns", handle * 1e9);
        say("number_ns", number * 1e9);
        Ok(())
    });
}
