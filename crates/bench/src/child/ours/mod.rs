//! Our side: programs of Isles, written with the façade as a user would.
//!
//! A separate folder because these, unlike the peers, run at several places. They use no internals. Invariant: place 0
//! measures; the timed operations have ended at all places when its clock is read.

pub mod betweenness;
pub mod calls;
pub mod channels;
pub mod hubs;
pub mod members;
pub mod pipelines;
pub mod places;
pub mod transfers;
pub mod wavefront;
pub mod windows;

use crate::child::timing::Effort;
use crate::child::timing::median;
use isles::{Launch, RunReport};
use std::time::Instant;

/// Runs the program on the machine of the environment. It does not return in the processes of the other places.
pub(super) fn run<F>(program: impl FnOnce() -> F) -> RunReport
where
    F: Future<Output = isles::Result<()>> + 'static,
{
    let launch = Launch::from_environment().unwrap_or_else(|error| panic!("{error}"));
    let (result, report) = launch.run(program).unwrap_or_else(|error| panic!("{error}"));
    result.unwrap_or_else(|error| panic!("{error}"));
    report
}

/// Same as [`crate::child::timing::seconds_per_step`], for steps that wait for other places.
async fn seconds_per_step(
    effort: Effort,
    mut step: impl AsyncFnMut(u64) -> isles::Result<()>,
) -> isles::Result<f64> {
    let count = calibrate(effort, &mut step).await?;
    let mut seconds = Vec::new();
    for _ in 0..effort.repetitions {
        seconds.push(seconds_of(&mut step, count).await?);
    }
    Ok(median(seconds))
}

/// Same as `seconds_per_step` for two steps, in alternating batches.
async fn seconds_of_both(
    effort: Effort,
    mut one: impl AsyncFnMut(u64) -> isles::Result<()>,
    mut other: impl AsyncFnMut(u64) -> isles::Result<()>,
) -> isles::Result<(f64, f64)> {
    let counts = (calibrate(effort, &mut one).await?, calibrate(effort, &mut other).await?);
    let (mut of_one, mut of_other) = (Vec::new(), Vec::new());
    for _ in 0..effort.repetitions {
        of_one.push(seconds_of(&mut one, counts.0).await?);
        of_other.push(seconds_of(&mut other, counts.1).await?);
    }
    Ok((median(of_one), median(of_other)))
}

/// Returns the number of steps that fill a batch.
async fn calibrate(
    effort: Effort,
    step: &mut impl AsyncFnMut(u64) -> isles::Result<()>,
) -> isles::Result<u64> {
    let mut count = 1;
    while seconds_of(step, count).await? * (count as f64) < effort.batch.as_secs_f64() {
        count *= 2;
    }
    Ok(count)
}

/// Returns the mean seconds of one of `count` steps.
async fn seconds_of(step: &mut impl AsyncFnMut(u64) -> isles::Result<()>, count: u64) -> isles::Result<f64> {
    let start = Instant::now();
    step(count).await?;
    Ok(start.elapsed().as_secs_f64() / count as f64)
}
