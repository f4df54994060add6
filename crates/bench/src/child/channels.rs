//! crossbeam's channels between two pinned threads: Rust's usual means where memory is shared.
//!
//! Its own file because a peer is a file. It uses the bounded flavour, which is the faster one.
//! The invariant: a batch ends when its last message has been taken.

use super::batch::seconds_per_step;
use super::pin::pin;
use super::{say, say_version};
use crate::options::Effort;
use crossbeam_channel::bounded;
use std::thread;

/// Prints `half_round_trip_us` and `rate_million`.
pub fn run(effort: Effort) {
    say_version("crossbeam-channel");
    let (there, calls) = bounded::<u64>(64);
    let (answer, replies) = bounded::<u64>(64);
    thread::scope(|scope| {
        scope.spawn(move || {
            pin(1);
            calls.iter().for_each(|number| answer.send(number).expect("the caller waits"));
        });
        pin(0);
        let seconds = seconds_per_step(effort, |count| {
            for number in 0..count {
                there.send(number).expect("the answerer waits");
                replies.recv().expect("the answerer answers");
            }
        });
        drop(there);
        say("half_round_trip_us", seconds * 1e6 / 2.0);
    });
    say("rate_million", rate(effort));
}

/// Millions of messages a second, one way; zero asks for an answer that all were taken.
fn rate(effort: Effort) -> f64 {
    let (way, messages) = bounded::<u64>(1024);
    let (all_taken, taken) = bounded::<()>(1);
    thread::scope(|scope| {
        scope.spawn(move || {
            pin(1);
            messages
                .iter()
                .filter(|number| *number == 0)
                .for_each(|_| all_taken.send(()).expect("the sender waits"));
        });
        pin(0);
        let seconds = seconds_per_step(effort, |count| {
            for number in (0..count).rev() {
                way.send(number).expect("the taker waits");
            }
            taken.recv().expect("the taker answers");
        });
        drop(way);
        1e-6 / seconds
    })
}
