//! The kernel nstream: A += B + 3 C over distributed vectors. It measures memory bandwidth; no message is sent.

use super::{KernelOutcome, MB_PER_S, Sizes, begin, together};
use isles::array::{DistArray, Distribution};
use isles::prelude::*;

const SCALAR: f64 = 3.0;
const B: f64 = 2.0;
const C: f64 = 2.0;

/// Runs the kernel over all places.
pub(super) async fn run(Sizes { length, iterations, .. }: Sizes) -> isles::Result<KernelOutcome> {
    let team = Team::world();
    let new = async || Vector::new(&team, [length], [Distribution::Block]).await;
    let (a, b, c) = (new().await?, new().await?, new().await?);
    let found = everywhere!(stream(&team, &a, &b, &c, iterations).await?).await?;
    let (seconds, sum) = together(found, |one, other| one + other);
    let expected = (iterations + 1) as f64 * (B + SCALAR * C) * length as f64;
    let bytes = (iterations * 4 * 8) as f64 * length as f64;
    Ok(KernelOutcome::new(seconds, bytes, MB_PER_S, (sum - expected).abs() / expected))
}

type Vector = DistArray<f64, 1>;

/// Runs the part of this place; returns its seconds, and the sum of its part of A.
async fn stream(
    team: &Team,
    a: &Vector,
    b: &Vector,
    c: &Vector,
    iterations: u64,
) -> isles::Result<(f64, f64)> {
    b.lock().values_mut().fill(B);
    c.lock().values_mut().fill(C);
    let mut started = now();
    for iteration in 0..=iterations {
        if iteration == 1 {
            started = begin(team).await?;
        }
        let (mut a, b, c) = (a.lock(), b.read(), c.read());
        let (b, c) = (b.values(), c.values());
        let elements = b.len() as u64;
        work(Work::new().floats(3 * elements).streamed(24 * elements).of(24 * elements));
        for ((a, b), c) in a.values_mut().iter_mut().zip(b).zip(c) {
            *a += *b + SCALAR * *c;
        }
    }
    let seconds = (now() - started).as_secs_f64();
    Ok((seconds, a.read().values().iter().sum()))
}
