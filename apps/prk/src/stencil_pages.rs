//! The kernel stencil over shared pages: each place has a block of rows, and rows of others arrive by page faults.
//!
//! There are two copies of the grid, so that a place may add 1 to its rows of one while others still read the other;
//! so one barrier per iteration is enough. Each point is computed from the same values in the same order as in
//! `stencil`, so the output has the same bits.

use super::stencil::{StencilShare, add_line, outcome};
use super::{KernelOutcome, Sizes, begin};
use isles::prelude::*;
use isles::svm::{Consistency, SvmArray};
use std::ops::Range;

/// Runs the kernel over all places.
pub(super) async fn run(sizes: Sizes) -> isles::Result<KernelOutcome> {
    let Sizes { order, radius, iterations, .. } = sizes;
    let model = sizes.pages.unwrap_or(Consistency::Release);
    let team = Team::world();
    let size = GridSize { order, iterations, model };
    let found = everywhere!({
        match radius {
            1 => sweeps::<1>(&team, size).await?,
            2 => sweeps::<2>(&team, size).await?,
            3 => sweeps::<3>(&team, size).await?,
            _ => sweeps::<4>(&team, size).await?,
        }
    })
    .await?;
    Ok(outcome(&found, order, radius, iterations))
}

#[derive(Clone, Copy, serde::Serialize, serde::Deserialize)]
struct GridSize {
    order: usize,
    iterations: u64,
    model: Consistency,
}

/// Runs the part of this place.
async fn sweeps<const R: usize>(team: &Team, size: GridSize) -> isles::Result<StencilShare> {
    let GridSize { order, iterations, model } = size;
    let mut output = SvmArray::<f64>::new(team, order * order, model).await?;
    let mut grids = [
        SvmArray::<f64>::new(team, order * order, model).await?,
        SvmArray::<f64>::new(team, order * order, model).await?,
    ];
    let own = order * team.rank() / team.size()..order * (team.rank() + 1) / team.size();
    let cells = own.start * order..own.end * order;
    if !own.is_empty() {
        for (cell, at) in grids[0].write(cells.clone())?.iter_mut().zip(cells.clone()) {
            *cell = (at / order + at % order) as f64;
        }
    }
    grids[0].barrier().await?;
    let mut started = now();
    for iteration in 0..=iterations {
        if iteration == 1 {
            started = begin(team).await?;
        }
        if !own.is_empty() {
            sweep::<R>(&mut output, &mut grids, order, &own)?;
        }
        grids[1].barrier().await?;
        grids.swap(0, 1);
    }
    let mut share = StencilShare { seconds: (now() - started).as_secs_f64(), ..StencilShare::default() };
    if !own.is_empty() {
        for (element, at) in output.read(cells.clone())?.iter().zip(cells) {
            share.add(at, *element);
        }
    }
    output.barrier().await?;
    let [one, other] = grids;
    share.pages = Some(one.counts().plus(other.counts()).plus(output.counts()));
    output.close().await?;
    one.close().await?;
    other.close().await?;
    Ok(share)
}

/// Adds the star around each inner point of the own rows of the first grid to the output, and sets the second grid to
/// the first plus 1.
fn sweep<const R: usize>(
    output: &mut SvmArray<f64>,
    [source, target]: &mut [SvmArray<f64>; 2],
    order: usize,
    own: &Range<usize>,
) -> isles::Result<()> {
    let (first, last) = (own.start.saturating_sub(R), (own.end + R).min(order));
    let cells = own.start * order..own.end * order;
    // All places take the guards of the three arrays in the same order.
    let mut sums = output.write(cells.clone())?;
    let read = source.read(first * order..last * order)?;
    let mut next = target.write(cells)?;
    let width = order - 2 * R;
    let line = |row: usize| &read[(row - first) * order..][..order];
    for (row, sums) in own.clone().zip(sums.chunks_exact_mut(order)) {
        if (R..order - R).contains(&row) {
            let above: [&[f64]; R] = std::array::from_fn(|index| &line(row - 1 - index)[R..][..width]);
            let below: [&[f64]; R] = std::array::from_fn(|index| &line(row + 1 + index)[R..][..width]);
            work(Work::new().floats((order * (8 * R + 4)) as u64));
            add_line::<R>(&line(row)[..width + 2 * R], above, below, &mut sums[R..][..width]);
        }
    }
    for (row, next) in own.clone().zip(next.chunks_exact_mut(order)) {
        next.iter_mut().zip(line(row)).for_each(|(next, element)| *next = element + 1.0);
    }
    Ok(())
}
