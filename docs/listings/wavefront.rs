//! A wave over a grid whose columns are split over the places, as the kernel p2p of the Parallel Research Kernels.
//!
//! Each cell is the one above plus the one to the left minus the one between. So in each row a place needs one value of
//! the place to its left, and sends one to the right. The last place sends the last cell of all to the first.
use isles::prelude::*;

const ROWS: usize = 100;
const COLUMNS: usize = 300;
const ROUNDS: usize = 5;

/// Sweeps the columns of this place, row by row and round by round; returns the last cell of the last row here.
async fn sweep(left: &Receiver<f64>, right: &Sender<f64>) -> isles::Result<f64> {
    let (place, last_place) = (here().index(), place_count() - 1);
    let bound = |place: usize| 1 + place * (COLUMNS - 1) / place_count(); // column 0 is given
    let mut corner = 0.0;
    for _ in 0..ROUNDS {
        // Row 0 and column 0 have the numbers of their cells; their corner is the last cell of the last round, negated.
        let mut cells: Vec<f64> = (bound(place)..bound(place + 1)).map(|column| column as f64).collect();
        let mut above_left = 0.0;
        for row in 0..ROWS {
            let beside = match (place, row) {
                (0, 0) => -corner,
                (0, row) => row as f64,
                _ => left.recv().await?,
            };
            if row > 0 {
                let (mut before, mut diagonal) = (beside, above_left);
                for cell in &mut cells {
                    let above = std::mem::replace(cell, *cell + before - diagonal);
                    (before, diagonal) = (*cell, above);
                }
                work(Work::new().floats(2 * cells.len() as u64).integers(3 * cells.len() as u64));
            }
            above_left = beside;
            if place < last_place || row == ROWS - 1 {
                right.send(cells[cells.len() - 1]).await?;
            }
        }
        corner = if place == 0 { left.recv().await? } else { cells[cells.len() - 1] };
    }
    Ok(corner)
}

#[isles::main]
async fn main() -> isles::Result<()> {
    assert!(place_count() < COLUMNS, "each place has a column");
    let (mut from_left, mut to_place) = (Vec::new(), Vec::new());
    for place in places() {
        let (sender, receiver) = channel_at::<f64>(place, 16).await?; // where its values are received
        to_place.push(sender);
        from_left.push(receiver);
    }
    to_place.rotate_left(1); // a place sends to the next one
    let corner = finish(async {
        for ((place, left), right) in places().zip(&from_left).zip(&to_place).skip(1) {
            spawn_at!(place, {
                sweep(left, right).await?;
            });
        }
        sweep(&from_left[0], &to_place[0]).await
    })
    .await?;
    println!("after {ROUNDS} rounds the last cell is {corner}");
    assert_eq!(corner, (ROUNDS * (ROWS + COLUMNS - 2)) as f64); // the check of the Parallel Research Kernels
    Ok(())
}
