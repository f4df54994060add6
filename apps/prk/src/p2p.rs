//! The kernel p2p (Synch_p2p): a wave over a grid with distributed columns, passing one number per row to the right.

use super::{KernelOutcome, MFLOPS, Sizes, begin, together};
use isles::array::{ArrayPart, DistArray, Distribution, Halo};
use isles::prelude::*;

/// Checks that each place has a column.
pub(super) fn check(sizes: &Sizes, places: u32) -> Result<(), String> {
    match sizes.columns > places as usize {
        true => Ok(()),
        false => {
            Err(format!("--columns is {}; allowed with {places} places: more than these", sizes.columns))
        }
    }
}

/// Runs the kernel over all places.
pub(super) async fn run(Sizes { columns, rows, iterations, .. }: Sizes) -> isles::Result<KernelOutcome> {
    let team = Team::world();
    let cut = [Distribution::Whole, Distribution::Block];
    let grid = DistArray::<f64, 2>::with_halo(&team, [rows, columns], cut, Halo::new(1)).await?;
    let found = everywhere!(wave(&team, &grid, iterations).await?).await?;
    // The expected last cell is known; only the last place has it.
    let (seconds, corner) = together(found, |one, other| one + other);
    let expected = ((iterations + 1) * (columns + rows - 2) as u64) as f64;
    let operations = (iterations * 2) as f64 * (columns - 1) as f64 * (rows - 1) as f64;
    let error = (corner - expected).abs() / expected;
    Ok(KernelOutcome::new(seconds, operations, MFLOPS, error))
}

/// Runs the part of this place; returns its seconds, and the last cell of the grid if it is here.
async fn wave(team: &Team, grid: &DistArray<f64, 2>, iterations: u64) -> isles::Result<(f64, f64)> {
    let (rank, last) = (team.rank(), team.size() - 1);
    let [rows, _] = grid.extents();
    // The given row and column, also in the halo before the first column of a place.
    {
        let mut part = grid.lock();
        let first_column = part.global([0, 0])[1];
        for (number, cell) in part.line_mut([0, -1]).iter_mut().enumerate() {
            *cell = (first_column + number) as f64 - 1.0;
        }
        if rank == 0 {
            (0..rows).for_each(|row| part[[row as isize, 0]] = row as f64);
        }
    }
    let lines = PartRows::of(&grid.read());
    let mut started = now();
    for iteration in 0..=iterations {
        if iteration == 1 {
            started = begin(team).await?;
        }
        for row in 1..rows {
            let mut left = [0.0];
            if rank > 0 {
                team.recv_slice(rank - 1, &mut left).await?;
            }
            let edge = lines.compute(grid, row, left[0]);
            if rank < last {
                team.send_slice(rank + 1, &[edge]).await?;
            }
        }
        let mut corner = [-corner_of(grid, rows)];
        if rank == last && last > 0 {
            team.send_slice(0, &corner).await?;
        }
        if rank == 0 {
            if last > 0 {
                team.recv_slice(last, &mut corner).await?;
            }
            grid.lock()[[0, 0]] = corner[0];
            if lines.width == 0 {
                team.send_slice(1, &corner).await?;
            }
        } else if lines.is_second {
            team.recv_slice(0, &mut corner).await?;
            grid.lock()[[0, -1]] = corner[0];
        }
    }
    let seconds = (now() - started).as_secs_f64();
    Ok((seconds, if rank == last { corner_of(grid, rows) } else { 0.0 }))
}

/// Memory layout of the rows of a part.
struct PartRows {
    /// Position in the given row of the cell before the first computed one.
    start: usize,
    /// Distance from a cell to the same one of the next row.
    stride: usize,
    /// Number of computed cells per row.
    width: usize,
    /// `true` if the cell before them is received from the place to the left.
    comes: bool,
    /// `true` if the cell before them is in the first column of the grid, at another place, which then sends its
    /// corner.
    is_second: bool,
}

impl PartRows {
    fn of(part: &ArrayPart<f64, 2>) -> PartRows {
        let [_, width] = part.extents();
        let [stride, _] = part.strides();
        // The first column of the grid is given.
        let first = part.global([0, 0])[1];
        let given = usize::from(first == 0);
        let start = part.offset([0, -1]) + given;
        PartRows { start, stride, width: width - given, comes: given == 0, is_second: first == 1 }
    }

    /// Computes a row: each cell is the one above plus the one to the left minus the one diagonally between. Returns
    /// the last cell.
    #[inline]
    fn compute(&self, grid: &DistArray<f64, 2>, row: usize, left: f64) -> f64 {
        let PartRows { start, stride, width, comes, .. } = *self;
        // The row above was written last and is still cached, so only this row is streamed, out of all rows.
        let [bytes, all] = [1, grid.extents()[0]].map(|rows| 8 * (rows * width) as u64);
        work(Work::new().floats(2 * width as u64).streamed(bytes).of(all));
        let mut part = grid.lock();
        let two = &mut part.values_mut()[start + (row - 1) * stride..][..2 * stride];
        let (above, this) = two.split_at_mut(stride);
        if comes {
            this[0] = left;
        }
        let mut before = this[0];
        for (cell, above) in this[1..=width].iter_mut().zip(above[..=width].windows(2)) {
            before = above[1] + before - above[0];
            *cell = before;
        }
        before
    }
}

/// Returns the last cell of the part of this place.
fn corner_of(grid: &DistArray<f64, 2>, rows: usize) -> f64 {
    let part = grid.read();
    let [_, width] = part.extents();
    part[[rows as isize - 1, width as isize - 1]]
}
