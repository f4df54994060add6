//! Our own side: programs of Isles, written with the façade as any user would write them.
//!
//! A folder of its own because these, unlike the peers, run at several places. They use no internal.
//! The invariant: place 0 measures; what it times has ended at all places when its clock is read.

pub mod betweenness;
pub mod collective;
pub mod crowd;
pub mod large;
pub mod memory;
pub mod message;
pub mod sleeping;
pub mod tasks;

use super::batch::median;
use crate::options::Effort;
use isles::Launch;
use std::time::Instant;

/// Runs the program on the machine that the environment names. In the other places' processes it does not return.
fn run<F>(program: impl FnOnce() -> F)
where
    F: Future<Output = isles::Result<()>> + 'static,
{
    let launch = Launch::from_environment().unwrap_or_else(|error| panic!("{error}"));
    let (result, _) = launch.run(program).unwrap_or_else(|error| panic!("{error}"));
    result.unwrap_or_else(|error| panic!("{error}"));
}

/// As [`super::batch::seconds_per_step`], for steps that wait for other places.
async fn seconds_per_step(
    effort: Effort,
    mut step: impl AsyncFnMut(u64) -> isles::Result<()>,
) -> isles::Result<f64> {
    let mut time = async |count| {
        let start = Instant::now();
        step(count).await?;
        Ok::<_, isles::Error>(start.elapsed())
    };
    let mut count = 1;
    while time(count).await? < effort.batch {
        count *= 2;
    }
    let mut seconds = Vec::new();
    for _ in 0..effort.repetitions {
        seconds.push(time(count).await?.as_secs_f64() / count as f64);
    }
    Ok(median(seconds))
}
