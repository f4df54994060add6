//! Heat in a plate whose upper edge is hot: blocks of a grid, halos from the places around each, and a norm of all.
use isles::array::{DistArray, Distribution, Halo};
use isles::prelude::*;

const SIZE: usize = 48;
const STEPS: usize = 60;

/// What each inner cell becomes: the mean of the four around it.
fn mean(above: f64, below: f64, left: f64, right: f64) -> f64 {
    (above + below + left + right) / 4.0
}

/// Lets the heat flow; returns the sum of all cells.
async fn flow(plate: &DistArray<f64, 2>) -> isles::Result<f64> {
    plate.lock().for_each(|[row, _], cell| *cell = if row == 0 { 1.0 } else { 0.0 });
    for _ in 0..STEPS {
        plate.exchange().await?;
        let mut part = plate.lock();
        let before: Vec<f64> = part.values().to_vec();
        let [step, _] = part.strides();
        let is_inner = |index: usize| (1..SIZE - 1).contains(&index);
        let [rows, columns] = part.extents();
        for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
            if part.global([row, column]).into_iter().all(is_inner) {
                let at = part.offset([row as isize, column as isize]);
                let (ends, sides) =
                    ([before[at - step], before[at + step]], [before[at - 1], before[at + 1]]);
                part.values_mut()[at] = mean(ends[0], ends[1], sides[0], sides[1]);
            }
        }
        work(Cycles(20 * (rows * columns) as u64)); // on a modelled chip; on a real machine nothing changes
    }
    plate.reduce(|one, other| one + other).await
}

/// The plate at the end, computed in one place.
fn alone() -> Vec<f64> {
    let mut plate: Vec<f64> = (0..SIZE * SIZE).map(|at| if at < SIZE { 1.0 } else { 0.0 }).collect();
    for _ in 0..STEPS {
        let before = plate.clone();
        for at in (1..SIZE - 1).flat_map(|row| (1..SIZE - 1).map(move |column| row * SIZE + column)) {
            plate[at] = mean(before[at - SIZE], before[at + SIZE], before[at - 1], before[at + 1]);
        }
    }
    plate
}

#[isles::main]
async fn main() -> isles::Result<()> {
    let plate =
        DistArray::with_halo(&Team::world(), [SIZE; 2], [Distribution::Block; 2], Halo::new(1)).await?;
    let sums = everywhere!(flow(&plate).await?).await?;
    let whole = everywhere!(plate.gather(0).await?).await?.swap_remove(0);
    assert_eq!(whole.as_deref(), Some(&alone()[..])); // bit by bit
    println!("{STEPS} steps on {} places: the sum of all cells is {:.4}", place_count(), sums[0]);
    Ok(())
}
