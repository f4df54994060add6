//! Jacobi over an array that lies in parts, one at each place; the rows beside a part come by messages.

use super::grid::{first_value, relax, row_digest};
use super::run::{Outcome, Sizes};
use isles::array::{ArrayPart, DistArray, Distribution, Halo};
use isles::prelude::*;

/// Runs it over all places.
pub(super) async fn run(Sizes { order, sweeps }: Sizes) -> isles::Result<Vec<Outcome>> {
    let team = Team::world();
    let cut = [Distribution::Block, Distribution::Whole];
    let halo = Halo::new(1).without_axis(1);
    let one = DistArray::<f64, 2>::with_halo(&team, [order; 2], cut, halo).await?;
    let other = DistArray::<f64, 2>::with_halo(&team, [order; 2], cut, halo).await?;
    everywhere!(sweep(&team, (&one, &other), sweeps).await?).await
}

async fn sweep(
    team: &Team,
    (one, other): (&DistArray<f64, 2>, &DistArray<f64, 2>),
    sweeps: u64,
) -> isles::Result<Outcome> {
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
    Ok(Outcome { seconds, digest: digest(&source.read()), ..Outcome::default() })
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
