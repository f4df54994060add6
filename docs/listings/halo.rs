//! Heat in a ring of cells: each place has a piece of it, and exchanges the edges with its two neighbours only.
use isles::prelude::*;
use std::collections::VecDeque;

const CELLS: usize = 10_000;
const STEPS: usize = 50;

/// The cells beside the piece of a place, as its neighbours sent them: the oldest step comes first.
#[derive(Default)]
struct Halo {
    left: VecDeque<f64>,
    right: VecDeque<f64>,
}

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
async fn flow(halos: &PlaceLocal<Monitor<Halo>>) -> Vec<f64> {
    let (before, after) = (here().prev(), here().next());
    let bound = |index: usize| index * CELLS / place_count();
    let mut piece = start(bound(here().index())..bound(here().index() + 1));
    for _ in 0..STEPS {
        let (first, last) = (piece[0], piece[piece.len() - 1]);
        spawn_at!(before, halos.read().atomic(|halo| halo.right.push_back(first)));
        spawn_at!(after, halos.read().atomic(|halo| halo.left.push_back(last)));
        let arrived = |halo: &Halo| !halo.left.is_empty() && !halo.right.is_empty();
        let take = |halo: &mut Halo| (halo.left.pop_front(), halo.right.pop_front());
        let (left, right) = halos.read().when(arrived, take).await;
        piece = step(&piece, left.expect("it has arrived"), right.expect("it has arrived"));
        work(Cycles(8 * piece.len() as u64)); // on a modelled chip; on a real machine nothing changes
    }
    piece
}

#[isles::main]
async fn main() -> isles::Result<()> {
    let halos = PlaceLocal::new(Monitor::<Halo>::default).await?;
    let pieces = everywhere!(flow(&halos).await).await?;

    let alone = (0..STEPS).fold(start(0..CELLS), |ring, _| step(&ring, ring[CELLS - 1], ring[0]));
    assert_eq!(pieces.concat(), alone); // bit by bit
    println!("{STEPS} steps on {} places: the first cell has {:.6}", place_count(), alone[0]);
    Ok(())
}
