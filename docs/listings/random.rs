//! π by throwing points at a square: the same points on every machine and on any number of places.
use isles::Random;
use isles::prelude::*;

const SEED: u64 = 1;
const BATCHES: usize = 240;
const POINTS: usize = 1000;

/// Returns the number of points drawn from `random` that lie in the quarter of a circle.
fn hits(random: &mut Random) -> usize {
    work(Cycles(40 * POINTS as u64)); // on a modelled chip; on a real machine nothing changes
    (0..POINTS)
        .filter(|_| {
            let (x, y) = (random.unit(), random.unit());
            x * x + y * y < 1.0
        })
        .count()
}

#[isles::main]
async fn main() -> isles::Result<()> {
    let by_place = everywhere!({
        let batches = (here().index()..BATCHES).step_by(place_count());
        // The stream is that of the batch, whoever computes it.
        batches.map(|batch| hits(&mut Random::stream(SEED, batch as u64))).sum::<usize>()
    })
    .await?;
    let hits: usize = by_place.iter().sum();
    println!("π is about {:.4}", 4.0 * hits as f64 / (BATCHES * POINTS) as f64);
    assert_eq!(hits, 188_631); // whatever the machine and the number of places
    Ok(())
}
