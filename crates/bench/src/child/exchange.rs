//! The bare exchange of one cache line between two cores: what no message can beat.
//!
//! Its own file because it is the floor that the other figures are read against. It carries nothing.
//! The invariant: odd numbers are written by this side, even ones by the other.

use super::batch::seconds_per_step;
use super::pin::pin;
use super::say;
use crate::options::Effort;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Release},
};
use std::thread;

#[repr(align(128))]
struct Line(AtomicU64);

const END: u64 = u64::MAX;

/// Prints `half_round_trip_us`.
pub fn run(effort: Effort) {
    let line = Line(AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| answer(&line));
        pin(0);
        let mut last = 0;
        let seconds = seconds_per_step(effort, |count| {
            for _ in 0..count {
                line.0.store(last + 1, Release); // PAIR bench.exchange: publish
                last += 2;
                while line.0.load(Acquire) != last {} // PAIR bench.exchange: observe
            }
        });
        line.0.store(END, Release); // PAIR bench.exchange: publish
        say("half_round_trip_us", seconds * 1e6 / 2.0);
    });
}

/// Answers each odd number with the next even one.
fn answer(line: &Line) {
    pin(1);
    loop {
        let seen = line.0.load(Acquire); // PAIR bench.exchange: observe
        if seen == END {
            return;
        }
        if seen % 2 == 1 {
            line.0.store(seen + 1, Release); // PAIR bench.exchange: publish
        }
    }
}
