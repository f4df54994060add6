//! Channels: a value there and back without a buffer, and a buffered stream, between processes and at one place.
//!
//! Each channel is created at its receiving place, as the page on channels advises. Between places the partner is a
//! task at the next one; at one place both sides are tasks. Invariant: a batch ends when its last value has been
//! received, which the partner reports.

use super::{run, seconds_per_step};
use crate::child::timing::Effort;
use crate::child::timing::print_figure;
use isles::prelude::*;

/// Capacity of the channel of a stream; crossbeam's and Go's have the same.
const CAPACITY: usize = 1_024;

/// Asks the receiver of a stream to acknowledge all previous values.
const LAST: u64 = 0;

/// Prints `half_round_trip_us` of a rendezvous and `rate_million` of a stream, to a task at the next place.
pub fn between_places(effort: Effort) {
    run(move || measure(effort, 1));
}

/// Prints the same, to a task at the same place.
pub fn within_a_place(effort: Effort) {
    run(move || measure(effort, 0));
}

/// Measures with a partner `distance` places on.
async fn measure(effort: Effort, distance: usize) -> isles::Result<()> {
    let partner = places().nth(distance).expect("the suite starts a place for the partner");
    print_figure("half_round_trip_us", rendezvous(effort, partner).await? * 1e6 / 2.0);
    print_figure("rate_million", 1e-6 / stream(effort, partner).await?);
    Ok(())
}

/// Returns the seconds of a value there and one back, where each send ends when its value has been taken.
async fn rendezvous(effort: Effort, partner: Place) -> isles::Result<f64> {
    let (there, calls) = channel_at::<u64>(partner, 0).await?;
    let (answers, replies) = channel::<u64>(0);
    finish(async {
        spawn_at!(partner, {
            let mut calls = calls.stream();
            while let Some(number) = calls.next().await? {
                answers.send(number).await?;
            }
        });
        let seconds = seconds_per_step(effort, async |count| {
            for number in 0..count {
                there.send(number).await?;
                assert_eq!(replies.recv().await?, number);
            }
            Ok(())
        })
        .await?;
        there.close();
        Ok::<_, isles::Error>(seconds)
    })
    .await
}

/// Returns the seconds per value of a stream in one direction.
async fn stream(effort: Effort, partner: Place) -> isles::Result<f64> {
    let (way, numbers) = channel_at::<u64>(partner, CAPACITY).await?;
    let (taken, all_taken) = channel::<u64>(1);
    finish(async {
        spawn_at!(partner, {
            let (mut numbers, mut received) = (numbers.stream(), 0);
            while let Some(number) = numbers.next().await? {
                received += 1;
                if number == LAST {
                    taken.send(received).await?;
                    received = 0;
                }
            }
        });
        let seconds = seconds_per_step(effort, async |count| {
            for number in (0..count).rev() {
                way.send(number).await?;
            }
            assert_eq!(all_taken.recv().await?, count, "values sent and values received");
            Ok(())
        })
        .await?;
        way.close();
        Ok::<_, isles::Error>(seconds)
    })
    .await
}
