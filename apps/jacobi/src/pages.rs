//! Jacobi over two arrays that places share page by page; the rows beside those of a place come by page faults.

use super::grid::{first_value, relax, row_digest, rows_of};
use super::run::{Outcome, Sizes};
use isles::prelude::*;
use isles::svm::{Consistency, SvmArray};

/// Runs it over all places.
pub(super) async fn run(sizes: Sizes, model: Consistency) -> isles::Result<Vec<Outcome>> {
    let team = Team::world();
    everywhere!(sweep(&team, sizes, model).await?).await
}

async fn sweep(team: &Team, Sizes { order, sweeps }: Sizes, model: Consistency) -> isles::Result<Outcome> {
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
    source.close().await?;
    target.close().await?;
    Ok(Outcome { seconds, digest, counts: Some(counts) })
}
