//! Heat in a ring of cells: each place has a piece of it, and exchanges the edges with its two neighbours only.
use isles::prelude::*;

const CELLS: usize = 10_000;
const STEPS: usize = 50;

/// The heat of a piece after one more step, with the cells beside it.
fn step(piece: &[f64], left: f64, right: f64) -> Vec<f64> {
    let all = [&[left], piece, &[right]].concat();
    all.windows(3).map(|cells| (cells[0] + 2.0 * cells[1] + cells[2]) / 4.0).collect()
}

/// The heat of cells at the beginning.
fn start(cells: std::ops::Range<usize>) -> Vec<f64> {
    cells.map(|cell| if cell == 0 { 1.0 } else { 0.0 }).collect()
}

/// Lets the heat of the piece of this place flow; returns the piece at the end.
async fn flow(team: &Team) -> isles::Result<Vec<f64>> {
    let (rank, size) = (team.rank(), team.size());
    let (before, after) = ((rank + size - 1) % size, (rank + 1) % size);
    let bound = |rank: usize| rank * CELLS / size;
    let mut piece = start(bound(rank)..bound(rank + 1));
    for _ in 0..STEPS {
        let left = team.send_recv(after, &piece[piece.len() - 1], before).await?;
        let right = team.send_recv(before, &piece[0], after).await?;
        piece = step(&piece, left, right);
        work(Cycles(8 * piece.len() as u64)); // on a modelled chip; on a real machine nothing changes
    }
    Ok(piece)
}

#[isles::main]
async fn main() -> isles::Result<()> {
    let team = Team::world();
    let pieces = everywhere!(flow(&team).await?).await?;

    let alone = (0..STEPS).fold(start(0..CELLS), |ring, _| step(&ring, ring[CELLS - 1], ring[0]));
    assert_eq!(pieces.concat(), alone); // bit by bit
    println!("{STEPS} steps on {} places: the first cell has {:.6}", place_count(), alone[0]);
    Ok(())
}
