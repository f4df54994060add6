//! Batches: steps repeated until the clock is coarse no more.
//!
//! Its own file because every figure of this binary is taken the same way. It does not know what a step is.
//! The invariant: the first batches, which find the size, also warm up and are not counted.

use crate::options::Effort;
use std::time::{Duration, Instant};

/// The median of the seconds that one step takes. `step(count)` does `count` steps and returns when the
/// last has ended.
pub fn seconds_per_step(effort: Effort, mut step: impl FnMut(u64)) -> f64 {
    let mut time = |count| {
        let start = Instant::now();
        step(count);
        start.elapsed()
    };
    let count = calibrate(effort.batch, &mut time);
    median((0..effort.repetitions).map(|_| time(count).as_secs_f64() / count as f64).collect())
}

/// The median of the seconds that a step of fixed size takes, the first one not counted.
pub fn seconds_of_whole(effort: Effort, mut step: impl FnMut()) -> f64 {
    step();
    let time = |_| {
        let start = Instant::now();
        step();
        start.elapsed().as_secs_f64()
    };
    median((0..effort.repetitions).map(time).collect())
}

/// The middle one of an odd number of values.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn calibrate(batch: Duration, time: &mut impl FnMut(u64) -> Duration) -> u64 {
    let mut count = 1;
    while time(count) < batch {
        count *= 2;
    }
    count
}
