//! A row of cells in pieces, one at each place, that says what its sums cost on a modelled chip.
use isles::clocks;
use isles::prelude::*;

const CELLS: usize = 1 << 10;

/// Lets the heat of a piece flow for `steps` steps; gives the heat of the whole row.
async fn flow(team: &Team, steps: u32) -> isles::Result<f64> {
    let (rank, last) = (team.rank(), team.size() - 1);
    let mut piece = vec![if rank == 0 { 1.0 } else { 0.0 }; CELLS];
    for _ in 0..steps {
        let edges = team.all_gather((piece[0], piece[CELLS - 1])).await?;
        let left = if rank == 0 { piece[0] } else { edges[rank - 1].1 };
        let right = if rank == last { piece[CELLS - 1] } else { edges[rank + 1].0 };
        let at = |index: usize| piece[index];
        piece = (0..CELLS)
            .map(|index| {
                let before = if index == 0 { left } else { at(index - 1) };
                let after = if index == CELLS - 1 { right } else { at(index + 1) };
                (before + 2.0 * at(index) + after) / 4.0
            })
            .collect();
        work(Cycles(12 * CELLS as u64)); // on a modelled chip: three sums, a product, four words each
    }
    team.all_reduce(piece.iter().sum(), |a, b| a + b).await
}

#[isles::main]
async fn main() -> isles::Result<()> {
    let started = now();
    finish(async {
        for place in places() {
            spawn_at!(place, {
                // 1600 MHz / 6 for the cores of this tile, half of what they have; on a real machine nothing changes.
                clocks::set_tile_divider(6).map_err(isles::Error::message)?;
                let heat = flow(&Team::world(), 20).await?;
                assert!((heat - CELLS as f64).abs() < 1e-6, "{heat}");
            });
        }
    })
    .await?;
    println!("{:?} for 20 steps of {} cells", now() - started, CELLS * places().len());
    Ok(())
}
