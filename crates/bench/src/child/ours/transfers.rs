//! Arrays of 2 MiB that travel with a call, and the collectives of all places.
//!
//! The forms are those of `peers/mpi.c`, sections `large` and `collective`. Invariants: the receiver has the whole
//! array in readable memory; all places do the same collectives in the same order.

use super::{run, seconds_per_step};
use crate::child::timing::Effort;
use crate::child::timing::print_figure;
use isles::prelude::*;
use std::hint::black_box;

const WORDS: usize = (2 << 20) / size_of::<u64>();
const UNDER_WAY: u64 = 8;

/// Prints `answered_gb`, `read_gb` and `stream_gb` in 10⁹ bytes per second.
pub fn large(effort: Effort) {
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
        print_figure("answered_gb", gigabytes(1, seconds));
        let seconds = seconds_per_step(effort, async |count| {
            for _ in 0..count {
                assert_eq!(at!(there, array.iter().sum::<u64>()).await?, WORDS as u64);
            }
            Ok(())
        })
        .await?;
        print_figure("read_gb", gigabytes(1, seconds));
        let seconds = seconds_per_step(effort, async |count| {
            for _ in 0..count {
                window(there, array).await?;
            }
            Ok(())
        })
        .await?;
        print_figure("stream_gb", gigabytes(UNDER_WAY, seconds));
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

/// Words of 8 KiB and of 1 MiB.
const WORDS_8K: usize = (8 << 10) / size_of::<u64>();
const WORDS_1M: usize = (1 << 20) / size_of::<u64>();

/// The measured collectives.
#[derive(Clone, Copy, serde::Serialize, serde::Deserialize)]
enum Collective {
    Barrier,
    AllReduce,
    /// `all_reduce_slice` of this many words.
    AllReduceSlice(usize),
    /// Broadcast of this many words, from a different root each time.
    Broadcast(usize),
}

/// Prints `barrier_us`, and `all_reduce` and `broadcast` of several lengths.
pub fn collectives(effort: Effort) {
    run(move || async move {
        let rows = [
            ("barrier_us", Collective::Barrier),
            ("all_reduce_us", Collective::AllReduce),
            ("all_reduce_8k_us", Collective::AllReduceSlice(WORDS_8K)),
            ("all_reduce_1m_us", Collective::AllReduceSlice(WORDS_1M)),
            ("broadcast_8k_us", Collective::Broadcast(WORDS_8K)),
            ("broadcast_1m_us", Collective::Broadcast(WORDS_1M)),
        ];
        for (name, collective) in rows {
            print_figure(name, time(effort, collective).await? * 1e6);
        }
        Ok(())
    });
}

/// Returns the seconds of one barrier of all places.
pub(super) async fn barrier(effort: Effort) -> isles::Result<f64> {
    time(effort, Collective::Barrier).await
}

async fn time(effort: Effort, collective: Collective) -> isles::Result<f64> {
    seconds_per_step(effort, async |count| {
        finish(async {
            for place in places() {
                spawn_at!(place, repeat(collective, count).await);
            }
        })
        .await
    })
    .await
}

async fn repeat(collective: Collective, count: u64) -> isles::Result<()> {
    let team = Team::world();
    let mut words = match collective {
        Collective::Broadcast(len) | Collective::AllReduceSlice(len) => vec![1_u64; len],
        Collective::Barrier | Collective::AllReduce => Vec::new(),
    };
    for number in 0..count {
        match collective {
            Collective::Barrier => team.barrier().await?,
            Collective::AllReduce => {
                let sum = team.all_reduce(1_u64, |left, right| left + right).await?;
                assert_eq!(sum, team.size() as u64);
            }
            Collective::AllReduceSlice(_) => {
                team.all_reduce_slice(&mut words, |left, right| left.wrapping_add(right)).await?;
            }
            Collective::Broadcast(_) => {
                team.broadcast_slice(number as usize % team.size(), &mut words).await?;
            }
        }
    }
    Ok(())
}
