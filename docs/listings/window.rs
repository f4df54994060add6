//! Heat in a ring of cells, as in `halo.rs`: each place writes its edges into the windows of its two neighbours.
use isles::prelude::*;

const CELLS: usize = 10_000;
const STEPS: u64 = 50;

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
async fn flow(halos: &Window<f64>) -> isles::Result<Vec<f64>> {
    let (rank, size) = (halos.rank(), halos.size());
    let (before, after) = ((rank + size - 1) % size, (rank + 1) % size);
    let bound = |rank: usize| rank * CELLS / size;
    let mut piece = start(bound(rank)..bound(rank + 1));
    for number in 0..STEPS {
        // A neighbour may be a step ahead, but not two: so a window has two pairs of cells.
        let pair = 2 * (number % 2) as usize;
        halos.put_notify(before, pair + 1, &piece[..1]).await?;
        halos.put_notify(after, pair, &piece[piece.len() - 1..]).await?;
        let puts = (number + 1) * if before == after { 2 } else { 1 };
        halos.notified(before, puts).await?;
        halos.notified(after, puts).await?;
        let mut beside = [0.0; 2];
        halos.read(pair, &mut beside)?;
        piece = step(&piece, beside[0], beside[1]);
        work(Cycles(8 * piece.len() as u64)); // on a modelled chip; on a real machine nothing changes
    }
    Ok(piece)
}

#[isles::main]
async fn main() -> isles::Result<()> {
    let halos = Window::new(4).await?;
    let pieces = everywhere!(flow(&halos).await?).await?;

    let alone = (0..STEPS).fold(start(0..CELLS), |ring, _| step(&ring, ring[CELLS - 1], ring[0]));
    assert_eq!(pieces.concat(), alone); // bit by bit
    println!("{STEPS} steps on {} places: the first cell has {:.6}", place_count(), alone[0]);
    Ok(())
}
