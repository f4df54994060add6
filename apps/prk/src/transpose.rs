//! The kernel transpose: B += Aᵀ, then A += 1, with both matrices distributed by rows.

use super::{KernelOutcome, MB_PER_S, Sizes, begin, together};
use isles::array::{DistArray, Distribution, Halo};
use isles::prelude::*;

/// Runs the kernel over all places.
pub(super) async fn run(Sizes { order, iterations, .. }: Sizes) -> isles::Result<KernelOutcome> {
    let team = Team::world();
    let rows = [Distribution::Block, Distribution::Whole];
    // Each place reads the columns of A that it needs directly from their owners.
    let a = DistArray::<f64, 2>::in_window(&team, [order, order], rows, Halo::default()).await?;
    let b = DistArray::<f64, 2>::new(&team, [order, order], rows).await?;
    let found = everywhere!(transpose(&team, &a, &b, iterations).await?).await?;
    let (seconds, error) = together(found, |one, other| one + other);
    let bytes = (iterations * 2 * 8) as f64 * order as f64 * order as f64;
    Ok(KernelOutcome::new(seconds, bytes, MB_PER_S, error))
}

/// Returns the initial element of A at a row and a column.
fn at_first(order: usize, row: usize, column: usize) -> f64 {
    (order * row + column) as f64
}

/// Runs the part of this place; returns its seconds, and the sum of the errors in its part of B.
async fn transpose(
    team: &Team,
    a: &DistArray<f64, 2>,
    b: &DistArray<f64, 2>,
    iterations: u64,
) -> isles::Result<(f64, f64)> {
    let [order, _] = a.extents();
    a.lock().for_each(|[row, column], element| *element = at_first(order, row, column));
    let mut started = now();
    for iteration in 0..=iterations {
        if iteration == 1 {
            started = begin(team).await?;
        }
        a.transpose_with(b, |sum, element| *sum += element).await?;
        let mut part = a.lock();
        let elements = part.values().len() as u64;
        work(Work::new().floats(2 * elements).streamed(32 * elements).of(32 * elements));
        part.values_mut().iter_mut().for_each(|element| *element += 1.0);
    }
    let seconds = (now() - started).as_secs_f64();
    // Each iteration adds the initial matrix plus the number of earlier iterations.
    let times = (iterations + 1) as f64;
    let added = times * iterations as f64 / 2.0;
    let mut error = 0.0;
    b.lock().for_each(|[row, column], element| {
        error += (*element - (times * at_first(order, column, row) + added)).abs();
    });
    Ok((seconds, error))
}
