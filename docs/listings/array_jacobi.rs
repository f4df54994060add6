//! Heat in a plate whose upper edge is hot: blocks of a grid, halos from the places around each, and a norm of all.
use isles::array::{DistArray, Distribution, Halo};
use isles::prelude::*;
use std::ops::Range;

const SIZE: usize = 48;
const STEPS: usize = 60;

/// Returns the new value of an inner cell: the mean of its four neighbours.
fn mean(above: f64, below: f64, left: f64, right: f64) -> f64 {
    (above + below + left + right) / 4.0
}

/// Returns those of `len` indices, starting at `first` of the plate, that are not on its edge.
fn inner(first: usize, len: usize) -> Range<usize> {
    1_usize.saturating_sub(first)..len.min((SIZE - 1).saturating_sub(first))
}

/// Lets the heat flow; returns the sum of all cells.
async fn flow(plate: &DistArray<f64, 2>) -> isles::Result<f64> {
    plate.lock().for_each(|[row, _], cell| *cell = if row == 0 { 1.0 } else { 0.0 });
    // Computed once: which cells change, and where they lie among the values of the part.
    let (mut before, start, step, rows, columns) = {
        let part = plate.read();
        let ([first_row, first_column], [rows, columns]) = (part.global([0, 0]), part.extents());
        let (rows, columns) = (inner(first_row, rows), inner(first_column, columns));
        let start = part.offset([rows.start as isize, columns.start as isize]);
        (part.values().to_vec(), start, part.strides()[0], rows.len(), columns.len())
    };
    for _ in 0..STEPS {
        plate.exchange().await?;
        let mut part = plate.lock();
        let cells = part.values_mut();
        before.copy_from_slice(cells);
        for at in (0..rows).map(|row| start + row * step) {
            let line = |at: usize| &before[at..at + columns];
            let (above, below, left, right) = (line(at - step), line(at + step), line(at - 1), line(at + 1));
            for (column, cell) in cells[at..at + columns].iter_mut().enumerate() {
                *cell = mean(above[column], below[column], left[column], right[column]);
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
