//! Arrays of 2 MiB that travel with a call.
//!
//! Its own file because the three forms share the array. The forms are those of `peers/mpi.c`, section `large`.
//! The invariant: the receiver has the whole array in memory that it may read.

use super::{run, seconds_per_step};
use crate::child::say;
use crate::options::Effort;
use isles::prelude::*;
use std::hint::black_box;

const WORDS: usize = (2 << 20) / size_of::<u64>();
const UNDER_WAY: u64 = 8;

/// Prints `answered_gb`, `read_gb` and `stream_gb` in 10⁹ bytes a second.
pub fn measure(effort: Effort) {
    run(move || async move {
        let there = here().next();
        let array = vec![1_u64; WORDS];
        let array = &array[..];
        let seconds = seconds_per_step(effort, async |count| {
            for _ in 0..count {
                assert_eq!(at!(there, array.len() as u64).await?, WORDS as u64);
            }
            Ok(())
        })
        .await?;
        say("answered_gb", gigabytes(1, seconds));
        let seconds = seconds_per_step(effort, async |count| {
            for _ in 0..count {
                assert_eq!(at!(there, array.iter().sum::<u64>()).await?, WORDS as u64);
            }
            Ok(())
        })
        .await?;
        say("read_gb", gigabytes(1, seconds));
        let seconds = seconds_per_step(effort, async |count| {
            for _ in 0..count {
                window(there, array).await?;
            }
            Ok(())
        })
        .await?;
        say("stream_gb", gigabytes(UNDER_WAY, seconds));
        Ok(())
    });
}

/// Sends the array `UNDER_WAY` times and waits for all.
async fn window(there: Place, array: &[u64]) -> isles::Result<()> {
    finish(async {
        for _ in 0..UNDER_WAY {
            spawn_at!(there, {
                black_box(array.len());
            });
        }
    })
    .await
}

fn gigabytes(arrays: u64, seconds: f64) -> f64 {
    arrays as f64 * (WORDS * size_of::<u64>()) as f64 / seconds / 1e9
}
