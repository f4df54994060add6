//! Messages between two members of a team, there and back: 8 bytes, and 2 MiB into existing memory.
//!
//! The forms are those of `peers/mpi.c`: a send and a receive at each side, in turn. Invariant: a batch ends when its
//! last message has come back.

use super::{run, seconds_per_step};
use crate::child::timing::Effort;
use crate::child::timing::print_figure;
use isles::prelude::*;

/// Words of a transfer, the same number as in the rows of the suite `core`.
const WORDS: usize = (2 << 20) / size_of::<u64>();

/// Ends the partner; all other messages are sent back.
const LAST: u64 = u64::MAX;

/// Prints `value_us` and `slice_us`: half a round trip of a number, and of a slice of one.
pub fn short(effort: Effort) {
    run(move || async move {
        let team = Team::world();
        finish(async {
            spawn_at!(team.place_of(1), {
                loop {
                    let number: u64 = team.recv(0).await?;
                    team.send(0, &number).await?;
                    if number == LAST {
                        break;
                    }
                }
            });
            let seconds = seconds_per_step(effort, async |count| {
                for number in 0..count {
                    team.send(1, &number).await?;
                    assert_eq!(team.recv::<u64>(1).await?, number);
                }
                Ok(())
            })
            .await?;
            print_figure("value_us", seconds * 1e6 / 2.0);
            team.send(1, &LAST).await?;
            team.recv::<u64>(1).await.map(drop)
        })
        .await?;
        print_figure("slice_us", slices(effort, team, 1).await? * 1e6 / 2.0);
        Ok(())
    });
}

/// Prints `ping_pong_gb`, in 10^9 bytes per second: 2 MiB there and 2 MiB back.
pub fn long(effort: Effort) {
    run(move || async move {
        let seconds = slices(effort, Team::world(), WORDS).await?;
        print_figure("ping_pong_gb", 2.0 * (WORDS * size_of::<u64>()) as f64 / seconds / 1e9);
        Ok(())
    });
}

/// Prints half a round trip in microseconds for slices of five sizes, `us_8` to `us_2m`.
pub fn sizes(effort: Effort) {
    run(move || async move {
        let sizes = [
            ("us_8", 8),
            ("us_1k", 1 << 10),
            ("us_16k", 16 << 10),
            ("us_256k", 256 << 10),
            ("us_2m", 2 << 20),
        ];
        for (name, bytes) in sizes {
            print_figure(name, slices(effort, Team::world(), bytes / size_of::<u64>()).await? * 1e6 / 2.0);
        }
        Ok(())
    });
}

/// Returns the seconds of a slice of `len` words there, and another one back.
async fn slices(effort: Effort, team: Team, len: usize) -> isles::Result<f64> {
    finish(async {
        spawn_at!(team.place_of(1), {
            let (sent, mut received) = (vec![2_u64; len], vec![0_u64; len]);
            while received[0] != LAST {
                team.recv_slice(0, &mut received).await?;
                team.send_slice(0, &sent).await?;
            }
        });
        let (mut sent, mut received) = (vec![1_u64; len], vec![0_u64; len]);
        let seconds = seconds_per_step(effort, async |count| {
            for _ in 0..count {
                team.send_slice(1, &sent).await?;
                team.recv_slice(1, &mut received).await?;
            }
            Ok(())
        })
        .await?;
        assert!(received.iter().all(|word| *word == 2));
        sent[0] = LAST;
        team.send_slice(1, &sent).await?;
        team.recv_slice(1, &mut received).await?;
        Ok::<_, isles::Error>(seconds)
    })
    .await
}
