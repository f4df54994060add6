//! A wave over a grid whose columns are split: a place begins a row when it has the last cell of the place before it.
use isles::array::{DistArray, Distribution, Halo};
use isles::prelude::*;

const ROWS: usize = 40;
const COLUMNS: usize = 60;

/// Computes the rows of this place, each as soon as it can.
async fn wave(team: &Team, grid: &DistArray<f64, 2>) -> isles::Result<()> {
    let (rank, last) = (team.rank(), team.size() - 1);
    grid.lock().for_each(|[row, column], cell| {
        *cell = if row == 0 || column == 0 { (row + column) as f64 } else { 0.0 }
    });
    grid.exchange().await?; // the given row of the place before
    for row in 1..ROWS as isize {
        if rank > 0 {
            let cell = team.recv(rank - 1).await?;
            grid.lock()[[row, -1]] = cell;
        }
        let edge = {
            let mut part = grid.lock();
            let [_, width] = part.extents();
            for column in usize::from(rank == 0) as isize..width as isize {
                part[[row, column]] =
                    part[[row - 1, column]] + part[[row, column - 1]] - part[[row - 1, column - 1]];
            }
            work(Cycles(6 * width as u64)); // on a modelled chip; on a real machine nothing changes
            part[[row, width as isize - 1]]
        };
        if rank < last {
            team.send(rank + 1, &edge).await?;
        }
    }
    Ok(())
}

#[isles::main]
async fn main() -> isles::Result<()> {
    let (team, columns) = (Team::world(), [Distribution::Whole, Distribution::Block]);
    let grid = DistArray::with_halo(&team, [ROWS, COLUMNS], columns, Halo::new(1)).await?;
    everywhere!(wave(&team, &grid).await?).await?;
    let corner = grid.get([ROWS - 1, COLUMNS - 1]).await?;
    assert_eq!(corner, (ROWS + COLUMNS - 2) as f64);
    println!("the last cell is {corner}");
    Ok(())
}
