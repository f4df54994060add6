//! The sweeps: the new values of a row, the rows of an array in parts, and those of arrays in shared pages.
//!
//! The arithmetic of a row knows no places, and both memories use it, so that their cells have the same bits. The
//! digest of a grid does not depend on the distribution of its rows.

use super::run::{PlaceOutcome, Sizes};
use isles::array::{ArrayPart, DistArray, Distribution, Halo};
use isles::prelude::*;
#[cfg(feature = "svm")]
use isles::svm::{Consistency, SvmArray};
#[cfg(any(feature = "svm", test))]
use std::ops::Range;

/// Returns the initial value of a cell: 1 on the upper edge, 0 elsewhere, and slightly more along the left edge.
pub(super) fn first_value(row: usize, column: usize) -> f64 {
    match (row, column) {
        (0, _) => 1.0,
        (row, 0) => 1.0 / (row as f64 + 1.0),
        _ => 0.0,
    }
}

/// Sets the inner cells of `target`, a whole row, to the mean of their neighbours in the rows around it.
///
/// # Panics
/// If a row's length differs from that of `target`.
pub(super) fn relax(above: &[f64], line: &[f64], below: &[f64], target: &mut [f64]) {
    let width = target.len();
    let (above, line, below) = (&above[..width], &line[..width], &below[..width]);
    for column in 1..width - 1 {
        target[column] = 0.25 * ((above[column] + below[column]) + (line[column - 1] + line[column + 1]));
    }
}

/// Returns a hash of a row and its position (FNV-1a by words). The digest of a grid is the sum of those of its rows,
/// independent of their distribution.
pub(super) fn row_digest(row: usize, values: &[f64]) -> u64 {
    let start = 0xCBF2_9CE4_8422_2325_u64 ^ row as u64;
    values.iter().fold(start, |hash, value| (hash ^ value.to_bits()).wrapping_mul(0x0100_0000_01B3))
}

/// Returns the rows of part `part` of `parts`: blocks whose lengths differ by at most one.
#[cfg(any(feature = "svm", test))]
pub(super) fn rows_of(order: usize, parts: usize, part: usize) -> Range<usize> {
    order * part / parts..order * (part + 1) / parts
}

/// Returns the digest after `sweeps` sweeps, computed without places.
pub(super) fn digest_alone(order: usize, sweeps: u64) -> u64 {
    let cells = (0..order * order).map(|cell| first_value(cell / order, cell % order));
    let mut source: Vec<f64> = cells.collect();
    let mut target = source.clone();
    for _ in 0..sweeps {
        for row in 1..order - 1 {
            let line = |row: usize| &source[row * order..(row + 1) * order];
            relax(line(row - 1), line(row), line(row + 1), &mut target[row * order..(row + 1) * order]);
        }
        std::mem::swap(&mut source, &mut target);
    }
    source.chunks(order).enumerate().fold(0, |sum, (row, values)| sum.wrapping_add(row_digest(row, values)))
}

/// Runs the sweeps over an array in parts, one at each place; the adjacent rows arrive by messages.
pub(super) async fn run_by_parts(Sizes { order, sweeps }: Sizes) -> isles::Result<Vec<PlaceOutcome>> {
    let team = Team::world();
    let cut = [Distribution::Block, Distribution::Whole];
    let halo = Halo::new(1).without_axis(1);
    let one = DistArray::<f64, 2>::with_halo(&team, [order; 2], cut, halo).await?;
    let other = DistArray::<f64, 2>::with_halo(&team, [order; 2], cut, halo).await?;
    everywhere!(sweep_parts(&team, &one, &other, sweeps).await?).await
}

async fn sweep_parts(
    team: &Team,
    one: &DistArray<f64, 2>,
    other: &DistArray<f64, 2>,
    sweeps: u64,
) -> isles::Result<PlaceOutcome> {
    for array in [one, other] {
        array.lock().for_each(|[row, column], cell| *cell = first_value(row, column));
    }
    team.barrier().await?;
    let started = now();
    let (mut source, mut target) = (one, other);
    for _ in 0..sweeps {
        source.exchange().await?;
        relax_part(&source.read(), &mut target.lock());
        std::mem::swap(&mut source, &mut target);
    }
    team.barrier().await?;
    let seconds = (now() - started).as_secs_f64();
    Ok(PlaceOutcome { seconds, digest: digest(&source.read()), ..PlaceOutcome::default() })
}

fn relax_part(source: &ArrayPart<f64, 2>, target: &mut ArrayPart<f64, 2>) {
    let ([rows, width], order) = (source.extents(), source.extents()[1]);
    let first = if rows == 0 { 0 } else { source.global([0, 0])[0] };
    for row in (0..rows).filter(|row| (1..order - 1).contains(&(first + row))) {
        let row = row as isize;
        let line = |row: isize| &source.line([row, 0])[..width];
        work(Work::new().floats(4 * width as u64).streamed(16 * width as u64).of(16 * width as u64));
        relax(line(row - 1), line(row), line(row + 1), &mut target.line_mut([row, 0])[..width]);
    }
}

fn digest(part: &ArrayPart<f64, 2>) -> u64 {
    let [rows, width] = part.extents();
    let digests =
        (0..rows).map(|row| row_digest(part.global([row, 0])[0], &part.line([row as isize, 0])[..width]));
    digests.fold(0, u64::wrapping_add)
}

/// Runs the sweeps over two arrays in shared pages; the adjacent rows arrive by page faults.
#[cfg(feature = "svm")]
pub(super) async fn run_by_pages(sizes: Sizes, model: Consistency) -> isles::Result<Vec<PlaceOutcome>> {
    let team = Team::world();
    everywhere!(sweep_pages(&team, sizes, model).await?).await
}

#[cfg(feature = "svm")]
async fn sweep_pages(
    team: &Team,
    Sizes { order, sweeps }: Sizes,
    model: Consistency,
) -> isles::Result<PlaceOutcome> {
    let mut one = SvmArray::<f64>::new(team, order * order, model).await?;
    let mut other = SvmArray::<f64>::new(team, order * order, model).await?;
    let own = rows_of(order, team.size(), team.rank());
    for array in [&mut one, &mut other] {
        let mut cells = array.write(own.start * order..own.end * order)?;
        for (cell, at) in cells.iter_mut().zip(own.start * order..) {
            *cell = first_value(at / order, at % order);
        }
        drop(cells);
        array.barrier().await?;
    }
    let started = now();
    let (mut source, mut target) = (one, other);
    let inner = own.start.max(1)..own.end.min(order - 1).max(own.start.max(1));
    for _ in 0..sweeps {
        if !inner.is_empty() {
            let above = inner.start - 1;
            let read = source.read(above * order..(inner.end + 1) * order)?;
            let mut written = target.write(inner.start * order..inner.end * order)?;
            for (target, row) in written.chunks_exact_mut(order).zip(inner.clone()) {
                let line = |row: usize| &read[(row - above) * order..][..order];
                relax(line(row - 1), line(row), line(row + 1), target);
            }
        }
        target.barrier().await?;
        std::mem::swap(&mut source, &mut target);
    }
    let seconds = (now() - started).as_secs_f64();
    let read = source.read(own.start * order..own.end * order)?;
    let digests = own.clone().zip(read.chunks_exact(order)).map(|(row, values)| row_digest(row, values));
    let digest = digests.fold(0, u64::wrapping_add);
    drop(read);
    let counts = source.counts().plus(target.counts());
    let is_user_mode_only = source.is_user_mode_only();
    source.close().await?;
    target.close().await?;
    Ok(PlaceOutcome { seconds, digest, counts: Some(counts), is_user_mode_only })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_of_three_has_the_mean_of_its_edge() {
        let mut target = [0.5, 0.0, 0.0];
        relax(&[1.0; 3], &[0.5, 0.0, 0.0], &[1.0 / 3.0, 0.0, 0.0], &mut target);
        assert_eq!(target, [0.5, 0.375, 0.0]);
    }

    #[test]
    fn the_digest_knows_every_bit_and_every_row() {
        assert_ne!(digest_alone(9, 3), digest_alone(9, 4));
        assert_ne!(row_digest(0, &[0.0, 1.0]), row_digest(1, &[0.0, 1.0]));
        assert_ne!(row_digest(0, &[0.0]), row_digest(0, &[-0.0]));
    }

    #[test]
    fn rows_are_dealt_out_whole() {
        let rows: Vec<usize> = (0..5).flat_map(|part| rows_of(13, 5, part)).collect();
        assert_eq!(rows, (0..13).collect::<Vec<_>>());
    }
}
