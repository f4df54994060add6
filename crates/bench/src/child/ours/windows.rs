//! Memory that places share: accesses to the window of another place, halos of 8 KiB exchanged by two places, and
//! guards of shared objects.
//!
//! The forms of windows are those of `peers/mpi.c`, section `windows`. Invariant: timed operations have completed, at
//! the target where there is one, when the clock is read.

use super::{run, seconds_per_step};
use crate::child::timing::Effort;
use crate::child::timing::print_figure;
use isles::prelude::*;

/// Words of the long put and of a halo.
const LONG: usize = (1 << 20) / size_of::<u64>();
const HALO: usize = (8 << 10) / size_of::<u64>();

/// Prints `put_us`, `fetch_add_us`, `put_1m_gb` and `halo_us`.
pub fn accesses(effort: Effort) {
    run(move || async move {
        let window = Window::<u64>::new(LONG).await?;
        let seconds = seconds_per_step(effort, async |count| {
            for number in 0..count {
                window.put(1, 0, &[number]).await?;
                window.flush(1).await?;
            }
            Ok(())
        })
        .await?;
        print_figure("put_us", seconds * 1e6);
        let seconds = seconds_per_step(effort, async |count| {
            for _ in 0..count {
                window.fetch_add(1, 1, 1).await?;
            }
            Ok(())
        })
        .await?;
        print_figure("fetch_add_us", seconds * 1e6);
        let data = vec![1; LONG];
        let seconds = seconds_per_step(effort, async |count| {
            for _ in 0..count {
                window.put(1, 0, &data).await?;
                window.flush(1).await?;
            }
            Ok(())
        })
        .await?;
        print_figure("put_1m_gb", (1 << 20) as f64 / seconds / 1e9);
        print_figure("halo_us", halos(effort).await? * 1e6);
        Ok(())
    });
}

/// Returns the seconds of one exchange with both neighbours; with two places both are the other one.
async fn halos(effort: Effort) -> isles::Result<f64> {
    let window = Window::<u64>::new(4 * HALO).await?;
    let rounds = PlaceLocal::new(|| 0_u64).await?;
    seconds_per_step(effort, async |count| {
        finish(async {
            for place in places() {
                spawn_at!(place, {
                    let other = 1 - window.rank();
                    let (mut edges, mut halo) = (vec![0; 2 * HALO], vec![0; HALO]);
                    for _ in 0..count {
                        let round = *rounds.read();
                        *rounds.lock() += 1;
                        let first = 2 * (round % 2) as usize * HALO;
                        // Recomputed each time, as in a stencil.
                        edges.fill(round);
                        window.put_notify(other, first, &edges[..HALO]).await?;
                        window.put_notify(other, first + HALO, &edges[HALO..]).await?;
                        window.notified(other, 2 * (round + 1)).await?;
                        // Into existing memory, as in a receive.
                        window.read(first, &mut halo)?;
                        window.read(first + HALO, &mut halo)?;
                    }
                });
            }
        })
        .await
    })
    .await
}

/// Prints `read_ns`, `write_ns` and `hand_over_us`.
pub fn guards(effort: Effort) {
    run(move || async move {
        let object = Shared::new(0_u64).await?;
        let seconds = seconds_per_step(effort, async |count| {
            for _ in 0..count {
                std::hint::black_box(*object.read().await?);
            }
            Ok(())
        })
        .await?;
        print_figure("read_ns", seconds * 1e9);
        let seconds = seconds_per_step(effort, async |count| {
            for number in 0..count {
                *object.write().await? = number;
            }
            Ok(())
        })
        .await?;
        print_figure("write_ns", seconds * 1e9);
        let turns = Shared::new(0_u64).await?;
        let seconds = seconds_per_step(effort, async |count| {
            finish(async {
                for place in places() {
                    spawn_at!(place, take_turns(&turns, count).await?);
                }
            })
            .await
        })
        .await?;
        // A step is a turn of each.
        print_figure("hand_over_us", seconds * 1e6 / 2.0);
        Ok(())
    });
}

/// Writes alternately with the other place; the value determines whose turn it is.
async fn take_turns(turns: &Shared<u64>, count: u64) -> isles::Result<()> {
    let mut left = count;
    while left > 0 {
        let mut turn = turns.write().await?;
        if *turn % 2 == here().index() as u64 {
            *turn += 1;
            left -= 1;
        }
        drop(turn);
        // The other place's request may have arrived.
        yield_now().await;
    }
    Ok(())
}
