//! A wave over a grid with its columns distributed over the places: the kernel p2p of the Parallel Research Kernels.
//!
//! The kernel is Synch_p2p of R. F. Van der Wijngaart and T. G. Mattson, "The Parallel Research Kernels", HPEC 2014.
//! Values are sent as messages between members, or over channels as in the book's listing `wavefront`; unlike there,
//! the whole grid is kept, as in the kernel, and its first row is given and not sent. `peers/mpi.c` does the same,
//! loop by loop. Invariants: place 0 has the last cell of the grid when a batch ends, so all places have completed it;
//! that cell is correct after each batch.

use super::{run, seconds_per_step};
use crate::child::timing::Effort;
use crate::child::timing::print_figure;
use isles::prelude::*;

/// Number of rows that a place may be ahead of the next one, as in the listing.
const CAPACITY: usize = 16;

/// Size of a grid, including the given column and row.
#[derive(Clone, Copy, serde::Serialize, serde::Deserialize)]
struct Extent {
    columns: usize,
    rows: usize,
}

/// Prints `square_mflops` of 1,024 columns and rows, and `tall_mflops` of 128 columns and 8,192 rows, with messages
/// between members.
pub fn of_members(effort: Effort) {
    run(move || both_grids(effort, false));
}

/// The same over channels.
pub fn of_channels(effort: Effort) {
    run(move || both_grids(effort, true));
}

async fn both_grids(effort: Effort, has_channels: bool) -> isles::Result<()> {
    print_figure("square_mflops", rate(effort, Extent { columns: 1_024, rows: 1_024 }, has_channels).await?);
    print_figure("tall_mflops", rate(effort, Extent { columns: 128, rows: 8_192 }, has_channels).await?);
    Ok(())
}

/// Links of a place to its neighbours, from the left and to the right.
#[derive(Clone, serde::Serialize, serde::Deserialize)]
enum Neighbors {
    Members(Team),
    Channels(Receiver<f64>, Sender<f64>),
}

impl Neighbors {
    /// Receives a cell from the place to the left; the first place receives from the last.
    async fn receive_left(&self) -> isles::Result<f64> {
        match self {
            Neighbors::Members(team) => {
                let mut cell = [0.0];
                team.recv_slice((team.rank() + team.size() - 1) % team.size(), &mut cell).await?;
                Ok(cell[0])
            }
            Neighbors::Channels(left, _) => Ok(left.recv().await?),
        }
    }

    async fn send_right(&self, cell: f64) -> isles::Result<()> {
        match self {
            Neighbors::Members(team) => team.send_slice((team.rank() + 1) % team.size(), &[cell]).await,
            Neighbors::Channels(_, right) => Ok(right.send(cell).await?),
        }
    }
}

/// Returns the millions of additions and subtractions per second over all places.
async fn rate(effort: Effort, extent: Extent, has_channels: bool) -> isles::Result<f64> {
    let (mut from_left, mut to_place, mut start, mut batches) = (vec![], vec![], vec![], vec![]);
    for place in places() {
        let (sender, receiver) = channel_at::<f64>(place, CAPACITY).await?; // where its values are received
        to_place.push(sender);
        from_left.push(receiver);
        let (sender, receiver) = channel_at::<u64>(place, 1).await?;
        start.push(sender);
        batches.push(receiver);
    }
    to_place.rotate_left(1); // a place sends to the next one
    let link = |place: Place| match has_channels {
        true => Neighbors::Channels(from_left[place.index()].clone(), to_place[place.index()].clone()),
        false => Neighbors::Members(Team::world()),
    };
    finish(async {
        for (place, batches) in places().zip(&batches).skip(1) {
            let link = link(place);
            spawn_at!(place, {
                let (mut strip, mut batches) = (Strip::new(extent), batches.stream());
                while let Some(count) = batches.next().await? {
                    strip.sweep(count, &link).await?;
                }
            });
        }
        let (mut strip, mut swept, link) = (Strip::new(extent), 0, link(here()));
        let seconds = seconds_per_step(effort, async |count| {
            for start in &start[1..] {
                start.send(count).await?;
            }
            strip.sweep(count, &link).await?;
            swept += count;
            let expected = swept * (extent.columns + extent.rows - 2) as u64; // as the kernel verifies itself
            assert_eq!(-strip.cells[0], expected as f64, "the last cell after {swept} sweeps");
            Ok(())
        })
        .await?;
        start[1..].iter().for_each(Sender::close);
        let operations = 2 * (extent.columns - 1) * (extent.rows - 1);
        Ok::<_, isles::Error>(1e-6 * operations as f64 / seconds)
    })
    .await
}

/// The columns of this place, preceded by the last one of the place to the left.
struct Strip {
    /// Row after row.
    cells: Vec<f64>,
    /// Cells of a row.
    width: usize,
}

impl Strip {
    /// Creates the initial grid: row 0 and column 0 have the numbers of their cells.
    fn new(extent: Extent) -> Strip {
        let bound = |place: usize| place * (extent.columns - 1) / place_count();
        let (first, last) = (bound(here().index()), bound(here().index() + 1));
        let width = last - first + 1;
        let mut cells = vec![0.0; width * extent.rows];
        for (column, cell) in cells[..width].iter_mut().enumerate() {
            *cell = (first + column) as f64;
        }
        if first == 0 {
            for (row, cells) in cells.chunks_mut(width).enumerate() {
                cells[0] = row as f64;
            }
        }
        Strip { cells, width }
    }

    /// Sweeps the grid `count` times, row by row. After each sweep the last cell of the grid, negated, becomes the
    /// first.
    async fn sweep(&mut self, count: u64, link: &Neighbors) -> isles::Result<()> {
        let (is_first, is_last) = (here().index() == 0, here().index() == place_count() - 1);
        for _ in 0..count {
            let mut rows = self.cells.chunks_mut(self.width);
            let mut above = rows.next().expect("a grid has rows");
            for row in rows {
                if !is_first {
                    row[0] = link.receive_left().await?;
                }
                next_row(above, row);
                if !is_last {
                    link.send_right(row[row.len() - 1]).await?;
                }
                above = row;
            }
            if is_last {
                link.send_right(-above[above.len() - 1]).await?;
            }
            if is_first {
                self.cells[0] = link.receive_left().await?;
            }
        }
        Ok(())
    }
}

/// Computes a row: each cell except the first is the one above plus the one to the left minus the one diagonally
/// between.
fn next_row(above: &[f64], row: &mut [f64]) {
    let (mut before, cells) =
        row.split_first_mut().map(|(first, cells)| (*first, cells)).expect("a row has cells");
    for (cell, above) in cells.iter_mut().zip(above.windows(2)) {
        before = above[1] + before - above[0];
        *cell = before;
    }
}
